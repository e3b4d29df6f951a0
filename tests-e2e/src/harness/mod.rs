//! Where the SDK is tried: on the simulated CLI, in memory or as a process, and on the real one.
//!
//! The same script is the model of all three, and none of them sees anything of this machine.

pub mod processes;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use claude_agent_kit::{EnvironmentPolicy, Options, Timeouts};
use claude_agent_testkit::mock_api::{MockApi, Script};
use claude_agent_testkit::sim::{Faults, Sim};

use crate::real_cli::{InstalledCli, SandboxDir};

/// How long a CLI has to end when it was told to.
const PATIENCE: Duration = Duration::from_secs(30);

/// A CLI with a scripted model, and a sandbox of its own.
#[derive(Debug)]
pub struct Harness {
    sandbox: SandboxDir,
    api: MockApi,
    cli: Cli,
}

#[derive(Debug, Clone)]
enum Cli {
    InMemory(Faults),
    Program(PathBuf),
    /// The simulated CLI as a process, with a script file that also says what goes wrong.
    Scripted {
        program: PathBuf,
        script: PathBuf,
        /// Whether it asks the mock API all the same.
        asks_api: bool,
    },
}

impl Harness {
    /// The simulated CLI in memory.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
    pub async fn in_memory(script: Script) -> io::Result<Self> {
        Self::new(script, Cli::InMemory(Faults::new())).await
    }

    /// The simulated CLI in memory, with something wrong.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
    pub async fn faulty(script: Script, faults: Faults) -> io::Result<Self> {
        Self::new(script, Cli::InMemory(faults)).await
    }

    /// The simulated CLI as a process.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
    pub async fn sim_process(script: Script, program: impl Into<PathBuf>) -> io::Result<Self> {
        Self::new(script, Cli::Program(program.into())).await
    }

    /// The simulated CLI as a process that a script file drives, the faults in it included. The
    /// mock API is not asked.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
    pub async fn scripted(file: &str, program: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_file(Script::new(), file, program.into(), false).await
    }

    /// The simulated CLI as a process that asks the mock API, with a script file that says what
    /// goes wrong.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
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
        asks_api: bool,
    ) -> io::Result<Self> {
        let mut harness = Self::new(model, Cli::Program(program.clone())).await?;
        let script = harness.root().join("script.sim");
        std::fs::write(&script, file)?;
        harness.cli = Cli::Scripted { program, script, asks_api };
        Ok(harness)
    }

    /// The real CLI.
    ///
    /// # Errors
    /// When directories or the mock API cannot be had.
    pub async fn real(script: Script, cli: &InstalledCli) -> io::Result<Self> {
        Self::new(script, Cli::Program(cli.path.clone())).await
    }

    async fn new(script: Script, cli: Cli) -> io::Result<Self> {
        Ok(Self { sandbox: SandboxDir::new()?, api: MockApi::start(script).await?, cli })
    }

    /// Options for a run here. A CLI that ends by itself is given the time that a busy machine
    /// takes for it.
    pub fn options(&self) -> Options {
        let address = self.api.base_url();
        let options = Options::new()
            .cwd(self.sandbox.project())
            .timeouts(Timeouts::new().exit_grace(PATIENCE));
        match &self.cli {
            Cli::InMemory(faults) => {
                options.simulated(Sim::new().api(address).faults(faults.clone()))
            }
            Cli::Program(program) | Cli::Scripted { program, .. } => {
                let options = options.cli_path(program).environment(EnvironmentPolicy::Clean);
                let variables = self.variables().into_iter();
                variables.fold(options, |options, (name, value)| options.env(name, value))
            }
        }
    }

    /// Every variable that a CLI as a process gets here.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let address = self.api.base_url();
        let mut variables = self.sandbox.variables(&address);
        if let Cli::Scripted { script, .. } = &self.cli {
            let script = script.to_string_lossy().into_owned();
            variables.insert("CLAUDE_SIM_SCRIPT".to_owned(), script);
        }
        if !matches!(&self.cli, Cli::Scripted { asks_api: false, .. }) {
            variables.insert("CLAUDE_SIM_API".to_owned(), address);
        }
        variables
    }

    /// The executable of the CLI; none if it lives in memory.
    pub fn program(&self) -> Option<&Path> {
        match &self.cli {
            Cli::InMemory(_) => None,
            Cli::Program(program) | Cli::Scripted { program, .. } => Some(program),
        }
    }

    /// The model.
    pub fn api(&self) -> &MockApi {
        &self.api
    }

    /// The directory that the CLI works in.
    pub fn project(&self) -> PathBuf {
        self.sandbox.project()
    }

    /// All its directories.
    pub fn root(&self) -> &Path {
        self.sandbox.root()
    }
}
