//! Starting a process that dies with this one, without a copy of this one; and writing to its stdin.
//! With `death_signal` the only unsafe code here.
//!
//! To ask the kernel for the parent-death signal something has to run in the child before it becomes
//! the other program. `std` forks for that: the page tables of the host are copied, and after that
//! every page that the host writes. Of a thousand sessions that start at once this was two thirds of
//! the time. Here the child borrows the memory of the host, whose thread stands still until the child
//! is the other program (`CLONE_VM | CLONE_VFORK`), as `posix_spawn` of the C library does it.
//!
//! # Why this is sound
//! The child and the host share one memory until `execve` or `_exit`, so the question is what the child
//! may touch, and who else runs meanwhile.
//! - *The thread that starts it* does not run: the kernel resumes it after `execve` or `_exit`
//!   (`CLONE_VFORK`). Everything that the child reads (`Orders` and what it points to) is owned by the frame
//!   of that thread and lives until `clone` returns. The child writes two things: its own stack, which nobody
//!   else has, and `Orders::failure`, which is read only after `clone` has returned.
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

/// What the child has for itself until it is the other program; the C library uses half of it.
const STACK_BYTES: usize = 64 * 1024;

/// A process that was started, not reaped yet.
#[derive(Debug)]
pub(super) struct Spawned(Pid);

/// Starts a process, or returns `None` if `std` has to do that, which can do more. The process holds
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
        // No program and no script that names its interpreter: a shell is tried, which `std` does.
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

    /// How it ended, if it has; then it is reaped.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let ended = waitpid(Some(self.0), WaitOptions::NOHANG)?;
        Ok(ended.map(|(_, status)| ExitStatus::from_raw(status.as_raw())))
    }

    /// Waits for its end and reaps it.
    fn wait(&mut self) {
        while matches!(waitpid(Some(self.0), WaitOptions::empty()), Err(Errno::INTR)) {}
    }

    /// It must not be reaped yet.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        Ok(kill_process(self.0, Signal::KILL)?)
    }
}

/// What the new program is given, as the kernel takes it.
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

/// The pointers to texts, and the null that ends them.
fn pointers(texts: &[CString]) -> Vec<*const libc::c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// What the child reads, and where it leaves why it could not become the other program.
struct Orders {
    program: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
    /// Null for the host's own.
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
    // Of a type that is aligned as a stack has to be.
    let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
    // SAFETY: the child runs on a stack of its own, of which this is the upper end, and reads and
    // writes nothing but `orders` and what it points to. All of that lives until the end of this
    // function, and with `CLONE_VFORK` this thread goes on only when the child has become another
    // program or has ended. All signals are blocked meanwhile, in the child too: no handler of the
    // host runs in it.
    let started = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity()).cast();
        let before = block_signals();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let pid = libc::clone(become_the_program, top, flags, ptr::from_mut(&mut orders).cast());
        let started = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) };
        set_signal_mask(&before);
        started
    };
    let pid = started?;
    // SAFETY: it is ours; the child, which has written it, is there no more or is another program.
    let failure = unsafe { ptr::read_volatile(&raw const orders.failure) };
    let pid = Pid::from_raw(pid).ok_or_else(|| io::Error::other("a child without an id"))?;
    if failure != 0 {
        Spawned(pid).wait();
        return Err(io::Error::from_raw_os_error(failure));
    }
    Ok(pid)
}

/// A set of signals as the kernel has it. The C library keeps two signals for itself and leaves them
/// out of its own sets.
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
    // SAFETY: both sets have the size that the kernel is told. With that it cannot fail.
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

/// What the child does.
extern "C" fn become_the_program(orders: *mut libc::c_void) -> libc::c_int {
    // SAFETY: these are the orders of `start`, which waits. Only system calls are made, nothing is
    // allocated, no lock is taken, and nothing here can panic.
    unsafe {
        let orders = orders.cast::<Orders>();
        let failure = follow(&*orders);
        ptr::write_volatile(&raw mut (*orders).failure, failure);
        libc::_exit(127)
    }
}

/// Becomes the other program, or says why not (an `errno`).
///
/// # Safety
/// To be called in the child alone, with orders whose pointers are good.
unsafe fn follow(orders: &Orders) -> libc::c_int {
    // SAFETY: as above; `errno` is that of the thread which waits, and nobody else's.
    unsafe {
        let errno = || *libc::__errno_location();
        default_signals();
        // A group of its own: a Ctrl-C on the host's terminal is the host's business.
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
            // The host may have died before that; then nobody will send the signal.
            if libc::getppid() != orders.host {
                return libc::ESRCH;
            }
        }
        set_signal_mask(&SignalSet::default());
        libc::execve(orders.program, orders.arguments, orders.environment);
        errno()
    }
}

/// Closes these descriptors unless the other program is to inherit them.
///
/// # Safety
/// To be called in the child alone: the host has a table of its own.
pub(super) unsafe fn close_unless_inherited(descriptors: &[RawFd]) {
    for descriptor in descriptors {
        // SAFETY: system calls. A number that is not in use is no harm.
        unsafe {
            let flags = libc::fcntl(*descriptor, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::close(*descriptor);
            }
        }
    }
}

/// Signals that do what they usually do, even if the host ignores them: those that are to end the
/// CLI must do so, SIGPIPE is ignored by every Rust program, and with SIGCHLD ignored the CLI could
/// not wait for its tools.
const ALWAYS_DEFAULT: [libc::c_int; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGCHLD];

/// Removes the handlers of the host, which must not run in the child. Signals that the host ignores
/// stay ignored, except for a few.
///
/// # Safety
/// To be called in the child alone: the host has a table of its own.
pub(super) unsafe fn default_signals() {
    // SAFETY: plain data and system calls; a signal that cannot be asked about has no handler.
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

/// Writes to a pipe so that one without a reader is an error, in hosts too that left SIGPIPE at its
/// default, where it would end them.
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
        // One that was pending before is not ours.
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
