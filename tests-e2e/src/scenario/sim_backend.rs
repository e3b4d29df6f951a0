//! The simulated CLI as a backend, in memory and as a process.

use std::io;
use std::path::PathBuf;

use claude_agent_testkit::mock_api::{ApiRequest, MockApi};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::{self, Model, Sim, SimHandle};

use super::backend::{Backend, BoxFuture, Launch, Process, StartedCli};
use crate::real_cli::RealProcess;

/// The API of a CLI in a scenario: the mock API, or the model of a simulation in memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Api {
    /// The mock API over HTTP.
    Mock(MockApi),
    /// The model of a simulation in memory.
    Model(Model),
}

impl Api {
    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ApiRequest> {
        match self {
            Self::Mock(api) => api.requests(),
            Self::Model(model) => model.requests(),
        }
    }

    /// Releases every answer that is held back.
    pub fn release_held(&self) {
        match self {
            Self::Mock(api) => api.release_held(),
            Self::Model(model) => model.release_held(),
        }
    }
}

/// Runs scenarios on simulated CLIs in memory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SimInMemory {
    version: String,
}

impl SimInMemory {
    /// Creates a backend with the newest simulated version.
    pub fn new() -> Self {
        Self::of(sim::VERSION)
    }

    /// Creates a backend that simulates this version.
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

    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<StartedCli>> {
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
            let running = StartedCli::new(stdin, stdout, stderr, InMemory(handle));
            Ok(StartedCli { api: Some(Api::Model(model)), ..running })
        })
    }
}

struct InMemory(SimHandle);

impl Process for InMemory {
    fn end(&self) -> BoxFuture<'_, Exit> {
        Box::pin(self.0.wait())
    }
}

/// Runs scenarios on the simulated CLI as a process, with the mock API.
#[derive(Debug, Clone)]
pub struct SimProcessBackend {
    program: PathBuf,
}

impl SimProcessBackend {
    /// Creates a backend for this program.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}

impl Backend for SimProcessBackend {
    fn version(&self) -> &str {
        sim::VERSION
    }

    fn launch(&self, mut launch: Launch) -> BoxFuture<'_, io::Result<StartedCli>> {
        Box::pin(async move {
            let script = std::mem::take(&mut launch.script);
            let api = MockApi::start(script).await?;
            let mut variables = variables(&launch, &api.base_url());
            variables.insert(sim::program::API.to_owned(), api.base_url());
            let project = launch.sandbox.project();
            let (process, pipes) =
                RealProcess::start(&self.program, &launch.arguments, &variables, &project)?;
            let running = StartedCli::new(pipes.stdin, pipes.stdout, pipes.stderr, process);
            Ok(StartedCli { api: Some(Api::Mock(api)), ..running })
        })
    }
}

/// Returns the environment variables of a launch. A simulation needs no key, so a missing key is passed explicitly.
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
