//! A simulated CLI: `claude` without network access, an API key or cost.
//!
//! [`Sim`] implements the protocol of the real CLI. Its model is a [`Script`], the same type that the
//! [mock API](crate::mock_api) uses, so one script works with the real CLI and the mock API as well as
//! with the simulated CLI alone. Tools are real: `Bash` runs a shell, and `Write` and `Edit` change
//! files. Hooks, permission requests and in-process MCP servers are called over the control protocol,
//! and their responses have the same effect as in the real CLI.
//!
//! The simulated CLI runs in memory on byte streams, or as the program `claude-sim` with real pipes.
//! [`Faults`] inject failures.
//!
//! ```
//! use claude_agent_testkit::{mock_api::{Reply, Script}, recording::Exit, sim::Sim};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let script = Script::new().otherwise([Reply::text("Hello from the simulation.")]);
//! let session = ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];
//! let (mut stdin, stdout, _stderr, handle) = Sim::new().script(script).args(session).start().into_parts();
//!
//! stdin.write_all(b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n").await?;
//! let mut lines = BufReader::new(stdout).lines();
//! while let Some(line) = lines.next_line().await? {
//!     if line.contains(r#""type":"result""#) {
//!         assert!(line.contains("Hello from the simulation."));
//!         break;
//!     }
//! }
//! drop(stdin);
//! assert_eq!(handle.wait().await, Exit::Code(0));
//! # Ok(())
//! # }
//! ```
//!
//! # Differences from the real CLI
//!
//! - It is faster: the only delays are those of the script.
//! - Human-readable texts and the lists of commands and models are its own.
//! - Transcripts are only written if `CLAUDE_CONFIG_DIR` is set.
//! - It is logged in unless `CLAUDE_SIM_LOGIN` is `none`.
//! - It reports the process ID `CLAUDE_SIM_PID` if that is set, for reproducible output.
//! - Its shells end when it ends, even if it is killed.

mod agent;
mod arguments;
mod catalog;
mod checkpoint;
mod cli_version;
mod commands;
mod context_usage;
mod deferred;
mod engine;
pub mod fault;
mod fault_output;
mod file_tools;
mod future_set;
mod hooks;
mod host_requests;
#[cfg(feature = "mock-api")]
mod http_source;
mod ids;
mod json;
mod matcher;
mod mcp;
mod mcp_server;
mod mcp_stdio;
mod messages;
mod model;
mod operations;
mod output;
mod permission;
mod permission_rule;
mod process;
pub mod program;
mod result;
mod scope;
pub mod script_file;
mod settings;
mod shell;
mod source;
mod state;
mod stream;
mod tasks;
mod tool_batch;
mod tool_list;
mod tools;
mod transcript;
mod turn;
mod turn_queue;
mod usage;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch as signal;

use crate::mock_api::Script;
use crate::recording::Exit;

use self::arguments::{Launch, LaunchAction};
use self::cli_version::CliVersion;
use self::engine::Engine;
use self::output::Output;

pub use self::fault::{Fault, Faults, Point};
pub use self::model::Model;
pub use self::process::{SimHandle, SimProcess};

/// The version of the real CLI that is simulated.
pub const VERSION: &str = "2.1.326";

/// Released versions of the CLI whose protocols differ, oldest first. [`Sim::version`] also accepts any
/// other version.
pub const VERSIONS: [&str; 9] = [
    "2.1.261", "2.1.265", "2.1.269", "2.1.284", "2.1.285", "2.1.302", "2.1.309", "2.1.325", VERSION,
];

/// A simulated CLI that has not been started.
///
/// Clones are further runs of the same CLI: they share the [model](Sim::model), so that a [`Script`]
/// counts attempts across all of them, and [`faults_in_run`](Sim::faults_in_run) addresses one of them.
#[must_use]
#[derive(Clone)]
pub struct Sim {
    model: Model,
    faults: Faults,
    faults_of_runs: BTreeMap<usize, Faults>,
    /// The number of clones that have been started.
    runs: Arc<AtomicUsize>,
    version: String,
    arguments: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
}

