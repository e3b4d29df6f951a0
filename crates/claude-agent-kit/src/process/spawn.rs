//! Starts a process with a parent-death signal without forking the host, and writes to its stdin.
//! Together with `death_signal`, this is the only unsafe code of the crate.
//!
//! Requesting the parent-death signal requires code to run in the child before `execve`. `std` forks
//! for that, which copies the host's page tables and then every page that the host writes: two thirds
//! of the time when a thousand sessions start at once. Here the child borrows the host's memory, and the
//! host's thread is suspended until the child has called `execve` (`CLONE_VM | CLONE_VFORK`), as in the C
//! library's `posix_spawn`.
//!
//! # Why this is sound
//! The child and the host share one address space until `execve` or `_exit`. What matters is which memory
//! the child accesses, and which other code runs meanwhile.
//! - *The thread that starts it* does not run: the kernel resumes it after `execve` or `_exit`
//!   (`CLONE_VFORK`). Everything that the child reads (`Orders` and what it points to) is owned by the frame
//!   of that thread and lives until `clone` returns. The child writes to its own stack, which is not shared, and
//!   to `Orders::failure`, which is read only after `clone` has returned.
//! - *Other threads of the host* run, allocate and take locks. The child does neither: it makes system calls
//!   and calls functions of the C library that POSIX lists as safe in a signal handler. It cannot panic:
//!   nothing in it indexes, adds or unwraps. `errno` is that of the waiting thread, whose thread-local
//!   storage the child has, and is read by the child alone.
//! - *Handlers of signals* would run in the child on shared memory. All signals are blocked before `clone`,
//!   including the two that the C library keeps for itself, and the child removes every handler before it
//!   unblocks them. The tables of handlers, of descriptors and of the working directory are copies
//!   (no `CLONE_SIGHAND`, `CLONE_FILES`, `CLONE_FS`), so the host keeps its own.
//! - *The parent-death signal* is sent when the thread that started the child ends, so starter threads never
//!   end; a host that died before the request is noticed by its changed parent id.
//! - *Descriptors* that must reach the child are duplicated to 0, 1 and 2, which clears close-on-exec; all
//!   others of ours are close-on-exec from their creation.
//!
//! `fixture::starts_are_sound_under_signals_forks_and_allocations` tries it under load.
//!
//! Emulators such as `qemu-user` turn this into a fork. Then the child cannot report why it did not
//! become the other program: instead of an error there is a process that exits with code 127.

#![expect(unsafe_code, reason = "a child that borrows our memory is started by hand")]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::ptr;
use std::task::Poll;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::Spec;
use super::child::Pipes;
use crate::list;

/// The size of the child's stack until `execve`; the C library uses half of it.
const STACK_BYTES: usize = 64 * 1024;

/// A started process that has not been reaped.
#[derive(Debug)]
pub(super) struct Spawned(Pid);

/// Starts a process, or returns `None` if it needs a feature that only `std` supports. The process holds
/// none of the descriptors `not_held`.
///
/// # Errors
/// Returns the error of the system.
pub(super) fn spawn(spec: &Spec, not_held: &[RawFd]) -> io::Result<Option<(Spawned, Pipes)>> {
    let is_path = spec.program.as_os_str().as_bytes().contains(&b'/');
    if spec.user.is_some() || !is_path {
        return Ok(None);
    }
    let texts = Texts::of(spec)?;
    let [(read_stdin, stdin), (stdout, write_stdout), (stderr, write_stderr)] = [
        pipe_with(PipeFlags::CLOEXEC)?,
        pipe_with(PipeFlags::CLOEXEC)?,
        pipe_with(PipeFlags::CLOEXEC)?,
    ];
    let streams = [&read_stdin, &write_stdout, &write_stderr].map(OwnedFd::as_raw_fd);
    // In a host without standard streams a pipe can have the number of one of them.
    if streams.iter().any(|stream| *stream <= libc::STDERR_FILENO) {
        return Ok(None);
    }
    match start(&texts, streams, spec.die_with_parent, not_held) {
        // Neither a binary nor a script with an interpreter line: `std` falls back to a shell.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => Ok(None),
        Err(error) => Err(error),
        Ok(pid) => {
            let pipes = Pipes { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() };
            Ok(Some((Spawned(pid), pipes)))
        }
    }
}

