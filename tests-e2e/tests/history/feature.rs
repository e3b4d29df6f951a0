//! What generated transcripts have.

/// What a transcript has that an official SDK may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Feature {
    /// A compaction.
    Compaction,
    /// A compaction that kept messages.
    Preserved,
    /// A prompt that joined a running turn.
    Queued,
    /// Entries of a team.
    Team,
    /// Metadata that is shown because of where the prompt came from.
    ShownMeta,
    /// A prompt that begins with a tag, or consists of an image.
    UnusualPrompt,
    /// A text in which a cut at 200 UTF-16 units differs from one at 200 characters.
    WideText,
    /// A title, prompt or summary inside of another object.
    NestedKey,
    /// Separators that are line breaks for some programs, such as U+2028.
    Separators,
    /// A tag entry with spaces or another order of its members.
    UnusualTag,
    /// An entry that moved the session to another directory.
    Relocated,
    /// An entry that names the session that continues this one.
    Continued,
    /// State that only the TypeScript SDK copies into a fork.
    ForkState,
    /// Entries that the TypeScript SDK changes in a fork.
    ForkFields,
    /// A session that this SDK started.
    RustSdk,
    /// Several lines with one ID.
    Repeated,
    /// A line of bytes that are not UTF-8.
    InvalidUtf8,
    /// NUL bytes before an entry.
    Nul,
    /// Several entries in one line, or an entry behind a torn one.
    Spliced,
    /// A torn line in the middle, or one that is not JSON.
    Malformed,
    /// A torn line at the end.
    TornEnd,
    /// No line break at the end.
    NoLineBreak,
    /// A title beside the transcript.
    Sidecar,
    /// More than 64 KiB, so that the ends are read separately.
    Large,
    /// A title that only the model gave.
    AiTitle,
    /// A branch that the conversation left.
    Branch,
    /// A conversation whose last message is metadata.
    MetaEnd,
    /// An entry of a subagent beside the conversation.
    Aside,
    /// An entry of progress.
    Progress,
    /// Records of data flows.
    DataFlow,
    /// A title with blanks around it.
    PaddedTitle,
    /// A subagent whose conversation has entries of the system, or of progress.
    SubagentLinks,
    /// A subagent whose parents are not IDs.
    SubagentParents,
    /// A tag with compatibility characters, such as a ligature.
    CompatibilityTag,
    /// A title or tag with characters that are not ASCII.
    NonAscii,
    /// A project whose path has characters outside of the Basic Multilingual Plane.
    WidePath,
    /// Two transcripts that were modified at the same time.
    SameTime,
}

/// How unusual a transcript may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// What both official SDKs read in the same way.
    Plain,
    /// Everything that the CLI writes.
    Full,
    /// With lines that are damaged too.
    Damaged,
}
