//! The file format for recordings of a conversation between a client and a CLI.
//!
//! A `.wire` file is text with one entry per line, and preserves every line of the conversation byte
//! for byte:
//!
//! ```text
//! ## {"format":2,"cli_version":"2.1.325","date":"2026-11-15","scenario":"plain_turn",…}
//! >> 0.000123 {"type":…}      client to CLI, seconds since the start of the process
//! << 0.512034 {"type":…}      CLI to client
//! !! 0.600000 text            a line of stderr
//! >> 1.200000 EOF             the client closed the CLI's stdin
//! <| 1.290000                 the CLI closed stdout
//! EXIT 1.300000 0             the exit code, or the name of the signal that ended the CLI
//! ```
//!
//! Two rarer marks keep the format exact: `>~`, `<~` and `!~` contain the bytes after the last newline
//! of a stream, and `>=` contains a client line that would otherwise be parsed as `EOF`.
//!
//! The order of `<|` and `>> EOF` shows which side ended the conversation: a CLI that exits on its own
//! closes stdout while its stdin is still open. Files of format 1 have no `<|`; in them, a CLI that
//! exited on its own has no `>> EOF`.

mod entry;
mod header;
mod parse;

use bytes::Bytes;

pub use self::entry::{Channel, Entry, EntryKind, Exit};
pub use self::header::{Header, today};
pub use self::parse::ParseError;

/// The version of the file format that this crate writes. Older versions can still be parsed.
pub const FORMAT: u32 = 2;

/// One run of a CLI: the traffic in both directions, with timestamps.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// Describes the recorded run.
    pub header: Header,
    /// The entries, in the order in which they were observed.
    pub entries: Vec<Entry>,
}

impl Recording {
    /// Creates a recording from its header and entries.
    pub fn new(header: Header, entries: Vec<Entry>) -> Self {
        Self { header, entries }
    }

    /// Parses a `.wire` file.
    ///
    /// # Errors
    ///
    /// Returns an error that names the first invalid line and the reason.
    pub fn parse(file: &[u8]) -> Result<Self, ParseError> {
        parse::recording(file)
    }

    /// Returns the contents of the `.wire` file. Times are rounded down to the microsecond; everything
    /// else is exact.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = self.header.to_line();
        for entry in &self.entries {
            entry.write_to(&mut file);
        }
        file
    }

    /// Returns the complete lines that the client sent, in order.
    pub fn sent(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::Sent(line) => Some(line),
            _ => None,
        })
    }

    /// Returns the complete lines that the CLI wrote to stdout, in order.
    pub fn received(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::Received(line) => Some(line),
            _ => None,
        })
    }

    /// Returns how the CLI ended, if the recording contains it.
    pub fn exit(&self) -> Option<Exit> {
        self.entries.iter().rev().find_map(|entry| match entry.kind {
            EntryKind::Exited(exit) => Some(exit),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
