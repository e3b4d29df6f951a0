//! The kept thread.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{oneshot, watch};

use super::child::Child;
use super::{Handle, Patience, Process, Spec, Started};

/// The one thread that starts, ends and reaps.
pub(super) struct Keeper {
    orders: mpsc::Sender<Order>,
    wake: Wake,
}

enum Order {
    Start { spec: Box<Spec>, patience: Patience, reply: oneshot::Sender<io::Result<Started>> },
    End { id: u64, patience: Patience },
    SetAlarm { id: u64, at: Instant, waker: Waker },
    DropAlarm { id: u64, at: Instant },
}

impl Keeper {
    /// The keeper of this process, started when it is first needed.
    pub(super) fn get() -> io::Result<&'static Self> {
        static KEEPER: OnceLock<Keeper> = OnceLock::new();
        static STARTING: Mutex<()> = Mutex::new(());
        if let Some(keeper) = KEEPER.get() {
            return Ok(keeper);
        }
        let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = KEEPER.get() {
            return Ok(keeper);
        }
        let wake = Wake::new()?;
        let (orders, inbox) = mpsc::channel();
        let mut household = Household::new(inbox, wake.clone());
        thread::Builder::new().name("claude-keeper".to_owned()).spawn(move || household.keep())?;
        Ok(KEEPER.get_or_init(|| Self { orders, wake }))
    }

    pub(super) async fn start(&self, spec: Spec, patience: Patience) -> io::Result<Started> {
        let (reply, answer) = oneshot::channel();
        self.order(Order::Start { spec: Box::new(spec), patience, reply });
        answer.await.map_err(|_| io::Error::other("the thread that starts processes is gone"))?
    }

    pub(super) fn set_alarm(&self, at: Instant, waker: Waker) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.order(Order::SetAlarm { id, at, waker });
        id
    }

    pub(super) fn drop_alarm(&self, id: u64, at: Instant) {
        self.order(Order::DropAlarm { id, at });
    }

    pub(super) fn end(&self, id: u64, patience: Patience) {
        self.order(Order::End { id, patience });
    }

    fn order(&self, order: Order) {
        // The thread lives as long as the host does.
        if self.orders.send(order).is_ok() {
            self.wake.up();
        }
    }
}

/// What the thread keeps.
struct Household {
    inbox: mpsc::Receiver<Order>,
    wake: Wake,
    children: HashMap<u64, Kept>,
    /// When the end of a child is taken a step further. A child has one step at most.
    steps: BTreeSet<(Instant, u64)>,
    next_id: u64,
    alarms: BTreeMap<(Instant, u64), Waker>,
}

struct Kept {
    child: Child,
    watch: ExitWatch,
    exit: watch::Sender<Option<ExitStatus>>,
    phase: Phase,
}

/// Where the end of a child stands.
#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// It has until then before SIGTERM.
    Asked {
        until: Instant,
        patience: Patience,
    },
    /// It has until then before SIGKILL.
    Terminated {
        until: Instant,
    },
    /// Nothing more can be done than wait.
    Killed,
}

impl Phase {
    /// The end as ordered before or as ordered now, whichever comes first.
    fn hastened(self, patience: Patience, now: Instant) -> Self {
        let terminate = later(now, patience.before_terminate);
        match self {
            Self::Running => Self::Asked { until: terminate, patience },
            Self::Asked { until, patience: before } => {
                let before_kill = before.before_kill.min(patience.before_kill);
                let patience = Patience { before_kill, ..patience };
                Self::Asked { until: until.min(terminate), patience }
            }
            Self::Terminated { until } => {
                Self::Terminated { until: until.min(later(terminate, patience.before_kill)) }
            }
            Self::Killed => Self::Killed,
        }
    }
}

/// When so much time has passed. A limit beyond what a clock can show is none: a panic here would end
/// the thread that everything depends on.
fn later(now: Instant, time: Duration) -> Instant {
    now.checked_add(time).unwrap_or(now + Duration::from_secs(365 * 24 * 3600))
}

impl Household {
    fn new(inbox: mpsc::Receiver<Order>, wake: Wake) -> Self {
        Self {
            inbox,
            wake,
            children: HashMap::new(),
            steps: BTreeSet::new(),
            next_id: 0,
            alarms: BTreeMap::new(),
        }
    }

