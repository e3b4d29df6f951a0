//! The wire protocol of the Claude command-line program.

#[macro_use]
mod schema;

pub mod content;
pub mod control;
pub mod envelope;
mod error;
pub mod frame;
mod from_cli;
mod from_host;
pub mod id;
mod json;
pub mod message;
mod repair;

pub use envelope::Envelope;
pub use error::DecodeError;
pub use frame::{Frame, Framer};
pub use from_cli::FromCli;
pub use from_host::FromHost;
pub use json::{Extra, Json, List, Nullable, Number};
pub use message::{Body, Malformed, Message};
pub use schema::{Undecodable, Unknown};
