//! Runs futures of the host, drops some of them early, and reports those that hang.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::record::Record;
use super::rng::Rng;

/// How long the host waits for a future whose duration the CLI determines, when the CLI may be faulty.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

/// The longest time that a future with its own time limit takes.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// The longest time until every future has noticed that the process exited.
const EXIT_NOTICE: Duration = Duration::from_secs(60);

/// How often a pending future is polled without having been woken.
const POLL_INTERVAL: Duration = Duration::from_secs(7);

/// What is guaranteed about the completion of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// It completes within its own timeouts, whatever the CLI does.
    Guaranteed,
    /// It completes if the CLI behaves correctly or exits.
    IfHealthy,
    /// It completes when the CLI exits.
    WithCli,
}

/// Runs futures and records violations.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) record: Record,
    pub(super) healthy: bool,
}

/// When a future is dropped.
enum DropPoint {
    Never,
    AfterPolls(usize),
    AfterTime(Duration),
}

impl DropPoint {
    fn pick(rng: &mut Rng) -> Self {
        match rng.between(0, 11) {
            0 => Self::AfterPolls(rng.between(0, 6)),
            1 => Self::AfterTime(rng.moment()),
            _ => Self::Never,
        }
    }
}

impl Watcher {
    /// Runs a future, unless the seed decides that it is dropped early.
    pub(super) async fn run_or_drop<T>(
        &self,
        what: &str,
        completion: Completion,
        rng: &mut Rng,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        match DropPoint::pick(rng) {
            DropPoint::Never => self.run(what, completion, future).await,
            DropPoint::AfterPolls(polls) => {
                let ended = self.polled(polls, future).await;
                if ended.is_none() {
                    self.record.count(format!("dropped after polls: {what}"));
                }
                ended
            }
            DropPoint::AfterTime(time) => {
                let ended = tokio::time::timeout(time, future).await.ok();
                if ended.is_none() {
                    self.record.count(format!("dropped after a delay: {what}"));
                }
                ended
            }
        }
    }

    /// Runs a future and records a violation if it hangs.
    pub(super) async fn run<T>(
        &self,
        what: &str,
        completion: Completion,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let strict = match completion {
            Completion::Guaranteed => true,
            Completion::IfHealthy => self.healthy,
            Completion::WithCli => false,
        };
        let began = self.record.now();
        let limit = if strict { MAX_WAIT } else { GIVE_UP_AFTER };
        let ended = self.watched(what, limit, future).await;
        if ended.is_none() {
            self.report_timeout(what, strict, began);
        }
        ended
    }

    /// Runs a future until `limit`. Polls it from time to time although it was not woken: if it is ready then,
    /// a wake-up was lost.
    async fn watched<T>(
        &self,
        what: &str,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        let mut limit = pin!(sleep(limit));
        let mut look = pin!(sleep(POLL_INTERVAL));
        let tracker = Arc::new(TrackingWaker::default());
        let waker = Waker::from(tracker.clone());
        poll_fn(|context| {
            tracker.wake_through(context.waker());
            let mut inner = Context::from_waker(&waker);
            if tracker.take_woken()
                && let Poll::Ready(done) = future.as_mut().poll(&mut inner)
            {
                return Poll::Ready(Some(done));
            }
            if look.as_mut().poll(context).is_ready() {
                look.as_mut().reset(Instant::now() + POLL_INTERVAL);
                // A timer that was reset registers its waker when it is polled.
                let _ = look.as_mut().poll(context);
                if let Poll::Ready(done) = future.as_mut().poll(&mut inner) {
                    self.record
                        .violation(format!("`{what}` is ready, but its waker was not called"));
                    return Poll::Ready(Some(done));
                }
            }
            limit.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    fn report_timeout(&self, what: &str, strict: bool, began: Duration) {
        let over = self.record.lock().wire.exit_reported;
        if strict {
            self.record.violation(format!("`{what}` has been pending since {began:?}"));
        } else if let Some(over) = over.filter(|over| *over + EXIT_NOTICE < self.record.now()) {
            let text = format!("`{what}` is still pending although the CLI exited at {over:?}");
            self.record.violation(text);
        } else {
            self.record.count(format!("timed out: {what}"));
        }
    }

    /// Drops a future after this many polls that returned `Pending`.
    async fn polled<T>(&self, polls: usize, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let mut limit = pin!(sleep(GIVE_UP_AFTER));
        let mut left = polls;
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(None);
            }
            left -= 1;
            if let Poll::Ready(done) = future.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            if left == 0 || limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(None);
            }
            Poll::Pending
        })
        .await
    }
}

/// A waker that remembers whether it was called.
struct TrackingWaker {
    woken: AtomicBool,
    outer: Mutex<Option<Waker>>,
}

impl Default for TrackingWaker {
    /// Creates a waker that counts as called, so that the first poll happens.
    fn default() -> Self {
        Self { woken: AtomicBool::new(true), outer: Mutex::new(None) }
    }
}

impl TrackingWaker {
    fn wake_through(&self, outer: &Waker) {
        *self.outer.lock().unwrap_or_else(PoisonError::into_inner) = Some(outer.clone());
    }

    fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::Relaxed)
    }
}

impl Wake for TrackingWaker {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        let outer = self.outer.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}
