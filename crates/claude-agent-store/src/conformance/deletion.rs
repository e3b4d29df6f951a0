//! Deletion.

use claude_agent_kit::store::{Append, Load};

use super::fixture::{
    Fixture, Outcome, ensure, entries, entry, entry_of, expect, id, project, session, subpath,
};

pub(super) async fn deleted_session_is_empty(fixture: Fixture) -> Outcome {
    fixture.store.delete(&fixture.key, None).await?;
    fixture.store.delete(&fixture.key, Some(&subpath("subagents/a"))).await?;
    fixture.append(&entries(&["1"])).await?;
    fixture.store.delete(&fixture.key, None).await?;
    expect("the entries", &fixture.texts(Load::all()).await?.len(), &0)?;
    expect("the main transcript", &fixture.texts(Load::main()).await?.len(), &0)?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?.len(), &0)?;
    fixture.store.delete(&fixture.key, None).await?;
    Ok(())
}

pub(super) async fn delete_removes_all_transcripts_of_one_session(fixture: Fixture) -> Outcome {
    let (a, b) = (subpath("subagents/a"), subpath("subagents/b"));
    let batch = [entry("1"), entry_of(Some(&a), "2"), entry_of(Some(&b), "3")];
    let other_session = fixture.session(2);
    let other_project = session(&project("scope", "other"), 1);
    let other_scope = session(&project("other", "project"), 1);
    let others = [other_session, other_project, other_scope];
    for key in [&fixture.key].into_iter().chain(&others) {
        fixture.store.append(key, Append::new(&batch)).await?;
    }
    fixture.store.delete(&fixture.key, None).await?;
    for load in [Load::all(), Load::main(), Load::subpath(&a), Load::subpath(&b)] {
        expect("the deleted entries", &fixture.texts(load).await?.len(), &0)?;
    }
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &[])?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?, &[id(2)])?;
    for key in &others {
        expect("another session", &fixture.texts_of(key).await?, &["1", "2", "3"])?;
    }
    Ok(())
}

pub(super) async fn delete_of_a_subpath_keeps_the_others(fixture: Fixture) -> Outcome {
    let (a, b) = (subpath("subagents/a"), subpath("subagents/b"));
    let nested = subpath("subagents/a/nested");
    let batch = [
        entry("1"),
        entry_of(Some(&a), "2"),
        entry_of(Some(&b), "3"),
        entry_of(Some(&nested), "4"),
    ];
    fixture.append(&batch).await?;
    fixture.store.delete(&fixture.key, Some(&a)).await?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "3", "4"])?;
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &[nested, b])?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?, &[id(1)])
}

pub(super) async fn sequence_numbers_continue_after_a_delete(fixture: Fixture) -> Outcome {
    let before = fixture.append(&entries(&["1", "2", "3"])).await?;
    fixture.store.delete(&fixture.key, None).await?;
    let after = fixture.append(&entries(&["4"])).await?;
    ensure!(
        after.sequences > vec![before.last],
        "sequence numbers start again after a delete: {} after {}",
        after.last,
        before.last
    );
    expect("the entries", &fixture.texts(Load::all().after(before.last)).await?, &["4"])
}

pub(super) async fn deleted_entries_can_be_appended_again(fixture: Fixture) -> Outcome {
    let a = subpath("subagents/a");
    let batch = [entry("1"), entry_of(Some(&a), "2")];
    for subpath in [None, Some(&a)] {
        fixture.append(&batch).await?;
        fixture.store.delete(&fixture.key, subpath).await?;
        let appended = fixture.append(&batch).await?;
        expect("the skipped entries", &appended.skipped, &u64::from(subpath.is_some()))?;
        expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2"])?;
    }
    Ok(())
}
