//! The exit status of a process.

use std::fmt;

use serde::{Serialize, Serializer};

/// The exit status of a process.
///
/// Serializes as `{"code":1}`, `{"signal":9}` or `"unknown"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a process ends in one of these ways")]
pub enum Exit {
    /// The process exited with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
    /// The status is not available: the host ignores SIGCHLD, or the process may still be running
    /// because the host is not permitted to signal it. After a result this counts as success.
    Unknown,
}

impl Exit {
    /// Returns whether the process exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    /// Returns the exit code; `None` if a signal ended the process or the status is unknown.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::Unknown => None,
        }
    }

    /// Returns the signal that ended the process; `None` if it exited or the status is unknown.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Code(_) | Self::Unknown => None,
        }
    }

    /// Returns whether the status does not indicate a failure: code 0, or unknown.
    pub fn is_success_or_unknown(self) -> bool {
        matches!(self, Self::Code(0) | Self::Unknown)
    }
}

impl fmt::Display for Exit {
    /// Formats as `exit code 1`, `signal 9` or `an unknown status`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unknown => f.write_str("an unknown status"),
        }
    }
}

impl Serialize for Exit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Code(code) => serializer.serialize_newtype_variant("Exit", 0, "code", code),
            Self::Signal(signal) => {
                serializer.serialize_newtype_variant("Exit", 1, "signal", signal)
            }
            Self::Unknown => serializer.serialize_unit_variant("Exit", 2, "unknown"),
        }
    }
}
