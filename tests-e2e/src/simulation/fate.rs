//! How long a future of the host lives.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::draw::Draw;
use super::record::Record;

/// How long the host waits for what may take as long as the CLI likes, where the CLI may be broken.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long the longest thing takes that ends by itself.
const LONGEST: Duration = Duration::from_secs(3_600);

/// How long it takes at most until everybody knows that the process has ended.
const NEWS: Duration = Duration::from_secs(60);

/// How often somebody who waits looks without having been woken.
const LOOK: Duration = Duration::from_secs(7);

/// What is known of the end of a future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// It ends within its limits, whatever the CLI does.
    Kept,
    /// It ends when the CLI does what it should, or ends.
    IfHealthy,
    /// It ends with the CLI.
    AtTheEnd,
}

/// Who waits, and how.
#[derive(Clone)]
pub(super) struct Waiting {
    pub(super) record: Record,
    pub(super) healthy: bool,
}

/// When a future is dropped.
enum Fate {
    Lives,
    Polls(usize),
    Time(Duration),
}

impl Fate {
    fn draw(draw: &mut Draw) -> Self {
        match draw.between(0, 11) {
            0 => Self::Polls(draw.between(0, 6)),
            1 => Self::Time(draw.moment()),
            _ => Self::Lives,
        }
    }
}

impl Waiting {
    /// Waits for a future, unless it is drawn to be dropped before.
    pub(super) async fn mortal<T>(
        &self,
        what: &str,
        promise: Promise,
        draw: &mut Draw,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        match Fate::draw(draw) {
            Fate::Lives => self.patient(what, promise, future).await,
            Fate::Polls(polls) => {
                let ended = self.polled(polls, future).await;
                if ended.is_none() {
                    self.record.count(format!("dropped after polls: {what}"));
                }
                ended
            }
            Fate::Time(time) => {
                let ended = tokio::time::timeout(time, future).await.ok();
                if ended.is_none() {
                    self.record.count(format!("dropped after a time: {what}"));
                }
                ended
            }
        }
    }

    /// Waits as long as it should take, and complains if it takes longer.
    pub(super) async fn patient<T>(
        &self,
        what: &str,
        promise: Promise,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let strict = match promise {
            Promise::Kept => true,
            Promise::IfHealthy => self.healthy,
            Promise::AtTheEnd => false,
        };
        let began = self.record.now();
        let limit = if strict { LONGEST } else { PATIENCE };
        let ended = self.watched(what, limit, future).await;
        if ended.is_none() {
            self.given_up(what, strict, began);
        }
        ended
    }

    /// Waits so long at most. Looks at the future now and then although nobody woke it: if it is
    /// ready all the same, somebody has forgotten to.
    async fn watched<T>(
        &self,
        what: &str,
        limit: Duration,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        let mut limit = pin!(sleep(limit));
        let mut look = pin!(sleep(LOOK));
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        poll_fn(|context| {
            bell.rings_for(context.waker());
            let mut inner = Context::from_waker(&waker);
            if bell.was_rung()
                && let Poll::Ready(done) = future.as_mut().poll(&mut inner)
            {
                return Poll::Ready(Some(done));
            }
            if look.as_mut().poll(context).is_ready() {
                look.as_mut().reset(Instant::now() + LOOK);
                // Set anew it has to be polled, or it wakes nobody.
                let _ = look.as_mut().poll(context);
                if let Poll::Ready(done) = future.as_mut().poll(&mut inner) {
                    self.record.violation(format!("`{what}` is ready, and nobody was woken"));
                    return Poll::Ready(Some(done));
                }
            }
            limit.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    fn given_up(&self, what: &str, strict: bool, began: Duration) {
        let over = self.record.lock().wire.exit_told;
        if strict {
            self.record.violation(format!("`{what}` waits for ever, since {began:?}"));
        } else if let Some(over) = over.filter(|over| *over + NEWS < self.record.now()) {
            let text = format!("`{what}` waits for ever, although the CLI ended at {over:?}");
            self.record.violation(text);
        } else {
            self.record.count(format!("given up: {what}"));
        }
    }

    /// Drops a future after so many polls that brought nothing.
    async fn polled<T>(&self, polls: usize, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        let mut limit = pin!(sleep(PATIENCE));
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

/// Knows whether somebody was woken.
struct Bell {
    rung: AtomicBool,
    sleeper: Mutex<Option<Waker>>,
}

impl Default for Bell {
    /// One that has rung: everybody looks once at first.
    fn default() -> Self {
        Self { rung: AtomicBool::new(true), sleeper: Mutex::new(None) }
    }
}

impl Bell {
    fn rings_for(&self, sleeper: &Waker) {
        *self.sleeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(sleeper.clone());
    }

    fn was_rung(&self) -> bool {
        self.rung.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Ordering::Relaxed);
        let sleeper = self.sleeper.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
    }
}
