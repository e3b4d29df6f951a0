//! Lists of sessions.
//!
//! The order of a list is known only after the beginning of every head of the project was read. Those that have not
//! changed since are not read again, and the order is kept for the next pages of a list.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claude_session_store::{
    List, ProjectKey, Sequence, SessionId, SessionKey, SessionList, SessionRow, StoreError, Summary,
};
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;

use super::Shared;
use super::errors::corrupt;
use super::head::Row;
use super::objects::{Listed, Read};
use super::session::lock;

/// The bytes of a head that are read for a list; all of it if its first line is longer.
const ROW_BYTES: u64 = 8 << 10;

/// The number of heads that are read at once.
const PARALLEL_ROWS: usize = 32;

/// How long the order of a list is used for its next pages.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The number of projects whose lists are kept.
const MAX_PROJECTS: usize = 16;

/// A session in the order of a list: the time of its last append, and its ID.
type Position = (u64, SessionId);

/// The lists of projects.
#[derive(Default)]
pub(super) struct Lists(Mutex<HashMap<ProjectKey, Arc<Order>>>);

/// The order of the sessions of a project, and what it was made of.
struct Order {
    time: Instant,
    /// The most recently modified first.
    positions: Vec<Position>,
    /// The `ETag` of each head, and the time of its last append; `None` if the session is not listed.
    heads: HashMap<Path, (String, Option<u64>)>,
}

impl Lists {
    fn get(&self, project: &ProjectKey) -> Option<Arc<Order>> {
        lock(&self.0).get(project).cloned()
    }

    fn set(&self, project: &ProjectKey, order: &Arc<Order>) {
        let mut lists = lock(&self.0);
        if lists.len() >= MAX_PROJECTS && !lists.contains_key(project) {
            let oldest = lists.iter().min_by_key(|(_, order)| order.time);
            if let Some(oldest) = oldest.map(|(project, _)| project.clone()) {
                lists.remove(&oldest);
            }
        }
        lists.insert(project.clone(), Arc::clone(order));
    }
}

pub(super) async fn list(
    shared: &Shared,
    project: &ProjectKey,
    list: List<'_>,
) -> Result<SessionList, StoreError> {
    let before = match list.cursor {
        Some(cursor) => {
            Some(read_cursor(cursor).ok_or_else(|| StoreError::invalid_cursor(cursor))?)
        }
        None => None,
    };
    let known = shared.lists.get(project);
    let order = match known {
        Some(order) if before.is_some() && order.time.elapsed() < MAX_AGE => order,
        known => {
            let order = Arc::new(read_order(shared, project, known.as_deref()).await?);
            shared.lists.set(project, &order);
            order
        }
    };
    let start = before.map_or(0, |before| order.positions.partition_point(|it| *it >= before));
    page(shared, project, &order.positions[start..], list.limit.max(1)).await
}

/// Returns what is listed of one session, with one request.
pub(super) async fn get(
    shared: &Shared,
    key: &SessionKey,
) -> Result<Option<SessionRow>, StoreError> {
    let project = key.project_key();
    let path = shared.objects.heads(project).join(key.session().as_str());
    let row = read_row(shared, project, &path).await?;
    Ok(row.and_then(|row| {
        let position = (row.modified_ms, key.session().clone());
        listed_row(row, &position)
    }))
}

/// Returns the first rows of sessions that were not modified since the order was read.
async fn page(
    shared: &Shared,
    project: &ProjectKey,
    positions: &[Position],
    limit: usize,
) -> Result<SessionList, StoreError> {
    let folder = shared.objects.heads(project);
    let (mut rows, mut count) = (Vec::new(), 0);
    while rows.len() < limit && count < positions.len() {
        let end = positions.len().min(count + limit - rows.len());
        let read = futures_util::stream::iter(positions[count..end].to_vec())
            .map(|position| {
                let path = folder.clone().join(position.1.as_str());
                async move {
                    let row = read_row(shared, project, &path).await?;
                    Ok::<_, StoreError>(row.and_then(|row| listed_row(row, &position)))
                }
            })
            .buffered(PARALLEL_ROWS);
        let read: Vec<Option<SessionRow>> = read.try_collect().await?;
        rows.extend(read.into_iter().flatten());
        count = end;
    }
    let next = positions.get(..count).and_then(<[Position]>::last);
    let next = next.filter(|_| count < positions.len());
    Ok(SessionList::new(
        rows,
        next.map(|(modified_ms, session)| format!("{modified_ms}.{session}")),
    ))
}

