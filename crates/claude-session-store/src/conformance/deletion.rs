//! Deletion.

use crate::{Append, Load, StoreErrorKind};

use super::fixture::{
    Fixture, Outcome, ensure, entries, entry, entry_of, expect, expect_error, id, project, session,
    subpath,
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

pub(super) async fn unchanged_session_is_deleted_and_claimed(fixture: Fixture) -> Outcome {
    let a = subpath("subagents/a");
    let epoch = fixture.store.claim(&fixture.key).await?;
    fixture.append_as(epoch, &[entry("1"), entry_of(Some(&a), "2")]).await?;
    let known = fixture.row().await?;
    fixture.append_as(epoch, &entries(&["3"])).await?;
    let is_deleted = fixture.store.delete_unchanged(&fixture.key, known.modified_ms).await?;
    expect("whether a changed session was deleted", &is_deleted, &false)?;
    expect("the entries", &fixture.texts(Load::all()).await?, &["1", "2", "3"])?;
    let known = fixture.row().await?;
    let is_deleted = fixture.store.delete_unchanged(&fixture.key, known.modified_ms).await?;
    expect("whether the session was deleted", &is_deleted, &true)?;
    expect("the entries", &fixture.texts(Load::all()).await?.len(), &0)?;
    expect("the subpaths", &fixture.store.subpaths(&fixture.key).await?, &[])?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?.len(), &0)?;
    // The owner would store a conversation without its beginning.
    let late = fixture.append_as(epoch, &entries(&["4"])).await;
    expect_error("an append of the owner", late, StoreErrorKind::Superseded)?;
    let is_deleted = fixture.store.delete_unchanged(&fixture.key, known.modified_ms).await?;
    expect("whether it was deleted again", &is_deleted, &false)?;
    let next = fixture.store.claim(&fixture.key).await?;
    ensure!(next.get() > epoch.get() + 1, "the deletion did not claim the session");
    let unknown = fixture.store.delete_unchanged(&fixture.session(9), 1).await?;
    expect("whether an unknown session was deleted", &unknown, &false)
}

pub(super) async fn session_that_is_written_to_survives_its_deletion(fixture: Fixture) -> Outcome {
    for round in 0..20_u32 {
        let key = fixture.session(round);
        let epoch = fixture.store.claim(&key).await?;
        let (first, second) = (entries(&["1"]), entries(&["2"]));
        fixture.store.append(&key, Append::new(&first).epoch(epoch)).await?;
        let rows = fixture.list(&fixture.project).await?;
        let row = rows.into_iter().find(|row| row.session == *key.session());
        let modified_ms = row.map(|row| row.modified_ms).unwrap_or_default();
        let (store, other) = (fixture.store.clone(), key.clone());
        let deletion =
            tokio::spawn(async move { store.delete_unchanged(&other, modified_ms).await });
        let appended = fixture.store.append(&key, Append::new(&second).epoch(epoch)).await;
        let is_deleted = deletion.await??;
        let texts = fixture.texts_of(&key).await?;
        match appended {
            Ok(_) => {
                expect("whether a session was deleted after an append", &is_deleted, &false)?;
                expect("the entries", &texts, &["1", "2"])?;
            }
            Err(error) => {
                expect("the error of the owner", &error.kind(), &StoreErrorKind::Superseded)?;
                expect("whether the session was deleted", &is_deleted, &true)?;
                expect("the entries after the deletion", &texts.len(), &0)?;
            }
        }
    }
    Ok(())
}

pub(super) async fn projects_of_a_scope_are_listed(fixture: Fixture) -> Outcome {
    for (scope, name) in [("scope", "b"), ("scope", "a"), ("scope", "é/\""), ("other", "c")] {
        let key = session(&project(scope, name), 1);
        fixture.store.append(&key, Append::new(&entries(&["1"]))).await?;
    }
    let all = fixture.store.projects("scope", None, 100).await?;
    expect("the projects", &all, &["a", "b", "é/\""])?;
    let first = fixture.store.projects("scope", None, 2).await?;
    expect("the first page", &first, &["a", "b"])?;
    let rest = fixture.store.projects("scope", Some("b"), 2).await?;
    expect("the second page", &rest, &["é/\""])?;
    expect("an unknown scope", &fixture.store.projects("unknown", None, 9).await?.len(), &0)
}
