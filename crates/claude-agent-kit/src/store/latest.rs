//! Finds the session of a directory that was modified last.

use std::fs;
use std::path::Path;

use claude_wire::Json;
use claude_wire::transcript::{SummaryData, is_same_project_name};

use super::local::has_messages;
use super::pages::{Bounds, list_after, list_page};
use super::write_session::load_page;
use crate::id::SessionId;
use claude_session_store::{Load, ProjectKey, SessionRow, SessionStore, StoreError};

/// How many sessions are listed together. Mostly the first one is it.
const PAGE: usize = 8;
/// How many entries of a session without a summary are searched for its working directory.
const SEARCHED_ENTRIES: usize = 64;

/// Returns the session of a project with messages that was modified last. With a directory, those of other directories
/// with the same name of their project are left out: `a-b` and `a/b` have one.
pub(super) async fn latest(
    store: &dyn SessionStore,
    project: &ProjectKey,
    directory: Option<&Path>,
) -> Result<Option<SessionId>, StoreError> {
    let (mut bounds, mut cursor): (Bounds, Option<String>) = (Bounds::list(), None);
    loop {
        let list = list_after(cursor.as_deref(), PAGE);
        let listed = list_page(&mut bounds, store, project, list).await?;
        for row in listed.sessions {
            let is_own = match directory {
                Some(directory) => is_of(directory, cwd(store, project, &row).await?.as_deref()),
                None => true,
            };
            // The CLI does not resume a session without messages, as a killed one leaves it.
            if is_own && has_messages(store, &project.session(row.session.clone())?).await? {
                return Ok(Some(row.session));
            }
        }
        cursor = listed.next;
        if cursor.is_none() {
            return Ok(None);
        }
    }
}

/// Returns whether a session that ran in `cwd` belongs to a directory. As on disk, a name that differs is
/// no reason to leave it out: then the session was moved here.
fn is_of(directory: &Path, cwd: Option<&str>) -> bool {
    let Some(cwd) = cwd else { return true };
    directory.to_str() == Some(cwd)
        || !is_same_project_name(&directory.to_string_lossy(), cwd)
        || fs::canonicalize(cwd).is_ok_and(|real| real.starts_with(directory))
}

/// Returns the directory that a session recorded.
async fn cwd(
    store: &dyn SessionStore,
    project: &ProjectKey,
    row: &SessionRow,
) -> Result<Option<String>, StoreError> {
    let summary = row.summary.as_ref().and_then(|summary| Json::from_text(&*summary.data).ok());
    let recorded = |data: &SummaryData| data.to_json().get("cwd")?.as_str().map(String::from);
    if let Some(cwd) = summary.and_then(|data| recorded(&SummaryData::from_json(&data))) {
        return Ok(Some(cwd));
    }
    let key = project.session(row.session.clone())?;
    let page = load_page(store, &key, Load::main().limit(SEARCHED_ENTRIES)).await?;
    let mut data = SummaryData::default();
    for entry in &page.entries {
        data.add(entry.text.as_bytes());
    }
    Ok(recorded(&data))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Append, MemoryStore, NewEntry};

    const IDS: [&str; 2] =
        ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"];

    /// A store with sessions of these directories, the last one modified last.
    async fn store(directories: [&str; 2]) -> (MemoryStore, ProjectKey) {
        let (store, project) = (MemoryStore::new(), ProjectKey::new("tenant", "-a-b").unwrap());
        for (id, cwd) in IDS.into_iter().zip(directories) {
            let text = json!({"type": "user", "uuid": id, "cwd": cwd, "message": {"content": "x"}});
            let entries = [NewEntry::new(None, text.to_string(), 0).unwrap()];
            let key = project.session(SessionId::from(id)).unwrap();
            store.append(&key, Append::new(&entries)).await.unwrap();
        }
        (store, project)
    }

    async fn latest_in(directories: [&str; 2], directory: Option<&str>) -> Option<&'static str> {
        let (store, project) = store(directories).await;
        let found = latest(&store, &project, directory.map(Path::new)).await.unwrap();
        IDS.into_iter().find(|id| Some(*id) == found.as_ref().map(SessionId::as_str))
    }

    #[tokio::test]
    async fn sessions_of_a_directory_with_the_same_project_name_are_left_out() {
        assert_eq!(latest_in(["/a/b", "/a-b"], Some("/a/b")).await, Some(IDS[0]));
        assert_eq!(latest_in(["/a/b", "/a-b"], Some("/a-b")).await, Some(IDS[1]));
        assert_eq!(latest_in(["/a-b", "/a-b"], Some("/a/b")).await, None);
    }

    #[tokio::test]
    async fn sessions_that_were_moved_are_found() {
        assert_eq!(latest_in(["/a/b", "/other"], Some("/a/b")).await, Some(IDS[1]));
    }

    #[tokio::test]
    async fn sessions_without_messages_are_left_out() {
        let (store, project) = store(["/a/b", "/a/b"]).await;
        let key = project.session(SessionId::from("00000000-0000-4000-8000-000000000009")).unwrap();
        let entries = [NewEntry::new(None, r#"{"type":"mode"}"#, 0).unwrap()];
        store.append(&key, Append::new(&entries)).await.unwrap();
        let found = latest(&store, &project, Some(Path::new("/a/b"))).await.unwrap();
        assert_eq!(found.unwrap().as_str(), IDS[1]);
    }

    #[tokio::test]
    async fn a_name_that_the_host_chose_counts_alone() {
        assert_eq!(latest_in(["/a/b", "/a-b"], None).await, Some(IDS[1]));
    }
}
