//! Transports start a CLI: from arguments, environment and working directory to byte streams and an exit.

pub(crate) mod local;
mod memory;
mod output;
mod pipe;
mod wrapped;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use claude_agent_core::session::GracePeriods;
use claude_wire::launch::CommandLine;
use claude_wire::settings::EnvironmentPolicy;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use claude_wire::Exit;
pub use claude_wire::launch::Secret;
pub use memory::{ChildFuture, InMemory};
pub use wrapped::Wrapped;

pub(crate) use local::{Local, LocalChild, NoIo};
pub(crate) use output::{Output, before, output};

use crate::cli::{CliVersion, Program};
use crate::panics;
use crate::process::{Process, Spec, UserIds};
use crate::sort;

/// The future returned by [`Transport::connect`].
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Connection>> + Send + 'a>>;

/// Starts a CLI somewhere.
///
/// A run with a custom transport does not search for an executable and does not check its version.
pub trait Transport: Send + Sync + 'static {
    /// Starts the CLI. Dropping the returned future must end everything it started.
    fn connect(&self, launch: Launch) -> Connecting<'_>;

    /// Returns whether the CLI uses the files of this machine, at the same paths. Only then can a
    /// conversation be resumed from a [store](crate::store). Default: false.
    fn is_local(&self) -> bool {
        false
    }

    /// Returns the version of the CLI, if it is known. It determines how
    /// [MCP servers](crate::Options::mcp_delivery) are passed to the CLI. Default: unknown.
    fn cli_version(&self) -> Option<CliVersion> {
        None
    }
}

/// The arguments, environment and working directory of a CLI to start.
#[derive(Clone)]
#[non_exhaustive]
pub struct Launch {
    command: CommandLine,
    directory: Option<PathBuf>,
    die_with_parent: bool,
    /// The user to run as. Default: the host's.
    user: Option<UserIds>,
    grace: GracePeriods,
}

impl Launch {
    pub(crate) fn new(
        command: CommandLine,
        directory: Option<PathBuf>,
        die_with_parent: bool,
        grace: GracePeriods,
    ) -> Self {
        // An empty path means no directory.
        let directory = directory.filter(|path| !path.as_os_str().is_empty());
        Self { command, directory, die_with_parent, user: None, grace }
    }

    pub(crate) fn run_by(mut self, user: UserIds) -> Self {
        self.user = Some(user);
        self
    }

    /// The user that the CLI runs as, if the options name one.
    pub(crate) fn user(&self) -> Option<UserIds> {
        self.user
    }

    /// Describes the process of this run that runs `program` with these arguments: everything that is
    /// executed for a run has its user, environment and working directory.
    pub(crate) fn spec(&self, program: &Program, arguments: &[String]) -> Spec {
        let mut all = program.arguments_before();
        for argument in arguments {
            all.push(argument.into());
        }
        Spec {
            program: program.executable().to_owned(),
            arguments: all,
            environment: self.variables(),
            directory: self.directory.clone(),
            user: self.user,
            die_with_parent: self.die_with_parent,
        }
    }

    /// Returns the arguments, without the program.
    pub fn args(&self) -> &[String] {
        &self.command.arguments
    }

    /// Returns the working directory, if the options set one.
    pub fn cwd(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the variables that the options set, in addition to the inherited ones.
    pub fn envs(&self) -> &[(String, Secret)] {
        &self.command.set
    }

    /// Returns the whole environment of a local CLI: the variables inherited from the host and those set by
    /// the options. Names are case-insensitive on Windows.
    pub fn environment(&self) -> BTreeMap<OsString, OsString> {
        let mut environment = BTreeMap::new();
        for (name, value) in self.variables() {
            environment.insert(name, value);
        }
        environment
    }

    /// Returns the variables of the environment, sorted by name.
    pub(crate) fn variables(&self) -> Variables {
        merge(&self.command, &mut std::env::vars_os(), cfg!(windows))
    }
}

/// Names and values of environment variables.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Merges the variables of the host that the CLI inherits with those that the options set, which
/// take precedence.
fn merge(
    command: &CommandLine,
    host: &mut dyn Iterator<Item = (OsString, OsString)>,
    ignores_case: bool,
) -> Variables {
    let is_same = |a: &OsStr, b: &OsStr| {
        if ignores_case { a.eq_ignore_ascii_case(b) } else { a == b }
    };
    let inherits = |name: &OsString| match name.to_str() {
        Some(text) => {
            command.inherit.passes(text)
                && !command.remove.iter().any(|removed| is_same(removed.as_ref(), name))
        }
        // A name that is not valid UTF-8 cannot be excluded by name.
        None => command.inherit == EnvironmentPolicy::Inherit,
    };
    let mut environment = Variables::new();
    for (name, value) in host {
        if inherits(&name) {
            environment.push((name, value));
        }
    }
    for (name, value) in &command.set {
        environment.retain(|(other, _)| !is_same(other, name.as_ref()));
        environment.push((name.into(), value.expose().into()));
    }
    sort::sort_by(&mut environment, |(one, _), (other, _)| one.cmp(other));
    // Of several variables with one name the last one counts.
    environment.dedup_by(|later, earlier| {
        let is_same = later.0 == earlier.0;
        if is_same {
            std::mem::swap(later, earlier);
        }
        is_same
    });
    environment
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("command", &self.command)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// The streams of a started CLI and its process.
pub struct Connection {
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    pub(crate) child: Running,
}

/// The process behind a connection.
pub(crate) enum Running {
    /// A local process, which the reaper thread ends if the driver cannot.
    Local(LocalChild),
    /// A process of a custom transport.
    Other(Box<dyn Child>),
    /// Either, with its exit recorded.
    #[cfg(feature = "testing")]
    Recorded(Box<Running>, crate::testing::ExitTap),
}

/// A running CLI of a custom transport. Dropping it must end the CLI.
pub trait Child: Send + 'static {
    /// Polls for the exit of the CLI.
    ///
    /// # Errors
    /// Fails if the exit status can no longer be determined.
    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>>;

    /// Requests termination, as SIGTERM does.
    fn terminate(&mut self);

    /// Kills the CLI, as SIGKILL does.
    fn kill(&mut self);

    /// Returns the process ID, if the CLI is a local process.
    fn pid(&self) -> Option<u32> {
        None
    }
}

impl Connection {
    /// Creates a connection from the CLI's stdin, stdout and process.
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

