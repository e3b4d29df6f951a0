//! The file format in which a conversation between a client and a CLI is kept.