/// Returns the row of a session, unless it was modified or deleted.
fn listed_row(row: Row, position: &Position) -> Option<SessionRow> {
    let main_last = row.main_last.filter(|_| row.modified_ms == position.0)?;
    let summary = row.summary.map(|(data, through)| Summary::new(data, Sequence::new(through)));
    Some(SessionRow::new(position.1.clone(), row.modified_ms, Sequence::new(main_last), summary))
}

/// Reads the heads that have changed, and returns the order of all sessions.
async fn read_order(
    shared: &Shared,
    project: &ProjectKey,
    known: Option<&Order>,
) -> Result<Order, StoreError> {
    let time = Instant::now();
    let mut listed = shared.objects.list(&shared.objects.heads(project)).await?;
    // Objects with other names are not those of a store.
    listed.retain(|it| it.path.filename().is_some_and(|name| project.session(name).is_ok()));
    let heads = futures_util::stream::iter(listed)
        .map(|Listed { path, etag }| async move {
            let same = known.and_then(|known| known.heads.get(&path)).filter(|it| it.0 == etag);
            if let Some(same) = same {
                return Ok((path, same.clone()));
            }
            let row = read_row(shared, project, &path).await?;
            let modified = row.and_then(|row| row.main_last.map(|_| row.modified_ms));
            Ok::<_, StoreError>((path, (etag, modified)))
        })
        .buffer_unordered(PARALLEL_ROWS);
    let heads: HashMap<Path, (String, Option<u64>)> = heads.try_collect().await?;
    let mut positions: Vec<Position> = Vec::with_capacity(heads.len());
    for (path, (_, modified)) in &heads {
        if let (Some(modified), Some(session)) = (modified, path.filename()) {
            positions.push((*modified, SessionId::from(session)));
        }
    }
    positions.sort_unstable_by(|one, other| other.cmp(one));
    Ok(Order { time, positions, heads })
}

/// Returns the projects of a scope, sorted. The names of folders are digests, so that one head of each project in the
/// bucket is read.
pub(super) async fn projects(shared: &Shared, scope: &str) -> Result<Vec<String>, StoreError> {
    let heads = shared.objects.list_projects().await?;
    let rows = futures_util::stream::iter(heads)
        .map(|path| async move { read_start(shared, &path).await })
        .buffer_unordered(PARALLEL_ROWS);
    let rows: Vec<Option<Row>> = rows.try_collect().await?;
    let mut projects: Vec<String> =
        rows.into_iter().flatten().filter_map(|row| row.into_project(scope)).collect();
    projects.sort_unstable();
    projects.dedup();
    Ok(projects)
}

/// Reads the beginning of a head of a project; `None` if it does not exist.
async fn read_row(
    shared: &Shared,
    project: &ProjectKey,
    path: &Path,
) -> Result<Option<Row>, StoreError> {
    let row = read_start(shared, path).await?;
    let is_right = |row: &Row| {
        row.is_of(project.scope(), project.project()) && path.filename() == Some(&*row.session)
    };
    match row {
        Some(row) if !is_right(&row) => Err(corrupt("key in a head object")),
        row => Ok(row),
    }
}

/// Reads the beginning of a head; `None` if it does not exist.
async fn read_start(shared: &Shared, path: &Path) -> Result<Option<Row>, StoreError> {
    let mut read = shared.objects.read_range(path, 0..ROW_BYTES).await?;
    for is_whole in [false, true] {
        let Read::Object { bytes, .. } = &read else { return Ok(None) };
        if let Some(row) = Row::from_start(bytes)? {
            return Ok(Some(row));
        }
        if !is_whole {
            read = shared.objects.read(path, None).await?;
        }
    }
    Err(corrupt("head object"))
}

/// Reads the position in the list of sessions that a cursor names.
fn read_cursor(cursor: &str) -> Option<Position> {
    let (modified_ms, session) = cursor.split_once('.')?;
    Some((modified_ms.parse().ok()?, SessionId::from(session)))
}
