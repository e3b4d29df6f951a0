//! Processes that outlive no owner.
//!
//! One kept thread starts, ends and reaps them, so that none of it needs a runtime: a child that is
//! dropped after its runtime is gone still ends and leaves no zombie. The thread that starts a child
//! must also live as long as the host does, because the kernel ties the parent-death signal to the
//! *thread*.

mod child;
#[cfg(target_os = "linux")]
mod death_signal;
#[cfg(target_os = "linux")]
mod descendants;
mod keeper;
#[cfg(target_os = "linux")]
mod spawn;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use keeper::Keeper;

/// What to start.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited beside it.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The working directory; the host's own if there is none.
    pub(crate) directory: Option<PathBuf>,
    /// Whom it runs as; who this is, if nobody is named.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "only Unix starts a process as another user")
    )]
    pub(crate) user: Option<UserIds>,
    /// Whether the kernel ends the process when the host dies.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has the signal"))]
    pub(crate) die_with_parent: bool,
}

/// A user of the system and its group, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserIds {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// How a process is ended that does not end by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long it may take after its stdin was closed.
    pub(crate) before_terminate: Duration,
    /// How long it may take after SIGTERM.
    pub(crate) before_kill: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let five_seconds = Duration::from_secs(5);
        Self { before_terminate: five_seconds, before_kill: five_seconds }
    }
}

/// A process that was started, and its pipes.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A process. Dropping the last handle ends it, SIGTERM first.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    handle: Arc<Handle>,
}

#[derive(Debug)]
struct Handle {
    id: u64,
    pid: u32,
    exit: watch::Receiver<Option<ExitStatus>>,
    patience: Patience,
}

impl Process {
    /// Starts a process. Dropping the future ends what was started meanwhile.
    ///
    /// # Errors
    /// What the system says: the program or the directory does not exist, may not be run, is none.
    pub(crate) async fn start(spec: Spec, patience: Patience) -> io::Result<Started> {
        Keeper::get()?.start(spec, patience).await
    }

    pub(crate) fn pid(&self) -> u32 {
        self.handle.pid
    }

    /// Ends it if it does not end by itself: waits, SIGTERM, waits, SIGKILL. Returns at once; a
    /// second call can only hasten it.
    pub(crate) fn end(&self, patience: Patience) {
        self.handle.end(patience);
    }

    /// The same, with the patience that it was started with.
    pub(crate) fn end_patiently(&self) {
        self.handle.end(self.handle.patience);
    }

    /// Whether it has ended. It costs next to nothing to ask again and again.
    pub(crate) fn has_ended(&self) -> bool {
        // Nobody marks this receiver's value as seen; and whoever sends it goes only afterwards.
        self.handle.exit.has_changed().unwrap_or(true)
    }

    /// How it ended, if it has.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        *self.handle.exit.borrow()
    }

    /// Waits for its end. Needs no runtime of its own, and can be dropped and called again.
    pub(crate) async fn wait(&self) -> io::Result<ExitStatus> {
        let mut exit = self.handle.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(status) => status.ok_or_else(lost),
            Err(_) => Err(lost()),
        }
    }
}

/// Wakes a task at some time, without a timer of its runtime.
///
/// A runtime that waits with a timer sets one in the kernel each time it goes to sleep, which
/// costs more than the rest of a round trip; the kept thread sets it once.
#[derive(Debug)]
pub(crate) struct Alarm {
    id: u64,
    at: Instant,
}

impl Alarm {
    /// Wakes the task at this time at the earliest.
    pub(crate) fn set(at: Instant, waker: &Waker) -> io::Result<Self> {
        let id = Keeper::get()?.set_alarm(at, waker.clone());
        Ok(Self { id, at })
    }

    pub(crate) fn at(&self) -> Instant {
        self.at
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // One that has rung is kept no more.
        if Instant::now() < self.at
            && let Ok(keeper) = Keeper::get()
        {
            keeper.drop_alarm(self.id, self.at);
        }
    }
}

impl Handle {
    fn end(&self, patience: Patience) {
        if self.exit.borrow().is_none()
            && let Ok(keeper) = Keeper::get()
        {
            keeper.end(self.id, patience);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end(self.patience);
    }
}

/// The keeper never lets go of a child before it has reaped it.
fn lost() -> io::Error {
    io::Error::other("the process was lost sight of")
}

#[cfg(test)]
pub(crate) mod tests;
