//! The Rust SDK for Claude agents. Queries and sessions are being built on `claude-wire`.

mod callback;
mod cli;
mod diagnose;
mod driver;
mod error;
mod feed;
pub mod guide;
pub mod hook;
mod item;
mod mailbox;
mod mask;
mod options;
pub mod permission;
mod process;
mod prompt;
mod query;
pub mod question;
mod random;
mod reader;
mod session;
mod stderr;
pub mod transport;
mod turn;
mod warning;

pub use callback::{BoxError, CancelToken, Fallible, HookContext, PermissionContext};
pub use claude_wire as wire;
pub use claude_wire::control::PermissionMode;
pub use claude_wire::launch::{EnvironmentPolicy, Problem, SettingsSource, SystemPrompt, ToolSet};
pub use claude_wire::{Body, Json, Message};
pub use cli::{Cli, CliVersion, MINIMUM_FOR_PRINT_MODE, MINIMUM_VERSION};
pub use diagnose::login_missing;
pub use error::{Error, ErrorKind, Result};
pub use item::Item;
pub use options::{Background, Options};
pub use permission::{Permission, ToolRequest};
pub use prompt::Prompt;
pub use query::{Collected, QueryStream, query};
pub use question::{Answers, Questions};
pub use session::{Events, Messages, Session, SessionEvent, shutdown_all};
pub use turn::{Turn, TurnOutcome};
pub use warning::{Warning, WarningCode};

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
