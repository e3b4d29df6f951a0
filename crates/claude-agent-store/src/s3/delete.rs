//! Deleting sessions and transcripts.

use claude_session_store::{SessionKey, StoreError, Subpath};

use super::append::{CONFLICTS, wait_after_conflict, write_parts};
use super::compact::Garbage;
use super::head::Head;
use super::{Shared, errors};

pub(super) async fn delete(
    shared: &Shared,
    key: &SessionKey,
    subpath: Option<&Subpath>,
) -> Result<(), StoreError> {
    let session = shared.sessions.get(key);
    let _ids = session.ids.lock().await;
    for number in 1..=CONFLICTS {
        let base = shared.fresh_head(&session, key).await?;
        if subpath.is_some_and(|subpath| !base.head.subpaths.contains(subpath)) {
            return Ok(());
        }
        let garbage = Garbage::find(shared, key).await?;
        let is_empty = base.head.row.last == 0 || is_cleared(&base.head);
        if is_empty && garbage.is_empty() {
            return Ok(());
        }
        let head = match subpath {
            None => Some(cleared(&base.head)),
            Some(subpath) => without(shared, key, &base.head, subpath).await?,
        };
        let new = match head {
            Some(head) => shared.commit(&session, key, &base, head).await?,
            // Another host has replaced a part.
            None => None,
        };
        if let Some(new) = new {
            return garbage.delete(shared, key, &new.head).await;
        }
        wait_after_conflict(number).await;
    }
    Err(errors::contended(shared.objects.target(), key, CONFLICTS))
}

/// Deletes and claims a session that was last modified at this time.
pub(super) async fn delete_unchanged(
    shared: &Shared,
    key: &SessionKey,
    modified_ms: u64,
) -> Result<bool, StoreError> {
    let session = shared.sessions.get(key);
    let _ids = session.ids.lock().await;
    for number in 1..=CONFLICTS {
        let base = shared.fresh_head(&session, key).await?;
        if base.head.row.main_last.is_none() || base.head.row.modified_ms != modified_ms {
            return Ok(false);
        }
        let garbage = Garbage::find(shared, key).await?;
        let mut head = cleared(&base.head);
        head.row.epoch = head.row.epoch.saturating_add(1);
        if let Some(new) = shared.commit(&session, key, &base, head).await? {
            garbage.delete(shared, key, &new.head).await?;
            return Ok(true);
        }
        wait_after_conflict(number).await;
    }
    Err(errors::contended(shared.objects.target(), key, CONFLICTS))
}

fn is_cleared(head: &Head) -> bool {
    head.parts.is_empty() && head.tail.is_empty() && head.row.summary.is_none()
}

/// Returns the head without entries. The epoch and the last sequence number stay.
fn cleared(head: &Head) -> Head {
    let mut head = head.clone();
    head.generation = head.generation.saturating_add(1);
    head.parts.clear();
    head.tail.clear();
    head.subpaths.clear();
    head.row.main_last = None;
    head.row.summary = None;
    head
}

/// Writes the parts that have entries of a transcript again without them, and returns the head with the new parts;
/// `None` if a part does not exist.
async fn without(
    shared: &Shared,
    key: &SessionKey,
    head: &Head,
    subpath: &Subpath,
) -> Result<Option<Head>, StoreError> {
    let mut head = head.clone();
    head.generation = head.generation.saturating_add(1);
    head.subpaths.remove(subpath);
    head.tail.retain(|entry| entry.subpath.as_ref() != Some(subpath));
    let mut parts = Vec::with_capacity(head.parts.len());
    for part in std::mem::take(&mut head.parts) {
        let Some(index) = shared.read_index(key, &part).await? else { return Ok(None) };
        if index.records.iter().all(|record| record.subpath.as_ref() != Some(subpath)) {
            parts.push(part);
            continue;
        }
        let Some(mut entries) = shared.read_entries(key, &part).await? else { return Ok(None) };
        entries.retain(|entry| entry.subpath.as_ref() != Some(subpath));
        parts.append(&mut write_parts(shared, key, &entries).await?);
    }
    head.parts = parts;
    Ok(Some(head))
}
