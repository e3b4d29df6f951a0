//! Summaries of sessions.

use crate::{Append, Sequence, Summary};

use super::fixture::{Fixture, Outcome, entries, entry_of, expect, project, session, subpath};

/// Returns the summary of the session of the fixture.
async fn summary(fixture: &Fixture) -> Result<Option<Summary>, super::Failure> {
    Ok(fixture.row().await?.summary)
}

pub(super) async fn summaries_are_kept_per_session(fixture: Fixture) -> Outcome {
    let start = Sequence::new(0);
    let other = session(&project("scope", "other"), 1);
    for (key, data) in [(&fixture.key, "1"), (&fixture.session(2), "2"), (&other, "3")] {
        fixture.store.append(key, Append::new(&entries(&["1"])).summary(start, data)).await?;
    }
    let row = fixture.row().await?;
    expect("the summary", &row.summary, &Some(Summary::new("1".to_owned(), row.last)))?;
    let rows = fixture.list(&fixture.project).await?;
    let mut found: Vec<_> = rows.into_iter().filter_map(|row| Some(row.summary?.data)).collect();
    found.sort();
    expect("the summaries of the project", &found, &["1", "2"])?;
    fixture.append(&[entry_of(Some(&subpath("subagents/a")), "2")]).await?;
    expect("the session after an append to a subpath", &fixture.row().await?, &row)?;
    fixture.store.delete(&fixture.key, None).await?;
    fixture.append(&entries(&["1"])).await?;
    expect("the summary after a delete", &summary(&fixture).await?, &None)
}

pub(super) async fn summary_is_applied_only_after_the_last_entry(fixture: Fixture) -> Outcome {
    let start = Sequence::new(0);
    let append = async |text: &str, after: Sequence, data: &str| {
        let batch = entries(&[text]);
        fixture.store.append(&fixture.key, Append::new(&batch).summary(after, data)).await
    };
    let first = append("1", Sequence::new(7), "early").await?;
    expect("a summary after an unknown entry", &summary(&fixture).await?, &None)?;
    let second = append("2", first.last, "b").await?;
    let expected = Some(Summary::new("b".to_owned(), second.last));
    expect("a summary after the last entry", &summary(&fixture).await?, &expected)?;
    for after in [start, first.last] {
        append(&format!("{}", 30 + after.get()), after, "late").await?;
        expect("a summary after an earlier entry", &summary(&fixture).await?, &expected)?;
    }
    let last = fixture.append(&entries(&["4"])).await?.last;
    expect("an append without a summary", &summary(&fixture).await?, &expected)?;
    let last = append("5", last, "c").await?.last;
    let expected = Some(Summary::new("c".to_owned(), last));
    expect("a summary after the last entry", &summary(&fixture).await?, &expected)
}

pub(super) async fn summary_is_kept_byte_for_byte(fixture: Fixture) -> Outcome {
    let mut last = Sequence::new(0);
    let long = format!("{:?}", "x".repeat(100_000));
    let texts = [
        r#"{ "b":1.0, "a" : [ ] ,"b":2}"#,
        r#"{"t":"\u0000\ud800 \"😀é\u0301"}"#,
        "\"שלום\"",
        &long,
    ];
    for (number, data) in texts.into_iter().enumerate() {
        let batch = entries(&[&number.to_string()]);
        let append = Append::new(&batch).summary(last, data);
        last = fixture.store.append(&fixture.key, append).await?.last;
        let found = summary(&fixture).await?.map(|summary| summary.data);
        expect("the summary", &found, &Some(data.to_owned()))?;
    }
    Ok(())
}
