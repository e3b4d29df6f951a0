//! Runs with a simulated CLI.

use std::future::ready;
use std::io;
use std::path::Path;
use std::sync::Arc;

use claude_agent_testkit::sim::Sim;

use crate::Options;
use crate::cli::CliVersion;
use crate::transport::{ChildFuture, Connecting, Connection, Launch, Transport};

impl Options {
    /// Uses a simulated CLI in this process: a [`Script`](super::Script) with the answers of the model,
    /// or a [`Sim`], which also has faults, a version and a handle to the model. Replaces an earlier
    /// [`transport`](Self::transport). Default: the real CLI.
    ///
    /// All runs with these options and their clones share the script and its counters, so that a first
    /// run can fail and a second one succeed. The simulated CLI receives the arguments, the working
    /// directory and the variables of the options, but no variables of this process. Its tools are
    /// real: `Bash` runs a shell. Timeouts, pauses and delays use the clock of Tokio, which can be
    /// paused.
    ///
    /// ```
    /// use claude_agent_kit::testing::{Fault, Faults, Reply, Script, Sim};
    /// use claude_agent_kit::Exit;
    /// use claude_agent_kit::{Options, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> claude_agent_kit::Result<()> {
    /// // The CLI exits before it sends the result.
    /// let sim = Sim::new()
    ///     .script(Script::new().otherwise([Reply::text("Hello.")]))
    ///     .faults(Faults::new().before("result", Fault::Exit(3)));
    /// let session = Session::start(Options::new().simulated(sim)).await?;
    /// let error = session.send("Hi").await?.finish().await.unwrap_err();
    /// assert_eq!(error.exit(), Some(Exit::Code(3)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn simulated(self, sim: impl Into<Sim>) -> Self {
        self.transport(Simulated { sim: sim.into() })
    }
}

struct Simulated {
    sim: Sim,
}

impl Transport for Simulated {
    fn connect(&self, launch: Launch) -> Connecting<'_> {
        // As a process would, which cannot be started in a directory that does not exist.
        let started = match launch.cwd().map(Path::metadata) {
            Some(Err(error)) => Err(error),
            Some(Ok(found)) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            Some(Ok(_)) | None => Ok(connect(self.sim.clone(), &launch)),
        };
        Box::pin(ready(started))
    }

    fn is_local(&self) -> bool {
        true
    }

    fn cli_version(&self) -> Option<CliVersion> {
        CliVersion::find_in(self.sim.cli_version())
    }
}

fn connect(sim: Sim, launch: &Launch) -> Connection {
    let variables = launch.envs().iter();
    let mut sim = sim
        .args(launch.args())
        .envs(variables.map(|(name, value)| (name.as_str(), value.expose())));
    if let Some(directory) = launch.cwd() {
        sim = sim.cwd(directory);
    }
    let (stdin, stdout, stderr, handle) = sim.start().into_parts();
    let handle = Arc::new(handle);
    let (waited_for, terminated, killed) = (handle.clone(), handle.clone(), handle);
    let child = ChildFuture::new(async move { waited_for.wait().await.into() })
        .on_terminate(move || terminated.terminate())
        .on_kill(move || killed.kill());
    Connection::new(stdin, stdout, child).stderr(stderr)
}