    /// Adds the stderr of the CLI.
    #[must_use]
    pub fn stderr(mut self, stderr: impl AsyncRead + Send + Unpin + 'static) -> Self {
        self.errors = Some(Box::new(stderr));
        self
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("pid", &self.child.pid()).finish_non_exhaustive()
    }
}

/// Calls a method of a custom transport. Its panic must not end the driver, which has to report the end of the run.
fn guard(method: &str, call: impl FnOnce()) {
    if panics::catch(call).is_err() {
        tracing::warn!(method, "a method of the transport's `Child` panicked");
    }
}

impl Running {
    pub(crate) fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        match self {
            Self::Local(child) => child.poll_exit(context),
            Self::Other(child) => panics::catch(|| child.poll_exit(context)).unwrap_or_else(|_| {
                Poll::Ready(Err(io::Error::other("`Child::poll_exit` panicked")))
            }),
            #[cfg(feature = "testing")]
            Self::Recorded(child, tap) => {
                let exit = std::task::ready!(child.poll_exit(context));
                if let Ok(exit) = exit {
                    tap.record(exit);
                }
                Poll::Ready(exit)
            }
        }
    }

    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Local(child) => child.terminate(),
            Self::Other(child) => guard("terminate", || child.terminate()),
            #[cfg(feature = "testing")]
            Self::Recorded(child, _) => child.terminate(),
        }
    }

    /// Terminates the process, which the driver kills soon after.
    pub(crate) fn end_at_once(&mut self) {
        match self {
            Self::Local(child) => child.end_at_once(),
            Self::Other(child) => guard("terminate", || child.terminate()),
            #[cfg(feature = "testing")]
            Self::Recorded(child, _) => child.end_at_once(),
        }
    }

    pub(crate) fn kill(&mut self) {
        match self {
            Self::Local(child) => child.kill(),
            Self::Other(child) => guard("kill", || child.kill()),
            #[cfg(feature = "testing")]
            Self::Recorded(child, _) => child.kill(),
        }
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            Self::Local(child) => child.pid(),
            Self::Other(child) => child.pid(),
            #[cfg(feature = "testing")]
            Self::Recorded(child, _) => child.pid(),
        }
    }

    /// Returns a handle that can end the process when the driver does not run.
    pub(crate) fn process(&self) -> Option<Process> {
        match self {
            Self::Local(child) => Some(child.process()),
            Self::Other(_) => None,
            #[cfg(feature = "testing")]
            Self::Recorded(child, _) => child.process(),
        }
    }
}

#[cfg(test)]
mod tests {
    use claude_wire::launch::{Form, Needs, Settings, command_line};

    use super::*;

    /// Returns the merged environment without the variables that name this SDK.
    fn merged(change: impl FnOnce(&mut Settings), ignores_case: bool) -> Vec<(String, String)> {
        let mut settings = Settings::default();
        change(&mut settings);
        let command = command_line(&settings, &Form::Session, &Needs::default()).unwrap();
        let host = [("Path", "host"), ("HOME", "home")];
        let mut host = host.map(|(name, value)| (name.into(), value.into())).into_iter();
        let merged = merge(&command, &mut host, ignores_case).into_iter();
        let text = |text: OsString| text.into_string().unwrap();
        let merged = merged.map(|(name, value)| (text(name), text(value)));
        merged.filter(|(name, _)| !name.starts_with("CLAUDE")).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn a_variable_of_the_options_replaces_an_inherited_one_in_every_spelling() {
        let set = |settings: &mut Settings| drop(settings.env.insert("PATH", "own".into()));
        assert_eq!(merged(set, true), pairs(&[("HOME", "home"), ("PATH", "own")]));
        let both = [("HOME", "home"), ("PATH", "own"), ("Path", "host")];
        assert_eq!(merged(set, false), pairs(&both));
    }

    #[test]
    fn only_the_variables_of_the_policy_are_inherited() {
        let only = |settings: &mut Settings| {
            settings.environment = EnvironmentPolicy::Only(vec!["HOME".to_owned()]);
        };
        assert_eq!(merged(only, false), pairs(&[("HOME", "home")]));
    }
}
