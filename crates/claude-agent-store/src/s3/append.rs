//! Claims and appends.

use std::collections::HashMap;
use std::time::Duration;

use claude_session_store::{
    Append, Appended, Epoch, Sequence, SessionKey, StoreError, StoredEntry,
};
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::block;
use super::errors::{self, corrupt};
use super::head::{Head, Part};
use super::http::jitter;
use super::objects::unique;
use super::session::{Ids, Session, Versioned, digest};
use super::{PARALLEL, Shared};

/// The longest append, in bytes of text.
const MAX_APPEND: usize = 500_000_000;

/// The bytes of entries in a head object, with those of an append. More of them are moved to a part.
const MAX_TAIL: usize = 64 << 10;

/// The same for an append that is larger than a third of it: few requests matter more than few bytes.
const MAX_LARGE_TAIL: usize = 512 << 10;

/// The bytes of entries in a part, unless a single entry has more.
pub(super) const MAX_PART: usize = 8 << 20;

/// The number of entries in a part, which bounds its index.
const MAX_PART_ENTRIES: usize = 16_384;

/// How often a write is tried, while other hosts are faster.
pub(super) const CONFLICTS: u32 = 40;

/// The delay after the first conflict. It grows with their number.
const CONFLICT_DELAY: Duration = Duration::from_millis(10);

/// Waits after a write that another host has made impossible.
pub(super) async fn wait_after_conflict(number: u32) {
    tokio::time::sleep(jitter(CONFLICT_DELAY * number.clamp(1, 16))).await;
}

/// The entries of an append that the session does not have, and where the others are.
struct Plan {
    new: Vec<StoredEntry>,
    digests: Vec<u128>,
    appended: Appended,
}

pub(super) async fn claim(shared: &Shared, key: &SessionKey) -> Result<Epoch, StoreError> {
    let session = shared.sessions.get(key);
    let _ids = session.ids.lock().await;
    let mut base = shared.known_head(&session, key).await?.0;
    for number in 1..=CONFLICTS {
        let mut head = (*base.head).clone();
        head.row.epoch = head.row.epoch.checked_add(1).ok_or_else(|| corrupt("epoch"))?;
        if let Some(new) = shared.commit(&session, key, &base, head).await? {
            return Ok(Epoch::new(new.head.row.epoch));
        }
        wait_after_conflict(number).await;
        base = shared.fresh_head(&session, key).await?;
    }
    Err(errors::contended(shared.objects.target(), key, CONFLICTS))
}

pub(super) async fn append(
    shared: &Shared,
    key: &SessionKey,
    append: Append<'_>,
) -> Result<Appended, StoreError> {
    let bytes: usize = append.entries.iter().map(|entry| entry.text().len()).sum();
    if bytes > MAX_APPEND {
        return Err(errors::too_large(bytes, MAX_APPEND));
    }
    let session = shared.sessions.get(key);
    let appended = {
        let mut ids = session.ids.lock().await;
        append_as_writer(shared, &session, &mut ids, key, append).await
    };
    shared.sessions.shrink(key, &session);
    appended
}

async fn append_as_writer(
    shared: &Shared,
    session: &Session,
    ids: &mut Ids,
    key: &SessionKey,
    append: Append<'_>,
) -> Result<Appended, StoreError> {
    let (mut base, mut is_fresh) = shared.known_head(session, key).await?;
    let mut conflicts = 0;
    while conflicts < CONFLICTS {
        let current = Epoch::new(base.head.row.epoch);
        let is_superseded = append.epoch.is_some_and(|epoch| epoch != current);
        let plan = if is_superseded || append.entries.is_empty() {
            None
        } else if update_ids(shared, key, ids, &base.head).await? {
            Some(plan(&base.head, ids, &append)?)
        } else if is_fresh {
            // A part is missing. Either another host has replaced it in this moment, or it is lost.
            conflicts += CONFLICTS / 4;
            base = shared.fresh_head(session, key).await?;
            if conflicts >= CONFLICTS {
                return Err(errors::missing_part());
            }
            continue;
        } else {
            None
        };
        let has_summary = append.summary.is_some_and(|it| it.after.get() == base.head.row.last);
        match plan {
            Some(plan) if !plan.new.is_empty() || has_summary => {
                let done = write(shared, session, key, &base, plan, ids, &append).await?;
                if let Some(appended) = done {
                    return Ok(appended);
                }
                conflicts += 1;
                wait_after_conflict(conflicts).await;
            }
            // Nothing is written, so that only a fresh head tells whether the session has another owner.
            _ if !is_fresh => {}
            _ if is_superseded => {
                let epoch = append.epoch.unwrap_or_default();
                return Err(StoreError::superseded(key, epoch, current));
            }
            Some(plan) => return Ok(plan.appended),
            None => return Ok(Appended::new(Sequence::new(base.head.row.last), 0, Vec::new())),
        }
        (base, is_fresh) = (shared.fresh_head(session, key).await?, true);
    }
    Err(errors::contended(shared.objects.target(), key, CONFLICTS))
}

