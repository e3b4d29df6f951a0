//! Groups of runs that are shut down together.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use claude_agent_core::session::Event;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::commands::CommandSender;
use crate::error::{Error, ErrorKind, Result};
use crate::id_map::IdMap;
use crate::lock::lock;
use crate::panics;

/// The runs of this process.
static ALL: LazyLock<RunGroup> = LazyLock::new(RunGroup::new);

/// Stops every session and query of this process, all at once, and waits until they have ended or
/// `deadline` has passed. Returns how many had not ended by then; their CLIs are still being ended.
///
/// New sessions and queries can be started afterwards. [`RunGroup::shutdown`] does the same for some of
/// them.
///
/// # Cancel safety
/// Dropping the future does not stop the shutdown.
pub async fn shutdown_all(deadline: Duration) -> usize {
    ALL.stop(deadline, false).await
}

/// A group of sessions and queries that are shut down together, for example those of one tenant or of
/// one test.
///
/// A run belongs to the group of its options ([`Options::group`](crate::Options::group)) from the call
/// that starts it until its CLI has ended. Clones are the same group. Dropping the group stops nothing.
///
/// ```no_run
/// use std::time::Duration;
///
/// use claude_agent_kit::{Options, RunGroup, Session};
///
/// # async fn example() -> claude_agent_kit::Result<()> {
/// let group = RunGroup::new();
/// let session = Session::start(Options::new().group(&group)).await?;
/// assert_eq!(group.len(), 1);
/// let left = group.shutdown(Duration::from_secs(15)).await;
/// assert_eq!(left, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct RunGroup(Arc<Group>);

#[derive(Default)]
struct Group {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// `None` while a run is being started.
    runs: IdMap<Option<CommandSender>>,
    next: u64,
}

impl RunGroup {
    /// Creates an empty group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many sessions and queries of the group are starting or have not ended.
    pub fn len(&self) -> usize {
        lock(&self.0.state).runs.len()
    }

    /// Returns whether no session or query of the group is starting or running.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Stops every session and query of the group, all at once, and waits until they have ended or
    /// `deadline` has passed. Returns how many had not ended by then; their CLIs are still being ended.
    ///
    /// The group is closed from this call on: starts that are in progress, and later ones, fail with
    /// [`GroupClosed`](ErrorKind::GroupClosed).
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the shutdown, and the group stays closed.
    pub async fn shutdown(&self, deadline: Duration) -> usize {
        self.stop(deadline, true).await
    }

    async fn stop(&self, deadline: Duration, closes: bool) -> usize {
        let now = Instant::now();
        // Longer than the clock can represent is as long as it takes.
        let until = now.checked_add(deadline).unwrap_or(now + Duration::from_secs(365 * 24 * 3600));
        let runs = self.0.stop_all(closes);
        loop {
            // Created before the look, so that it is notified of what changes from here on.
            let changed = self.0.changed.notified();
            let left = self.0.count(&runs);
            if left == 0 || tokio::time::timeout_at(until, changed).await.is_err() {
                return left;
            }
        }
    }

    /// Reserves a place for a run that is being started.
    fn enter(&self) -> Result<Membership> {
        let mut state = lock(&self.0.state);
        if state.is_closed {
            return Err(closed());
        }
        let number = state.next;
        state.next += 1;
        state.runs.insert(number, None);
        Ok(Membership { group: self.0.clone(), number })
    }
}

impl Group {
    /// Stops all runs and returns those that will end.
    fn stop_all(&self, closes: bool) -> Vec<u64> {
        let mut state = lock(&self.state);
        state.is_closed |= closes;
        let is_closed = state.is_closed;
        let (numbers, runs) = (state.runs.ids().to_vec(), state.runs.values().to_vec());
        drop(state);
        let mut ending = Vec::new();
        for (number, run) in numbers.into_iter().zip(runs) {
            if let Some(commands) = &run {
                // A driver that is gone has left its process to the reaper thread.
                let _ = commands.send(Event::Stop);
            }
            // A closed group rejects a start in progress; otherwise the start continues.
            if run.is_some() || is_closed {
                ending.push(number);
            }
        }
        ending
    }

    fn count(&self, runs: &[u64]) -> usize {
        let state = lock(&self.state);
        runs.iter().filter(|number| state.runs.get(**number).is_some()).count()
    }
}

/// The place of a run in its groups. It is left when this is dropped.
pub(crate) struct Memberships(Vec<Membership>);

struct Membership {
    group: Arc<Group>,
    number: u64,
}

impl Memberships {
    /// Reserves the places of a run that is being started.
    ///
    /// # Errors
    /// [`ErrorKind::GroupClosed`].
    pub(crate) fn new(group: Option<&RunGroup>) -> Result<Self> {
        let mut places = Vec::with_capacity(2);
        if let Some(group) = group {
            places.push(group.enter()?);
        }
        places.push(ALL.enter()?);
        Ok(Self(places))
    }

    /// Lets the groups stop the run from now on.
    ///
    /// # Errors
    /// [`ErrorKind::GroupClosed`] when a group was shut down during the start.
    pub(crate) fn join(&self, commands: &CommandSender) -> Result<()> {
        for Membership { group, number } in &self.0 {
            let mut state = lock(&group.state);
            if state.is_closed {
                return Err(closed());
            }
            state.runs.insert(*number, Some(commands.clone()));
        }
        Ok(())
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let left = lock(&self.group.state).runs.remove(self.number);
        drop(left);
        // Wakers of the host's executors run here.
        if panics::catch(|| self.group.changed.notify_waiters()).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }
}

pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::GroupClosed, "the run group was shut down and cannot start new runs")
        .with_help("use another group")
}

impl fmt::Debug for RunGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunGroup").field("runs", &self.len()).finish_non_exhaustive()
    }
}
