//! Ids that nobody else has. They are no secrets.

use uuid::Uuid;

/// A new id for a message.
pub(crate) fn uuid() -> String {
    Uuid::new_v4().to_string()
}

/// What makes the request ids of one session differ from those of another.
pub(crate) fn suffix() -> u32 {
    Uuid::new_v4().as_fields().0
}
