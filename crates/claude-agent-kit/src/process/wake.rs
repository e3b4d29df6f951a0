//! Lets the reaper thread sleep until a command, a deadline, or the exit of a child where the system has
//! a descriptor for it.

#[cfg(target_os = "linux")]
pub(super) use linux::{ExitWatch, Wake};
#[cfg(not(target_os = "linux"))]
pub(super) use portable::{ExitWatch, Wake};

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::sync::Arc;
    use std::time::Instant;

    use rustix::buffer::spare_capacity;
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    /// The number of exits taken from the kernel per call; the rest follows in the next call.
    const EXITS_AT_A_TIME: usize = 64;

    #[derive(Clone)]
    pub(in crate::process) struct Wake {
        orders: Arc<OwnedFd>,
        children: Arc<OwnedFd>,
    }

    /// Reports the exit of one child to [`Wake::wait`].
    pub(in crate::process) struct ExitWatch(OwnedFd);

    impl Wake {
        pub(in crate::process) fn new() -> io::Result<Self> {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let children = epoll::create(CreateFlags::CLOEXEC)?;
            Ok(Self { orders: Arc::new(eventfd(0, flags)?), children: Arc::new(children) })
        }

        pub(in crate::process) fn up(&self) {
            // A full counter wakes the thread as well.
            let _ = rustix::io::write(&*self.orders, &1_u64.to_ne_bytes());
        }

        /// Waits for orders, the deadline or an exit, and adds the ids of children that exited.
        pub(in crate::process) fn wait(&self, deadline: Option<Instant>, exited: &mut Vec<u64>) {
            let timeout = deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                // The kernel takes no longer timeout; waking up once an hour costs nothing.
                Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
            });
            let mut both = [&self.orders, &self.children]
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN));
            // An interrupted call is like a wake-up: everything is examined again.
            let _ = poll(&mut both, timeout.as_ref());
            let mut counter = [0; 8];
            // The counter is empty if a child or the deadline ended the wait.
            let _ = rustix::io::read(&*self.orders, &mut counter);
            let mut events = Vec::with_capacity(EXITS_AT_A_TIME);
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            // Events are level-triggered: the next call recovers from a failed one.
            let _ = epoll::wait(&*self.children, spare_capacity(&mut events), Some(&at_once));
            for event in &events {
                exited.push(event.data.u64());
            }
        }

        /// Watches for the exit of a process, and reports it under this id. Returns `None` where that
        /// is impossible: kernels before 5.3 and some sandboxes lack `pidfd_open`.
        pub(in crate::process) fn watch(&self, id: u64, process: u32) -> Option<ExitWatch> {
            let pid = Pid::from_raw(i32::try_from(process).ok()?)?;
            let watch = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            epoll::add(&*self.children, &watch, EventData::new_u64(id), EventFlags::IN).ok()?;
            Some(ExitWatch(watch))
        }

        pub(in crate::process) fn forget(&self, watch: &ExitWatch) {
            // Closing the descriptor removes it as well.
            let _ = epoll::delete(&*self.children, &watch.0);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::io;
    use std::sync::{Arc, Condvar, Mutex, PoisonError};
    use std::time::Instant;

    use crate::lock::lock;

    #[derive(Clone, Default)]
    pub(in crate::process) struct Wake(Arc<(Mutex<bool>, Condvar)>);

    pub(in crate::process) struct ExitWatch;

    impl Wake {
        #[expect(clippy::unnecessary_wraps, reason = "it can fail on Linux")]
        pub(in crate::process) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(in crate::process) fn up(&self) {
            *lock(&self.0.0) = true;
            self.0.1.notify_one();
        }

        /// Waits for orders or the deadline.
        pub(in crate::process) fn wait(&self, deadline: Option<Instant>, _: &mut Vec<u64>) {
            let (mutex, condition) = &*self.0;
            let mut woken = lock(mutex);
            while !*woken {
                let Some(deadline) = deadline else {
                    woken = condition.wait(woken).unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let waited = condition.wait_timeout(woken, left);
                woken = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            *woken = false;
        }

        /// Returns `None`: there is no descriptor for the exit of a child.
        #[expect(clippy::unused_self, reason = "it is used on Linux")]
        pub(in crate::process) fn watch(&self, _: u64, _: u32) -> Option<ExitWatch> {
            None
        }

        #[expect(clippy::unused_self, reason = "it is used on Linux")]
        pub(in crate::process) fn forget(&self, _: &ExitWatch) {}
    }
}
