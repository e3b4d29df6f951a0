//! Spawns tasks. tokio's code for a task is compiled for each type of future or closure; boxed ones share it.

use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::ScopedJoinHandle;

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument as _, Span};

use crate::error::{Error, ErrorKind, Result};

/// A future whose code is compiled once, and not wherever it is awaited.
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A value of any type, which [`unboxed`] returns.
pub(crate) type Boxed = Box<dyn Any + Send>;

/// Spawns a task in a span.
pub(crate) fn spawn(runtime: &Handle, span: Span, task: BoxFuture<'static, ()>) -> JoinHandle<()> {
    runtime.spawn(task.instrument(span))
}

/// Runs a function on a blocking thread.
pub(crate) fn spawn_blocking<T: Send + 'static>(
    runtime: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> BlockingTask<T> {
    let work: Box<dyn FnOnce() -> Boxed + Send> = Box::new(move || Box::new(work()));
    BlockingTask::new(runtime.spawn_blocking(work))
}

/// Returns the function of a scoped thread, whose code is compiled for each type of function.
pub(crate) fn scoped<'a>(run: impl FnOnce() + Send + 'a) -> Box<dyn FnOnce() + Send + 'a> {
    Box::new(run)
}

/// Waits for a scoped thread, and continues its panic.
pub(crate) fn join(thread: ScopedJoinHandle<'_, ()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Returns the value in a box of its type.
pub(crate) fn unboxed<T: 'static>(value: Boxed) -> T {
    *value.downcast().expect("the box was created with this type")
}

/// Waits for the result of a function on a blocking thread.
pub(crate) type BlockingTask<T> = Unboxing<JoinHandle<Boxed>, T>;

/// Waits for a boxed value and returns it in its type.
pub(crate) struct Unboxing<F, T> {
    future: F,
    value: PhantomData<fn() -> T>,
}

impl<F, T> Unboxing<F, T> {
    pub(crate) fn new(future: F) -> Self {
        Self { future, value: PhantomData }
    }
}

impl<F, T: 'static, E> Future for Unboxing<F, T>
where
    F: Future<Output = std::result::Result<Boxed, E>> + Unpin,
{
    type Output = std::result::Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.future).poll(context).map_ok(unboxed)
    }
}

/// Returns the result of a blocking task, and continues its panic.
pub(crate) fn joined<T>(result: std::result::Result<T, JoinError>) -> Result<T> {
    result.map_err(not_joined)
}

fn not_joined(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => runtime_gone(),
    }
}

pub(crate) fn runtime_gone() -> Error {
    let message = "the Tokio runtime was shut down while the history was being read";
    Error::new(ErrorKind::RuntimeGone, message).with_help("keep the runtime until the call returns")
}
