//! The threads that start processes.
//!
//! A start can hang in `exec` indefinitely, depending on the file system of the executable (a file lease,
//! NFS, FUSE), and its thread hangs with it. These threads therefore do nothing else, and a stalled queue
//! gets another thread. They never end: the kernel sends the parent-death signal when the *thread* that
//! started a child ends.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claude_agent_core::session::GracePeriods;
use tokio::sync::oneshot;

use super::child::{Child, Pipes};
use super::reaper::{self, Orders};
use super::{Spec, Started, contain_panic, start_thread};
use crate::id_map::IdMap;
use crate::lock::lock;

/// The maximum number of threads, and so of starts that can hang before others have to wait.
pub(super) const MAX_THREADS: usize = 16;

/// How long the queue may stall before another thread is added.
const STUCK_AFTER: Duration = Duration::from_millis(100);

pub(super) struct Starters {
    queue: Mutex<Queue>,
    added: Condvar,
    reaper: Orders,
    #[cfg(target_os = "linux")]
    stdin_ends: StdinEnds,
}

struct Queue {
    /// In order of arrival.
    pending: IdMap<PendingStart>,
    next_ticket: u64,
    threads: usize,
    /// The number of threads that wait for a start, or are about to.
    idle: usize,
    last_taken: Instant,
    /// Whether the reaper thread watches the queue.
    is_watched: bool,
}

struct PendingStart {
    spec: Spec,
    grace: GracePeriods,
    reply: oneshot::Sender<io::Result<Started>>,
}

/// Removes a start from the queue when its caller gives up.
struct Ticket<'a> {
    starters: &'a Starters,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // Not under the lock: the reply holds a waker of the host.
        let abandoned = self.starters.lock().pending.remove(self.number);
        drop(abandoned);
    }
}

impl Starters {
    pub(super) fn new(reaper: Orders) -> Self {
        let queue = Queue {
            pending: IdMap::default(),
            next_ticket: 0,
            threads: 0,
            idle: 0,
            last_taken: Instant::now(),
            is_watched: false,
        };
        Self {
            queue: Mutex::new(queue),
            added: Condvar::new(),
            reaper,
            #[cfg(target_os = "linux")]
            stdin_ends: StdinEnds::default(),
        }
    }

    /// Starts a process. Dropping the future ends a process that was already started.
    pub(super) async fn start(
        self: &Arc<Self>,
        spec: Spec,
        grace: GracePeriods,
    ) -> io::Result<Started> {
        let (reply, response) = oneshot::channel();
        let _ticket = self.enqueue(PendingStart { spec, grace, reply })?;
        response.await.map_err(|_| {
            io::Error::other("the starter thread ended before the process was started")
        })?
    }

    fn enqueue(self: &Arc<Self>, start: PendingStart) -> io::Result<Ticket<'_>> {
        let mut queue = self.lock();
        if queue.threads == 0 {
            self.add_thread(&mut queue)?;
        }
        let number = queue.next_ticket;
        queue.next_ticket += 1;
        queue.pending.insert(number, start);
        if queue.pending.len() > queue.idle && !queue.is_watched {
            queue.is_watched = true;
            self.reaper.watch_starters(Instant::now() + STUCK_AFTER);
        }
        drop(queue);
        self.added.notify_one();
        Ok(Ticket { starters: self, number })
    }

    /// Adds a thread if every thread is busy and none has taken a start for a while. Returns when to
    /// look again.
    pub(super) fn relieve(self: &Arc<Self>, now: Instant) -> Option<Instant> {
        let mut queue = self.lock();
        if queue.pending.len() <= queue.idle || queue.threads >= MAX_THREADS {
            queue.is_watched = false;
            return None;
        }
        let stuck = queue.last_taken + STUCK_AFTER;
        if now < stuck {
            return Some(stuck);
        }
        if let Err(error) = self.add_thread(&mut queue) {
            tracing::warn!(%error, "could not add a thread that starts processes; trying again");
        }
        Some(now + STUCK_AFTER)
    }

    fn add_thread(self: &Arc<Self>, queue: &mut Queue) -> io::Result<()> {
        let starters = self.clone();
        start_thread("claude-starter", Box::new(move || starters.run()))?;
        queue.threads += 1;
        queue.idle += 1;
        Ok(())
    }

    fn run(&self) {
        loop {
            let start = self.next();
            let started = self.spawn(&start.spec, start.grace);
            // Without a caller the process is dropped, which ends it.
            contain_panic(|| drop(start.reply.send(started)));
            self.lock().idle += 1;
        }
    }

    fn next(&self) -> PendingStart {
        let mut queue = self.lock();
        loop {
            let first = queue.pending.ids().first().copied();
            if let Some(start) = first.and_then(|number| queue.pending.remove(number)) {
                queue.idle -= 1;
                queue.last_taken = Instant::now();
                return start;
            }
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn spawn(&self, spec: &Spec, grace: GracePeriods) -> io::Result<Started> {
        #[cfg(target_os = "linux")]
        let spawned = Child::spawn(spec, &self.stdin_ends.all());
        #[cfg(not(target_os = "linux"))]
        let spawned = Child::spawn(spec);
        let (child, Pipes { stdin, stdout, stderr }) = spawned?;
        let id = reaper::next_id();
        #[cfg(target_os = "linux")]
        self.stdin_ends.add(id, &stdin);
        let process = self.reaper.adopt(id, child, grace);
        Ok(Started { process, stdin, stdout, stderr })
    }

    /// Removes a reaped child.
    #[cfg(target_os = "linux")]
    pub(super) fn forget(&self, id: u64) {
        self.stdin_ends.remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

/// The host's ends of the stdin pipes of all children. A child that hangs in `exec` has a copy of
/// every descriptor of the host; holding one of these, it would keep another CLI from seeing the end
/// of its stdin.
#[cfg(target_os = "linux")]
#[derive(Default)]
struct StdinEnds(Mutex<IdMap<std::os::fd::RawFd>>);

#[cfg(target_os = "linux")]
impl StdinEnds {
    fn all(&self) -> Vec<std::os::fd::RawFd> {
        self.lock().values().to_vec()
    }

    fn add(&self, id: u64, stdin: &std::process::ChildStdin) {
        use std::os::fd::AsRawFd as _;

        self.lock().insert(id, stdin.as_raw_fd());
    }

    fn remove(&self, id: u64) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, IdMap<std::os::fd::RawFd>> {
        lock(&self.0)
    }
}
