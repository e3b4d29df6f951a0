//! The wakers of tasks that wait for the same thing.

use std::task::{Context, Waker};

/// One waker for each waiting task, in the order in which they began to wait, so that runs are
/// reproducible.
#[derive(Debug)]
pub(crate) struct Wakers<K>(Vec<(K, Waker)>);

impl<K> Default for Wakers<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Eq> Wakers<K> {
    /// Stores the waker of a task, in place of its earlier one.
    pub(crate) fn insert(&mut self, key: K, context: &Context<'_>) {
        match self.0.iter_mut().find(|(waiting, _)| *waiting == key) {
            Some((_, waker)) => waker.clone_from(context.waker()),
            None => self.0.push((key, context.waker().clone())),
        }
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<Waker> {
        let index = self.0.iter().position(|(waiting, _)| *waiting == key)?;
        Some(self.0.remove(index).1)
    }

    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::with_capacity(self.0.len());
        for (_, waker) in self.0.drain(..) {
            wakers.push(waker);
        }
        wakers
    }
}
