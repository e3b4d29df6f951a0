//! The backends that scenarios run on: they take arguments, environment variables and a script of the model, and
//! return byte streams and an exit status.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use claude_agent_testkit::mock_api::{MockApi, Script};
use claude_agent_testkit::recording::Exit;
use tokio::io::{AsyncRead, AsyncWrite};

use super::sim_backend::Api;
use crate::real_cli::{InstalledCli, RealProcess, SandboxDir};

/// A boxed `Send` future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts CLIs.
pub trait Backend: Send + Sync {
    /// Returns the version of the CLI, real or simulated.
    fn version(&self) -> &str;

    /// Starts a CLI.
    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<StartedCli>>;
}

/// How to start a CLI.
#[non_exhaustive]
pub struct Launch {
    /// Home, project and temporary directory.
    pub sandbox: Arc<SandboxDir>,
    /// The arguments, without the program name.
    pub arguments: Vec<String>,
    /// Variables to set, or to remove if the value is `None`, in addition to those of every CLI.
    pub variables: BTreeMap<String, Option<String>>,
    /// The script of the model.
    pub script: Script,
}

/// A started CLI. Dropping it ends the process.
#[non_exhaustive]
pub struct StartedCli {
    /// The stdin of the CLI.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// The stdout of the CLI.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// The stderr of the CLI.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The process.
    pub process: Box<dyn Process>,
    /// The API that the CLI talks to.
    pub api: Option<Api>,
}

/// A process that can be ended.
pub trait Process: Send + Sync {
    /// Waits for the exit after stdin was closed, and forces it if necessary.
    fn end(&self) -> BoxFuture<'_, Exit>;
}

impl StartedCli {
    /// Creates a started CLI from its streams and its process.
    pub fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        process: impl Process + 'static,
    ) -> Self {
        Self {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process: Box::new(process),
            api: None,
        }
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch").field("arguments", &self.arguments).finish_non_exhaustive()
    }
}

impl fmt::Debug for StartedCli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedCli").finish_non_exhaustive()
    }
}

impl Process for RealProcess {
    fn end(&self) -> BoxFuture<'_, Exit> {
        Box::pin(RealProcess::end(self))
    }
}

/// The real CLI with the mock API.
#[derive(Debug, Clone)]
pub struct RealCli {
    cli: InstalledCli,
}

impl RealCli {
    /// Creates a backend for an installed CLI.
    pub fn new(cli: InstalledCli) -> Self {
        Self { cli }
    }

    async fn start(&self, launch: Launch) -> io::Result<StartedCli> {
        let api = MockApi::start(launch.script).await?;
        let mut variables = launch.sandbox.variables(&api.base_url());
        for (name, value) in launch.variables {
            match value {
                Some(value) => variables.insert(name, value),
                None => variables.remove(&name),
            };
        }
        let project = launch.sandbox.project();
        let (process, pipes) =
            RealProcess::start(&self.cli.path, &launch.arguments, &variables, &project)?;
        let running = StartedCli::new(pipes.stdin, pipes.stdout, pipes.stderr, process);
        Ok(StartedCli { api: Some(Api::Mock(api)), ..running })
    }
}

impl Backend for RealCli {
    fn version(&self) -> &str {
        &self.cli.version
    }

    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<StartedCli>> {
        Box::pin(self.start(launch))
    }
}
