//! Whether two CLIs said the same: the order of what was said, the shape of each line, and the
//! tokens and dollars.
//!
//! The stored recording of the real CLI is the measure. A difference is a fault of the other side
//! unless `allowed_differences.md` names it with a reason.

mod allowed;
mod diff;
mod figures;
mod sequence;
mod shape;

use std::fmt;

use claude_agent_testkit::recording::Recording;

pub use allowed::{Allowed, InvalidTable};
pub use shape::Baseline;

/// What differs between a recording and the measure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Difference {
    /// A line that the real CLI writes here and the other does not.
    Missing(String),
    /// A line that the real CLI does not write here.
    Extra(String),
    /// A field that lines of this kind always have and this one has not.
    Lacks(String),
    /// A field, or a type of its value, that no line of this kind was seen to have.
    Invents(String),
    /// A number of tokens or dollars that is another one.
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

/// Where tokens and dollars in the lines of `other` differ from those of `real`.
pub fn figures(real: &Recording, other: &Recording) -> Vec<Difference> {
    figures::differences(real, other)
}

/// How the lines of `other` differ in kind and order from those of `real`.
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
