//! The guide, chapter by chapter.
//!
//! | chapter | contents |
//! |---|---|
//! | [Queries](queries) | one prompt; success, resuming, partial text |
//! | [Sessions](sessions) | many turns; operations, messages, events |
//! | [Turns](turns) | the items, result and cost of one message |
//! | [Options](options) | every option, and how it is passed to the CLI |
//! | [Hooks](hooks) | callbacks in the agent loop; guarding tool calls |
//! | [Permissions](permissions) | which tools may run; questions to the user |
//! | [Approvals](approvals) | tool calls that a user approves later, in another process |
//! | [Tools](tools) | Rust functions that the model calls |
//! | [Typed answers](typed_answers) | answers as Rust types |
//! | [Errors and warnings](errors) | all kinds, and what to do about them |
//! | [Processes](processes) | finding the CLI, versions, environment, stderr, platforms |
//! | [Cancellation and shutdown](cancellation) | cancel safety; shutting down a service |
//! | [Limits](limits) | every limit and timeout with its option |
//! | [History](history) | the conversations on disk: list, read, follow, change |
//! | [Session stores](moving_sessions) | conversations in a store: resume on another machine, guarantees |
//! | [Testing your agent](testing) | the simulated CLI, faults, recordings |
//!
//! The crate `claude-agent-store` continues the guide with a chapter about stores on servers.
//!
//! The examples are doctests that run on the simulated CLI.

#[doc = include_str!("queries.md")]
pub mod queries {}

#[doc = include_str!("sessions.md")]
pub mod sessions {}

#[doc = include_str!("turns.md")]
pub mod turns {}

#[doc = include_str!("options.md")]
pub mod options {}

#[doc = include_str!("hooks.md")]
pub mod hooks {}

#[doc = include_str!("permissions.md")]
pub mod permissions {}

#[doc = include_str!("approvals.md")]
pub mod approvals {}

#[cfg(feature = "tools")]
#[doc = include_str!("tools.md")]
pub mod tools {}

#[cfg(feature = "tools")]
#[doc = include_str!("typed_answers.md")]
pub mod typed_answers {}

#[doc = include_str!("errors.md")]
pub mod errors {}

#[doc = include_str!("processes.md")]
pub mod processes {}

#[doc = include_str!("cancellation.md")]
pub mod cancellation {}

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("history.md")]
pub mod history {}

#[doc = include_str!("moving_sessions.md")]
pub mod moving_sessions {}

#[doc = include_str!("testing.md")]
pub mod testing {}
