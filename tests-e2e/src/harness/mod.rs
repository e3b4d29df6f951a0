//! The harness for tests of the SDK: the simulated CLI in memory or as a process, or the real CLI.
//!
//! All of them use the same scripted model and a sandbox directory.

pub mod processes;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::{Options, Timeouts, ToolServer};
use claude_agent_testkit::mock_api::{MockApi, Script};
use claude_agent_testkit::sim::{Faults, Sim};
use serde::Deserialize;

use crate::real_cli::{InstalledCli, SandboxDir};

/// How long a CLI may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(30);

/// A CLI with a scripted model and its own sandbox directory.
#[derive(Debug)]
pub struct Harness {
    sandbox: SandboxDir,
    api: MockApi,
    cli: CliKind,
    has_tools: bool,
}

/// The argument of the tool that an in-process server has.
#[derive(Debug, Deserialize, JsonSchema)]
struct Repeated {
    text: String,
}

/// Returns an in-process server with one tool.
pub fn tool_server() -> ToolServer {
    let repeat = |repeated: Repeated| async { Ok(repeated.text) };
    ToolServer::new().tool("repeat", "Repeats a text", repeat)
}

#[derive(Debug, Clone)]
enum CliKind {
    InMemory(Faults),
    Program(PathBuf),
    /// The simulated CLI as a process with a script file, which may contain faults.
    Scripted {
        program: PathBuf,
        script: PathBuf,
        /// Whether it sends requests to the mock API nevertheless.
        uses_api: bool,
    },
}

impl Harness {
    /// Uses the simulated CLI in memory.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn in_memory(script: Script) -> io::Result<Self> {
        Self::new(script, CliKind::InMemory(Faults::new())).await
    }

    /// Uses the simulated CLI in memory, with faults.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn faulty(script: Script, faults: Faults) -> io::Result<Self> {
        Self::new(script, CliKind::InMemory(faults)).await
    }

    /// Uses the simulated CLI as a process.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn sim_process(script: Script, program: impl Into<PathBuf>) -> io::Result<Self> {
        Self::new(script, CliKind::Program(program.into())).await
    }

    /// Uses the simulated CLI as a process that follows a script file, including its faults. It sends no requests to
    /// the mock API.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn scripted(file: &str, program: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_file(Script::new(), file, program.into(), false).await
    }

    /// Uses the simulated CLI as a process that sends requests to the mock API, with a script file that contains
    /// faults.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn faulty_process(
        script: Script,
        faults: &str,
        program: impl Into<PathBuf>,
    ) -> io::Result<Self> {
        Self::with_file(script, faults, program.into(), true).await
    }

    async fn with_file(
        model: Script,
        file: &str,
        program: PathBuf,
        uses_api: bool,
    ) -> io::Result<Self> {
        let mut harness = Self::new(model, CliKind::Program(program.clone())).await?;
        let script = harness.root().join("script.sim");
        std::fs::write(&script, file)?;
        harness.cli = CliKind::Scripted { program, script, uses_api };
        Ok(harness)
    }

    /// Uses the real CLI.
    ///
    /// # Errors
    /// Returns an error when the directories or the mock API cannot be created.
    pub async fn real(script: Script, cli: &InstalledCli) -> io::Result<Self> {
        Self::new(script, CliKind::Program(cli.path.clone())).await
    }

    async fn new(script: Script, cli: CliKind) -> io::Result<Self> {
        let (sandbox, api) = (SandboxDir::new()?, MockApi::start(script).await?);
        Ok(Self { sandbox, api, cli, has_tools: false })
    }

    /// Adds an in-process server to all [options](Self::options). With one, the CLI replays a deferred call after
    /// the handshake.
    #[must_use]
    pub fn with_tools(mut self) -> Self {
        self.has_tools = true;
        self
    }

    /// Returns options for a run with this CLI. The exit grace is long enough for a busy machine.
    pub fn options(&self) -> Options {
        let address = self.api.base_url();
        let mut options = Options::new()
            .cwd(self.sandbox.project())
            .timeouts(Timeouts::new().exit_grace(EXIT_GRACE));
        if self.has_tools {
            options = options.mcp("harness", tool_server());
        }
        match &self.cli {
            CliKind::InMemory(faults) => {
                options.simulated(Sim::new().api(address).faults(faults.clone()))
            }
            CliKind::Program(program) | CliKind::Scripted { program, .. } => {
                let options = options.cli_path(program).environment(EnvironmentPolicy::Clean);
                let variables = self.variables().into_iter();
                variables.fold(options, |options, (name, value)| options.env(name, value))
            }
        }
    }

    /// Returns the environment variables of a CLI process.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let address = self.api.base_url();
        let mut variables = self.sandbox.variables(&address);
        if let CliKind::Scripted { script, .. } = &self.cli {
            let script = script.to_string_lossy().into_owned();
            variables.insert("CLAUDE_SIM_SCRIPT".to_owned(), script);
        }
        if !matches!(&self.cli, CliKind::Scripted { uses_api: false, .. }) {
            variables.insert("CLAUDE_SIM_API".to_owned(), address);
        }
        variables
    }

    /// Returns the executable of the CLI; `None` in memory.
    pub fn program(&self) -> Option<&Path> {
        match &self.cli {
            CliKind::InMemory(_) => None,
            CliKind::Program(program) | CliKind::Scripted { program, .. } => Some(program),
        }
    }

    /// Returns the mock API.
    pub fn api(&self) -> &MockApi {
        &self.api
    }

    /// Returns the working directory of the CLI.
    pub fn project(&self) -> PathBuf {
        self.sandbox.project()
    }

    /// Returns the sandbox directory.
    pub fn sandbox(&self) -> &SandboxDir {
        &self.sandbox
    }

    /// Returns the root of the sandbox directory.
    pub fn root(&self) -> &Path {
        self.sandbox.root()
    }
}
