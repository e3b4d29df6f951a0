//! The reaper thread.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::{Duration, Instant};

use claude_agent_core::session::{GracePeriods, ShutdownStep};
use tokio::sync::watch;

use super::child::Child;
#[cfg(target_os = "linux")]
use super::descendants::{Descendants, ProcessTable};
use super::due::DueTimes;
use super::managed_child::ManagedChild;
use super::starter::Starters;
use super::wake::Wake;
use super::{Ended, Handle, Process, Spec, Started, contain_panic, start_thread};
use crate::id_map::IdMap;
use crate::lock::lock;

/// The polling interval for children whose exit the system does not report.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The process-wide threads: the reaper thread and the starter threads.
pub(super) struct Reaper {
    orders: Orders,
    starters: Arc<Starters>,
    /// The threads of a process forked from this one, which does not inherit threads.
    in_fork: OnceLock<Box<Reaper>>,
}

/// A handle to the reaper thread.
#[derive(Clone)]
pub(super) struct Orders {
    inbox: Inbox,
    wake: Wake,
    /// The ID of the process that owns the thread.
    host: u32,
}

/// The orders that the thread has not taken yet, in order.
type Inbox = Arc<Mutex<Vec<Order>>>;

enum Order {
    Adopt {
        id: u64,
        child: Box<ManagedChild>,
    },
    /// The driver takes this step of its shutdown sequence.
    Signal {
        id: u64,
        step: ShutdownStep,
    },
    /// The driver was dropped: the reaper thread runs the sequence from this step.
    ShutDown {
        id: u64,
        from: ShutdownStep,
    },
    /// The reaper thread ends the child at once, beside its driver.
    EndAtOnce {
        id: u64,
    },
    ArmWatchdog {
        id: u64,
    },
    SetAlarm {
        id: u64,
        at: Instant,
        waker: Waker,
    },
    DropAlarm {
        id: u64,
        at: Instant,
    },
    WatchStarters(Instant),
    Quit,
}

/// Returns an ID for a child or an alarm. IDs stay unique across forks: handles inherited from the parent
/// must not name anything in the forked process.
pub(super) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Reaper {
    /// Returns the threads of this process, starting them on first use.
    pub(super) fn get() -> io::Result<&'static Self> {
        static FIRST: OnceLock<Box<Reaper>> = OnceLock::new();
        let host = std::process::id();
        let mut slot = &FIRST;
        loop {
            match slot.get() {
                Some(reaper) if reaper.orders.host == host => return Ok(reaper),
                Some(parent) => slot = &parent.in_fork,
                // The slot is not locked while the thread starts: a fork at that moment would leave it
                // locked forever in the forked process.
                None => {
                    if let Err(unused) = slot.set(Box::new(Self::start_thread(host)?)) {
                        unused.orders.send(Order::Quit);
                    }
                }
            }
        }
    }

    fn start_thread(host: u32) -> io::Result<Self> {
        let wake = Wake::new()?;
        let inbox = Inbox::default();
        let orders = Orders { inbox: inbox.clone(), wake: wake.clone(), host };
        let starters = Arc::new(Starters::new(orders.clone()));
        let thread = ReaperThread::new(inbox, wake, starters.clone());
        start_thread("claude-reaper", Box::new(move || thread.run()))?;
        Ok(Self { orders, starters, in_fork: OnceLock::new() })
    }

    pub(super) async fn start(&self, spec: Spec, grace: GracePeriods) -> io::Result<Started> {
        self.starters.start(spec, grace).await
    }

    pub(super) fn orders(&self) -> &Orders {
        &self.orders
    }
}

impl Orders {
    /// Hands a child over to the reaper thread.
    pub(super) fn adopt(&self, id: u64, child: Child, grace: GracePeriods) -> Process {
        let (ended, receiver) = watch::channel(None);
        let pid = child.id();
        let watch = self.wake.watch(id, pid);
        let child = Box::new(ManagedChild::new(child, watch, ended, grace));
        self.send(Order::Adopt { id, child });
        let handle = Handle { id, pid, ended: receiver, orders: self.clone() };
        Process { handle: Arc::new(handle) }
    }