    /// What it costs does not grow with the number of children: hosts have thousands.
    fn keep(&mut self) {
        let mut ended = Vec::new();
        loop {
            let alarm = self.alarms.first_key_value().map(|((at, _), _)| *at);
            let deadline = self.steps.first().map(|(at, _)| *at).into_iter().chain(alarm).min();
            self.wake.wait(&self.children, deadline, &mut ended);
            loop {
                match self.inbox.try_recv() {
                    Ok(order) => self.obey(order),
                    Err(mpsc::TryRecvError::Empty) => break,
                    // The host keeps the other end for ever.
                    Err(mpsc::TryRecvError::Disconnected) => return,
                }
            }
            ended.drain(..).for_each(|id| self.reap(id));
            let now = Instant::now();
            while let Some(alarm) = self.alarms.first_entry().filter(|alarm| alarm.key().0 <= now) {
                alarm.remove().wake();
            }
            while let Some(&(_, id)) = self.steps.first().filter(|(at, _)| *at <= now) {
                self.change(id, |kept| kept.escalate(now));
            }
        }
    }

    /// Lets go of a child that has ended.
    fn reap(&mut self, id: u64) {
        if self.children.get_mut(&id).is_some_and(Kept::reap) {
            self.change(id, |kept| kept.phase = Phase::Killed);
            if let Some(kept) = self.children.remove(&id) {
                self.wake.forget(&kept.watch);
            }
        }
    }

    /// Changes where the end of a child stands, and when it goes on.
    fn change(&mut self, id: u64, change: impl FnOnce(&mut Kept)) {
        let Some(kept) = self.children.get_mut(&id) else { return };
        if let Some(at) = kept.deadline() {
            self.steps.remove(&(at, id));
        }
        change(kept);
        if let Some(at) = kept.deadline() {
            self.steps.insert((at, id));
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Start { spec, patience, reply } => {
                // A caller that is gone drops what was started, and so ends it.
                drop(reply.send(self.start(&spec, patience)));
            }
            Order::SetAlarm { id, at, waker } => drop(self.alarms.insert((at, id), waker)),
            Order::DropAlarm { id, at } => drop(self.alarms.remove(&(at, id))),
            Order::End { id, patience } => {
                let now = Instant::now();
                self.change(id, |kept| kept.phase = kept.phase.hastened(patience, now));
            }
        }
    }

    fn start(&mut self, spec: &Spec, patience: Patience) -> io::Result<Started> {
        let (child, (stdin, stdout, stderr)) = Child::spawn(spec)?;
        let (id, pid) = (self.next_id, child.id());
        let watch = match self.wake.watch(id, &child) {
            Ok(watch) => watch,
            Err(error) => return Err(given_up(child, error)),
        };
        let (exit, receiver) = watch::channel(None);
        self.next_id += 1;
        self.children.insert(id, Kept { child, watch, exit, phase: Phase::Running });
        let handle = Handle { id, pid, exit: receiver, patience };
        let process = Process { handle: Arc::new(handle) };
        Ok(Started { process, stdin, stdout, stderr })
    }
}

/// Ends a child that cannot be kept, and leaves no zombie.
fn given_up(mut child: Child, why: io::Error) -> io::Error {
    child.kill();
    child.wait();
    why
}

impl Kept {
    fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Asked { until, .. } | Phase::Terminated { until } => Some(until),
            Phase::Running | Phase::Killed => None,
        }
    }

    /// Tells everybody who waits when the child has ended; then it need not be kept any more.
    fn reap(&mut self) -> bool {
        match self.child.try_wait() {
            Ok(Some(status)) => {
                self.exit.send_replace(Some(status));
                true
            }
            // An error means that there is no such child: nothing is left to reap.
            result => result.is_err(),
        }
    }

    fn escalate(&mut self, now: Instant) {
        match self.phase {
            Phase::Asked { until, patience } if until <= now => {
                self.terminate();
                self.phase = Phase::Terminated { until: later(now, patience.before_kill) };
            }
            Phase::Terminated { until } if until <= now => {
                self.kill();
                self.phase = Phase::Killed;
            }
            _ => {}
        }
    }

    #[cfg(unix)]
    fn terminate(&mut self) {
        signal_group(&self.child, rustix::process::Signal::TERM);
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) {
        // There is nothing gentler.
        self.child.kill();
    }

    fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        let descendants = super::descendants::Descendants::of(self.child.id());
        #[cfg(unix)]
        signal_group(&self.child, rustix::process::Signal::KILL);
        self.child.kill();
        #[cfg(target_os = "linux")]
        descendants.kill();
    }
}

#[cfg(unix)]
fn signal_group(child: &Child, signal: rustix::process::Signal) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // The child is not reaped yet, so the group cannot be somebody else's; the only failure is
        // that everybody in it has ended.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

