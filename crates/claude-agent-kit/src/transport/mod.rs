//! How a CLI is reached: arguments, environment and directory in, byte streams and an exit out.

mod local;
mod memory;
mod pipe;
mod wrapped;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use claude_wire::launch::{CommandLine, Secret};
use tokio::io::{AsyncRead, AsyncWrite};

pub use claude_wire::session::Exit;
pub use memory::{ChildFuture, InMemory};
pub use wrapped::Wrapped;

pub(crate) use local::{Local, LocalChild};

use crate::process::{Patience, Process, UserIds};

/// A future that a [`Transport`] gives.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Connection>> + Send + 'a>>;

/// Starts a CLI somewhere.
///
/// With a transport of its own a run looks for no executable and checks no version.
pub trait Transport: Send + Sync + 'static {
    /// Starts the CLI. Dropping the future must leave nothing running.
    fn connect(&self, launch: Launch) -> Connecting<'_>;
}

/// What a CLI is to be started with.
#[derive(Clone)]
#[non_exhaustive]
pub struct Launch {
    command: CommandLine,
    directory: Option<PathBuf>,
    die_with_parent: bool,
    /// Whom it runs as; who this is, if nobody is named.
    user: Option<UserIds>,
    patience: Patience,
}

impl Launch {
    pub(crate) fn new(
        command: CommandLine,
        directory: Option<PathBuf>,
        die_with_parent: bool,
        patience: Patience,
    ) -> Self {
        // No name is no directory.
        let directory = directory.filter(|path| !path.as_os_str().is_empty());
        Self { command, directory, die_with_parent, user: None, patience }
    }

    pub(crate) fn run_by(mut self, user: UserIds) -> Self {
        self.user = Some(user);
        self
    }

    /// The arguments, without the program.
    pub fn arguments(&self) -> &[String] {
        &self.command.arguments
    }

    /// The directory to work in; the one that there is, if none was given.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The variables that the CLI gets besides what it inherits.
    pub fn variables(&self) -> &[(String, Secret)] {
        &self.command.set
    }

    /// The whole environment of a CLI on this machine: what it inherits of the host's and what it
    /// gets besides.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let inherits = |name: &OsString| match name.to_str() {
            Some(name) => {
                self.command.inherit.passes(name)
                    && !self.command.remove.iter().any(|removed| removed == name)
            }
            // A name that is no text cannot have been ruled out by name.
            None => self.command.inherit == claude_wire::launch::EnvironmentPolicy::Inherit,
        };
        let mut environment: BTreeMap<_, _> =
            std::env::vars_os().filter(|(name, _)| inherits(name)).collect();
        for (name, value) in &self.command.set {
            environment.insert(name.into(), value.expose().into());
        }
        environment
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("command", &self.command)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A CLI that was started.
pub struct Connection {
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub(crate) child: Running,
}

/// What runs at the other end.
pub(crate) enum Running {
    /// A process of this machine, which the reaper thread ends when nobody else can.
    Local(LocalChild),
    /// Something else.
    Other(Box<dyn Child>),
}

/// A CLI that runs somewhere. Dropping it must end it.
pub trait Child: Send + 'static {
    /// How it ended, once it has.
    ///
    /// # Errors
    /// When that can no longer be found out.
    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>>;

    /// Asks it to end, as SIGTERM does.
    fn terminate(&mut self);

    /// Ends it, as SIGKILL does.
    fn kill(&mut self);

    /// Its process, if it has one here.
    fn pid(&self) -> Option<u32> {
        None
    }
}

impl Connection {
    /// A CLI with these streams.
    pub fn new(
        input: impl AsyncWrite + Send + Unpin + 'static,
        output: impl AsyncRead + Send + Unpin + 'static,
        child: impl Child,
    ) -> Self {
        Self {
            input: Box::new(input),
            output: Box::new(output),
            errors: None,
            child: Running::Other(Box::new(child)),
        }
    }

    /// Adds the stream of what it complains about.
    #[must_use]
    pub fn errors(mut self, errors: impl AsyncRead + Send + Unpin + 'static) -> Self {
        self.errors = Some(Box::new(errors));
        self
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("pid", &self.child.pid()).finish_non_exhaustive()
    }
}

impl Running {
    pub(crate) fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        match self {
            Self::Local(child) => child.poll_exit(context),
            Self::Other(child) => child.poll_exit(context),
        }
    }

    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Local(child) => child.terminate(),
            Self::Other(child) => child.terminate(),
        }
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Local(child) => child.kill(),
            Self::Other(child) => child.kill(),
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Local(child) => child.pid(),
            Self::Other(child) => child.pid(),
        }
    }

    /// A handle by which the process can be ended when the driver does not run.
    pub(crate) fn process(&self) -> Option<Process> {
        match self {
            Self::Local(child) => Some(child.process()),
            Self::Other(_) => None,
        }
    }
}
