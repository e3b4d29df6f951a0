//! Lists of sessions and their clock.

use std::collections::BTreeSet;

use crate::{Append, List, Sequence, StoreErrorKind};

use super::fixture::{
    Failure, Fixture, Outcome, ensure, entries, entry_of, expect, expect_error, id, project,
    session, subpath,
};

/// A time in 2001: smaller numbers are not milliseconds since the Unix epoch.
const EARLIEST_MS: u64 = 1_000_000_000_000;

pub(super) async fn projects_are_isolated(fixture: Fixture) -> Outcome {
    let projects = [project("scope", "a"), project("scope", "b"), project("other", "a")];
    for (number, project) in (10..).zip(&projects) {
        let batch = entries(&[&number.to_string()]);
        fixture.store.append(&session(project, 1), Append::new(&batch)).await?;
    }
    for (number, project) in (10..).zip(&projects) {
        let found = fixture.texts_of(&session(project, 1)).await?;
        expect("the entries", &found, &[number.to_string()])?;
        expect("the listed sessions", &fixture.listed(project).await?, &[id(1)])?;
    }
    Ok(())
}

pub(super) async fn list_has_the_sessions_of_its_project(fixture: Fixture) -> Outcome {
    expect("an unknown project", &fixture.listed(&fixture.project).await?.len(), &0)?;
    for number in [2, 1, 3] {
        let append = entries(&["1"]);
        fixture.store.append(&fixture.session(number), Append::new(&append)).await?;
    }
    let other = session(&project("scope", "other"), 4);
    fixture.store.append(&other, Append::new(&entries(&["1"]))).await?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?, &[1, 2, 3].map(id))?;
    for row in fixture.list(&fixture.project).await? {
        ensure!(row.modified_ms > EARLIEST_MS, "not a time: {} ms", row.modified_ms);
    }
    Ok(())
}

pub(super) async fn session_can_be_got_as_it_is_listed(fixture: Fixture) -> Outcome {
    let get = async |number: u32| fixture.store.get(&fixture.session(number)).await;
    expect("an unknown session", &get(1).await?, &None)?;
    fixture.store.claim(&fixture.session(1)).await?;
    expect("a claimed session without entries", &get(1).await?, &None)?;
    let a = subpath("subagents/a");
    fixture.append(&[entry_of(Some(&a), "1")]).await?;
    expect("a session without a main transcript", &get(1).await?, &None)?;
    for number in 1..4 {
        let batch = entries(&["2", "3"]);
        let append = Append::new(&batch);
        // Only one has a summary.
        let append = if number == 2 { append.summary(Sequence::new(0), "{}") } else { append };
        fixture.store.append(&fixture.session(number), append).await?;
    }
    let other = session(&project("other", fixture.project.project()), 5);
    fixture.store.append(&other, Append::new(&entries(&["1"]))).await?;
    expect("a session of another scope", &get(5).await?, &None)?;
    let listed = fixture.list(&fixture.project).await?;
    expect("the number of listed sessions", &listed.len(), &3)?;
    for row in listed {
        let key = fixture.project.session(row.session.clone())?;
        expect("the session", &fixture.store.get(&key).await?, &Some(row))?;
    }
    fixture.store.delete(&fixture.session(2), None).await?;
    expect("a deleted session", &get(2).await?, &None)
}

pub(super) async fn subpaths_are_not_sessions(fixture: Fixture) -> Outcome {
    let a = subpath("subagents/a");
    fixture.append(&[entry_of(Some(&a), "1")]).await?;
    expect(
        "a session without a main transcript",
        &fixture.listed(&fixture.project).await?.len(),
        &0,
    )?;
    fixture.append(&entries(&["2"])).await?;
    fixture.append(&[entry_of(Some(&a), "3")]).await?;
    expect("the listed sessions", &fixture.listed(&fixture.project).await?, &[id(1)])
}

pub(super) async fn modification_times_are_milliseconds_and_increase(fixture: Fixture) -> Outcome {
    let mut before = EARLIEST_MS;
    for number in 0..20 {
        let appended = fixture.append(&entries(&[&number.to_string()])).await?;
        let row = fixture.row().await?;
        ensure!(
            row.modified_ms > before,
            "the modification time did not increase: {} ms after {before} ms",
            row.modified_ms
        );
        expect("the last sequence number", &row.last, &appended.last)?;
        before = row.modified_ms;
    }
    let row = fixture.row().await?;
    fixture.append(&[entry_of(Some(&subpath("subagents/a")), "1")]).await?;
    expect("the session after an append to a subpath", &fixture.row().await?, &row)?;
    fixture.store.delete(&fixture.key, None).await?;
    fixture.append(&entries(&["1"])).await?;
    ensure!(fixture.row().await?.modified_ms > before, "a delete sets the modification time back");
    Ok(())
}

pub(super) async fn list_is_sorted_and_paged(fixture: Fixture) -> Outcome {
    for number in 0..25 {
        let append = entries(&["1"]);
        fixture.store.append(&fixture.session(number), Append::new(&append)).await?;
    }
    let all = fixture.list(&fixture.project).await?;
    ensure!(
        all.is_sorted_by(|a, b| a.modified_ms >= b.modified_ms),
        "the sessions are not sorted by time, newest first"
    );
    for limit in [1, 7, 25] {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut list = List::new().limit(limit);
            list.cursor = cursor.as_deref();
            let page = fixture.store.list(&fixture.project, list).await?;
            ensure!(page.sessions.len() <= limit, "a page exceeds its limit");
            rows.extend(page.sessions);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
            ensure!(rows.len() < 30, "the pages do not end");
        }
        expect("the sessions in pages", &rows, &all)?;
    }
    let page = fixture.store.list(&fixture.project, List::new().limit(0)).await?;
    expect("the sessions of a page with the limit 0", &page.sessions.len(), &1)?;
    let ids: BTreeSet<_> = all.iter().map(|row| row.session.clone()).collect();
    expect("the number of sessions", &ids.len(), &25)
}

pub(super) async fn invalid_cursor_is_rejected(fixture: Fixture) -> Outcome {
    fixture.append(&entries(&["1"])).await?;
    for cursor in ["", "x", "\u{0}", "1;drop table session", "😀"] {
        let list = fixture.store.list(&fixture.project, List::new().cursor(cursor)).await;
        expect_error("an invalid cursor", list, StoreErrorKind::Rejected)
            .map_err(|Failure(text)| Failure(format!("{cursor:?}: {text}")))?;
    }
    Ok(())
}
