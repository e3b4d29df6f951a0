//! Wakes the driver at the machine's next deadline.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Instant, Sleep};

/// A runtime timer that moves from one deadline to the next.
#[derive(Debug, Default)]
pub(super) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Completes at `deadline`; never completes without one.
    pub(super) fn poll(
        &mut self,
        deadline: Option<Instant>,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.sleep = None;
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        ready!(sleep.as_mut().poll(context));
        self.sleep = None;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_advances_to_the_deadline() {
        let (real, start) = (std::time::Instant::now(), Instant::now());
        let hour = Duration::from_secs(3600);
        let mut timer = Timer::default();
        poll_fn(|context| timer.poll(Some(start + hour), context)).await;
        assert!(start.elapsed() >= hour);
        assert!(real.elapsed() < hour);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_replaces_a_later_one() {
        let start = Instant::now();
        let (soon, late) = (Duration::from_secs(1), Duration::from_secs(3600));
        let mut timer = Timer::default();
        let late = poll_fn(|context| Poll::Ready(timer.poll(Some(start + late), context))).await;
        assert!(late.is_pending());
        poll_fn(|context| timer.poll(Some(start + soon), context)).await;
        assert_eq!(start.elapsed(), soon);
    }
}
