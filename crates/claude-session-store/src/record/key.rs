//! Keys of records and of their owners.

use std::fmt;
use std::sync::Arc;

use claude_wire::id::SessionId;

use crate::StoreError;
use crate::key::check_part;

/// The scope of records that belong to a whole fleet and not to one tenant. Scopes of hosts are not empty.
pub const FLEET_SCOPE: &str = "";

/// What a record is. A store keeps the [name](Self::as_str) and does not interpret it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RecordKind {
    /// A tool call that needs approval, and the decision.
    Approval,
    /// A message to a conversation.
    Message,
    /// A tool call and its result.
    ToolCall,
    /// A limit of cost, and what was reserved and used of it.
    Budget,
    /// The outcome of a step.
    StepReport,
    /// A conversation.
    Conversation,
    /// The name of an engine.
    Engine,
}

impl RecordKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Approval,
        Self::Message,
        Self::ToolCall,
        Self::Budget,
        Self::StepReport,
        Self::Conversation,
        Self::Engine,
    ];

    /// Returns the name of the kind in snake case, such as `tool_call`. The name does not change.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Message => "message",
            Self::ToolCall => "tool_call",
            Self::Budget => "budget",
            Self::StepReport => "step_report",
            Self::Conversation => "conversation",
            Self::Engine => "engine",
        }
    }
}

impl RecordKind {
    /// Returns the kind with this [name](Self::as_str).
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn check_scope(scope: &str) -> Result<(), StoreError> {
    if scope == FLEET_SCOPE { Ok(()) } else { check_part("scope", "record", scope) }
}

/// The owner of records: a session, or a name such as that of an engine or a budget, in a scope.
///
/// The scope is text that the host chooses, such as a tenant, or [`FLEET_SCOPE`]. Both are at most 512 bytes long, without
/// NUL characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerKey {
    scope: Arc<str>,
    owner: Arc<str>,
}

impl OwnerKey {
    /// Creates the key of an owner.
    ///
    /// # Errors
    /// Fails if a part is longer than 512 bytes or contains a NUL character, or if the owner is empty.
    pub fn new(scope: &str, owner: &str) -> Result<Self, StoreError> {
        check_scope(scope)?;
        check_part("owner", "record", owner)?;
        Ok(Self { scope: scope.into(), owner: owner.into() })
    }

    /// Creates the key of a session as an owner.
    ///
    /// # Errors
    /// Fails if a part is longer than 512 bytes or contains a NUL character, or if the session is empty.
    pub fn session(scope: &str, session: &SessionId) -> Result<Self, StoreError> {
        Self::new(scope, session.as_str())
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the owner in its scope.
    pub fn owner(&self) -> &str {
        &self.owner
    }
}

/// The key of a record: its scope, its kind and its ID.
///
/// The scope is as that of an [`OwnerKey`]; the ID has 1 to 512 bytes without NUL characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKey {
    scope: Arc<str>,
    kind: RecordKind,
    id: Arc<str>,
}

impl RecordKey {
    /// Creates a key.
    ///
    /// # Errors
    /// Fails if a part is longer than 512 bytes or contains a NUL character, or if the ID is empty.
    pub fn new(scope: &str, kind: RecordKind, id: &str) -> Result<Self, StoreError> {
        check_scope(scope)?;
        check_part("ID", "record", id)?;
        Ok(Self { scope: scope.into(), kind, id: id.into() })
    }

    /// Returns the scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Returns the kind.
    pub fn kind(&self) -> RecordKind {
        self.kind
    }

    /// Returns the ID.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Display for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_accept_any_text_without_nul_and_the_scope_of_the_fleet() {
        for text in ["a", "t%_\\/../é", "\u{202e}", &"x".repeat(512)] {
            assert!(OwnerKey::new(text, text).is_ok(), "{text:?}");
            assert!(RecordKey::new(text, RecordKind::Budget, text).is_ok(), "{text:?}");
        }
        assert!(OwnerKey::new(FLEET_SCOPE, "engine").is_ok());
        for text in ["", "a\0", &"x".repeat(513)] {
            assert!(OwnerKey::new("scope", text).is_err(), "{text:?}");
            assert!(RecordKey::new("scope", RecordKind::Budget, text).is_err(), "{text:?}");
        }
        let error = RecordKey::new("a\0", RecordKind::Budget, "id").unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid scope of a record key: NUL characters are not allowed"
        );
    }
}
