//! What tests need of the system that has no safe interface.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs this in a process that is forked from this one, and panics if it panics there. The forked
/// process is a host of its own, in which signals, filters and hanging threads disturb no other test.
/// What is run may not use what is on the stack of another thread: that thread is not there.
pub(crate) fn in_fork(run: impl FnOnce()) {
    install_hook();
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    let (mut read, write) = (File::from(read), File::from(write));
    // SAFETY: the child has one thread, this one. The locks of the C library's allocator are usable
    // after a fork, and no other lock that the child takes is ever held by other threads.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: this is the child. Nothing that it uses from here on owns one of them.
        unsafe { close_unless_inherited(&other_pipes(write.as_raw_fd())) };
        PANICS.store(write.as_raw_fd(), Ordering::Relaxed);
        let done = catch_unwind(AssertUnwindSafe(run));
        // SAFETY: always allowed.
        unsafe { libc::_exit(i32::from(done.is_err())) };
    }
    let pid = Pid::from_raw(pid).unwrap();
    drop(write);
    let timeout = Timespec::try_from(LIMIT).unwrap();
    let ended = poll(&mut [PollFd::new(&read, PollFlags::IN)], Some(&timeout)).unwrap() > 0;
    if !ended {
        kill_process(pid, Signal::KILL).unwrap();
    }
    let mut panic = String::new();
    read.read_to_string(&mut panic).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    assert!(ended, "the forked process hangs");
    assert_eq!(status.exit_status(), Some(0), "in the forked process: {panic}");
}

/// Where a forked process reports its panics; negative in a process that was not forked.
static PANICS: AtomicI32 = AtomicI32::new(-1);

/// Makes panics of forked processes known to their parent.
///
/// Before the fork: changing the hook waits for the threads that are panicking, which do not exist in
/// the forked process and would never be done.
fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let report = PANICS.load(Ordering::Relaxed);
            if report < 0 {
                return previous(panic);
            }
            if std::thread::current().name().is_none_or(|name| !name.starts_with("claude-")) {
                // SAFETY: the forked process keeps the descriptor until it exits.
                let report = unsafe { BorrowedFd::borrow_raw(report) };
                let _ = rustix::io::write(report, panic.to_string().as_bytes());
            }
        }));
    });
}

/// The pipes of this process but for one. Those of other tests must not be held open.
fn other_pipes(kept: RawFd) -> Vec<RawFd> {
    let is_pipe = |descriptor: &RawFd| {
        std::fs::read_link(format!("/proc/self/fd/{descriptor}"))
            .is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"))
    };
    (3..4096).filter(|descriptor| *descriptor != kept).filter(is_pipe).collect()
}

/// Ignores signals in this process.
pub(in crate::process) fn ignore_signals(signals: &[libc::c_int]) {
    for signal in signals {
        dispose(*signal, libc::SIG_IGN);
    }
}

/// Has SIGPIPE end this process, as it does in programs that are not written in Rust.
pub(crate) fn default_sigpipe() {
    dispose(libc::SIGPIPE, libc::SIG_DFL);
}

fn dispose(signal: libc::c_int, disposition: libc::sighandler_t) {
    // SAFETY: no handler is installed.
    assert_ne!(unsafe { libc::signal(signal, disposition) }, libc::SIG_ERR);
}

/// Makes `pidfd_open` fail in this process, as old kernels and sandboxes do.
pub(in crate::process) fn refuse_pidfd_open(errno: libc::c_int) {
    let instruction = |code: u32, k: u32, jump: u8| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: jump,
        k,
    };
    let call = u32::try_from(libc::SYS_pidfd_open).unwrap();
    let refusal = libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    let mut program = [
        // The number of the system call is the first word.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call, 1),
        instruction(libc::BPF_RET | libc::BPF_K, refusal, 0),
        instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: the filter lives as long as the call, which copies it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter), 0);
    }
}

/// Not in `libc`.
const F_SETSIG: libc::c_int = 10;

/// A lease on a file: a process that executes the file hangs until the lease is dropped, at most for the
/// time in `/proc/sys/fs/lease-break-time`.
pub(in crate::process) struct Lease(File);

impl Lease {
    pub(in crate::process) fn take(path: &Path) -> io::Result<Self> {
        let lease = Self(File::open(path)?);
        // The signal that reports a break; it is ignored by default.
        lease.fcntl(F_SETSIG, libc::SIGURG)?;
        lease.fcntl(libc::F_SETLEASE, libc::F_WRLCK)?;
        Ok(lease)
    }

    /// Returns whether a process hangs.
    pub(in crate::process) fn is_waited_for(&self) -> bool {
        self.fcntl(libc::F_GETLEASE, 0).unwrap() != libc::F_WRLCK
    }

