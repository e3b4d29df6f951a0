//! When the driver looks again, although nothing happens.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::process::Alarm;

/// What is due sooner than this gets a timer of the runtime; until then an alarm is enough.
const NEAR: Duration = Duration::from_secs(1);

/// A timer that costs nothing while what it waits for is far away.
///
/// Limits come and go with every request, and hardly ever is one passed. An alarm that stands too
/// early is left alone: it rings once, and then a later one is set. Alarms ring by the clock on the
/// wall, so there are none where the runtime has a clock of its own.
#[derive(Debug, Default)]
pub(super) struct Timer {
    alarm: Option<Alarm>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready when it is due. The task of `context` is woken for that.
    pub(super) fn poll(
        &mut self,
        due: Option<Instant>,
        now: Instant,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let Some(due) = due else {
            self.sleep = None;
            return Poll::Pending;
        };
        if due.saturating_duration_since(now) > NEAR && self.set_alarm(due, now, context) {
            self.sleep = None;
            return Poll::Pending;
        }
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.deadline() != due {
            sleep.as_mut().reset(due);
        }
        ready!(sleep.as_mut().poll(context));
        self.sleep = None;
        Poll::Ready(())
    }

    /// Sees that an alarm rings before it is near. False if there can be none.
    fn set_alarm(&mut self, due: Instant, now: Instant, context: &Context<'_>) -> bool {
        let at = (due - NEAR).into_std();
        let stands = |alarm: &Alarm| alarm.at() > now.into_std() && alarm.at() <= at;
        if !self.alarm.as_ref().is_some_and(stands) {
            let set = || Alarm::set(at, context.waker()).ok();
            self.alarm = if is_virtual_time() { None } else { set() };
        }
        self.alarm.is_some()
    }
}

/// Whether the clock of the runtime is not that of the machine: a test has paused it.
fn is_virtual_time() -> bool {
    let before = std::time::Instant::now();
    let now = Instant::now().into_std();
    now < before || std::time::Instant::now() < now
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// Waits until it is due, as a driver does: it asks again whenever it is woken.
    async fn wait(timer: &mut Timer, after: Duration) -> Duration {
        let began = Instant::now();
        poll_fn(|context| timer.poll(Some(began + after), Instant::now(), context)).await;
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_paused_clock_an_hour_is_over_at_once() {
        let real = std::time::Instant::now();
        let mut timer = Timer::default();
        let hour = Duration::from_secs(3600);
        assert!(wait(&mut timer, hour).await >= hour);
        // Also when the paused clock is far ahead of the real one.
        assert!(wait(&mut timer, hour).await >= hour);
        assert!(timer.alarm.is_none());
        assert!(real.elapsed() < hour);
    }

    #[tokio::test]
    async fn on_a_real_clock_what_is_far_has_an_alarm() {
        let mut timer = Timer::default();
        let due = Some(Instant::now() + Duration::from_secs(3600));
        poll_fn(|context| {
            assert!(timer.poll(due, Instant::now(), context).is_pending());
            Poll::Ready(())
        })
        .await;
        assert!(timer.alarm.is_some() && timer.sleep.is_none());
    }
}
