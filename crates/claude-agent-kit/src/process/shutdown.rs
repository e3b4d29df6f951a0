//! The shutdown sequence of one child: time to exit by itself, SIGTERM, more time, SIGKILL.

use std::io;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::child::Child;
#[cfg(target_os = "linux")]
use super::descendants::ProcessTable;
use super::wake::ExitWatch;
use super::{Ended, Patience, contain_panic};

/// A child of the reaper thread.
pub(super) struct ManagedChild {
    pub(super) child: Child,
    /// `None` if the exit is found by polling.
    pub(super) watch: Option<ExitWatch>,
    pub(super) ended: watch::Sender<Option<Ended>>,
    pub(super) phase: Phase,
}

/// How far the shutdown sequence of a child has come.
#[derive(Clone, Copy)]
pub(super) enum Phase {
    Running,
    /// SIGTERM follows at this time.
    Asked {
        until: Instant,
        patience: Patience,
    },
    /// SIGKILL follows at this time.
    Terminated {
        until: Instant,
    },
    /// Only waiting is left.
    Killed,
}

/// What has to be done to a child now.
pub(super) enum Step {
    Terminate,
    Kill,
}

impl Phase {
    /// Returns the sequence as ordered before or as ordered now, whichever is faster.
    pub(super) fn hastened(self, patience: Patience, now: Instant) -> Self {
        let terminate = later(now, patience.before_terminate);
        match self {
            Self::Running => Self::Asked { until: terminate, patience },
            Self::Asked { until, patience: before } => {
                let before_kill = before.before_kill.min(patience.before_kill);
                let patience = Patience { before_kill, ..patience };
                Self::Asked { until: until.min(terminate), patience }
            }
            Self::Terminated { until } => {
                Self::Terminated { until: until.min(later(terminate, patience.before_kill)) }
            }
            Self::Killed => Self::Killed,
        }
    }

    /// Advances the sequence, and returns what that means for the child.
    pub(super) fn advance(&mut self, now: Instant) -> Option<Step> {
        match *self {
            Self::Asked { until, patience } if until <= now => {
                *self = Self::Terminated { until: later(now, patience.before_kill) };
                Some(Step::Terminate)
            }
            Self::Terminated { until } if until <= now => {
                *self = Self::Killed;
                Some(Step::Kill)
            }
            _ => None,
        }
    }

    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Asked { until, .. } | Self::Terminated { until } => Some(until),
            Self::Running | Self::Killed => None,
        }
    }
}

/// Adds a timeout to a time. One that no clock can show counts as a year: a panic here would end the
/// thread that everything depends on.
fn later(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

impl ManagedChild {
    /// Tells everybody who waits how the child ended.
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
        // The system has nothing gentler.
        self.kill_child();
    }

    /// Kills the child, its process group, and the processes below it that are in the table.
    #[cfg(target_os = "linux")]
    pub(super) fn kill(&mut self, table: &ProcessTable) {
        let descendants = table.below(self.child.id());
        signal_group(&self.child, rustix::process::Signal::KILL);
        self.kill_child();
        descendants.kill();
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
        // may be signalled is no failure of its own: what matters is the child itself.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}
