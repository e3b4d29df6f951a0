//! Transcripts: the files in which the CLI keeps its conversations, without reading files.
//!
//! A transcript has one JSON object per line. Most entries are links of a tree (`uuid`,
//! `parentUuid`): prompts, responses, tool results. The others are state: titles, tags,
//! checkpoints. Transcripts can have gigabytes, and are written by several programs without locks,
//! so lines can be torn, glued together or repeated.
//!
//! - [`Index`] takes the bytes chunk by chunk and keeps 48 bytes per entry: where the entry is, and
//!   what choosing the conversation needs. It salvages what it can and reports every line that is
//!   not one whole entry ([`Issue`]). Indexes of parts can be joined ([`Index::append`]), so that
//!   several threads can read one transcript.
//! - [`Tree`] chooses the conversation as the TypeScript SDK does, and gives every branch, the
//!   history before compactions, and prompts that joined a running turn.
//! - [`EntryRef`] is the position of an entry; the caller reads those bytes and decodes them
//!   ([`Entry::decode`], or [`Entry::decode_large`] where the bytes should not be in memory too).
//! - [`Ends`] gives what lists of sessions show, from the first and last bytes of a transcript;
//!   [`SummaryData`] gives the same from entries as they are appended to a store.
//! - [`ForkPlan`] and [`Fork`] copy a session under new ids, entry by entry; [`title_line`] and
//!   [`tag_line`] are what renaming and tagging append.
//!
//! # Deviations from the TypeScript SDK
//! - Entries in damaged lines are salvaged; the SDK skips such lines, and everything above them.
//! - Timestamps are compared as times, not as text; those outside of 1970 to 2109 count as absent.
//! - Queued prompts with one id and different contents are counted together.
//! - Of several `type` members in one entry the first one counts; the SDK takes the last one.
//! - A fork up to a message does not count entries of a team as part of the conversation.
//! - Records of data flows are carried into a fork as they are, without merging repeated ones.

mod append;
mod bits;
mod build;
mod cancel;
mod concat;
mod entry;
mod error;
mod facts;
mod fold;
mod fork;
mod fork_plan;
mod index;
mod issue;
mod key;
mod large;
mod light;
mod messages;
mod mirror_frame;
mod project;
mod prompt;
mod recover;
mod relink;
mod row;
mod rows;
mod salvage;
mod time;
mod tree;

pub use append::{sanitize_tag, tag_line, title_line, with_leading_newline};
pub use entry::*;
pub use error::TranscriptError;
pub use fold::SummaryData;
pub use fork::{Fork, ForkIds};
pub use fork_plan::ForkPlan;
pub use index::{Checkpoint, DEFAULT_MAX_LINE_BYTES, Index};
pub use issue::{Issue, IssueKind};
pub use key::is_uuid;
pub use light::{Ends, SessionInfo, WINDOW, has_chain_entry};
pub use messages::{MessageFilter, MessageList, MessageRef, MessageRole};
pub use mirror_frame::{MirrorFrame, TranscriptPath};
pub use project::{
    is_project_folder_override, is_same_project_name, project_folder_name, project_folder_prefix,
};
pub use row::{EntryKind, EntryRef};
pub use time::parse_timestamp;
pub use tree::Tree;
