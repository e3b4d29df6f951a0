//! Keys, epochs and sequence numbers.

use std::fmt;
use std::sync::Arc;

use claude_wire::transcript::is_uuid;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::error::StoreError;
use claude_wire::id::SessionId;

/// The maximum length of a scope, a project and a subpath.
const MAX_BYTES: usize = 512;

/// The key of a project: a scope that the host chooses, such as a tenant, and the name of the project.
///
/// Both are text of 1 to 512 bytes without NUL characters. All other characters are allowed, and no character
/// has a special meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProjectKey {
    scope: Arc<str>,
    project: Arc<str>,
}

impl ProjectKey {
    /// Creates a key.
    ///
    /// # Errors
    /// Fails if a part is empty, longer than 512 bytes, or contains a NUL character.
    pub fn new(scope: &str, project: &str) -> Result<Self, StoreError> {
        check_part("scope", "session", scope)?;
        check_part("project", "session", project)?;
        Ok(Self { scope: scope.into(), project: project.into() })
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the project.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Returns the key of a session of this project.
    ///
    /// # Errors
    /// Fails if the session ID is not a UUID.
    pub fn session(&self, session: impl Into<SessionId>) -> Result<SessionKey, StoreError> {
        let session = session.into();
        if !is_uuid(session.as_str()) {
            let shown: String = session.as_str().chars().take(64).collect();
            return Err(StoreError::rejected(format!("{shown:?} is not a session ID"))
                .with_help("pass a UUID"));
        }
        Ok(SessionKey { project: self.clone(), session })
    }
}

pub(crate) fn check_part(name: &str, of: &str, text: &str) -> Result<(), StoreError> {
    let problem = if text.is_empty() {
        "empty".to_owned()
    } else if text.len() > MAX_BYTES {
        format!("{} bytes exceed the limit of {MAX_BYTES}", text.len())
    } else if text.contains('\0') {
        "NUL characters are not allowed".to_owned()
    } else {
        return Ok(());
    };
    Err(StoreError::rejected(format!("invalid {name} of a {of} key: {problem}")))
}

impl Serialize for ProjectKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ProjectKey", 2)?;
        object.serialize_field("scope", &*self.scope)?;
        object.serialize_field("project", &*self.project)?;
        object.end()
    }
}

/// The key of a session: its project and its ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    project: ProjectKey,
    session: SessionId,
}

impl SessionKey {
    /// Creates a key.
    ///
    /// # Errors
    /// Fails if the scope or the project is empty, longer than 512 bytes or contains a NUL character, or if
    /// the session ID is not a UUID.
    pub fn new(
        scope: &str,
        project: &str,
        session: impl Into<SessionId>,
    ) -> Result<Self, StoreError> {
        ProjectKey::new(scope, project)?.session(session)
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.project.scope
    }

    /// Returns the project.
    pub fn project(&self) -> &str {
        &self.project.project
    }

    /// Returns the session ID.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Returns the scope and the project.
    pub fn project_key(&self) -> &ProjectKey {
        &self.project
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("SessionKey", 3)?;
        object.serialize_field("scope", self.scope())?;
        object.serialize_field("project", self.project())?;
        object.serialize_field("session", &self.session)?;
        object.end()
    }
}

/// The path of a transcript other than the main one, such as `subagents/agent-ab12`.
///
/// Parts are separated by `/`. As a relative path, a subpath stays below its directory on every platform: it
/// has no empty parts, no `.` or `..`, no backslashes, colons or control characters, and at most 512 bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subpath(Arc<str>);

impl Subpath {
    /// Creates a subpath.
    ///
    /// # Errors
    /// Fails if the text is not a subpath.
    pub fn new(text: &str) -> Result<Self, StoreError> {
        if text.len() > MAX_BYTES {
            return Err(StoreError::rejected(format!(
                "invalid subpath: {} bytes exceed the limit of {MAX_BYTES}",
                text.len()
            )));
        }
        let is_bad_part = |part: &str| matches!(part, "" | "." | "..");
        // A colon separates a drive letter, or an alternate data stream of a file.
        let is_bad = |letter: char| letter.is_control() || matches!(letter, '\\' | ':');
        if text.split('/').any(is_bad_part) || text.contains(is_bad) {
            return Err(StoreError::rejected(format!("invalid subpath: {text:?}")).with_help(
                "separate names by `/`, without `.`, `..`, backslashes, colons and control \
                 characters",
            ));
        }
        Ok(Self(text.into()))
    }

    /// Returns the subpath as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Subpath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Subpath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for Subpath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Declares a number with a meaning of its own.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u64);

        impl $name {
            /// Creates a value from its number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u64(self.0)
            }
        }
    };
}

number! {
    /// The ownership of a session: every claim has a greater one. 0 means that the session was never claimed.
    Epoch
}

number! {
    /// The position of an entry in its session, starting at 1. 0 is the position before the first entry.
    Sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    #[test]
    fn keys_accept_any_text_without_nul() {
        for text in ["a", ":", "/", "..", "it's \"quoted\"", "%_*", "🦀", "שלום", "\n", " ", "é"]
        {
            let key = SessionKey::new(text, text, ID).unwrap();
            assert_eq!((key.scope(), key.project()), (text, text));
        }
        let long = "x".repeat(MAX_BYTES);
        assert!(SessionKey::new(&long, &long, ID).is_ok());
        for text in ["", "a\0b", &"x".repeat(MAX_BYTES + 1)] {
            assert!(ProjectKey::new(text, "p").is_err(), "{text:?}");
            assert!(ProjectKey::new("s", text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn session_ids_are_uuids() {
        for id in ["", "x", "../../etc/passwd", "0b0e4b1c5d5e4d5e9a673f1c2a9f7e11"] {
            assert!(SessionKey::new("s", "p", id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn subpaths_stay_below_their_directory() {
        for text in ["a", "subagents/agent-ab12", "a/.hidden/b..c", "ü", &"x".repeat(MAX_BYTES)] {
            assert_eq!(Subpath::new(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            ".",
            "..",
            "a/..",
            "./a",
            "a\\b",
            "C:",
            "a/c:d",
            "a\nb",
            "a\0",
            "\u{85}",
            &"x".repeat(MAX_BYTES + 1),
        ] {
            assert!(Subpath::new(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_serialize_as_objects_and_numbers_as_numbers() {
        let key = SessionKey::new("t", "p", ID).unwrap();
        let text = serde_json::to_string(&(&key, Epoch::new(3), Sequence::new(4))).unwrap();
        let object = format!(r#"{{"scope":"t","project":"p","session":"{ID}"}}"#);
        assert_eq!(text, format!("[{object},3,4]"));
        let text = serde_json::to_string(key.project_key()).unwrap();
        assert_eq!(text, r#"{"scope":"t","project":"p"}"#);
    }
}
