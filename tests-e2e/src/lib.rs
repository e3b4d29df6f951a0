//! The project against the real CLI.
//!
//! - [`real_cli`]: installs the pinned CLI and starts it with nothing of this machine around it.
//! - [`scenario`]: what is played on a CLI, one function per scenario, each checking what it sees.
//! - [`scrub`]: makes a recording fit to be stored: nothing of this machine, little prose.
//! - [`drift`]: how a new recording differs in shape from the stored one.
//! - [`corpus`]: where recordings are stored.
//! - [`decoded`]: whether every line of a recording decodes.
//! - [`faults`]: what becomes of a session in every state when something goes wrong.
//! - [`golden`]: what is written and delivered, as hashes that are kept.
//! - [`outside`]: an MCP server outside the host.
//! - [`simulation`]: whole runs that follow from a seed.
//! - [`harness`]: where the SDK is tried.
//! - [`compare`]: whether two CLIs said the same.
//! - [`parity`]: whether everything that the official SDKs publish is accounted for.
//! - [`public_api`]: what the crates publish.
//! - [`tables`]: tables of the guide that are derived from the code.
//! - [`mod@bench`]: how fast it is, beside others.
//! - [`prove`]: claims that are proved by many repetitions on the real CLI.
//! - [`places`]: where tests stand that the documents name.

#[cfg(unix)]
pub mod bench;
pub mod compare;
pub mod corpus;
pub mod decoded;
pub mod drift;
#[cfg(unix)]
pub mod faults;
pub mod golden;
pub mod harness;
pub mod limits;
pub mod outside;
pub mod parity;
pub mod places;
pub mod prove;
pub mod public_api;
pub mod real_cli;
pub mod scenario;
pub mod scrub;
pub mod simulation;
pub mod snippets;
pub mod tables;
pub mod versions;