    pub(super) fn set_alarm(&self, at: Instant, waker: Waker) -> u64 {
        let id = next_id();
        self.send(Order::SetAlarm { id, at, waker });
        id
    }

    pub(super) fn drop_alarm(&self, id: u64, at: Instant) {
        self.send(Order::DropAlarm { id, at });
    }

    pub(super) fn signal(&self, id: u64, step: ShutdownStep) {
        self.send(Order::Signal { id, step });
    }

    pub(super) fn shut_down(&self, id: u64, from: ShutdownStep) {
        self.send(Order::ShutDown { id, from });
    }

    pub(super) fn end_at_once(&self, id: u64) {
        self.send(Order::EndAtOnce { id });
    }

    pub(super) fn arm_watchdog(&self, id: u64) {
        self.send(Order::ArmWatchdog { id });
    }

    pub(super) fn watch_starters(&self, at: Instant) {
        self.send(Order::WatchStarters(at));
    }

    fn send(&self, order: Order) {
        // A forked process has its parent's handles, but not the thread.
        if self.host == std::process::id() {
            lock(&self.inbox).push(order);
            self.wake.up();
        }
    }
}

/// The state of the reaper thread.
struct ReaperThread {
    inbox: Inbox,
    wake: Wake,
    starters: Arc<Starters>,
    children: IdMap<Box<ManagedChild>>,
    epoch: Instant,
    /// The next shutdown step of each child; a child has at most one.
    steps: DueTimes,
    /// Children killed in this round. They share one scan of `/proc`.
    kills: Vec<u64>,
    /// Children that end at once from this round on. They share a scan, too.
    urgent: Vec<u64>,
    /// The descendants of children that ended at once and have exited, and when they are killed.
    #[cfg(target_os = "linux")]
    orphans: Vec<(Duration, Descendants)>,
    /// Children whose exit is found by polling, and when to poll them.
    polled: IdMap<()>,
    poll_at: Instant,
    alarms: DueTimes,
    /// The wakers of the alarms, by ID.
    alarm_wakers: IdMap<Waker>,
    starters_at: Option<Instant>,
}

impl ReaperThread {
    fn new(inbox: Inbox, wake: Wake, starters: Arc<Starters>) -> Self {
        Self {
            inbox,
            wake,
            starters,
            children: IdMap::default(),
            epoch: Instant::now(),
            steps: DueTimes::default(),
            kills: Vec::new(),
            urgent: Vec::new(),
            #[cfg(target_os = "linux")]
            orphans: Vec::new(),
            polled: IdMap::default(),
            poll_at: Instant::now(),
            alarms: DueTimes::default(),
            alarm_wakers: IdMap::default(),
            starters_at: None,
        }
    }

    /// The cost of a round depends on the work due, not on the number of children: hosts have thousands.
    fn run(mut self) {
        let mut exited = Vec::new();
        loop {
            self.wake.wait(self.deadline(), &mut exited);
            #[cfg(test)]
            ROUNDS.fetch_add(1, Ordering::Relaxed);
            for order in self.take_orders() {
                match order {
                    Order::Quit => return,
                    order => self.obey(order),
                }
            }
            let now = Instant::now();
            if self.polled.len() > 0 && self.poll_at <= now {
                self.poll_at = now + POLL_INTERVAL;
                exited.extend_from_slice(self.polled.ids());
            }
            for id in std::mem::take(&mut exited) {
                self.reap(id, now);
            }
            let elapsed = now.saturating_duration_since(self.epoch);
            while let Some((at, id)) = self.alarms.first().filter(|(at, _)| *at <= elapsed) {
                self.alarms.remove(at, id);
                if let Some(waker) = self.alarm_wakers.remove(id) {
                    contain_panic(|| waker.wake());
                }
            }
            self.take_steps(now);
            if self.starters_at.is_some_and(|at| at <= now) {
                self.starters_at = self.starters.relieve(now);
            }
        }
    }

    fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *lock(&self.inbox))
    }

    fn deadline(&self) -> Option<Instant> {
        // What is beyond the range of the clock is never due.
        let first = |due: &DueTimes| self.epoch.checked_add(due.first()?.0);
        let (alarm, step) = (first(&self.alarms), first(&self.steps));
        let poll = (self.polled.len() > 0).then_some(self.poll_at);
        #[cfg(target_os = "linux")]
        let orphans = self.orphans.iter().map(|(at, _)| *at).min();
        #[cfg(not(target_os = "linux"))]
        let orphans = None;
        let orphans = orphans.and_then(|at| self.epoch.checked_add(at));
        [alarm, step, poll, orphans, self.starters_at].into_iter().flatten().min()
    }

    /// Reports the exit of a child and removes it.
    fn reap(&mut self, id: u64, now: Instant) {
        let Some(child) = self.children.get_mut(id) else { return };
        let ended = match child.child.try_wait() {
            Ok(Some(status)) => Ended::Status(status),
            // The child runs, or it has exited and a debugger holds back its exit, which the kernel would
            // report continuously.
            Ok(None) => return self.poll(id, now),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return self.poll(id, now),
            // No such child: the host ignores SIGCHLD, or has already waited for it.
            Err(_) => Ended::Unknown,
        };
        if let Some(child) = self.children.remove(id) {
            if let Some(at) = child.deadline() {
                self.steps.remove(at, id);
            }
            if let Some(watch) = &child.watch {
                self.wake.forget(watch);
            }
            self.polled.remove(id);
            #[cfg(target_os = "linux")]
            self.starters.forget(id);
            child.tell(ended);
            #[cfg(target_os = "linux")]
            if let (Some(at), Some(noted)) = (child.deadline(), child.noted) {
                self.orphans.push((at, noted));
            }
        }
    }

    /// Starts to poll a child.
    fn poll(&mut self, id: u64, now: Instant) {
        if let Some(watch) = self.children.get_mut(id).and_then(|child| child.watch.take()) {
            self.wake.forget(&watch);
        }
        if self.polled.len() == 0 {
            self.poll_at = now + POLL_INTERVAL;
        }
        self.polled.insert(id, ());
    }

    /// Updates the shutdown state of a child and schedules its next step.
    fn change<T>(&mut self, id: u64, change: impl FnOnce(&mut ManagedChild) -> T) -> Option<T> {
        let child = self.children.get_mut(id)?;
        if let Some(at) = child.deadline() {
            self.steps.remove(at, id);
        }
        let changed = change(child);
        if let Some(at) = child.deadline() {
            self.steps.insert(at, id);
        }
        Some(changed)
    }

    /// Takes a step of this thread's shutdown sequence, unless it was taken before.
    fn step(&mut self, id: u64, step: ShutdownStep, now: Duration) {
        if self.change(id, |child| child.enter(step, now)) == Some(true) {
            self.signal(id, step);
        }
    }

    fn signal(&mut self, id: u64, step: ShutdownStep) {
        match step {
            // The owner of the pipe interrupts the turn and closes stdin.
            ShutdownStep::Settle | ShutdownStep::Interrupt | ShutdownStep::CloseStdin => {}
            ShutdownStep::Terminate => {
                if let Some(child) = self.children.get_mut(id) {
                    child.terminate();
                }
            }
            ShutdownStep::Kill => self.kills.push(id),
        }
    }

    /// Takes the steps that are due, and kills the children marked for it.
    fn take_steps(&mut self, now: Instant) {
        let now = now - self.epoch;
        self.end_urgent(now);
        while let Some((at, id)) = self.steps.first().filter(|(at, _)| *at <= now) {
            match self.children.get(id).and_then(|child| child.due(now)) {
                Some(step) => self.step(id, step, now),
                None => self.steps.remove(at, id),
            }
        }
        #[cfg(target_os = "linux")]
        let has_orphans = self.orphans.iter().any(|(at, _)| *at <= now);
        #[cfg(not(target_os = "linux"))]
        let has_orphans = false;
        if self.kills.is_empty() && !has_orphans {
            return;
        }
        #[cfg(target_os = "linux")]
        let table = ProcessTable::scan();
        #[cfg(target_os = "linux")]
        for (_, orphans) in self.orphans.extract_if(.., |(at, _)| *at <= now) {
            orphans.kill_with_descendants(&table);
        }
        for id in std::mem::take(&mut self.kills) {
            if let Some(child) = self.children.get_mut(id) {
                #[cfg(target_os = "linux")]
                child.kill(&table);
                #[cfg(not(target_os = "linux"))]
                child.kill();
            }
        }
    }

    /// Terminates the children that must end at once, after their descendants were noted.
    fn end_urgent(&mut self, now: Duration) {
        if self.urgent.is_empty() {
            return;
        }
        #[cfg(target_os = "linux")]
        let table = ProcessTable::scan();
        for id in std::mem::take(&mut self.urgent) {
            self.change(id, |child| {
                #[cfg(target_os = "linux")]
                child.note_descendants(&table);
                if child.end_at_once(now) {
                    child.terminate();
                }
            });
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Adopt { id, child } => {
                let is_watched = child.watch.is_some();
                self.children.insert(id, child);
                if !is_watched {
                    self.poll(id, Instant::now());
                }
            }
            Order::Signal { id, step } => self.signal(id, step),
            Order::ShutDown { id, from } => self.step(id, from, self.epoch.elapsed()),
            Order::EndAtOnce { id } => self.urgent.push(id),
            Order::ArmWatchdog { id } => {
                let now = self.epoch.elapsed();
                self.change(id, |child| child.arm_watchdog(now));
            }
            Order::SetAlarm { id, at, waker } => {
                self.alarms.insert(at.saturating_duration_since(self.epoch), id);
                self.alarm_wakers.insert(id, waker);
            }
            Order::DropAlarm { id, at } => {
                self.alarms.remove(at.saturating_duration_since(self.epoch), id);
                let waker = self.alarm_wakers.remove(id);
                contain_panic(|| drop(waker));
            }
            Order::WatchStarters(at) => self.starters_at = Some(at),
            Order::Quit => {}
        }
    }
}

