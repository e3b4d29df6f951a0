//! Child processes that never outlive their owner.
//!
//! Process-wide threads start, end and reap them without an async runtime: a child dropped after its
//! runtime was shut down still ends and leaves no zombie. One reaper thread ends and reaps. Starter
//! threads, usually one, start processes, because a start can hang. A starter thread must live as long as
//! the host, because the kernel ties the parent-death signal to the *thread*.

mod child;
#[cfg(target_os = "linux")]
mod death_signal;
#[cfg(target_os = "linux")]
mod descendants;
mod due;
mod managed_child;
mod reaper;
#[cfg(target_os = "linux")]
mod spawn;
mod starter;
mod wake;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::Arc;
use std::task::Waker;
use std::thread;
use std::time::Instant;

use claude_agent_core::session::{GracePeriods, ShutdownStep};
use reaper::{Orders, Reaper};
use tokio::sync::watch;

use crate::panics;
use crate::tasks::BoxFuture;
#[cfg(all(test, target_os = "linux"))]
pub(crate) use spawn::fixture;
#[cfg(target_os = "linux")]
pub(crate) use spawn::without_sigpipe;

/// The description of a process to start.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The whole environment; nothing else is inherited.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The working directory. Default: the host's.
    pub(crate) directory: Option<PathBuf>,
    /// The user to run as. Default: the host's.
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

/// A started process and its pipes.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// How a process ended, as far as the reaper thread knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Status(ExitStatus),
    /// The process exited, and the system discarded its status because the host ignores SIGCHLD.
    Unknown,
    /// The process still runs: the host is not allowed to signal it.
    NotKilled,
}

/// A handle to a process. When the last handle is dropped, the process has a grace period to exit before
/// SIGTERM and SIGKILL follow.
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
    /// Starts a process. Dropping the future ends a process that was already started.
    ///
    /// # Errors
    /// Returns the system's error: the program or the directory does not exist, cannot be executed, or is
    /// not a program.
    pub(crate) fn start(
        spec: Spec,
        grace: GracePeriods,
    ) -> BoxFuture<'static, io::Result<Started>> {
        Box::pin(async move { Reaper::get()?.start(spec, grace).await })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.handle.pid
    }

    /// Sends SIGTERM to the process and its process group.
    pub(crate) fn terminate(&self) {
        self.handle.signal(ShutdownStep::Terminate);
    }

    /// Sends SIGKILL to the process, its process group and, on Linux, all its descendants.
    pub(crate) fn kill(&self) {
        self.handle.signal(ShutdownStep::Kill);
    }

    /// Ends the process at once, in the background: sends SIGTERM now, and SIGKILL within a second. On Linux the
    /// descendants that the process has now are killed, too, even if it has exited by then.
    pub(crate) fn end_at_once(&self) {
        if self.handle.ended.borrow().is_none() {
            self.handle.orders.end_at_once(self.handle.id);
        }
    }

    /// Ends the process in the background, from this step of the shutdown sequence, after its driver was
    /// dropped.
    pub(crate) fn shut_down(&self, from: ShutdownStep) {
        self.handle.shut_down(from);
    }

    /// Ends the process in the background if it still runs when a driver would have killed it: the driver's
    /// runtime may exist without being polled.
    pub(crate) fn arm_watchdog(&self) {
        if self.handle.ended.borrow().is_none() {
            self.handle.orders.arm_watchdog(self.handle.id);
        }
    }

    /// Returns whether the process has ended. Cheap enough to poll.
    pub(crate) fn has_ended(&self) -> bool {
        // The value of this receiver is never marked as seen, and the sender is dropped only afterwards.
        self.handle.ended.has_changed().unwrap_or(true)
    }

    /// Returns the exit status, if the process has exited and the status is known.
    pub(crate) fn exit_status(&self) -> Option<ExitStatus> {
        match *self.handle.ended.borrow() {
            Some(Ended::Status(status)) => Some(status),
            _ => None,
        }
    }

    /// Waits for the process to end. Needs no runtime; may be dropped and called again.
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

/// Wakes a task at a time of the system clock, even if a test has paused the runtime's clock.
pub(crate) struct Alarm {
    id: u64,
    at: Instant,
    orders: Orders,
}

impl Alarm {
    /// Wakes the task no earlier than at this time.
    pub(crate) fn set(at: Instant, waker: &Waker) -> io::Result<Self> {
        let orders = Reaper::get()?.orders().clone();
        let id = orders.set_alarm(at, waker.clone());
        Ok(Self { id, at, orders })
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // An alarm that has fired is already removed.
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

/// The error for a reaper thread that ended, which it never does while it has children.
fn lost() -> io::Error {
    io::Error::other("the reaper thread has ended")
}

/// Starts a thread. The code of a thread is compiled for each type of closure; boxed ones share it.
fn start_thread(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(run)?;
    Ok(())
}

/// Runs host code, such as a waker of its executor. A panic must not end a process-wide thread, on which
/// every session depends.
fn contain_panic(run: impl FnOnce()) {
    if panics::catch(run).is_err() {
        report_panic();
    }
}

fn report_panic() {
    // A subscriber of the host may panic as well; that panic is discarded.
    let report = || {
        tracing::error!(
            "a waker panicked; other tasks waiting for the same process may not be woken"
        );
    };
    drop(panics::catch(report));
}

#[cfg(test)]
pub(crate) mod tests;
