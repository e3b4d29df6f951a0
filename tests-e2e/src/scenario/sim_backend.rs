//! The simulated CLI, in memory and as a process, behind the same scenarios as the real one.

use std::{io, path::PathBuf};

use claude_agent_testkit::{
    mock_api::{ApiRequest, MockApi},
    recording::Exit,
    sim::{self, Model, Sim, SimHandle},
};

use super::backend::{Backend, BoxFuture, Launch, Process, Running};
use crate::real_cli::RealProcess;

/// What stands behind a CLI in a scenario: the mock of the Messages API, or the model of a
/// simulation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Api {
    /// The mock, spoken to over HTTP.
    Mock(MockApi),
    /// The model of a simulation in memory.
    Model(Model),
}

impl Api {
    /// What it was asked so far.
    pub fn requests(&self) -> Vec<ApiRequest> {
        match self {
            Self::Mock(api) => api.requests(),
            Self::Model(model) => model.requests(),
        }
    }

    /// Lets go of every answer that is on hold.
    pub fn release_held(&self) {
        match self {
            Self::Mock(api) => api.release_held(),
            Self::Model(model) => model.release_held(),
        }
    }
}

/// The simulation in memory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SimInMemory {
    version: String,
}

impl SimInMemory {
    /// Scenarios will be played on simulations in this process.
    pub fn new() -> Self {
        Self::of(sim::VERSION)
    }

    /// The same, with simulations that speak like this version.
    pub fn of(version: impl Into<String>) -> Self {
        Self { version: version.into() }
    }
}

impl Default for SimInMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for SimInMemory {
    fn version(&self) -> &str {
        &self.version
    }

    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<Running>> {
        Box::pin(async move {
            let variables = variables(&launch, "http://127.0.0.1:1");
            let sim = Sim::new()
                .version(&*self.version)
                .args(launch.arguments)
                .envs(variables)
                .cwd(launch.sandbox.project())
                .script(launch.script);
            let (stdin, stdout, stderr, handle) = sim.start().into_parts();
            let model = handle.model().clone();
            let running = Running::new(stdin, stdout, stderr, InMemory(handle));
            Ok(Running { api: Some(Api::Model(model)), ..running })
        })
    }
}

struct InMemory(SimHandle);

impl Process for InMemory {
    fn end(&self) -> BoxFuture<'_, Exit> {
        Box::pin(self.0.wait())
    }
}

/// The simulation as a process with real pipes; its model is the mock, like that of the real CLI.
#[derive(Debug, Clone)]
pub struct SimProcessBackend {
    program: PathBuf,
}

impl SimProcessBackend {
    /// Scenarios will be played on this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}

impl Backend for SimProcessBackend {
    fn version(&self) -> &str {
        sim::VERSION
    }

    fn launch(&self, mut launch: Launch) -> BoxFuture<'_, io::Result<Running>> {
        Box::pin(async move {
            let script = std::mem::take(&mut launch.script);
            let api = MockApi::start(script).await?;
            let mut variables = variables(&launch, &api.base_url());
            variables.insert(sim::program::API.to_owned(), api.base_url());
            let project = launch.sandbox.project();
            let (process, pipes) =
                RealProcess::start(&self.program, &launch.arguments, &variables, &project)?;
            let running = Running::new(pipes.stdin, pipes.stdout, pipes.stderr, process);
            Ok(Running { api: Some(Api::Mock(api)), ..running })
        })
    }
}

/// The variables of a launch. A simulation needs no key, so that there is none has to be said.
fn variables(launch: &Launch, api: &str) -> std::collections::BTreeMap<String, String> {
    let mut variables = launch.sandbox.variables(api);
    for (name, value) in &launch.variables {
        match value {
            Some(value) => drop(variables.insert(name.clone(), value.clone())),
            None => drop(variables.remove(name)),
        }
    }
    if !variables.contains_key("ANTHROPIC_API_KEY") {
        variables.insert("CLAUDE_SIM_LOGIN".to_owned(), "none".to_owned());
    }
    variables
}
