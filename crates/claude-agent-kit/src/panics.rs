//! Confines panics of host code to the call in which they happen.
//!
//! A panic payload is a value of the host, so dropping it can panic again; a waker belongs to the
//! host's executor and can panic as well.

use std::any::Any;
use std::future::poll_fn;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Poll, Waker};

/// Why a callback failed that panicked. The message of the panic may contain inputs of tools, and the CLI passes the
/// reason on to the model, so it is left to the panic hook of the process.
pub(crate) const CALLBACK_PANICKED: &str = "the callback panicked";

/// Host code panicked. The payload was dropped.
#[derive(Debug)]
pub(crate) struct Panicked;

/// Calls host code and catches its panic, and that of dropping the payload.
///
/// State that the call left half-changed belongs to the host.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(call)).map_err(drop_payload)
}

/// Returns the output of a future of the host, or `None` if it panics.
pub(crate) async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(move |context| match catch(|| future.as_mut().poll(context)) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

fn drop_payload(payload: Box<dyn Any + Send>) -> Panicked {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Dropping this payload could panic again, endlessly.
        mem::forget(second);
    }
    Panicked
}

/// Drops a value of the host and catches its panic.
pub(crate) fn discard<T>(value: T) {
    if catch(|| drop(value)).is_err() {
        tracing::warn!("a value of the host panicked when it was dropped");
    }
}

/// Wakes all wakers, even if one of them panics.
pub(crate) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        if catch(|| waker.wake()).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Panics when dropped, with a payload of the same type.
    struct Explosive(usize);

    impl Drop for Explosive {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Explosive(self.0 - 1));
            }
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_caught() {
        for depth in 0..5 {
            assert!(catch(|| panic_any(Explosive(depth))).is_err());
            discard(Explosive(depth));
        }
        assert_eq!(catch(|| 7).unwrap(), 7);
    }

    #[test]
    fn a_panicking_waker_does_not_prevent_other_wakeups() {
        struct Counter(AtomicUsize);
        impl Wake for Counter {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        struct Panics;
        impl Wake for Panics {
            fn wake(self: Arc<Self>) {
                panic_any(Explosive(2));
            }
        }
        let counter = Arc::new(Counter(AtomicUsize::new(0)));
        let panics = || Waker::from(Arc::new(Panics));
        wake([panics(), counter.clone().into(), panics(), counter.clone().into()]);
        assert_eq!(counter.0.load(Ordering::SeqCst), 2);
    }
}