/// The number of wake-ups of the thread.
#[cfg(test)]
pub(super) static ROUNDS: AtomicU64 = AtomicU64::new(0);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::descendants::SCANS;
    use super::super::spawn::fixture::in_fork;
    use super::super::tests::shell;
    use super::*;

    #[test]
    fn children_that_are_killed_at_once_share_one_scan() {
        in_fork(|| {
            let inbox = Inbox::default();
            let wake = Wake::new().unwrap();
            let host = std::process::id();
            let orders = Orders { inbox: inbox.clone(), wake: wake.clone(), host };
            let starters = Arc::new(Starters::new(orders.clone()));
            let mut thread = ReaperThread::new(inbox, wake, starters);
            let mut tools = Vec::new();
            for _ in 0..20 {
                let script = "trap '' TERM; setsid sleep 300 & echo $!; while :; do wait; done";
                let (child, pipes) = Child::spawn(&shell(script), &[]).unwrap();
                let mut line = String::new();
                let mut stdout = io::BufReader::new(pipes.stdout);
                io::BufRead::read_line(&mut stdout, &mut line).unwrap();
                tools.push(line.trim().to_owned());
                let process = orders.adopt(next_id(), child, GracePeriods::default());
                process.shut_down(ShutdownStep::Kill);
            }
            for order in thread.take_orders() {
                thread.obey(order);
            }
            thread.take_steps(Instant::now());
            assert_eq!((SCANS.load(Ordering::Relaxed), thread.steps.len()), (1, 0));
            for id in thread.children.ids().to_vec() {
                let child = thread.children.get_mut(id).unwrap();
                while child.child.try_wait().unwrap().is_none() {
                    std::thread::yield_now();
                }
            }
            for tool in tools {
                super::super::tests::eventually("the tool is gone", || {
                    let stat = std::fs::read_to_string(format!("/proc/{tool}/stat"));
                    stat.is_ok_and(|stat| stat.contains(") Z "))
                        || !std::path::Path::new(&format!("/proc/{tool}")).exists()
                });
            }
        });
    }
}
