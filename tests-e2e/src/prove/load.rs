//! Generates CPU load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Keeps every core busy until it is dropped.
#[derive(Debug)]
pub struct Load {
    is_over: Arc<AtomicBool>,
}

impl Load {
    /// Starts a busy thread for each core.
    #[must_use]
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cores {
            let is_over = Arc::clone(&is_over);
            // The thread ends when the flag is set.
            drop(thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }));
        }
        Self { is_over }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
