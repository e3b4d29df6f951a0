//! Whether everything that the official SDKs publish is here too, or left out for a reason.
//!
//! - [`official`]: the published packages at their pinned versions, and the names in them.
//! - [`typescript`], [`python`], [`flags`]: what names there are, read from the declarations.
//! - [`stored`]: the same names as they were last seen: what came and went when a pin moves.
//! - [`table`]: `docs/parity.md`, and what is wrong with it.
//! - [`rules`]: its rows that follow from a name; [`uses`]: the tests that they name.
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

/// Where names come from.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::TypeScript, Self::Python, Self::Cli];

    /// The column of the table that holds its names.
    pub fn column(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
            Self::Cli => "flag",
        }
    }
}
