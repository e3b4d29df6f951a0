//! What can go wrong.

use std::fmt;
use std::sync::Arc;

/// What went wrong: a kind to decide by, facts to look at, a text for people.
///
/// The text says what happened, where, and what to do. It is not part of the API; the kind and the
/// facts are.
#[derive(Clone)]
pub struct Error {
    inner: Arc<Inner>,
}

struct Inner {
    kind: ErrorKind,
    message: String,
    remedy: Option<String>,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The executable of the CLI was not found, or is not one.
    CliNotFound,
    /// The CLI is older than what is asked of it.
    UnsupportedCliVersion,
    /// What the CLI says for `--version` holds no version.
    UnknownCliVersion,
    /// The CLI could not be asked for its version.
    VersionDetection,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let inner = Inner { kind, message: message.into(), remedy: None };
        Self { inner: Arc::new(inner) }
    }

    /// Adds what to do about it.
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Self {
        self.change(|inner| inner.remedy = Some(remedy.into()))
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        // Errors are put together before anybody else has them.
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            change(inner);
        }
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// What to do about it, if that is known.
    pub fn suggestion(&self) -> Option<&str> {
        self.inner.remedy.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)?;
        match &self.inner.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.inner.kind).field("message", &self.inner.message);
        if let Some(remedy) = &self.inner.remedy {
            debug.field("suggestion", remedy);
        }
        debug.finish()
    }
}

impl std::error::Error for Error {}
