//! Compares the public API with those of the official SDKs: every name is covered or left out for a reason.
//!
//! - [`official`]: the published packages at their pinned versions, and the names in them.
//! - [`typescript`], [`python`], [`flags`]: read the names from declarations, sources and help text.
//! - [`stored`]: the names as they were last stored, to show what a new version changes.
//! - [`table`]: checks `docs/parity.md`.
//! - [`rules`]: derives rows from names; [`uses`]: finds the tests for them.
//!
//! A name is written `<kind> <name>`, as in `option maxTurns` or `message system/init`. The kinds
//! are `option`, `method`, `message`, `hook`, `operation`, `export` and `flag`.

pub mod flags;
pub mod official;
pub mod python;
pub mod rules;
pub mod stored;
pub mod table;
pub mod typescript;
pub mod uses;

use std::collections::BTreeSet;

/// Names with their kinds.
pub type Names = BTreeSet<String>;

/// The origin of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Source {
    /// The SDK for TypeScript.
    TypeScript,
    /// The SDK for Python.
    Python,
    /// The help text of the CLI.
    Cli,
}

impl Source {
    /// All sources.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::Cli];

    /// Returns the column of the table that contains its names.
    pub fn column(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
            Self::Cli => "flag",
        }
    }
}
