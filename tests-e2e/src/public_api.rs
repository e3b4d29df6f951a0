//! What the crates publish.
