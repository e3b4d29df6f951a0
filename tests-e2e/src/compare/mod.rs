//! Compares the output of two CLIs: the order of messages, the shape of each line, and token counts and costs.
//!
//! The stored recording of the real CLI is the baseline. Every difference is an error unless
//! `allowed_differences.md` lists it with a reason.

mod allowed;
mod diff;
mod figures;
mod sequence;
mod shape;

use std::fmt;

use claude_agent_testkit::recording::Recording;

pub use allowed::{Allowed, InvalidTable};
pub use shape::Baseline;

/// A difference between a recording and the baseline.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Difference {
    /// A line that only the real CLI writes.
    Missing(String),
    /// A line that the real CLI does not write.
    Extra(String),
    /// A missing field that lines of this kind always have.
    Lacks(String),
    /// A field, or a type of its value, that lines of this kind never have.
    Invents(String),
    /// A token count or cost that differs.
    Counts(String),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(line) => write!(f, "missing {line}"),
            Self::Extra(line) => write!(f, "extra {line}"),
            Self::Lacks(field) => write!(f, "lacks {field}"),
            Self::Invents(field) => write!(f, "invents {field}"),
            Self::Counts(figure) => write!(f, "counts {figure}"),
        }
    }
}

/// Returns where token counts and costs of `other` differ from those of `real`.
pub fn figures(real: &Recording, other: &Recording) -> Vec<Difference> {
    figures::differences(real, other)
}

/// Returns how the lines of `other` differ in kind and order from those of `real`.
pub fn sequences(real: &Recording, other: &Recording) -> Vec<Difference> {
    let (real, other) = (sequence::of(real), sequence::of(other));
    diff::between(&real, &other)
        .into_iter()
        .map(|change| match change {
            diff::Change::Removed(line) => Difference::Missing(line.to_owned()),
            diff::Change::Added(line) => Difference::Extra(line.to_owned()),
        })
        .collect()
}
