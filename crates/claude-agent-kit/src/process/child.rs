//! A child process, started with `spawn` or with `std`.

use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::RawFd;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::Spec;
#[cfg(target_os = "linux")]
use super::spawn::{self, Spawned};

/// A child process, started with `spawn` or with `std`.
pub(super) enum Child {
    Standard(std::process::Child),
    #[cfg(target_os = "linux")]
    Light(Spawned),
}

/// The host's ends of the pipes.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

impl Child {
    /// Starts a process. Even while it hangs in `exec`, it holds none of the descriptors `not_held`, which
    /// must be close-on-exec.
    #[cfg(target_os = "linux")]
    pub(super) fn spawn(spec: &Spec, not_held: &[RawFd]) -> io::Result<(Self, Pipes)> {
        if let Some((child, pipes)) = spawn::spawn(spec, not_held)? {
            return Ok((Self::Light(child), pipes));
        }
        let mut command = command(spec);
        super::death_signal::prepare(&mut command, spec.die_with_parent, not_held);
        Self::start(command)
    }

    /// Starts a process.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn spawn(spec: &Spec) -> io::Result<(Self, Pipes)> {
        Self::start(command(spec))
    }

    fn start(mut command: Command) -> io::Result<(Self, Pipes)> {
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        if let (Some(stdin), Some(stdout), Some(stderr)) = pipes {
            return Ok((Self::Standard(child), Pipes { stdin, stdout, stderr }));
        }
        child.kill()?;
        child.wait()?;
        Err(io::Error::other("the process was started without its pipes"))
    }

    pub(super) fn id(&self) -> u32 {
        match self {
            Self::Standard(child) => child.id(),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.id(),
        }
    }

    /// Reaps the process if it has exited, and returns its exit status.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Standard(child) => child.try_wait(),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.try_wait(),
        }
    }

    /// Sends SIGKILL. The process must not have been reaped.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        match self {
            Self::Standard(child) => child.kill(),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.kill(),
        }
    }
}

fn command(spec: &Spec) -> Command {
    let mut command = Command::new(&spec.program);
    command
        .args(&spec.arguments)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in &spec.environment {
        command.env(name, value);
    }
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // Its own group: Ctrl-C on the host's terminal must not reach the CLI, and a signal to the
        // group reaches the processes that the CLI started in it.
        command.process_group(0);
        if let Some(ids) = spec.user {
            // `std` also drops the host's supplementary groups if the host is allowed to. The user's own
            // supplementary groups are not set.
            command.gid(ids.group).uid(ids.user);
        }
    }
    command
}
