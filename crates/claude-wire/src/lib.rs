//! The wire protocol of the Claude command-line program, without any I/O.
//!
//! `claude` and a host talk in lines of JSON. This crate turns bytes into lines ([`Framer`]),
//! lines into messages and control frames ([`FromCli`], [`FromHost`]), and what a host says into
//! lines again. It has no runtime, no clock and no threads, so everything in it can be tried in
//! microseconds and in any order.
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
//! # What is promised
//! - Nothing is lost: a type that is not known is `Unknown`, one that does not fit `Undecodable`, a
//!   line that is no message [`Malformed`], each with its bytes or fields. Structs keep the fields
//!   that they do not name in `extra`.
//! - Only `type` is required of a message. All other fields are optional.
//! - A message keeps the exact bytes of its line ([`Message::raw`]).
//! - Strings that the CLI may add to (`stop_reason`, modes, states) are open: a new value is kept.
//!
//! Types deserialize with `serde_json` from text, from a `serde_json::Value` and from a reader. From
//! text, use `decode` where there is one: it isolates a part that does not fit, and is faster.

#[macro_use]
mod schema;

pub mod content;
pub mod control;
pub mod envelope;
mod error;
pub mod frame;
mod from_cli;
mod from_host;
pub mod hook_input;
pub mod id;
mod json;
pub mod launch;
pub mod message;
mod repair;
pub mod session;
pub mod settings;
pub mod tool_input;
pub mod value;

pub use envelope::Envelope;
pub use error::DecodeError;
pub use frame::{Frame, Framer};
pub use from_cli::FromCli;
pub use from_host::FromHost;
pub use json::{Extra, Json, List, Nullable, Number};
pub use message::{Body, Malformed, Message};
pub use schema::{Undecodable, Unknown};
pub use tool_input::ToolInput;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
