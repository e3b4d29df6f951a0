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
/// early is left alone: it rings once, and then a later one is set.
#[derive(Debug, Default)]
pub(super) struct Timer {
    alarm: Option<Alarm>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready when it is due. The task of `context` is woken for that.
    pub(super) fn poll(&mut self, due: Option<Instant>, context: &mut Context<'_>) -> Poll<()> {
        let Some(due) = due else {
            self.sleep = None;
            return Poll::Pending;
        };
        let now = Instant::now();
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
            self.alarm = Alarm::set(at, context.waker()).ok();
        }
        self.alarm.is_some()
    }
}
