//! Locks of state that the SDK shares between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one that is poisoned: no code of the host runs under a lock, so a panic leaves
/// no state half-changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
