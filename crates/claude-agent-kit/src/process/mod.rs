//! Processes that outlive no owner.
//!
//! Kept threads start, end and reap them, so that none of it needs a runtime: a child that is dropped
//! after its runtime is gone still ends and leaves no zombie. One reaper thread ends and reaps; starter
//! threads start, usually one, since a start can hang. A starter thread must also live as long as the
//! host does, because the kernel ties the parent-death signal to the *thread*.

mod child;
#[cfg(target_os = "linux")]
mod death_signal;
#[cfg(target_os = "linux")]
mod descendants;
mod managed_child;
mod reaper;
#[cfg(target_os = "linux")]
mod spawn;
mod starter;
mod wake;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use claude_wire::session::{GracePeriods, ShutdownStep};
use tokio::sync::watch;

use crate::panics;

use reaper::{Orders, Reaper};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use spawn::fixture;
#[cfg(target_os = "linux")]
pub(crate) use spawn::without_sigpipe;

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

/// A process that was started, and its pipes.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// How a process ended, as far as the reaper thread can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Status(ExitStatus),
    /// It has exited, and the system has discarded its status: the host ignores SIGCHLD.
    Unknown,
    /// It still runs: the host may not signal it.
    NotKilled,
}

/// A process. When the last handle is dropped, it has the grace period for its exit, then SIGTERM and
/// SIGKILL follow.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    handle: Arc<Handle>,
}

struct Handle {
    id: u64,
    pid: u32,
    ended: watch::Receiver<Option<Ended>>,
    orders: Orders,
}

impl Process {
    /// Starts a process. Dropping the future ends a process that was started meanwhile.
    ///
    /// # Errors
    /// Returns the error of the system: the program or the directory does not exist, may not be
    /// executed, or is not a program.
    pub(crate) async fn start(spec: Spec, grace: GracePeriods) -> io::Result<Started> {
        Reaper::get()?.start(spec, grace).await
    }

    pub(crate) fn pid(&self) -> u32 {
        self.handle.pid
    }

    /// Sends SIGTERM to it and its process group.
    pub(crate) fn terminate(&self) {
        self.handle.signal(ShutdownStep::Terminate);
    }

    /// Sends SIGKILL to it, its process group and, on Linux, everything below it.
    pub(crate) fn kill(&self) {
        self.handle.signal(ShutdownStep::Kill);
    }

    /// Ends it in the background, from this step of the shutdown sequence on: its driver is gone.
    pub(crate) fn shut_down(&self, from: ShutdownStep) {
        self.handle.shut_down(from);
    }

    /// Ends it in the background if it still runs when a driver would have killed it: the runtime of
    /// the driver may exist without being polled.
    pub(crate) fn arm_watchdog(&self) {
        if self.handle.ended.borrow().is_none() {
            self.handle.orders.arm_watchdog(self.handle.id);
        }
    }

    /// Whether it has ended. Asking again and again costs next to nothing.
    pub(crate) fn has_ended(&self) -> bool {
        // Nobody marks this receiver's value as seen, and the sender is dropped only afterwards.
        self.handle.ended.has_changed().unwrap_or(true)
    }

    /// Returns its exit status, if it has exited and the status is known.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        match *self.handle.ended.borrow() {
            Some(Ended::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// Waits for its end. Needs no runtime of its own, and can be dropped and called again.
    ///
    /// # Errors
    /// When the reaper thread is gone, as in a process that was forked from the host.
    pub(crate) async fn wait(&self) -> io::Result<Ended> {
        let mut ended = self.handle.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.ok_or_else(lost),
            Err(_) => Err(lost()),
        }
    }
}

/// Wakes a task at some time by the system's clock, also where a test has paused the clock of the
/// runtime.
pub(crate) struct Alarm {
    id: u64,
    at: Instant,
    orders: Orders,
}

impl Alarm {
    /// Wakes the task at this time at the earliest.
    pub(crate) fn set(at: Instant, waker: &Waker) -> io::Result<Self> {
        let orders = Reaper::get()?.orders().clone();
        let id = orders.set_alarm(at, waker.clone());
        Ok(Self { id, at, orders })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // One that has fired is not there any more.
        if Instant::now() < self.at {
            self.orders.drop_alarm(self.id, self.at);
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Handle {
    fn signal(&self, step: ShutdownStep) {
        if self.ended.borrow().is_none() {
            self.orders.signal(self.id, step);
        }
    }

    fn shut_down(&self, from: ShutdownStep) {
        if self.ended.borrow().is_none() {
            self.orders.shut_down(self.id, from);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shut_down(ShutdownStep::CloseStdin);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// The reaper thread keeps a child until it has reaped it.
fn lost() -> io::Error {
    io::Error::other("the thread that reaps processes is gone")
}

/// Runs code that belongs to the host, such as a waker of its executor. A panic in it must not end a
/// kept thread, on which every session depends.
fn contain_panic(run: impl FnOnce()) {
    if panics::catch(run).is_err() {
        // A subscriber of the host may panic as well; that panic is discarded.
        let report = || {
            tracing::error!(
                "a waker panicked; tasks that wait for the same process may not be woken"
            );
        };
        drop(panics::catch(report));
    }
}

#[cfg(test)]
pub(crate) mod tests;
