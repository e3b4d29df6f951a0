//! The head object of a session.
//!
//! Its first line is what a list of sessions needs, its second line the rest, and then follow the texts of the
//! newest entries. So an append of a few kilobytes is one request, and a list reads only the beginning.

use std::collections::BTreeSet;

use claude_session_store::{SessionKey, StoreError, StoredEntry, Subpath};
use serde::{Deserialize, Serialize};

use super::block::{self, IndexJson};
use super::errors::{self, corrupt};

/// The format of the objects.
const FORMAT: u32 = 1;

/// The state of a session.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) row: Row,
    /// Changes with every write, so that a writer recognizes its own one.
    pub(super) write: String,
    /// Increases when entries are deleted.
    pub(super) generation: u64,
    /// The subpaths with entries.
    pub(super) subpaths: BTreeSet<Subpath>,
    /// In the order of their sequence numbers.
    pub(super) parts: Vec<Part>,
    /// The entries after those of the parts.
    pub(super) tail: Vec<StoredEntry>,
}

/// What a list of sessions needs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Row {
    format: u32,
    scope: String,
    project: String,
    pub(super) session: String,
    pub(super) epoch: u64,
    pub(super) last: u64,
    /// The last sequence number of the main transcript, if it has entries.
    pub(super) main_last: Option<u64>,
    pub(super) modified_ms: u64,
    /// The data and the last sequence number that it includes.
    pub(super) summary: Option<(String, u64)>,
}

/// An object with entries.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    /// The name of the object.
    pub(super) id: String,
    pub(super) first: u64,
    pub(super) last: u64,
    /// The length of the index with its line break.
    pub(super) index_bytes: u64,
    /// The length of the object.
    pub(super) bytes: u64,
}

/// The second line.
#[derive(Debug, Deserialize, Serialize)]
struct Rest {
    write: String,
    generation: u64,
    subpaths: Vec<String>,
    parts: Vec<Part>,
    tail: IndexJson,
}

impl Head {
    /// Returns the head of a session that does not exist.
    pub(super) fn new(key: &SessionKey) -> Self {
        let row = Row {
            format: FORMAT,
            scope: key.scope().to_owned(),
            project: key.project().to_owned(),
            session: key.session().as_str().to_owned(),
            epoch: 0,
            last: 0,
            main_last: None,
            modified_ms: 0,
            summary: None,
        };
        Self {
            row,
            write: String::new(),
            generation: 0,
            subpaths: BTreeSet::new(),
            parts: Vec::new(),
            tail: Vec::new(),
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        let mut bytes = block::line(&self.row)?;
        bytes.append(&mut block::line(&Rest {
            write: self.write.clone(),
            generation: self.generation,
            subpaths: self.subpaths.iter().map(|it| it.as_str().to_owned()).collect(),
            parts: self.parts.clone(),
            tail: IndexJson::new(&self.tail),
        })?);
        block::texts(&self.tail, &mut bytes);
        Ok(bytes)
    }

    pub(super) fn from_bytes(key: &SessionKey, bytes: &[u8]) -> Result<Self, StoreError> {
        let (first, bytes) = split(bytes).ok_or_else(|| corrupt("head object"))?;
        let row = Row::from_line(first)?;
        // Also after another program has moved the object.
        if (&*row.scope, &*row.project, &*row.session)
            != (key.scope(), key.project(), key.session().as_str())
        {
            return Err(corrupt("key in a head object"));
        }
        let (second, texts) = split(bytes).ok_or_else(|| corrupt("head object"))?;
        let rest: Rest = block::read_line(second, "head object")?;
        let mut next = 1;
        for part in &rest.parts {
            let is_ordered = part.first >= next && part.last >= part.first;
            let has_id = !part.id.is_empty()
                && part.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            if !is_ordered || !has_id || part.index_bytes > part.bytes {
                return Err(corrupt("list of parts"));
            }
            next = part.last.saturating_add(1);
        }
        if next > row.last.saturating_add(1) {
            return Err(corrupt("last sequence number"));
        }
        let subpaths = rest
            .subpaths
            .iter()
            .map(|subpath| Subpath::new(subpath).map_err(|_| corrupt("subpath")))
            .collect::<Result<_, _>>()?;
        let tail = rest.tail.check(next, row.last)?.entries(texts)?;
        let (write, generation) = (rest.write, rest.generation);
        Ok(Self { row, write, generation, subpaths, parts: rest.parts, tail })
    }

    /// Returns the bytes of the head object that depend on the number of entries.
    pub(super) fn weight(&self) -> usize {
        let tail: usize = self.tail.iter().map(block::size).sum();
        let subpaths: usize = self.subpaths.iter().map(|it| it.as_str().len() + 48).sum();
        let summary = self.row.summary.as_ref().map_or(0, |(data, _)| data.len());
        tail + subpaths + summary + self.parts.len() * 120
    }
}

impl Row {
    /// Reads the row from the beginning of a head object; `None` if its end is missing.
    pub(super) fn from_start(bytes: &[u8]) -> Result<Option<Self>, StoreError> {
        split(bytes).map(|(line, _)| Self::from_line(line)).transpose()
    }

