//! Texts that stores tend to change or to reject.

use crate::Load;

use super::fixture::{Fixture, Outcome, entry, expect};

/// Appends a character to a JSON string, escaped only where JSON requires it.
fn push(text: &mut String, letter: char) {
    match letter {
        '"' | '\\' => text.extend(['\\', letter]),
        letter if letter < ' ' => {
            text.push_str("\\u00");
            text.extend([0x10, 1].map(|digit| {
                char::from_digit(letter as u32 / digit % 0x10, 0x10).unwrap_or_default()
            }));
        }
        letter => text.push(letter),
    }
}

/// Returns JSON strings that contain every character.
pub(super) fn every_character() -> Vec<String> {
    let letters: Vec<char> = ('\0'..=char::MAX).collect();
    let mut texts = Vec::new();
    for letters in letters.chunks(8_192) {
        let mut text = "\"".to_owned();
        for letter in letters {
            push(&mut text, *letter);
        }
        text.push('"');
        texts.push(text);
    }
    texts
}

pub(super) async fn every_unicode_character_is_kept(fixture: Fixture) -> Outcome {
    let expected = every_character();
    let batch: Vec<_> = expected.iter().map(|text| entry(text)).collect();
    fixture.append(&batch).await?;
    let found = fixture.texts(Load::main()).await?;
    expect("the number of entries", &found.len(), &expected.len())?;
    for (found, expected) in found.iter().zip(&expected) {
        expect("the characters", found, expected)?;
    }
    Ok(())
}

/// Returns JSON texts that parsers tend to change.
pub(super) fn unusual_json() -> Vec<String> {
    let deep = "[".repeat(1_000) + &"]".repeat(1_000);
    let texts = [
        r#"{"b":1,"a":2,"c":{"z":0,"y":0}}"#,
        r#"{"a":1,"a":2}"#,
        "{ \"a\" :\t[ 1 ,\n2 ]\r\n}",
        " {} ",
        r#"{"number":[1e400,-1e-400,1.0,1.00,-0,-0.0,12345678901234567890123456789,1E5]}"#,
        r#"{"text":"\u0000"}"#,
        r#"{"text":"\ud800 \udc00 \udc00\ud800"}"#,
        r#"{"\ud800":"\u0000","":null}"#,
        r#"{"text":"\/\u0041\u00e9\ud83d\ude00"}"#,
        r#"{"text":"'; DROP TABLE entry; -- \\' %s {} $1 ?1 :a @b"}"#,
        "\"\u{feff}\u{2028}\u{2029}\u{fffe}\u{ffff}\u{10ffff}\u{7f}\u{80}\"",
        "\"e\u{301}\"",
        "\"\u{e9}\"",
        "null",
        "0",
        "\"\"",
        "[]",
        &deep,
    ];
    texts.map(str::to_owned).into()
}

pub(super) async fn json_is_kept_byte_for_byte(fixture: Fixture) -> Outcome {
    let expected = unusual_json();
    let batch: Vec<_> = expected.iter().map(|text| entry(text)).collect();
    fixture.append(&batch).await?;
    let found = fixture.texts(Load::main()).await?;
    expect("the number of entries", &found.len(), &expected.len())?;
    for (found, expected) in found.iter().zip(expected) {
        expect("the text", found, &expected)?;
    }
    Ok(())
}

pub(super) async fn batch_of_70000_entries_is_stored(fixture: Fixture) -> Outcome {
    let batch: Vec<_> = (0..70_000).map(|number| entry(&format!("[{number}]"))).collect();
    let appended = fixture.append(&batch).await?;
    expect("the skipped entries", &appended.skipped, &0)?;
    expect("the number of sequence numbers", &appended.sequences.len(), &batch.len())?;
    let found = fixture.texts(Load::main().limit(10_000)).await?;
    expect("the number of entries", &found.len(), &batch.len())?;
    let is_same = found.iter().zip(&batch).all(|(found, new)| **found == **new.text());
    expect("whether the entries are the same", &is_same, &true)?;
    expect("the skipped entries", &fixture.append(&batch).await?.skipped, &70_000)
}

pub(super) async fn entry_of_8_megabytes_is_stored(fixture: Fixture) -> Outcome {
    let text = format!("{{\"text\":\"{}\"}}", "0123456789abcde\u{e9}".repeat(500_000));
    fixture.append(&[entry("1"), entry(&text), entry("2")]).await?;
    let found = fixture.texts(Load::main()).await?;
    expect("the number of entries", &found.len(), &3)?;
    let is_same = found[1] == text;
    expect("whether the entry is the same", &is_same, &true)
}
