//! The wire protocol of the Claude command-line program.

#[macro_use]
mod schema;

pub mod content;
pub mod control;
mod error;
pub mod id;
mod json;
pub mod message;
mod repair;

pub use error::DecodeError;
pub use json::{Extra, Json, List, Nullable, Number};
pub use message::{Body, Malformed, Message};
pub use schema::{Undecodable, Unknown};