    fn fcntl(&self, command: libc::c_int, argument: libc::c_int) -> io::Result<libc::c_int> {
        // SAFETY: these commands take and return numbers.
        let done = unsafe { libc::fcntl(self.0.as_raw_fd(), command, argument) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing the file is not enough: processes that hang have copies of the descriptor.
        drop(self.fcntl(libc::F_SETLEASE, libc::F_UNLCK));
    }
}

/// Traces a process as a debugger does. Its parent cannot reap it before this process has.
pub(in crate::process) fn trace(process: u32) {
    // SAFETY: nothing is read or written.
    let done = unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, 0, 0) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

#[test]
fn a_process_that_is_forked_while_another_thread_panics_does_not_hang() {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                drop(catch_unwind(|| panic!("as the test wants it")));
            }
        });
        for _ in 0..10 {
            in_fork(|| {});
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn all_signals_are_blocked_while_a_child_borrows_the_memory() {
    let blocked = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).unwrap();
        u64::from_str_radix(line, 16).unwrap()
    };
    let at_first = blocked();
    let before = block_signals();
    // These two cannot be blocked.
    let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
    let during = blocked();
    set_signal_mask(&before);
    assert_eq!(during, !unblockable);
    assert_eq!(blocked(), at_first);
}

/// Signals that were handled by the host, and by anybody else.
static HANDLED: AtomicUsize = AtomicUsize::new(0);
static HANDLED_ELSEWHERE: AtomicUsize = AtomicUsize::new(0);
static HOST: AtomicI32 = AtomicI32::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    // SAFETY: always allowed in a handler.
    let here = unsafe { libc::getpid() };
    let counter = if here == HOST.load(Ordering::Relaxed) { &HANDLED } else { &HANDLED_ELSEWHERE };
    counter.fetch_add(1, Ordering::Relaxed);
}

fn handle_signals() {
    // SAFETY: plain data; the handler only counts.
    unsafe {
        // Signals to the group reach no other test.
        assert_eq!(libc::setpgid(0, 0), 0);
        HOST.store(libc::getpid(), Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(libc::SIGWINCH, &raw const action, ptr::null_mut()), 0);
    }
}

/// Starts a shell, and checks that it got exactly what it was given.
fn start_and_check(number: usize) {
    let mut spec = crate::process::tests::shell("printf '%s|%s' \"$1\" \"$MARK\"; exit $2");
    let mark = format!("{number}-{}", "x".repeat(number % 5_000));
    spec.arguments.extend(["sh".into(), mark.clone().into(), (number % 100).to_string().into()]);
    spec.environment.push(("MARK".into(), mark.clone().into()));
    let (mut child, pipes) = spawn(&spec, &[]).unwrap().unwrap();
    drop((pipes.stdin, pipes.stderr));
    let mut printed = String::new();
    File::from(OwnedFd::from(pipes.stdout)).read_to_string(&mut printed).unwrap();
    assert_eq!(printed, format!("{mark}|{mark}"));
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => std::thread::yield_now(),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Interrupted),
        }
    };
    assert_eq!(status.code(), i32::try_from(number % 100).ok());
}

#[test]
fn starts_are_sound_under_signals_forks_and_allocations() {
    const STARTERS: usize = 4;
    const STARTS: usize = 100;
    in_fork(|| {
        handle_signals();
        let done = AtomicUsize::new(0);
        let is_over = || done.load(Ordering::Relaxed) == STARTERS;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over() {
                    // SAFETY: a signal to the group of this process: to itself, which handles it, and to
                    // children that have no group of their own yet, which by default ignore it.
                    unsafe { libc::kill(0, libc::SIGWINCH) };
                    std::thread::yield_now();
                }
            });
            scope.spawn(|| {
                while !is_over() {
                    // SAFETY: the child exits at once and touches nothing.
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        // SAFETY: always allowed.
                        unsafe { libc::_exit(0) };
                    }
                    assert!(pid > 0, "{}", io::Error::last_os_error());
                    let pid = Pid::from_raw(pid).unwrap();
                    while waitpid(Some(pid), WaitOptions::empty())
                        .is_err_and(|error| error == Errno::INTR)
                    {}
                }
            });
            scope.spawn(|| {
                let mut held: Vec<Vec<u8>> = Vec::new();
                while !is_over() {
                    held.push(vec![7; 1 + held.len() * 1_000]);
                    if held.len() > 100 {
                        assert!(held.iter().flatten().all(|byte| *byte == 7));
                        held.clear();
                    }
                }
            });
            for starter in 0..STARTERS {
                let done = &done;
                scope.spawn(move || {
                    // Also when one fails, or the others would never end.
                    let starts = || (0..STARTS).for_each(|n| start_and_check(starter * STARTS + n));
                    let outcome = catch_unwind(AssertUnwindSafe(starts));
                    done.fetch_add(1, Ordering::Relaxed);
                    outcome.unwrap();
                });
            }
        });
        assert!(HANDLED.load(Ordering::Relaxed) > STARTS, "signals came all the time");
        assert_eq!(HANDLED_ELSEWHERE.load(Ordering::Relaxed), 0, "no handler ran in a child");
    });
}
