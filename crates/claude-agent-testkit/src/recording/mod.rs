//! The file format in which a conversation between a client and a CLI is kept.
//!
//! A `.wire` file is text, one entry per line, and keeps every line of the conversation byte for
//! byte:
//!
//! ```text
//! ## {"format":2,"cli_version":"2.1.325","date":"2026-11-15","scenario":"plain_turn",…}
//! >> 0.000123 {"type":…}      client to CLI, seconds since the start of the process
//! << 0.512034 {"type":…}      CLI to client
//! !! 0.600000 text            a line of stderr
//! >> 1.200000 EOF             the client closed stdin
//! <| 1.290000                 the CLI closed stdout
//! EXIT 1.300000 0             the exit code, or the name of the signal that ended the CLI
//! ```
//!
//! Two rarer marks keep the format exact: `>~`, `<~` and `!~` hold what stood after the last newline
//! of a stream, and `>=` holds a line of the client that would otherwise read as `EOF`.
//!
//! Whether `<|` stands before or after `>> EOF` says who ended the conversation: a CLI that exits by
//! itself closes stdout while its stdin is still open. Files of format 1 have no `<|`; there a CLI
//! that exited by itself has no `>> EOF`.

mod entry;
mod header;
mod parse;

use bytes::Bytes;

pub use self::entry::{Channel, Entry, Exit, What};
pub use self::header::{Header, today};
pub use self::parse::ParseError;

/// The version of the file format that this crate writes. Older versions are still read.
pub const FORMAT: u32 = 2;

/// One run of a CLI: what was said in both directions, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recording {
    /// What was recorded.
    pub header: Header,
    /// What was said, in the order in which it was seen.
    pub entries: Vec<Entry>,
}

impl Recording {
    /// A recording of these entries.
    pub fn new(header: Header, entries: Vec<Entry>) -> Self {
        Self { header, entries }
    }

    /// Reads a `.wire` file.
    ///
    /// # Errors
    ///
    /// Names the first line that is not in the format, and why.
    pub fn parse(file: &[u8]) -> Result<Self, ParseError> {
        parse::recording(file)
    }

    /// Writes a `.wire` file. Times are kept to the microsecond, everything else exactly.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut file = self.header.to_line();
        for entry in &self.entries {
            entry.write_to(&mut file);
        }
        file
    }

    /// The whole lines that the client sent, in order.
    pub fn sent(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Sent(line) => Some(line),
            _ => None,
        })
    }

    /// The whole lines that the CLI wrote to stdout, in order.
    pub fn received(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().filter_map(|entry| match &entry.what {
            What::Received(line) => Some(line),
            _ => None,
        })
    }

    /// How the CLI ended, if the recording saw it.
    pub fn exit(&self) -> Option<Exit> {
        self.entries.iter().rev().find_map(|entry| match entry.what {
            What::Exited(exit) => Some(exit),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
