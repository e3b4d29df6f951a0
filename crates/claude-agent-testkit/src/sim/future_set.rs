//! Runs several futures in one task.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Numbered futures. The set is meant to be small: all futures are polled on every wake-up.
pub(super) struct FutureSet<'a, T> {
    running: Vec<(usize, Work<'a, T>)>,
}

impl<'a, T> FutureSet<'a, T> {
    pub(super) fn new() -> Self {
        Self { running: Vec::new() }
    }

    pub(super) fn push(&mut self, number: usize, work: impl Future<Output = T> + Send + 'a) {
        self.running.push((number, Box::pin(work)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.running.iter().map(|(number, _)| *number)
    }

    /// Polls the last future once.
    pub(super) async fn poll_last(&mut self) -> Option<(usize, T)> {
        poll_fn(|context| Poll::Ready(self.poll_newest(context))).await
    }

    fn poll_newest(&mut self, context: &mut Context<'_>) -> Option<(usize, T)> {
        let (number, work) = self.running.last_mut()?;
        let Poll::Ready(value) = work.as_mut().poll(context) else { return None };
        let number = *number;
        self.running.pop();
        Some((number, value))
    }

    /// Waits until at least one future is ready.
    pub(super) async fn next(&mut self) -> Vec<(usize, T)> {
        poll_fn(|context| {
            let done = self.poll_all(context);
            if done.is_empty() && !self.is_empty() { Poll::Pending } else { Poll::Ready(done) }
        })
        .await
    }

    fn poll_all(&mut self, context: &mut Context<'_>) -> Vec<(usize, T)> {
        let mut done = Vec::new();
        self.running.retain_mut(|(number, work)| match work.as_mut().poll(context) {
            Poll::Ready(value) => {
                done.push((*number, value));
                false
            }
            Poll::Pending => true,
        });
        done
    }
}