    fn from_line(line: &[u8]) -> Result<Self, StoreError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let found: Format = block::read_line(line, "head object")?;
        if found.format != FORMAT {
            return Err(errors::newer(found.format, FORMAT));
        }
        block::read_line(line, "head object")
    }

    /// Returns the project of a row in this scope.
    pub(super) fn into_project(self, scope: &str) -> Option<String> {
        (self.scope == scope).then_some(self.project)
    }

    /// Returns whether this is a row of the project.
    pub(super) fn is_of(&self, scope: &str, project: &str) -> bool {
        (&*self.scope, &*self.project) == (scope, project)
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

#[cfg(test)]
mod tests {
    use claude_session_store::{EntryId, Sequence, StoreErrorKind};

    use super::*;

    fn key() -> SessionKey {
        SessionKey::new("s\n", "p\"", "00000000-0000-4000-8000-000000000001").unwrap()
    }

    fn head() -> Head {
        let mut head = Head::new(&key());
        head.row.last = 9;
        head.row.summary = Some(("\0".to_owned(), 3));
        head.subpaths.insert(Subpath::new("a").unwrap());
        let part = |id: &str, first, last| Part {
            id: id.to_owned(),
            first,
            last,
            index_bytes: 1,
            bytes: 2,
        };
        head.parts = vec![part("a", 1, 3), part("b", 5, 7)];
        head.tail = vec![StoredEntry::new(Sequence::new(8), None, EntryId::unique(), "1")];
        head
    }

    #[test]
    fn heads_are_read_as_they_were_written() {
        let bytes = head().to_bytes().unwrap();
        let read = Head::from_bytes(&key(), &bytes).unwrap();
        assert_eq!(read.to_bytes().unwrap(), bytes);
        let row = Row::from_start(&bytes).unwrap().unwrap();
        assert_eq!((row.last, row.summary), (9, Some(("\0".to_owned(), 3))));
        assert!(Row::from_start(&bytes[..20]).unwrap().is_none());
    }

    #[test]
    fn every_truncated_or_damaged_head_is_corrupt() {
        let bytes = head().to_bytes().unwrap();
        for length in 0..bytes.len() {
            let error = Head::from_bytes(&key(), &bytes[..length]).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        }
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [
            (r#""last":9"#, r#""last":7"#),
            (r#""last":9"#, r#""last":-1"#),
            (r#""id":"a""#, r#""id":"../a""#),
            (r#""id":"a""#, r#""id":"""#),
            (r#""first":5"#, r#""first":3"#),
            (r#""first":5"#, r#""first":8"#),
            (r#""index_bytes":1"#, r#""index_bytes":3"#),
            ("[8,0,", "[7,0,"),
            (r#""subpaths":["a"]"#, r#""subpaths":[""]"#),
        ] {
            let damaged = text.replacen(from, to, 1);
            assert_ne!(damaged, text, "{from}");
            let error = Head::from_bytes(&key(), damaged.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{to}");
        }
        let other = SessionKey::new("s", "p", key().session().clone()).unwrap();
        let error = Head::from_bytes(&other, text.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    }

    #[test]
    fn newer_format_is_rejected() {
        let text = String::from_utf8(head().to_bytes().unwrap()).unwrap();
        let newer = text.replacen("\"format\":1", "\"format\":2", 1);
        let error = Head::from_bytes(&key(), newer.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
    }
}