impl Spawned {
    pub(super) fn id(&self) -> u32 {
        self.0.as_raw_nonzero().get().unsigned_abs()
    }

    /// Reaps the process if it has exited, and returns its exit status.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = waitpid(Some(self.0), WaitOptions::NOHANG)?;
        Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
    }

    /// Waits for the process to exit and reaps it.
    fn wait(&mut self) {
        while matches!(waitpid(Some(self.0), WaitOptions::empty()), Err(Errno::INTR)) {}
    }

    /// Sends SIGKILL. The process must not have been reaped.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        Ok(kill_process(self.0, Signal::KILL)?)
    }
}

/// The arguments of `execve`.
struct Texts {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    directory: Option<CString>,
}

impl Texts {
    fn of(spec: &Spec) -> io::Result<Self> {
        let program = text(spec.program.as_os_str())?;
        let mut arguments = vec![program.clone()];
        for argument in &spec.arguments {
            arguments.push(text(argument)?);
        }
        let mut environment = Vec::with_capacity(spec.environment.len());
        for (name, value) in &spec.environment {
            let mut entry = OsString::with_capacity(name.len() + value.len() + 1);
            entry.push(name);
            entry.push("=");
            entry.push(value);
            environment.push(CString::new(entry.into_vec())?);
        }
        let directory = spec.directory.as_ref().map(|directory| text(directory.as_os_str()));
        Ok(Self { program, arguments, environment, directory: directory.transpose()? })
    }
}

fn text(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// A null-terminated array of pointers to C strings.
fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    let mut pointers = list::map(texts, &|text| text.as_ptr());
    pointers.push(ptr::null());
    pointers
}

/// The input of the child, and the place where it stores the reason of a failure.
struct Orders {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    /// Null for the host's working directory.
    directory: *const libc::c_char,
    streams: [libc::c_int; 3],
    not_held: *const [RawFd],
    die_with_parent: bool,
    host: libc::pid_t,
    failure: libc::c_int,
}

fn start(
    texts: &Texts,
    streams: [libc::c_int; 3],
    die_with_parent: bool,
    not_held: &[RawFd],
) -> io::Result<Pid> {
    let (arguments, environment) = (pointers(&texts.arguments), pointers(&texts.environment));
    let mut orders = Orders {
        program: texts.program.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        directory: texts.directory.as_ref().map_or(ptr::null(), |directory| directory.as_ptr()),
        streams,
        not_held,
        die_with_parent,
        host: libc::pid_t::try_from(std::process::id()).map_err(io::Error::other)?,
        failure: 0,
    };
    // An element type with the alignment of a stack.
    let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
    // SAFETY: the child runs on a stack of its own, of which this is the upper end, and reads and
    // writes nothing but `orders` and what it points to. All of that lives until the end of this
    // function, and with `CLONE_VFORK` this thread continues only after the child has called `execve`
    // or exited. All signals are blocked meanwhile, in the child too: no handler of the
    // host runs in it.
    let started = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity()).cast();
        let before = block_signals();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(exec_in_child, top, flags, ptr::from_mut(&mut orders).cast());
        let started = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
        set_signal_mask(&before);
        started
    };
    let pid = started?;
    // SAFETY: the value is owned here; the child, which wrote it, has exited or called `execve`.
    let failure = unsafe { ptr::read_volatile(&raw const orders.failure) };
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("a child without an id"))?;
    if failure != 0 {
        Spawned(pid).wait();
        return Err(io::Error::from_raw_os_error(failure));
    }
    Ok(pid)
}

/// A signal set in the kernel's layout. The C library reserves two signals and leaves them out of its
/// own sets.
type SignalSet = [u64; SIGNAL_SET_BYTES / 8];

const SIGNAL_SET_BYTES: usize =
    if cfg!(any(target_arch = "mips", target_arch = "mips64")) { 16 } else { 8 };

/// Blocks all signals for this thread, and returns those that were blocked before.
fn block_signals() -> SignalSet {
    set_signal_mask(&[u64::MAX; SIGNAL_SET_BYTES / 8])
}

/// Blocks exactly these signals for this thread, and returns those that were blocked before.
fn set_signal_mask(blocked: &SignalSet) -> SignalSet {
    let mut before = SignalSet::default();
    // SAFETY: both sets have the size passed to the kernel, so the call cannot fail.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            blocked.as_ptr(),
            before.as_mut_ptr(),
            SIGNAL_SET_BYTES,
        );
    }
    before
}

