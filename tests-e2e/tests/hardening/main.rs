//! What nobody may read, and what nobody may slip in: secrets and odd values in every option.
//!
//! A program of its own: it listens to everything that is traced in it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::similar_names,
    dead_code,
    reason = "in a test a panic is the way to fail; not all tests need all of what they share"
)]

#[path = "../kit/support.rs"]
mod support;

mod debug;
mod floods;
mod guard;
mod injection;
mod listener;
mod places;
mod secrets;
