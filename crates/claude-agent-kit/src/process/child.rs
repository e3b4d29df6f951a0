//! A process that was started, by whichever way.

use std::io;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use super::Spec;
#[cfg(target_os = "linux")]
use super::spawn::{self, Pipes, Spawned};

/// A child of this process, which is reaped once its end was told.
pub(super) enum Child {
    Standard(std::process::Child),
    #[cfg(target_os = "linux")]
    Light(Spawned),
}

impl Child {
    pub(super) fn spawn(spec: &Spec) -> io::Result<(Self, (ChildStdin, ChildStdout, ChildStderr))> {
        #[cfg(target_os = "linux")]
        if let Some((child, Pipes { stdin, stdout, stderr })) = spawn::spawn(spec)? {
            return Ok((Self::Light(child), (stdin, stdout, stderr)));
        }
        let mut child = command(spec).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut child = Self::Standard(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            child.kill();
            child.wait();
            return Err(io::Error::other("a child was started without its pipes"));
        };
        Ok((child, (stdin, stdout, stderr)))
    }

    pub(super) fn id(&self) -> u32 {
        match self {
            Self::Standard(child) => child.id(),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.id(),
        }
    }

    /// How it ended, if it has.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        match self {
            Self::Standard(child) => child.try_wait(),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.try_wait(),
        }
    }

    /// Waits for its end.
    pub(super) fn wait(&mut self) {
        // The only failure is that there is nothing to wait for.
        match self {
            Self::Standard(child) => drop(child.wait()),
            #[cfg(target_os = "linux")]
            Self::Light(child) => child.wait(),
        }
    }

    pub(super) fn kill(&mut self) {
        // The only failure is that it has ended.
        match self {
            Self::Standard(child) => drop(child.kill()),
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
        .envs(&spec.environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // A group of its own: a Ctrl-C on the host's terminal is the host's business, and a signal
        // to the group reaches what the CLI started in it.
        command.process_group(0);
        if let Some(ids) = spec.user {
            // A process that may do so also lets go of the other groups of this one.
            command.gid(ids.group).uid(ids.user);
        }
    }
    #[cfg(target_os = "linux")]
    if spec.die_with_parent {
        super::death_signal::arm(&mut command);
    }
    command
}
