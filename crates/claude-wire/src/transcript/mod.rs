//! Transcripts: the files in which the CLI keeps its conversations.
mod append;
mod bits;
mod build;
mod entry;
mod error;
mod facts;
mod fold;
mod fork;
mod fork_plan;
mod index;
mod issue;
mod key;
mod light;
mod messages;
mod project;
mod prompt;
mod recover;
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
pub use messages::{MessageFilter, MessageRef, MessageRole};
pub use project::{
    is_project_folder_override, is_same_project_name, project_folder_name, project_folder_prefix,
};
pub use row::{EntryKind, EntryRef};
pub use time::parse_timestamp;
pub use tree::Tree;
