//! A Rust SDK for building agents on Claude Code, unofficial. It runs the `claude` command-line program as a
//! child process.
//!
//! [`query`](query()) sends one prompt and streams the answer. A [`Session`] has many [`Turn`]s and can
//! be controlled while it runs. Both take [`Options`]: settings for the CLI, and callbacks for
//! [hooks](hook), [permissions](Options::can_use_tool) and [questions to the user](Options::ask_user).
//!
//! ```no_run
//! use claude_agent_kit::{Options, Session, query};
//!
//! # async fn example() -> claude_agent_kit::Result<()> {
//! let answer = query("Which files changed last week?", Options::new()).await?.collect().await;
//! println!("{}", answer.into_result()?.text());
//!
//! let session = Session::start(Options::new().model("sonnet")).await?;
//! let outcome = session.send("Write the release notes.").await?.finish().await?;
//! println!("{}", outcome.into_result()?.text);
//! session.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! | task | start with | chapter |
//! |---|---|---|
//! | ask one question | [`query`](query()), [`QueryStream`] | [queries](guide::queries) |
//! | keep a conversation, steer and interrupt it | [`Session`], [`Turn`] | [sessions](guide::sessions), [turns](guide::turns) |
//! | configure the CLI | [`Options`] | [options](guide::options) |
//! | inspect or change tool calls | [`Options::on`], [`hook`] | [hooks](guide::hooks) |
//! | allow or deny tool calls, answer questions | [`Options::can_use_tool`], [`PermissionInbox`], [`Options::ask_user`] | [permissions](guide::permissions) |
//! | let a user decide hours later, in another process | [`approval`], [`Options::approvals`] | [approvals](guide::approvals) |
//! | resume a conversation on another machine | [`store`], [`Options::store`]; the crate `claude-agent-store` | [session stores](guide::moving_sessions) |
//! | list, read and change past conversations | [`history`] | [history](guide::history) |
#![cfg_attr(
    feature = "tools",
    doc = "| offer Rust functions to the model | [`ToolServer`], [`Options::mcp`] | [tools](guide::tools) |"
)]
#![cfg_attr(
    feature = "tools",
    doc = "| get the answer as a Rust type | [`query_as`] | [typed answers](guide::typed_answers) |"
)]
#![cfg_attr(
    feature = "testing",
    doc = "| test an agent without network access or cost | [`testing`] | [testing](guide::testing) |"
)]
//! | find out why a run fails | [`doctor`](doctor()), [`Error::help`] | [errors](guide::errors), [processes](guide::processes) |
//! | stop in time, and limit what a run uses | [`shutdown_all`], [`Timeouts`], [`Limits`] | [cancellation](guide::cancellation), [limits](guide::limits) |
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `tools` | yes | Rust functions as tools, typed answers |
//! | `config` | yes | options from TOML files |
//! | `testing` | no | a simulated CLI, fault injection, recording and replay |
//! | `mock-api` | no | `testing`, and a mock of the Messages API for tests with the real CLI |
//! | `rmcp` | no | servers written with the official Rust MCP SDK |
//!
//! An `Err` of a stream is its last item; problems that the run survives are [`Warning`]s. When the
//! owner of a CLI process is dropped, the process is ended. A Tokio runtime with I/O and time enabled
//! is required.
//!
//! Protocol types are re-exported in [`message`], [`content`], [`control`], [`id`] and [`value`], the
//! most common ones at the root, and rarely used values of options in [`settings`].

// Marks items with the feature that they need on docs.rs, which builds with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod approval;
mod backlog;
mod callback;
mod cli;
mod commands;
mod copy_on_write;
mod cost;
mod diagnose;
mod doctor;
mod drift;
mod driver;
pub mod elicitation;
mod error;
mod feed;
mod group;
pub mod guide;
pub mod history;
pub mod hook;
mod id_map;
mod item;
mod list;
mod lock;
mod mask;
pub mod mcp;
#[cfg(test)]
#[cfg(all(target_os = "linux", feature = "config", feature = "tools"))]
mod messages;
mod options;
mod panics;
mod permission;
mod process;
mod prompt;
mod query;
mod question;
mod random;
mod reader;
mod session;
mod session_files;
mod small_file;
mod sort;
mod stderr;
pub mod store;
mod tasks;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(feature = "tools")]
mod tool;
pub mod transport;
mod turn;
#[cfg(feature = "tools")]
mod typed;
mod wakers;
mod warning;

pub use callback::{BoxError, CallbackContext, CancelToken, IntoCallbackResult};
pub use claude_wire::content::ContentBlock;
pub use claude_wire::control::{AgentDefinition, PermissionMode, PermissionUpdate};
pub use claude_wire::id::{MessageId, SessionId, ToolUseId};
pub use claude_wire::launch::{
    Effort, Include, Plugin, Problem, Skills, SystemPrompt, Thinking, ToolSet,
};
pub use claude_wire::message::ResultMessage;
pub use claude_wire::tool_input::{Question, QuestionOption};
pub use claude_wire::visible::{VisibleText, visible};
pub use claude_wire::{Body, Cost, Exit, Json, Message, Tokens, ToolInput};
pub use claude_wire::{content, control, id, message, settings, tool_input, value};
pub use cli::{Cli, CliVersion, MINIMUM_VERSION};
pub use doctor::{Check, Doctor, Finding, Level, Report, doctor};
pub use error::{Error, ErrorKind, Result};
pub use group::{RunGroup, shutdown_all};
pub use item::Item;
pub use options::{
    Background, Conversation, Explanation, ExtraArg, Layers, Limits, Options, OsUser,
    SettingSources, Source, Timeouts, VersionCheck,
};
pub use permission::{Permission, PermissionInbox, ToolRequest};
pub use prompt::Prompt;
pub use query::{Collected, QueryStream, query};
pub use question::{Answers, Questions};
#[cfg(feature = "tools")]
pub use schemars;
/// Builds a JSON value, which converts into [`Json`]: the input of a tool, a configuration.
pub use serde_json::json;
pub use session::{
    Events, Interruption, Messages, Operation, Session, SessionState, TurnInterruption,
};
#[cfg(feature = "tools")]
pub use tool::{
    NoArguments, Tool, ToolContext, ToolError, ToolFunction, ToolHandle, ToolOutput, ToolProgress,
    ToolResult, ToolServer,
};
pub use turn::{Turn, TurnOutcome};
#[cfg(feature = "tools")]
pub use typed::{Typed, query_as};
pub use warning::{Warning, WarningCode};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
