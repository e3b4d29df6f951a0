//! A child of the reaper thread, and how it is signalled.

use std::io;
use std::time::Duration;

use claude_agent_core::session::{GracePeriods, Shutdown, ShutdownStep};
use tokio::sync::watch;

use super::child::Child;
#[cfg(target_os = "linux")]
use super::descendants::{Descendants, ProcessTable};
use super::wake::ExitWatch;
use super::{Ended, contain_panic};

/// A child of the reaper thread. Times are since the start of that thread.
pub(super) struct ManagedChild {
    pub(super) child: Child,
    /// `None` if the exit is found by polling.
    pub(super) watch: Option<ExitWatch>,
    ended: watch::Sender<Option<Ended>>,
    grace: GracePeriods,
    /// The shutdown sequence that the reaper thread runs in place of a driver.
    shutdown: Shutdown,
    /// When the reaper thread begins that sequence although the driver was not dropped: a driver that is
    /// polled would have ended the child by then.
    watchdog: Option<Duration>,
    /// The descendants when the child was ordered to end at once.
    #[cfg(target_os = "linux")]
    pub(super) noted: Option<Descendants>,
}

impl ManagedChild {
    pub(super) fn new(
        child: Child,
        watch: Option<ExitWatch>,
        ended: watch::Sender<Option<Ended>>,
        grace: GracePeriods,
    ) -> Self {
        Self {
            child,
            watch,
            ended,
            grace,
            shutdown: Shutdown::default(),
            watchdog: None,
            #[cfg(target_os = "linux")]
            noted: None,
        }
    }

    /// Enters a step of the shutdown sequence. Returns whether it must be taken.
    pub(super) fn enter(&mut self, step: ShutdownStep, now: Duration) -> bool {
        self.watchdog = None;
        self.shutdown.enter(step, now, &self.grace)
    }

    /// Begins the sequence of a child that must end at once. Returns whether it must be terminated.
    pub(super) fn end_at_once(&mut self, now: Duration) -> bool {
        self.watchdog = None;
        self.shutdown.end_at_once(now, &self.grace)
    }

    /// Notes the descendants of a child that must end at once: when it has exited, they cannot be found any more.
    #[cfg(target_os = "linux")]
    pub(super) fn note_descendants(&mut self, table: &ProcessTable) {
        self.noted = Some(table.below(self.child.id()));
    }

    pub(super) fn arm_watchdog(&mut self, now: Duration) {
        if self.shutdown.step().is_none() {
            self.watchdog = Some(now.saturating_add(self.grace.total()));
        }
    }

    /// Returns when a step is due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.watchdog.or(self.shutdown.deadline())
    }

    /// Returns the step that is due.
    pub(super) fn due(&self, now: Duration) -> Option<ShutdownStep> {
        match self.watchdog {
            Some(at) => (at <= now).then_some(ShutdownStep::Terminate),
            None => self.shutdown.due(now),
        }
    }

    /// Publishes the exit of the child to all waiters.
    pub(super) fn tell(&self, ended: Ended) {
        contain_panic(|| {
            self.ended.send_replace(Some(ended));
        });
    }

    #[cfg(unix)]
    pub(super) fn terminate(&mut self) {
        // A child that may not be signalled is reported at SIGKILL; the closed stdin may end it first.
        signal_group(&self.child, rustix::process::Signal::TERM);
    }

    #[cfg(not(unix))]
    pub(super) fn terminate(&mut self) {
        // The system has no gentler way.
        self.kill_child();
    }

    /// Kills the child, its process group, and the processes below it that are in the table, or were noted.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&mut self, table: &ProcessTable) {
        let descendants = table.below(self.child.id());
        signal_group(&self.child, rustix::process::Signal::KILL);
        self.kill_child();
        descendants.kill();
        if let Some(noted) = self.noted.take() {
            noted.kill_with_descendants(table);
        }
    }

    /// Kills the child and its process group.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn kill(&mut self) {
        #[cfg(unix)]
        signal_group(&self.child, rustix::process::Signal::KILL);
        self.kill_child();
    }

    fn kill_child(&mut self) {
        // Any other failure means that it has exited.
        if let Err(error) = self.child.kill()
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            self.tell(Ended::NotKilled);
        }
    }
}

#[cfg(unix)]
fn signal_group(child: &Child, signal: rustix::process::Signal) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // The child is not reaped yet, so the group belongs to it. A group without a process that
        // may be signalled is not a failure: only the child itself matters.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}
