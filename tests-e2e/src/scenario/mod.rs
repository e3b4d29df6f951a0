//! What is played on a CLI.
//!
//! A scenario starts a CLI on a [`Backend`], talks to it and checks what it says; it fails when the
//! CLI does not behave as it is known to. What was said is its [`Recording`].

mod answer;
mod backend;
mod cli;
mod failure;
mod fixture;
pub mod flow;
mod ids;
mod line;
pub mod probe;
mod sim_backend;
mod table;

mod api_errors;
mod content;
mod hook_effects;
mod hooks;
mod interrupts;
mod mcp;
mod operations;
mod permissions;
mod queue;
mod rare;
mod startup;
mod tasks;
mod tool_lists;
mod tools;
mod turns;

use std::{fmt, sync::Arc};

use claude_agent_testkit::recording::Recording;

pub use self::{
    backend::{Backend, BoxFuture, Launch, Process, RealCli, Running},
    cli::Cli,
    failure::Failure,
    fixture::{Fixture, Plan},
    sim_backend::{Api, SimInMemory, SimProcessBackend},
    table::SCENARIOS,
};
use crate::{decoded, scrub};

/// Something to play on a CLI.
#[non_exhaustive]
pub struct Scenario {
    /// Its name, also of its recording.
    pub name: &'static str,
    /// One sentence on what it shows.
    pub about: &'static str,
    run: fn(Arc<Fixture>) -> BoxFuture<'static, Result<Recording, Failure>>,
}

impl Scenario {
    /// The scenario of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| scenario.name == name)
    }

    /// Plays it, and returns what was said, fit to be stored under this date.
    ///
    /// # Errors
    ///
    /// When the CLI does not behave as the scenario knows it, or writes a line that does not decode.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the CLI.
    pub async fn play(&self, backend: Arc<dyn Backend>, date: &str) -> Result<Recording, Failure> {
        let fixture = Arc::new(Fixture::new(backend, self.name, self.about, date)?);
        let recording = (self.run)(Arc::clone(&fixture)).await?;
        let complaints = decoded::complaints(&recording);
        if !complaints.is_empty() {
            return Err(Failure::new("every line of the CLI decodes", complaints.join("\n")));
        }
        Ok(scrub::recording(&recording, fixture.sandbox()))
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a scenario function returns.
type Outcome = Result<Recording, Failure>;