#[cfg(target_os = "linux")]
use linux::{ExitWatch, Wake};
#[cfg(not(target_os = "linux"))]
use portable::{ExitWatch, Wake};

#[cfg(target_os = "linux")]
mod linux {
    //! Waiting for orders and for the end of children at once, with descriptors for both.

    use std::collections::HashMap;
    use std::io;
    use std::os::fd::{AsFd as _, OwnedFd};
    use std::sync::Arc;
    use std::time::Instant;

    use rustix::buffer::spare_capacity;
    use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
    use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::Child;

    /// Ends of children that are heard of at a time; the others come next.
    const AT_A_TIME: usize = 64;

    #[derive(Clone)]
    pub(super) struct Wake {
        orders: Arc<OwnedFd>,
        children: Arc<OwnedFd>,
    }

    pub(super) struct ExitWatch(OwnedFd);

    impl Wake {
        pub(super) fn new() -> io::Result<Self> {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            let children = epoll::create(CreateFlags::CLOEXEC)?;
            Ok(Self { orders: Arc::new(eventfd(0, flags)?), children: Arc::new(children) })
        }

        pub(super) fn up(&self) {
            // Full means that it will wake up anyway.
            let _ = rustix::io::write(&*self.orders, &1_u64.to_ne_bytes());
        }

        /// Waits for orders, the deadline or the end of a child, and says which have ended.
        pub(super) fn wait<C>(
            &self,
            _: &HashMap<u64, C>,
            deadline: Option<Instant>,
            ended: &mut Vec<u64>,
        ) {
            let timeout = deadline.map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                // A limit beyond what the kernel takes is no limit.
                Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 })
            });
            let mut both = [&self.orders, &self.children]
                .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN));
            // Interrupted is as good as woken: everything is looked at again.
            let _ = poll(&mut both, timeout.as_ref());
            let mut counter = [0; 8];
            // Empty means that it was a child or the deadline.
            let _ = rustix::io::read(&*self.orders, &mut counter);
            let mut events = Vec::with_capacity(AT_A_TIME);
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            // What cannot be asked for now is asked for next time.
            let _ = epoll::wait(&*self.children, spare_capacity(&mut events), Some(&at_once));
            ended.extend(events.iter().map(|event| event.data.u64()));
        }

        /// Has the end of a child told by this id.
        pub(super) fn watch(&self, id: u64, child: &Child) -> io::Result<ExitWatch> {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let pid = pid.ok_or_else(|| io::Error::other("a child without an id"))?;
            let watch = pidfd_open(pid, PidfdFlags::empty())?;
            epoll::add(&*self.children, &watch, EventData::new_u64(id), EventFlags::IN)?;
            Ok(ExitWatch(watch))
        }

        pub(super) fn forget(&self, watch: &ExitWatch) {
            // It is forgotten with its descriptor at the latest.
            let _ = epoll::delete(&*self.children, &watch.0);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    //! Without a descriptor for the end of a child, it is looked after from time to time.

    use std::collections::HashMap;
    use std::io;
    use std::sync::{Arc, Condvar, Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use super::Child;

    /// How late the end of a child may be noticed.
    const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

    #[derive(Clone, Default)]
    pub(super) struct Wake(Arc<(Mutex<bool>, Condvar)>);

    pub(super) struct ExitWatch;

    impl Wake {
        pub(super) fn new() -> io::Result<Self> {
            Ok(Self::default())
        }

        pub(super) fn up(&self) {
            *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.0.1.notify_one();
        }

        /// Waits for orders, the deadline or the time to look, and says whom to look after.
        pub(super) fn wait<C>(
            &self,
            children: &HashMap<u64, C>,
            deadline: Option<Instant>,
            ended: &mut Vec<u64>,
        ) {
            ended.extend(children.keys());
            let mut woken = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            if children.is_empty() && deadline.is_none() {
                while !*woken {
                    woken = self.0.1.wait(woken).unwrap_or_else(PoisonError::into_inner);
                }
            } else if !*woken {
                let left = deadline.map(|one| one.saturating_duration_since(Instant::now()));
                let time = left.map_or(BETWEEN_LOOKS, |left| left.min(BETWEEN_LOOKS));
                woken =
                    self.0.1.wait_timeout(woken, time).unwrap_or_else(PoisonError::into_inner).0;
            }
            *woken = false;
        }

        pub(super) fn watch(&self, _: u64, _: &Child) -> io::Result<ExitWatch> {
            Ok(ExitWatch)
        }

        pub(super) fn forget(&self, _: &ExitWatch) {}
    }
}