/// Reads the IDs that are not known yet. Returns false if a part does not exist.
async fn update_ids(
    shared: &Shared,
    key: &SessionKey,
    ids: &mut Ids,
    head: &Head,
) -> Result<bool, StoreError> {
    if ids.generation != head.generation || ids.through > head.row.last {
        *ids = Ids { generation: head.generation, ..Ids::default() };
    }
    let parts: Vec<Part> =
        head.parts.iter().filter(|part| part.last > ids.through).cloned().collect();
    let indexes = futures_util::stream::iter(parts)
        .map(|part| async move { shared.read_index(key, &part).await })
        .buffered(PARALLEL);
    let indexes: Vec<_> = indexes.try_collect().await?;
    for index in indexes {
        let Some(index) = index else { return Ok(false) };
        for record in &index.records {
            ids.digests.insert(digest(record.subpath.as_ref(), &record.id), record.sequence);
        }
    }
    for entry in head.tail.iter().filter(|entry| entry.sequence.get() > ids.through) {
        ids.digests.insert(digest(entry.subpath.as_ref(), &entry.id), entry.sequence.get());
    }
    ids.through = head.row.last;
    Ok(true)
}

fn plan(head: &Head, ids: &Ids, append: &Append<'_>) -> Result<Plan, StoreError> {
    let (mut new, mut digests) = (Vec::new(), Vec::new());
    let mut known: HashMap<u128, u64> = HashMap::new();
    let mut sequences = Vec::with_capacity(append.entries.len());
    let mut last = head.row.last;
    for entry in append.entries {
        let digest = digest(entry.subpath(), entry.id());
        let stored = ids.digests.get(&digest).or_else(|| known.get(&digest));
        if let Some(sequence) = stored {
            sequences.push(Sequence::new(*sequence));
            continue;
        }
        last = last.checked_add(1).ok_or_else(|| corrupt("sequence number"))?;
        let sequence = Sequence::new(last);
        known.insert(digest, last);
        sequences.push(sequence);
        digests.push(digest);
        let subpath = entry.subpath().cloned();
        new.push(StoredEntry::new(sequence, subpath, entry.id().clone(), entry.text().clone()));
    }
    let skipped = (append.entries.len() - new.len()) as u64;
    Ok(Plan { new, digests, appended: Appended::new(Sequence::new(last), skipped, sequences) })
}

/// Writes the entries of a plan. Returns `None` if another host was faster.
async fn write(
    shared: &Shared,
    session: &Session,
    key: &SessionKey,
    base: &Versioned,
    plan: Plan,
    ids: &mut Ids,
    append: &Append<'_>,
) -> Result<Option<Appended>, StoreError> {
    let mut head = (*base.head).clone();
    let last = plan.appended.last.get();
    if let Some(entry) = plan.new.iter().rev().find(|entry| entry.subpath.is_none()) {
        head.row.main_last = Some(entry.sequence.get());
        let after = head.row.modified_ms.saturating_add(1);
        head.row.modified_ms = shared.now_ms().max(after);
    }
    if let Some(summary) = append.summary.filter(|it| it.after.get() == head.row.last) {
        head.row.summary = Some((summary.data.to_owned(), last));
    }
    head.subpaths.extend(plan.new.iter().filter_map(|entry| entry.subpath.clone()));
    let sequences: Vec<u64> = plan.new.iter().map(|entry| entry.sequence.get()).collect();
    head.row.last = last;
    let bytes: usize = plan.new.iter().map(block::size).sum();
    head.tail.extend(plan.new);
    let limit = bytes.saturating_mul(3).clamp(MAX_TAIL, MAX_LARGE_TAIL);
    if head.tail.iter().map(block::size).sum::<usize>() > limit {
        let entries = std::mem::take(&mut head.tail);
        head.parts.extend(write_parts(shared, key, &entries).await?);
    }
    let garbage = super::compact::compact(shared, key, &mut head).await?;
    let Some(new) = shared.commit(session, key, base, head).await? else { return Ok(None) };
    ids.digests.extend(plan.digests.into_iter().zip(sequences));
    ids.through = last;
    if let Some(garbage) = garbage {
        // The entries are stored. What is not deleted is found by the next compaction.
        drop(garbage.delete(shared, key, &new.head).await);
    }
    Ok(Some(plan.appended))
}

/// Writes entries to new parts, which do not belong to the session before its head names them.
pub(super) async fn write_parts(
    shared: &Shared,
    key: &SessionKey,
    entries: &[StoredEntry],
) -> Result<Vec<Part>, StoreError> {
    let (mut parts, mut rest) = (Vec::new(), entries);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |entry: &&StoredEntry| {
            bytes += block::size(entry);
            bytes <= MAX_PART
        };
        let count = rest.iter().take(MAX_PART_ENTRIES).take_while(fits).count().max(1);
        let (of_part, after) = rest.split_at(count);
        parts.push(write_part(shared, key, of_part).await?);
        rest = after;
    }
    Ok(parts)
}

async fn write_part(
    shared: &Shared,
    key: &SessionKey,
    entries: &[StoredEntry],
) -> Result<Part, StoreError> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return Err(corrupt("part"));
    };
    let mut bytes = block::line(&block::IndexJson::new(entries))?;
    let index_bytes = bytes.len() as u64;
    block::texts(entries, &mut bytes);
    let part = Part {
        id: unique(),
        first: first.sequence.get(),
        last: last.sequence.get(),
        index_bytes,
        bytes: bytes.len() as u64,
    };
    shared.objects.write(&shared.objects.parts(key).join(&*part.id), bytes).await?;
    Ok(part)
}
