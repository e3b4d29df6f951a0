//! Entries that are appended more than once.

use crate::{Append, Load, NewEntry};

use super::fixture::{Fixture, Outcome, entries, entry, entry_of, expect, id, subpath};

pub(super) async fn repeated_batch_is_skipped(fixture: Fixture) -> Outcome {
    let batch = entries(&["1", "2", "3"]);
    let first = fixture.append(&batch).await?;
    let row = fixture.row().await?;
    for _ in 0..3 {
        let again = fixture.append(&batch).await?;
        expect("the skipped entries", &again.skipped, &3)?;
        expect("the last sequence number", &again.last, &first.last)?;
        expect("the sequence numbers", &again.sequences, &first.sequences)?;
    }
    expect("the session in the list", &fixture.row().await?, &row)?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "3"])
}

pub(super) async fn batch_with_known_and_new_entries_stores_the_new_ones(
    fixture: Fixture,
) -> Outcome {
    let first = fixture.append(&entries(&["1", "2"])).await?;
    let second = fixture.append(&entries(&["2", "3", "1", "4"])).await?;
    expect("the skipped entries", &second.skipped, &2)?;
    expect("a skipped entry", &second.sequences[0], &first.sequences[1])?;
    expect("a skipped entry", &second.sequences[2], &first.sequences[0])?;
    expect("the last sequence number", &second.last, &second.sequences[3])?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "3", "4"])
}

pub(super) async fn repeated_id_within_a_batch_is_stored_once(fixture: Fixture) -> Outcome {
    let appended = fixture.append(&entries(&["1", "2", "1", "1"])).await?;
    expect("the skipped entries", &appended.skipped, &2)?;
    expect("a skipped entry", &appended.sequences[3], &appended.sequences[0])?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2"])?;
    // The same text a second time in the transcript is another entry.
    fixture.append(&[NewEntry::new(None, "1", 1)?]).await?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "1"])
}

pub(super) async fn changed_entry_is_a_new_version(fixture: Fixture) -> Outcome {
    let version = |number: u32| format!(r#"{{"uuid":"{}","version":{number}}}"#, id(1));
    for number in [1, 2, 1, 2] {
        fixture.append(&[entry(&version(number))]).await?;
    }
    expect("the entries", &fixture.texts(Load::all()).await?, &[version(1), version(2)])
}

/// Forks copy entries with their UUIDs, so an ID says nothing about other sessions.
pub(super) async fn ids_are_per_transcript_and_session(fixture: Fixture) -> Outcome {
    let text = format!(r#"{{"uuid":"{}"}}"#, id(1));
    let (a, b) = (subpath("subagents/a"), subpath("subagents/b"));
    let batch = [None, Some(&a), Some(&b)].map(|subpath| entry_of(subpath, &text));
    for key in [&fixture.key, &fixture.session(2)] {
        let appended = fixture.store.append(key, Append::new(&batch)).await?;
        expect("the skipped entries", &appended.skipped, &0)?;
        expect("the entries", &fixture.texts_of(key).await?.len(), &3)?;
    }
    Ok(())
}
