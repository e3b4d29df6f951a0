//! The wire protocol of the Claude command-line program, without any I/O.
//!
//! `claude` and a host exchange lines of JSON. This crate splits bytes into lines ([`Framer`]), decodes
//! lines into messages and control frames ([`FromCli`], [`FromHost`]) and encodes the lines of a host.
//! It has no runtime, no clock and no threads, so that everything can be tested deterministically.
//!
//! ```
//! use claude_wire::{Body, Frame, Framer, FromCli};
//!
//! let mut framer = Framer::default();
//! framer.push(br#"{"type":"assistant","message":{"content":[{"type":"te"#);
//! framer.push(b"xt\",\"text\":\"Hello.\"}]}}\n");
//! while let Some(frame) = framer.next_frame() {
//!     let Frame::Line(line) = frame else { continue };
//!     if let FromCli::Message(message) = FromCli::decode(line)? {
//!         if let Body::Assistant(answer) = &message.body {
//!             assert_eq!(answer.text(), "Hello.");
//!         }
//!     }
//! }
//! # Ok::<(), claude_wire::Malformed>(())
//! ```
//!
//! # Guarantees
//! - Nothing is lost: an unknown type is `Unknown`, a known type with invalid fields `Undecodable`, a
//!   line that is not a message [`Malformed`], each with its bytes or fields. Structs keep unknown
//!   fields in `extra`.
//! - Only `type` is required of a message. All other fields are optional.
//! - A message keeps the exact bytes of its line ([`Message::raw`]).
//! - Enums of strings that the CLI may extend (`stop_reason`, modes, states) keep unknown values.
//!
//! Types deserialize with `serde_json` from text, from a `serde_json::Value` and from a reader. From
//! text, prefer `decode` where it exists: it isolates undecodable parts, and is faster.

#[macro_use]
mod schema;

pub mod content;
pub mod control;
mod cost;
pub mod envelope;
mod error;
mod exit;
pub mod frame;
mod from_cli;
mod from_host;
pub mod hook_input;
pub mod id;
mod json;
pub mod launch;
pub mod message;
mod plain;
pub mod repair;
mod scan;
pub mod settings;
mod sort;
pub mod tool_input;
pub mod transcript;
mod unescape;
pub mod value;
pub mod visible;

pub use cost::{Cost, Tokens};
pub use envelope::Envelope;
pub use error::DecodeError;
pub use exit::Exit;
pub use frame::{Frame, Framer};
pub use from_cli::FromCli;
pub use from_host::FromHost;
pub use json::{Extra, Json, List, Map, Nullable, Number};
pub use message::{Body, Malformed, Message};
pub use schema::{Undecodable, Unknown};
pub use tool_input::ToolInput;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
