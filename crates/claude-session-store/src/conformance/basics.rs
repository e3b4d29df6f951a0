//! Appending, loading and subpaths.

use crate::{Append, Load, Sequence};

use super::fixture::{
    Fixture, Outcome, ensure, entries, entry, entry_of, expect, id, sequences, subpath, texts,
};

pub(super) async fn entries_are_loaded_in_the_order_of_their_append(fixture: Fixture) -> Outcome {
    let texts = [
        format!(r#"{{"type":"x","uuid":"{}","n":1}}"#, id(2)),
        format!(r#"{{"type":"x","uuid":"{}","n":2}}"#, id(1)),
        r#"{"type":"x"}"#.to_owned(),
    ];
    let batch: Vec<_> = texts.iter().map(|text| entry(text)).collect();
    let appended = fixture.append(&batch).await?;
    expect("the number of sequence numbers", &appended.sequences.len(), &3)?;
    expect("the number of skipped entries", &appended.skipped, &0)?;
    let loaded = fixture.load_from(&fixture.key, Load::main()).await?;
    expect("the sequence numbers", &sequences(&loaded), &appended.sequences)?;
    expect("the last sequence number", &Some(appended.last), &appended.sequences.last().copied())?;
    ensure!(appended.sequences[0] >= Sequence::new(1), "sequence numbers start below 1");
    for (stored, new) in loaded.iter().zip(&batch) {
        expect("the ID", &stored.id, new.id())?;
        expect("the subpath", &stored.subpath, &None)?;
    }
    expect("the entries", &super::fixture::texts(&loaded), &texts.to_vec())
}

pub(super) async fn unknown_transcripts_are_empty(fixture: Fixture) -> Outcome {
    for load in [Load::all(), Load::main(), Load::subpath(&subpath("subagents/a"))] {
        let page = fixture.store.load(&fixture.key, load).await?;
        ensure!(page.entries.is_empty() && !page.more, "an unknown session has entries");
    }
    fixture.append(&entries(&["{}"])).await?;
    let unknown = fixture.texts(Load::subpath(&subpath("subagents/a"))).await?;
    expect("the entries of an unknown subpath", &unknown.len(), &0)?;
    expect(
        "the entries of another session",
        &fixture.texts_of(&fixture.session(2)).await?.len(),
        &0,
    )
}

pub(super) async fn appends_keep_their_order(fixture: Fixture) -> Outcome {
    for batch in [&["3", "1"][..], &["2"], &["5", "4"]] {
        fixture.append(&entries(batch)).await?;
    }
    expect("the entries", &fixture.texts(Load::main()).await?, &["3", "1", "2", "5", "4"])
}

pub(super) async fn empty_append_changes_nothing(fixture: Fixture) -> Outcome {
    let appended = fixture.append(&[]).await?;
    expect("the last sequence number", &appended.last, &Sequence::new(0))?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?.len(), &0)?;
    let first = fixture.append(&entries(&["1", "2"])).await?;
    let row = fixture.row().await?;
    let append = Append::new(&[]).summary(first.last, "{}");
    let appended = fixture.store.append(&fixture.key, append).await?;
    expect("the last sequence number", &appended.last, &first.last)?;
    expect("the session in the list", &fixture.row().await?, &row)?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2"])
}

pub(super) async fn subpaths_are_separate_transcripts(fixture: Fixture) -> Outcome {
    let (a, b) = (subpath("subagents/agent-a"), subpath("subagents/agent-b"));
    fixture.append(&entries(&["1"])).await?;
    fixture.append(&[entry_of(Some(&a), "2"), entry_of(Some(&b), "3")]).await?;
    expect("the main transcript", &fixture.texts(Load::main()).await?, &["1"])?;
    expect("the first subpath", &fixture.texts(Load::subpath(&a)).await?, &["2"])?;
    expect("the second subpath", &fixture.texts(Load::subpath(&b)).await?, &["3"])
}

pub(super) async fn subpaths_are_those_of_the_session(fixture: Fixture) -> Outcome {
    for name in ["subagents/b", "subagents/a", "subagents/a/nested", "other"] {
        fixture.append(&[entry_of(Some(&subpath(name)), "1")]).await?;
    }
    let other = [entry_of(Some(&subpath("subagents/c")), "1")];
    fixture.store.append(&fixture.session(2), Append::new(&other)).await?;
    let found = fixture.store.subpaths(&fixture.key).await?;
    let expected = ["other", "subagents/a", "subagents/a/nested", "subagents/b"].map(subpath);
    expect("the subpaths", &found, &expected)
}

pub(super) async fn main_transcript_is_not_a_subpath(fixture: Fixture) -> Outcome {
    expect(
        "the subpaths of an unknown session",
        &fixture.store.subpaths(&fixture.key).await?,
        &[],
    )?;
    fixture.append(&entries(&["1"])).await?;
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &[])
}

pub(super) async fn all_transcripts_share_one_order(fixture: Fixture) -> Outcome {
    let a = subpath("subagents/a");
    let batch = [entry("1"), entry_of(Some(&a), "2"), entry("3"), entry_of(Some(&a), "1")];
    fixture.append(&batch).await?;
    fixture.append(&[entry_of(Some(&a), "5"), entry("4")]).await?;
    let loaded = fixture.load_from(&fixture.key, Load::all()).await?;
    expect("the entries", &texts(&loaded), &["1", "2", "3", "1", "5", "4"])?;
    let subpaths: Vec<bool> = loaded.iter().map(|entry| entry.subpath.is_some()).collect();
    expect("whether entries have a subpath", &subpaths, &[false, true, false, true, true, false])
}
