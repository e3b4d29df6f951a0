//! The guide, chapter by chapter.

#[doc = include_str!("testing.md")]
pub mod testing {}
