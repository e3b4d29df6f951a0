//! Values of stores as columns of a SQL database, and back.

use claude_session_store::{
    EntryId, LoadScope, Sequence, SessionId, SessionRow, StoreError, StoredEntry, Subpath, Summary,
};

/// What a value is that no version of this crate writes. Each database has its own error for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Invalid(pub(crate) &'static str);

/// Converts a number of the API. Numbers beyond those of databases are greater than all stored ones.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql(number: i64) -> Result<u64, Invalid> {
    u64::try_from(number).map_err(|_| Invalid("number"))
}

pub(crate) fn sequence(number: i64) -> Result<Sequence, Invalid> {
    from_sql(number).map(Sequence::new)
}

/// Returns the subpath that is loaded, which is empty for the main transcript; `None` for all.
pub(crate) fn subpath_of(scope: LoadScope<'_>) -> Option<&str> {
    match scope {
        LoadScope::All => None,
        LoadScope::Main => Some(""),
        LoadScope::Subpath(subpath) => Some(subpath.as_str()),
    }
}

pub(crate) fn subpath(text: &str) -> Result<Subpath, Invalid> {
    Subpath::new(text).map_err(|_| Invalid("subpath"))
}

/// Returns the entry of a row; the subpath is empty for the main transcript.
pub(crate) fn entry(number: i64, path: &str, id: &str, text: &str) -> Result<StoredEntry, Invalid> {
    let path = if path.is_empty() { None } else { Some(subpath(path)?) };
    let id = EntryId::new(id).map_err(|_| Invalid("ID of an entry"))?;
    Ok(StoredEntry::new(sequence(number)?, path, id, text))
}

/// Returns the session of a row, with its summary and the last entry of it.
pub(crate) fn session(
    id: &str,
    modified_ms: i64,
    last: i64,
    summary: (Option<String>, Option<i64>),
) -> Result<SessionRow, Invalid> {
    let summary = match summary {
        (Some(data), Some(through)) => Some(Summary::new(data, sequence(through)?)),
        _ => None,
    };
    Ok(SessionRow::new(SessionId::from(id), from_sql(modified_ms)?, sequence(last)?, summary))
}

/// Returns the cursor of the sessions after these.
pub(crate) fn cursor(sessions: &[SessionRow]) -> Option<String> {
    sessions.last().map(|row| format!("{}.{}", row.modified_ms, row.session))
}

/// Returns the position in the list of sessions that a cursor names: before this time, or at it before this ID.
pub(crate) fn position(cursor: Option<&str>) -> Result<(i64, &str), StoreError> {
    let Some(cursor) = cursor else { return Ok((i64::MAX, "")) };
    read_cursor(cursor).ok_or_else(|| StoreError::invalid_cursor(cursor))
}

fn read_cursor(cursor: &str) -> Option<(i64, &str)> {
    let (modified_ms, session) = cursor.split_once('.')?;
    // PostgreSQL would fail on a NUL character.
    let is_valid = session.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    is_valid.then_some((modified_ms.parse().ok()?, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_checked_before_they_are_used() {
        assert_eq!(read_cursor("12.ab-3"), Some((12, "ab-3")));
        for cursor in ["", "12", "x.a", "1.\0", "1.é", "1;drop"] {
            assert_eq!(read_cursor(cursor), None, "{cursor:?}");
        }
    }

    #[test]
    fn invalid_columns_are_named() {
        assert_eq!(entry(-1, "", "a", "1"), Err(Invalid("number")));
        assert_eq!(entry(1, "../a", "a", "1"), Err(Invalid("subpath")));
        assert_eq!(entry(1, "", "", "1"), Err(Invalid("ID of an entry")));
    }
}
