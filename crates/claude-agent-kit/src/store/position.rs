//! Where in a local transcript the lines are that the store does not have.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use claude_agent_core::session::{MirrorLimits, is_metadata_entry};
use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use serde_json::Value;
use uuid::Uuid;

use crate::session_files::own_files::OwnFiles;
use claude_session_store::{EntryId, NewEntry, StoredEntry, Subpath};

/// How many of the last stored entries are looked for in a transcript: the CLI retracts few.
const TAIL_ENTRIES: usize = 1_024;

/// A stored entry, as it is recognized in a file.
#[derive(Clone, Debug)]
enum Mark {
    /// By its ID, which is unique.
    Id(EntryId),
    /// By the digest of its text, which other lines may have too.
    Text(Uuid),
}

impl Mark {
    fn of(entry: &StoredEntry) -> Option<Self> {
        if entry.id.has_uuid() || entry.id.occurrence().is_some() {
            return Self::from_id(&entry.id);
        }
        // A title that was stored with a random ID is an ordinary line in a file.
        Self::from_id(NewEntry::new(None, Arc::clone(&entry.text), 0).ok()?.id())
    }

    fn from_id(id: &EntryId) -> Option<Self> {
        if id.has_uuid() {
            return Some(Self::Id(id.clone()));
        }
        id.occurrence().map(|(digest, _)| Self::Text(digest))
    }

    fn of_line(text: &str) -> Option<Self> {
        Self::from_id(NewEntry::new(None, text, 0).ok()?.id())
    }
}

/// Which stored entries a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Found {
    /// It is not known yet.
    #[default]
    Unknown,
    /// The last one.
    Last,
    /// An earlier one: the CLI has retracted the last one, or another host has added it.
    Earlier,
    /// None of the last ones, or the store has no entries.
    Nothing,
}

/// The position in a transcript: after the last entry that both the store and the file have.
#[derive(Clone, Debug, Default)]
pub(super) struct Position {
    offset: u64,
    pub(super) found: Found,
    /// The last stored entries.
    tail: VecDeque<Mark>,
    /// Whether the store has others before them.
    is_tail_cut: bool,
    /// How many lines with these texts are stored after the position.
    stored: HashMap<Uuid, u64>,
    /// The last stored metadata.
    pub(super) metadata: Option<Arc<str>>,
}

/// The positions in the transcripts of a session: few, as a transcript is that of an agent.
#[derive(Debug, Default)]
pub(super) struct Positions(HashMap<Option<Subpath>, Position>);

impl Positions {
    /// Returns the position in a transcript, at first its start.
    pub(super) fn of(&mut self, subpath: Option<&Subpath>) -> &mut Position {
        self.0.entry(subpath.cloned()).or_default()
    }
}

impl Position {
    /// Adds an entry that the store has.
    pub(super) fn add(&mut self, entry: &StoredEntry) {
        if is_metadata_entry(&entry.text) {
            self.metadata = Some(entry.text.clone());
            return;
        }
        self.tail.extend(Mark::of(entry));
        if self.tail.len() > TAIL_ENTRIES {
            self.tail.pop_front();
            self.is_tail_cut = true;
        }
    }

    /// Finds the last stored entry that the file has. `stored` says how many lines with each text the store has,
    /// if that [is needed](Self::needs_counts).
    pub(super) fn locate(
        mut self,
        files: &OwnFiles,
        path: &Path,
        stored: HashMap<Uuid, u64>,
    ) -> io::Result<Self> {
        let tail = std::mem::take(&mut self.tail);
        let place = find_last(&tail, files, path)?;
        let after = place.map_or(0, |(at, _)| at + 1);
        let is_id = |mark: &Mark| matches!(mark, Mark::Id(_));
        self.found = match place {
            Some(_) if !tail.iter().skip(after).any(is_id) => Found::Last,
            Some(_) => Found::Earlier,
            None => Found::Nothing,
        };
        self.offset = place.map_or(0, |(_, offset)| offset);
        if place.is_none() && self.is_tail_cut {
            self.stored = stored;
            return Ok(self);
        }
        for mark in tail.into_iter().skip(after) {
            if let Mark::Text(digest) = mark {
                *self.stored.entry(digest).or_default() += 1;
            }
        }
        Ok(self)
    }

    /// Returns whether the number of stored lines with each text is needed to locate the position.
    pub(super) fn needs_counts(&self) -> bool {
        self.is_tail_cut
    }

    /// Returns whether a line after the position is stored, and counts it.
    fn passes(&mut self, text: &str) -> bool {
        if self.stored.is_empty() {
            return false;
        }
        let Some(Mark::Text(digest)) = Mark::of_line(text) else { return false };
        let Some(count) = self.stored.get_mut(&digest) else { return false };
        *count -= 1;
        if *count == 0 {
            self.stored.remove(&digest);
        }
        true
    }

    /// Reads the lines of one append after this position, and returns them with the next position. Returns no
    /// lines at the end of the file.
    pub(super) fn read_lines(
        mut self,
        files: &OwnFiles,
        path: &Path,
    ) -> io::Result<(Vec<String>, Self)> {
        let limits = MirrorLimits::default();
        let mut reader = LineReader::open(files, path, self.offset)?;
        let (mut lines, mut size) = (Vec::new(), 0);
        while lines.len() < limits.batch_entries {
            let Some(line) = reader.next_line()? else { break };
            let text = line.trim_end();
            let is_selected = is_mirrored(text) && !self.passes(text);
            if is_selected && size > 0 && size + text.len() > limits.batch_bytes {
                break;
            }
            self.offset += line.len() as u64;
            if is_selected {
                size += text.len();
                lines.push(text.to_owned());
            }
        }
        Ok((lines, self))
    }
}

