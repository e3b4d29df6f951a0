//! Scenarios that run against a CLI.
//!
//! A scenario starts a CLI on a [`Backend`], exchanges messages with it and checks the responses; it fails when the
//! CLI behaves differently than documented here. The exchange is returned as a [`Recording`].

mod backend;
mod cli;
mod failure;
mod fixture;
pub mod flow;
mod ids;
mod line;
pub mod probe;
mod response;
mod sim_backend;
mod table;

mod api_errors;
mod content;
mod deferred;
mod hook_effects;
mod hooks;
mod interrupts;
mod mcp;
mod operations;
mod permissions;
mod queue;
mod startup;
mod tasks;
mod tool_lists;
mod tools;
mod turns;
mod uncommon_messages;

use std::fmt;
use std::sync::Arc;

use claude_agent_testkit::recording::Recording;

pub use self::backend::{Backend, BoxFuture, Launch, Process, RealCli, StartedCli};
pub use self::cli::Cli;
pub use self::failure::Failure;
pub use self::fixture::{Fixture, Plan};
pub use self::sim_backend::{Api, SimInMemory, SimProcessBackend};
pub use self::table::SCENARIOS;
use crate::{decoded, scrub};

/// A scenario.
#[non_exhaustive]
pub struct Scenario {
    /// The name of the scenario and of its recording.
    pub name: &'static str,
    /// One sentence on what it shows.
    pub about: &'static str,
    run: fn(Arc<Fixture>) -> BoxFuture<'static, Result<Recording, Failure>>,
}

impl Scenario {
    /// Returns the scenario with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }

    /// Runs the scenario and returns the recording, scrubbed and dated.
    ///
    /// # Errors
    ///
    /// Returns a failure when the CLI behaves differently, or writes a line that cannot be decoded.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the CLI.
    pub async fn record(
        &self,
        backend: Arc<dyn Backend>,
        date: &str,
    ) -> Result<Recording, Failure> {
        let fixture = Arc::new(Fixture::new(backend, self.name, self.about, date)?);
        let recording = (self.run)(Arc::clone(&fixture)).await?;
        let problems = decoded::problems(&recording);
        if !problems.is_empty() {
            return Err(Failure::new("every line of the CLI can be decoded", problems.join("\n")));
        }
        Ok(scrub::recording(&recording, fixture.sandbox()))
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The result of a scenario function.
type Outcome = Result<Recording, Failure>;