impl Sim {
    /// Creates a CLI without arguments whose model repeats the prompt.
    pub fn new() -> Self {
        Self {
            model: Model::new(model::default_script()),
            faults: Faults::new(),
            faults_of_runs: BTreeMap::new(),
            runs: Arc::default(),
            version: VERSION.to_owned(),
            arguments: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    /// Sets the script of the model. Replaces the [model](Self::model). By default, the model repeats
    /// the prompt.
    pub fn script(mut self, script: Script) -> Self {
        self.model = Model::new(script);
        self
    }

    /// Sends the requests of the model to the Messages API at this address (`http://127.0.0.1:<port>`)
    /// instead of using a script, for example to a [`MockApi`](crate::mock_api::MockApi) in another
    /// process. Replaces the [model](Self::model).
    #[cfg(feature = "mock-api")]
    pub fn api(mut self, address: impl Into<String>) -> Self {
        self.model = Model::with_api_backend(address.into());
        self
    }

    /// Sets the faults of every run. Replaces earlier ones.
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// Sets the faults of one run, which takes precedence over [`faults`](Self::faults). Runs are counted
    /// from 1 across this simulated CLI and its clones.
    ///
    /// ```
    /// use claude_agent_testkit::sim::{Fault, Faults, Sim};
    ///
    /// // The first run is killed before its result; the next one, a retry, is not.
    /// let killed = Faults::new().before("result", Fault::Signal(9));
    /// let sim = Sim::new().faults_in_run(1, killed);
    /// # drop(sim);
    /// ```
    pub fn faults_in_run(mut self, run: usize, faults: Faults) -> Self {
        self.faults_of_runs.insert(run, faults);
        self
    }

    /// Sets the version of the CLI to simulate. The simulated CLI prints it for `--version` and omits
    /// fields, messages and operations that were added in later versions. `docs/cli-versions.md` lists
    /// the differences since 2.1.261. Defaults to [`VERSION`].
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Returns the version of the CLI to simulate.
    pub fn cli_version(&self) -> &str {
        &self.version
    }

    /// Appends command-line arguments, in the format of the real CLI.
    pub fn args<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable. No variables are inherited from this process.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets several environment variables.
    pub fn envs<N: Into<String>, V: Into<String>>(
        self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        variables.into_iter().fold(self, |sim, (name, value)| sim.env(name, value))
    }

    /// Writes transcripts below this directory, so that later runs can resume the conversations. This
    /// sets `CLAUDE_CONFIG_DIR`. By default, no transcripts are written.
    pub fn keep_sessions_in(self, directory: impl Into<PathBuf>) -> Self {
        self.env("CLAUDE_CONFIG_DIR", directory.into().to_string_lossy())
    }

    /// Sets the working directory. Defaults to that of the process.
    pub fn cwd(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Returns the model of this CLI and its clones, which gives access to its requests and releases
    /// held replies.
    pub fn model(&self) -> Model {
        self.model.clone()
    }

    /// Starts the CLI in memory, on the current Tokio runtime.
    ///
    /// # Panics
    ///
    /// Panics if called outside a Tokio runtime.
    pub fn start(self) -> SimProcess {
        process::start(self)
    }

    /// Runs the CLI on these streams until it exits.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the CLI and its shells.
    pub async fn run(
        self,
        stdin: impl AsyncRead + Send + Unpin,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        stderr: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Exit {
        let (_never, terminate) = signal::channel(false);
        self.run_until(stdin, stdout, stderr, terminate).await
    }

    /// Like [`run`](Self::run), with a channel that signals SIGTERM.
    pub(crate) async fn run_until(
        self,
        stdin: impl AsyncRead + Send + Unpin,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        stderr: impl AsyncWrite + Send + Unpin + 'static,
        terminate: signal::Receiver<bool>,
    ) -> Exit {
        let run = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        let faults = self.faults_of_runs.get(&run).unwrap_or(&self.faults);
        let out = Output::new(faults, stdout, stderr);
        // Without a current directory, paths stay relative.
        let cwd = self.cwd.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
        let cli_version = CliVersion::parse(&self.version);
        let (version, env) = (self.version, self.env);
        let launch = Launch { version, cli_version, env, cwd, ..Launch::default() };
        match launch.parse(&self.arguments) {
            LaunchAction::Run(launch) => {
                let engine = Engine::new(*launch, out, self.model);
                Box::pin(engine.run(stdin, terminate)).await
            }
            LaunchAction::Print(text) => {
                out.write_line("version", &text).await;
                Exit::Code(0)
            }
            LaunchAction::Fail(reason) => {
                out.write_stderr_line(&reason).await;
                Exit::Code(1)
            }
        }
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Script> for Sim {
    fn from(script: Script) -> Self {
        Self::new().script(script)
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim")
            .field("version", &self.version)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}
