//! Entries as bytes: an index in JSON, and the texts, each with a line break after it.
//!
//! The index is apart from the texts so that IDs can be read without them.

use std::collections::HashMap;

use claude_session_store::{EntryId, Sequence, StoreError, StoredEntry, Subpath};
use serde::{Deserialize, Serialize};

use super::errors::corrupt;

/// The index of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub(super) records: Vec<Record>,
}

/// An entry without its text.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) sequence: u64,
    pub(super) subpath: Option<Subpath>,
    pub(super) id: EntryId,
    /// The position of the text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The index as JSON.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct IndexJson {
    subpaths: Vec<String>,
    /// The sequence number, the number of the subpath (0: the main transcript, 1: the first one of the list),
    /// the ID, and the length of the text in bytes.
    entries: Vec<(u64, usize, String, usize)>,
}

impl IndexJson {
    pub(super) fn new(entries: &[StoredEntry]) -> Self {
        let mut json = Self::default();
        let mut numbers: HashMap<&Subpath, usize> = HashMap::new();
        for entry in entries {
            let number = entry.subpath.as_ref().map_or(0, |subpath| {
                *numbers.entry(subpath).or_insert_with(|| {
                    json.subpaths.push(subpath.as_str().to_owned());
                    json.subpaths.len()
                })
            });
            let id = entry.id.as_str().to_owned();
            json.entries.push((entry.sequence.get(), number, id, entry.text.len()));
        }
        json
    }

    /// Checks the index of entries whose sequence numbers are in this range.
    pub(super) fn check(self, first: u64, last: u64) -> Result<Index, StoreError> {
        let subpaths: Vec<Subpath> = self
            .subpaths
            .iter()
            .map(|subpath| Subpath::new(subpath).map_err(|_| corrupt("subpath")))
            .collect::<Result<_, _>>()?;
        let (mut start, mut next) = (0_usize, first);
        let mut records = Vec::with_capacity(self.entries.len());
        for (sequence, subpath, id, bytes) in self.entries {
            if sequence < next || sequence > last {
                return Err(corrupt("sequence number"));
            }
            next = sequence.saturating_add(1);
            let subpath = match subpath.checked_sub(1) {
                None => None,
                Some(at) => Some(subpaths.get(at).ok_or_else(|| corrupt("subpath"))?.clone()),
            };
            let id = EntryId::new(&id).map_err(|_| corrupt("ID of an entry"))?;
            let end = start.checked_add(bytes).ok_or_else(|| corrupt("length of an entry"))?;
            records.push(Record { sequence, subpath, id, start, end });
            start = end.checked_add(1).ok_or_else(|| corrupt("length of an entry"))?;
        }
        Ok(Index { records })
    }
}

impl Index {
    /// Returns the length of the texts with their line breaks.
    pub(super) fn bytes(&self) -> usize {
        self.records.last().map_or(0, |record| record.end + 1)
    }

    /// Returns all entries.
    pub(super) fn entries(&self, texts: &[u8]) -> Result<Vec<StoredEntry>, StoreError> {
        if texts.len() != self.bytes() {
            return Err(corrupt("length of an object"));
        }
        self.records.iter().map(|record| record.entry(texts, 0)).collect()
    }
}

impl Record {
    /// Returns the entry, from texts of which the first byte has this position in the block.
    pub(super) fn entry(&self, texts: &[u8], offset: usize) -> Result<StoredEntry, StoreError> {
        let text = self
            .start
            .checked_sub(offset)
            .zip(self.end.checked_sub(offset))
            .and_then(|(start, end)| texts.get(start..end))
            .and_then(|text| str::from_utf8(text).ok())
            .ok_or_else(|| corrupt("text of an entry"))?;
        let sequence = Sequence::new(self.sequence);
        Ok(StoredEntry::new(sequence, self.subpath.clone(), self.id.clone(), text))
    }
}

/// Returns the texts with their line breaks.
pub(super) fn texts(entries: &[StoredEntry], bytes: &mut Vec<u8>) {
    bytes.reserve(entries.iter().map(|entry| entry.text.len() + 1).sum());
    for entry in entries {
        bytes.extend_from_slice(entry.text.as_bytes());
        bytes.push(b'\n');
    }
}

/// Returns the bytes of a value as one line of JSON.
pub(super) fn line<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreError> {
    let mut bytes = serde_json::to_vec(value).map_err(|_| corrupt("value"))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Reads a value from a line of JSON.
pub(super) fn read_line<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    what: &str,
) -> Result<T, StoreError> {
    // The cause could contain a part of an entry.
    serde_json::from_slice(bytes).map_err(|_| corrupt(what))
}

/// An estimate of the bytes of an entry in a block.
pub(super) fn size(entry: &StoredEntry) -> usize {
    entry.text.len() + entry.id.as_str().len() + 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u64, subpath: Option<&str>, text: &str) -> StoredEntry {
        let subpath = subpath.map(|subpath| Subpath::new(subpath).unwrap());
        StoredEntry::new(Sequence::new(sequence), subpath, EntryId::unique(), text)
    }

    fn read(json: &str) -> Result<Index, StoreError> {
        read_line::<IndexJson>(json.as_bytes(), "index")?.check(1, 9)
    }

    #[test]
    fn blocks_return_the_entries_that_they_were_made_of() {
        let entries =
            [entry(2, None, "{\n}"), entry(3, Some("a"), "\"é\""), entry(9, Some("a"), "")];
        let mut bytes = Vec::new();
        texts(&entries, &mut bytes);
        let json = line(&IndexJson::new(&entries)).unwrap();
        let index = read_line::<IndexJson>(&json, "index").unwrap().check(2, 9).unwrap();
        assert_eq!(index.entries(&bytes).unwrap(), entries);
        let last = &index.records[1];
        assert_eq!(last.entry(&bytes[last.start..], last.start).unwrap(), entries[1]);
        assert!(index.entries(&bytes[1..]).is_err());
    }

    #[test]
    fn damaged_indexes_are_rejected() {
        for json in [
            "",
            "{}",
            r#"{"subpaths":[],"entries":[[1,0,"a",1]]"#,
            r#"{"subpaths":[],"entries":[[0,0,"a",1]]}"#,
            r#"{"subpaths":[],"entries":[[10,0,"a",1]]}"#,
            r#"{"subpaths":[],"entries":[[1,0,"a",1],[1,0,"b",1]]}"#,
            r#"{"subpaths":[],"entries":[[1,1,"a",1]]}"#,
            r#"{"subpaths":["../a"],"entries":[]}"#,
            r#"{"subpaths":[],"entries":[[1,0,"",1]]}"#,
            r#"{"subpaths":[],"entries":[[1,0,"a",-1]]}"#,
            r#"{"subpaths":[],"entries":[[1,0,"a",18446744073709551615]]}"#,
            r#"{"subpaths":[],"entries":[[1,0,"a",18446744073709551614],[2,0,"b",9]]}"#,
        ] {
            assert!(read(json).is_err(), "{json}");
        }
        let index = read(r#"{"subpaths":[],"entries":[[1,0,"a",5]]}"#).unwrap();
        assert!(index.records[0].entry(b"1", 0).is_err());
        assert!(index.records[0].entry(b"\xff\xff\xff\xff\xff\n", 0).is_err());
        assert!(index.records[0].entry(b"12345\n", 1).is_err());
    }
}
