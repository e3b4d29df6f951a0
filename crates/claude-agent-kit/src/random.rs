//! Generates unique IDs. They are not secret.

use uuid::Uuid;

/// Generates a message ID.
pub(crate) fn uuid() -> String {
    Uuid::new_v4().to_string()
}

/// Generates the prefix that makes request IDs unique across sessions.
pub(crate) fn suffix() -> u32 {
    Uuid::new_v4().as_fields().0
}
