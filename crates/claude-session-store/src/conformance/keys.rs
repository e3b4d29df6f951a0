//! Keys with characters that stores tend to interpret.

use crate::{Append, Load};

use super::fixture::{
    Failure, Fixture, Outcome, entries, entry_of, expect, id, project, session, subpath,
};

/// Texts that are equal, prefixes of each other or patterns under some interpretation.
pub(super) const UNUSUAL: [&str; 34] = [
    "a",
    "A",
    "a ",
    " a",
    "ab",
    "a/b",
    "a/",
    "/a",
    "a:b",
    "a::b",
    "a%",
    "a_",
    "%",
    "_",
    "*",
    "a*",
    "?",
    "..",
    ".",
    "../a",
    "a\\b",
    "a'b",
    "a\"b",
    "a;b",
    "a--b",
    "a\nb",
    "a\tb",
    "$1",
    "{a}",
    "é",
    "e\u{301}",
    "😀",
    "שלום\u{202e}",
    "ß",
];

pub(super) async fn unusual_scopes_and_projects_are_separate(fixture: Fixture) -> Outcome {
    let mut keys = Vec::new();
    for text in UNUSUAL {
        keys.extend([project(text, "p"), project("s", text), project(text, text)]);
    }
    // Joined with a separator, these are equal.
    for separator in ["/", ":", ".", "|", ",", "\u{1f}"] {
        keys.push(project("x", &format!("y{separator}z")));
        keys.push(project(&format!("x{separator}y"), "z"));
    }
    for (number, key) in keys.iter().enumerate() {
        let batch = entries(&[&number.to_string()]);
        fixture.store.append(&session(key, 1), Append::new(&batch)).await?;
    }
    for (number, key) in keys.iter().enumerate() {
        let check = async || {
            let found = fixture.texts_of(&session(key, 1)).await?;
            expect("the entries", &found, &[number.to_string()])?;
            expect("the listed sessions", &fixture.listed(key).await?, &[id(1)])
        };
        check().await.map_err(|Failure(text)| Failure(format!("{key:?}: {text}")))?;
    }
    Ok(())
}

pub(super) async fn unusual_subpaths_are_separate(fixture: Fixture) -> Outcome {
    let is_valid = |text: &&str| crate::Subpath::new(text).is_ok();
    let mut subpaths: Vec<_> = UNUSUAL.into_iter().filter(is_valid).map(subpath).collect();
    subpaths.extend(["main", "null", "None", "a/b/c", "subagents/a.jsonl"].map(subpath));
    for (number, subpath) in subpaths.iter().enumerate() {
        fixture.append(&[entry_of(Some(subpath), &number.to_string())]).await?;
    }
    for (number, subpath) in subpaths.iter().enumerate() {
        let found = fixture.texts(Load::subpath(subpath)).await?;
        expect("the entries of a subpath", &found, &[number.to_string()])?;
    }
    expect("the main transcript", &fixture.texts(Load::main()).await?.len(), &0)?;
    let mut expected = subpaths.clone();
    expected.sort();
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &expected)
}

pub(super) async fn longest_keys_are_accepted(fixture: Fixture) -> Outcome {
    let long = "é".repeat(256);
    let other = format!("{}e", &long[..510]);
    let name = subpath(&"x".repeat(512));
    for (number, text) in (1..).zip([&long, &other]) {
        let key = session(&project(text, text), 1);
        let batch = [entry_of(None, &number.to_string()), entry_of(Some(&name), "0")];
        fixture.store.append(&key, Append::new(&batch)).await?;
    }
    for (number, text) in (1..).zip([&long, &other]) {
        let key = session(&project(text, text), 1);
        let expected = [number.to_string(), "0".to_owned()];
        expect("the entries", &fixture.texts_of(&key).await?, &expected)?;
        expect("the subpaths", &fixture.store.subpaths(&key).await?, &std::slice::from_ref(&name))?;
    }
    Ok(())
}