/// The entry point of the child.
extern "C" fn exec_in_child(orders: *mut libc::c_void) -> libc::c_int {
    // SAFETY: these are the orders of `start`, which waits. Only system calls are made, nothing is
    // allocated, no lock is taken, and nothing here can panic.
    unsafe {
        let orders = orders.cast::<Orders>();
        let failure = follow(&*orders);
        ptr::write_volatile(&raw mut (*orders).failure, failure);
        libc::_exit(127)
    }
}

/// Calls `execve`. Returns only on failure, with an `errno`.
///
/// # Safety
/// Must be called only in the child, with valid pointers in `orders`.
unsafe fn follow(orders: &Orders) -> libc::c_int {
    // SAFETY: as above; `errno` belongs to the suspended thread and is not used by any other.
    unsafe {
        let errno = || *libc::__errno_location();
        default_signals();
        // Its own group: Ctrl-C on the host's terminal must not reach the CLI.
        if libc::setpgid(0, 0) != 0 {
            return errno();
        }
        let [stdin, stdout, stderr] = orders.streams;
        for (pipe, stream) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            if libc::dup2(pipe, stream) < 0 {
                return errno();
            }
        }
        if !orders.directory.is_null() && libc::chdir(orders.directory) != 0 {
            return errno();
        }
        close_unless_inherited(&*orders.not_held);
        if orders.die_with_parent {
            // SIGTERM and not SIGKILL, so that the CLI can end its tools.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) != 0 {
                return errno();
            }
            // If the host died before the request, the signal is never sent.
            if libc::getppid() != orders.host {
                return libc::ESRCH;
            }
        }
        set_signal_mask(&SignalSet::default());
        libc::execve(orders.program, orders.arguments, orders.environment);
        errno()
    }
}

/// Closes these descriptors unless the new program must inherit them.
///
/// # Safety
/// Must be called only in the child, which has its own table.
pub(super) unsafe fn close_unless_inherited(descriptors: &[RawFd]) {
    for descriptor in descriptors {
        // SAFETY: system calls. An unused descriptor number is harmless.
        unsafe {
            let flags = libc::fcntl(*descriptor, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::close(*descriptor);
            }
        }
    }
}

/// Signals that are reset to their default even if the host ignores them: those that must end the CLI,
/// SIGPIPE, which every Rust program ignores, and SIGCHLD, without which the CLI could not wait for its
/// tools.
const ALWAYS_DEFAULT: [libc::c_int; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGCHLD];

/// Removes the handlers of the host, which must not run in the child. Signals that the host ignores
/// stay ignored, except for a few.
///
/// # Safety
/// Must be called only in the child, which has its own table.
pub(super) unsafe fn default_signals() {
    // SAFETY: plain data and system calls; a signal that cannot be queried has no handler.
    unsafe {
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        for signal in 1..=libc::SIGRTMAX() {
            let mut present: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &raw mut present) == 0;
            let ignored =
                present.sa_sigaction == libc::SIG_IGN && !ALWAYS_DEFAULT.contains(&signal);
            if known && !ignored && present.sa_sigaction != libc::SIG_DFL {
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
    }
}

/// Writes to a pipe. A pipe without a reader is an error, even in hosts that left SIGPIPE at its default,
/// which would terminate them.
pub(crate) fn without_sigpipe(
    write: impl FnOnce() -> Poll<io::Result<usize>>,
) -> Poll<io::Result<usize>> {
    // SAFETY: plain data and system calls. The kernel sends SIGPIPE to the thread that writes, which
    // is this one: blocked here it stays pending, and is taken from there before the mask is restored.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut present) == 0;
        if !known || present.sa_sigaction != libc::SIG_DFL {
            return write();
        }
        let (mut pipe, mut before, mut pending) =
            (std::mem::zeroed(), std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::sigpending(&raw mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
        let written = write();
        let broken = matches!(&written, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe);
        // A signal that was pending before must stay pending.
        if broken && libc::sigismember(&raw const pending, libc::SIGPIPE) == 0 {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        written
    }
}

#[cfg(test)]
pub(crate) mod fixture;
