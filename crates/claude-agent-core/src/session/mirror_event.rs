//! What the machine and its driver exchange about the store.

use std::sync::Arc;

/// Selects what a run does while its store fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorePolicy {
    /// The run continues without the store after 30 seconds of retries.
    #[default]
    Continue,
    /// Retries without a time limit. The limit of the memory still applies.
    Wait,
    /// The run fails after 30 seconds of retries.
    Stop,
}

/// Identifies a batch of entries. The machine chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "a number that identifies a batch")]
pub struct BatchNumber(pub u64);

/// The kinds of failures of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFailure {
    /// The same append may succeed later.
    Retryable,
    /// The append cannot succeed.
    Permanent,
    /// Another host has claimed the session.
    Superseded,
}

/// Entries of one session to append to the store, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorBatch {
    /// Identifies the batch.
    pub number: BatchNumber,
    /// The session of all entries.
    pub session: Arc<MirrorSession>,
    /// The entries.
    pub entries: Vec<MirrorEntry>,
}

/// A request to store the lines of files that the store does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatchUp {
    /// Identifies the request.
    pub number: BatchNumber,
    /// All files of the run.
    pub files: Vec<MirrorFile>,
    /// Whether the process has ended, so that the files do not change any more.
    pub is_final: bool,
}

/// A file with a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorFile {
    /// The session.
    pub session: Arc<MirrorSession>,
    /// The subpath of the transcript, or `None` for the main one.
    pub subpath: Option<Arc<str>>,
    /// The path on the machine of the CLI.
    pub path: Arc<str>,
    /// The last entry with the metadata of a subagent, which is not a line of the file.
    pub metadata: Option<Arc<str>>,
}

/// A session, as the path of its transcript names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorSession {
    /// The name of the project folder.
    pub project: String,
    /// The session ID.
    pub session: String,
}

impl MirrorSession {
    /// Creates a session from the name of its project folder and its ID.
    pub fn new(project: impl Into<String>, session: impl Into<String>) -> Self {
        Self { project: project.into(), session: session.into() }
    }
}

/// An entry of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MirrorEntry {
    /// The subpath of the transcript, or `None` for the main one.
    pub subpath: Option<Arc<str>>,
    /// The entry as JSON text.
    pub text: Arc<str>,
}
