//! What a scenario is played on: anything that takes arguments, variables and a script of the
//! model's answers, and gives byte streams and an exit.

use std::{collections::BTreeMap, fmt, future::Future, io, pin::Pin, sync::Arc};

use claude_agent_testkit::{
    mock_api::{MockApi, Script},
    recording::Exit,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::sim_backend::Api;
use crate::real_cli::{InstalledCli, RealProcess, SandboxDir};

/// A future that can be sent, boxed for use behind `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that can be started like the CLI.
pub trait Backend: Send + Sync {
    /// The version of the CLI that it is, or plays.
    fn version(&self) -> &str;

    /// Starts it.
    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<Running>>;
}

/// How to start a CLI.
#[non_exhaustive]
pub struct Launch {
    /// Home, project and temporary directory.
    pub sandbox: Arc<SandboxDir>,
    /// The arguments, without the name of the program.
    pub arguments: Vec<String>,
    /// Variables to set (or, without a value, to leave out) beyond those that every CLI gets.
    pub variables: BTreeMap<String, Option<String>>,
    /// What the model answers.
    pub script: Script,
}

/// A started CLI. Dropping it ends it.
#[non_exhaustive]
pub struct Running {
    /// What the CLI reads.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What the CLI writes.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What the CLI complains.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The process, or what stands for it.
    pub process: Box<dyn Process>,
    /// What stands behind the CLI.
    pub api: Option<Api>,
}

/// What can end.
pub trait Process: Send + Sync {
    /// Waits for the end after stdin was closed, and brings it about if it does not come.
    fn end(&self) -> BoxFuture<'_, Exit>;
}

impl Running {
    /// A CLI with these streams.
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

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Process for RealProcess {
    fn end(&self) -> BoxFuture<'_, Exit> {
        Box::pin(RealProcess::end(self))
    }
}

/// The real CLI, with the mock as its Messages API.
#[derive(Debug, Clone)]
pub struct RealCli {
    cli: InstalledCli,
}

impl RealCli {
    /// Scenarios will be played on this CLI.
    pub fn new(cli: InstalledCli) -> Self {
        Self { cli }
    }

    async fn start(&self, launch: Launch) -> io::Result<Running> {
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
        let running = Running::new(pipes.stdin, pipes.stdout, pipes.stderr, process);
        Ok(Running { api: Some(Api::Mock(api)), ..running })
    }
}

impl Backend for RealCli {
    fn version(&self) -> &str {
        &self.cli.version
    }

    fn launch(&self, launch: Launch) -> BoxFuture<'_, io::Result<Running>> {
        Box::pin(self.start(launch))
    }
}