/// Returns the last of these entries with an ID of its own that a file has: its place among them, and the
/// offset after its line.
fn find_last(
    tail: &VecDeque<Mark>,
    files: &OwnFiles,
    path: &Path,
) -> io::Result<Option<(usize, u64)>> {
    let mut places = HashMap::new();
    for (at, mark) in tail.iter().enumerate() {
        if let Mark::Id(id) = mark {
            places.insert(id.as_str(), at);
        }
    }
    let Some(last) = places.values().max().copied() else { return Ok(None) };
    let mut reader = LineReader::open(files, path, 0)?;
    let (mut found, mut offset) = (None, 0);
    while let Some(line) = reader.next_line()? {
        offset += line.len() as u64;
        let text = line.trim_end();
        let mark = text.contains("uuid").then(|| Mark::of_line(text)).flatten();
        let Some(Mark::Id(id)) = mark else { continue };
        let Some(at) = places.get(id.as_str()).copied() else { continue };
        if found.is_none_or(|(known, _)| at > known) {
            found = Some((at, offset));
        }
        if at == last {
            break;
        }
    }
    Ok(found)
}

/// Reads the complete lines of a transcript.
pub(super) struct LineReader(BufReader<File>);

impl LineReader {
    pub(super) fn open(files: &OwnFiles, path: &Path, offset: u64) -> io::Result<Self> {
        let (mut file, metadata) = files.open(path)?;
        if metadata.len() < offset {
            // The CLI has retracted lines that were read. The next attempt starts again.
            return Err(io::Error::other("the file has become shorter"));
        }
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self(BufReader::with_capacity(64 * 1024, file)))
    }

    /// Returns the next complete line with its line break.
    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        self.0.by_ref().take(DEFAULT_MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            let is_too_long = line.len() == DEFAULT_MAX_LINE_BYTES;
            return if is_too_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
        }
        String::from_utf8(line).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Returns the next line that the CLI also reports, without its line break.
    pub(super) fn next_mirrored(&mut self) -> io::Result<Option<String>> {
        while let Some(mut line) = self.next_line()? {
            line.truncate(line.trim_end().len());
            if is_mirrored(&line) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

/// Returns whether the CLI reports such a line: all except empty ones and the records of API requests.
pub(crate) fn is_mirrored(line: &str) -> bool {
    if line.is_empty() {
        return false;
    }
    if !line.contains("\"api-request") {
        return true;
    }
    let entry: Value = serde_json::from_str(line).unwrap_or_default();
    !entry["type"].as_str().is_some_and(|kind| kind.starts_with("api-request"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_session_store::{Occurrences, Sequence};

    const MODE: &str = r#"{"type":"mode"}"#;

    fn message(number: usize) -> String {
        format!(r#"{{"uuid":"00000000-0000-4000-8000-{number:012}"}}"#)
    }

    /// Returns which lines of a file are read if the store has these entries.
    fn missing(stored: &[String], file: &[String]) -> (Found, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        std::fs::write(&path, file.join("\n") + "\n").unwrap();
        let (mut position, mut occurrences) = (Position::default(), Occurrences::new());
        for (at, text) in stored.iter().enumerate() {
            let entry = occurrences.entry(None, text.as_str()).unwrap();
            let sequence = Sequence::new(at as u64 + 1);
            position.add(&StoredEntry::new(sequence, None, entry.id().clone(), text.as_str()));
        }
        let files = OwnFiles::of_host(folder.path());
        let located = position.locate(&files, &path, occurrences.of(None)).unwrap();
        let found = located.found;
        (found, located.read_lines(&files, &path).unwrap().0)
    }

    fn lines(numbers: &[usize]) -> Vec<String> {
        // 0 stands for a line that is written again and again.
        numbers.iter().map(|at| if *at == 0 { MODE.to_owned() } else { message(*at) }).collect()
    }

    #[test]
    fn lines_after_the_last_common_entry_are_missing() {
        for (stored, file, found, expected) in [
            (&[][..], &[1, 0][..], Found::Nothing, &[1, 0][..]),
            (&[1, 0], &[1, 0, 0, 2], Found::Last, &[0, 2]),
            // Lines from before the store was used.
            (&[0, 2, 0], &[1, 0, 0, 2, 0, 0], Found::Last, &[0]),
            // The last one, and the last two, were retracted.
            (&[1, 0, 2, 0, 3, 0], &[1, 0, 2, 0, 0, 4, 0], Found::Earlier, &[4, 0]),
            (&[1, 0, 2, 0, 3], &[1, 0, 0, 4], Found::Earlier, &[4]),
            // No stored message is left.
            (&[1, 0, 2], &[0, 3], Found::Nothing, &[3]),
            (&[0, 0], &[0, 0, 0], Found::Nothing, &[0]),
        ] {
            let missing = missing(&lines(stored), &lines(file));
            assert_eq!(missing, (found, lines(expected)), "{stored:?} {file:?}");
        }
    }

    #[test]
    fn a_long_tail_of_foreign_entries_is_searched_as_far_as_it_is_kept() {
        let foreign = 10..10 + TAIL_ENTRIES;
        let stored: Vec<String> = lines(&[1, 0]).into_iter().chain(foreign.map(message)).collect();
        let (found, missing) = missing(&stored, &lines(&[1, 0, 2]));
        // The store skips the first message, which it has.
        assert_eq!((found, missing), (Found::Nothing, lines(&[1, 2])));
    }

    #[test]
    fn a_title_with_a_random_id_is_recognized_by_its_text() {
        let mut position = Position::default();
        let title = r#"{"type":"custom-title"}"#;
        position.add(&StoredEntry::new(Sequence::new(1), None, EntryId::unique(), title));
        assert!(matches!(position.tail[0], Mark::Text(_)));
    }
}
