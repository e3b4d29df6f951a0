//! Messages that the CLI sends on request only, and its debug log.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::path::PathBuf;

/// Messages that the CLI sends on request only. Several are combined with `|`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Include(u8);

impl Include {
    /// No such messages.
    pub const NONE: Self = Self(0);
    /// Partial answers, as `stream_event` messages. Sent as `--include-partial-messages`.
    pub const PARTIAL_MESSAGES: Self = Self(1);
    /// The start and the end of every hook; without it only those of the start of a session. Sent
    /// as `--include-hook-events`.
    pub const HOOK_EVENTS: Self = Self(1 << 1);
    /// The text and thinking of agents, with `parent_tool_use_id`; by default only their tool calls are
    /// sent.
    /// Sent as `forwardSubagentText` in the handshake, and `--forward-subagent-text` in print mode.
    pub const SUBAGENT_TEXT: Self = Self(1 << 2);
    /// Summaries of the activity of a running agent, in the `summary` of `task_progress` messages. A
    /// model writes them. Not in print mode. Sent as `agentProgressSummaries` in the handshake.
    pub const AGENT_PROGRESS_SUMMARIES: Self = Self(1 << 3);
    /// A suggestion for the next prompt after each turn, as a `prompt_suggestion` message. Sent as
    /// `promptSuggestions` in the handshake, and `--prompt-suggestions` in print mode.
    pub const PROMPT_SUGGESTIONS: Self = Self(1 << 4);

    /// The names in configuration files.
    const NAMES: [(&str, Self); 5] = [
        ("partial_messages", Self::PARTIAL_MESSAGES),
        ("hook_events", Self::HOOK_EVENTS),
        ("subagent_text", Self::SUBAGENT_TEXT),
        ("agent_progress_summaries", Self::AGENT_PROGRESS_SUMMARIES),
        ("prompt_suggestions", Self::PROMPT_SUGGESTIONS),
    ];

    /// Returns the messages of this name, such as `partial_messages`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(other, _)| *other == name).map(|(_, include)| *include)
    }

    /// Returns all names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(name, _)| name)
    }

    /// Returns whether all of `other` are included.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Include {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Include {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Include {
    /// Formats the names as in a configuration file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let included = Self::NAMES.iter().filter(|(_, include)| self.contains(*include));
        f.debug_list().entries(included.map(|(name, _)| name)).finish()
    }
}

/// The target of the debug log of the CLI.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum DebugLog {
    /// No debug log.
    #[default]
    Off,
    /// The default file of the CLI. Sent as `--debug`.
    Default,
    /// This file. Sent as `--debug-file`.
    File(PathBuf),
}

impl DebugLog {
    /// Writes to this file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File(path.into())
    }
}
