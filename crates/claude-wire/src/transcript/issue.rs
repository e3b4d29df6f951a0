//! Lines that are not as they should be.

use std::fmt;

use crate::sort::sort_by;

/// A line, or a part of one, that is not one whole entry, or that does not belong to the
/// conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Issue {
    /// The offset of the first byte that it is about.
    pub offset: u64,
    /// How many bytes it is about.
    pub len: u64,
    /// What is wrong.
    pub kind: IssueKind,
}

impl Issue {
    pub(super) fn new(offset: u64, len: usize, kind: IssueKind) -> Self {
        Self { offset, len: u64::try_from(len).unwrap_or(u64::MAX), kind }
    }
}

/// Sorts issues by their place in the file.
pub(super) fn sort_issues(issues: &mut [Issue]) {
    let key = |issue: &Issue| (issue.offset, issue.kind);
    sort_by(issues, &|one, other| key(one).cmp(&key(other)));
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at offset {}: {}", self.len, self.offset, self.kind)
    }
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IssueKind {
    /// Not a JSON object with a string `type`. Skipped.
    Malformed,
    /// The beginning of an entry that was cut off. Skipped.
    Torn,
    /// Longer than the limit. Skipped.
    Oversized,
    /// A run of NUL bytes without an entry behind it. Skipped.
    Nul,
    /// An entry that shares its line with another one or with the rest of one. Salvaged.
    Spliced,
    /// An entry after a run of NUL bytes. Salvaged.
    NulPrefixed,
    /// An entry with invalid characters, which are read as U+FFFD. Salvaged.
    Repaired,
    /// An entry whose `uuid` another entry further down repeats. The last one is used.
    Repeated,
    /// An entry of another branch: abandoned by a rewind, a retry, or a second writer.
    OtherBranch,
    /// An entry from before the last compaction.
    BeforeCompaction,
    /// An entry above which the conversation is lost: its chain ends at a `parentUuid` that is not
    /// in the transcript.
    MissingParent,
    /// An entry whose chain of parents leads back to itself.
    Cycle,
}

impl IssueKind {
    /// Returns whether the entry can be read all the same.
    pub fn is_salvaged(self) -> bool {
        !matches!(self, Self::Malformed | Self::Torn | Self::Oversized | Self::Nul)
    }
}

impl fmt::Display for IssueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "malformed line",
            Self::Torn => "entry cut off",
            Self::Oversized => "line longer than the limit",
            Self::Nul => "NUL bytes without an entry",
            Self::Spliced => "entry shares its line with another one",
            Self::NulPrefixed => "entry after NUL bytes",
            Self::Repaired => "entry with invalid characters",
            Self::Repeated => "entry repeated further down",
            Self::OtherBranch => "entry of another branch",
            Self::BeforeCompaction => "entry from before the last compaction",
            Self::MissingParent => "entry whose parent is missing",
            Self::Cycle => "entry whose chain of parents is a cycle",
        })
    }
}
