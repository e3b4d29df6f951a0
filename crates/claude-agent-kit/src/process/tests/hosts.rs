use std::future::Future as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::process::reaper::ROUNDS;
use crate::process::spawn::fixture::{Lease, ignore_signals, in_fork, refuse_pidfd_open, trace};
use crate::process::starter::MAX_THREADS;

type Starting = Pin<Box<dyn Future<Output = std::io::Result<Started>>>>;

/// A program whose execution blocks until its lease is dropped.
struct BlockedProgram {
    program: PathBuf,
    lease: Lease,
}

impl BlockedProgram {
    fn new(folder: &Path, name: &str) -> Self {
        let program = folder.join(name);
        // Written by another process, because a child that is being started must not inherit the
        // file.
        let mut writer = shell("printf '#!/bin/sh\\ntouch ran; exec sleep 300' > $0; chmod 755 $0");
        writer.arguments.push(program.clone().into());
        assert!(wait(&try_start(writer).unwrap().process).success());
        let lease = Lease::take(&program).unwrap();
        Self { program, lease }
    }

    /// Starts the program, and returns when the start blocks.
    fn start(&self) -> Starting {
        let program = self.program.clone();
        let directory = self.program.parent().map(Path::to_owned);
        let spec = Spec { program, directory, arguments: Vec::new(), ..shell("") };
        let mut starting: Starting = Box::pin(Process::start(spec, SOON));
        assert!(poll(&mut starting).is_pending());
        eventually("the start hangs", || self.lease.is_waited_for());
        starting
    }
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T>>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn threads(name: &str) -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|found| found.trim() == name).count()
}

/// Returns the number of processes whose working directory is `directory`.
fn processes_in(directory: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let directories = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    directories.filter(|found| found == directory).count()
}

#[test]
fn start_blocked_in_exec_delays_no_other_start() {
    let folder = tempfile::tempdir().unwrap();
    in_fork(|| {
        let folder = folder.path().canonicalize().unwrap();
        let mut polite = start("echo ready; cat; exit 3");
        let mut stubborn = start("trap '' TERM; echo ready; while :; do sleep 0.05; done");
        assert_eq!(first_line(&mut polite), "ready");
        assert_eq!(first_line(&mut stubborn), "ready");
        let hanging = ["a", "b", "c"].map(|name| BlockedProgram::new(&folder, name));
        let starting = hanging.each_ref().map(BlockedProgram::start);

        drop(polite.stdin);
        assert_eq!(wait(&polite.process).code(), Some(3), "its stdin was closed");
        stubborn.process.shut_down(ShutdownStep::Terminate);
        assert_eq!(wait(&stubborn.process).signal(), Some(9));
        assert_eq!(first_line(&mut start("echo started")), "started");
        let wakes = Arc::new(FlagWaker::default());
        let soon = Instant::now() + Duration::from_millis(10);
        let _alarm = Alarm::set(soon, &wakes.clone().into()).unwrap();
        eventually("the alarm fires", || wakes.0.load(Ordering::SeqCst) == 1);
        // Otherwise the test proves nothing.
        assert!(hanging.iter().all(|hanging| hanging.lease.is_waited_for()));
        assert_eq!(processes_in(&folder), 3);
        assert_eq!((threads("claude-starter"), threads("claude-reaper")), (4, 1));

        // The starts are cancelled.
        drop(starting);
        drop(hanging);
        eventually("the cancelled starts end", || processes_in(&folder) == 0);
        eventually("nothing is left to reap", || own_zombies() == 0);
    });
}

#[test]
fn starts_beyond_the_thread_limit_are_queued_or_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    in_fork(|| {
        let folder = folder.path().canonicalize().unwrap();
        let mut hanging: Vec<_> =
            (0..MAX_THREADS).map(|n| BlockedProgram::new(&folder, &n.to_string())).collect();
        let starting: Vec<_> = hanging.iter().map(BlockedProgram::start).collect();
        assert_eq!(threads("claude-starter"), MAX_THREADS);
        let mark = folder.join("mark");
        let touch = format!("touch {}", mark.display());
        let mut withdrawn: Starting = Box::pin(Process::start(shell(&touch), SOON));
        assert!(poll(&mut withdrawn).is_pending());
        let mut waits: Starting = Box::pin(Process::start(shell("exit 4"), SOON));
        assert!(poll(&mut waits).is_pending());
        drop(withdrawn);
        assert!(hanging.iter().all(|hanging| hanging.lease.is_waited_for()));
        drop(hanging.pop());
        let started = in_time(waits).unwrap();
        assert_eq!(wait(&started.process).code(), Some(4));
        assert!(!mark.exists(), "a cancelled start does not run");
        assert_eq!(threads("claude-starter"), MAX_THREADS);
        drop((starting, hanging));
        eventually("all end", || processes_in(&folder) == 0);
    });
}

#[test]
fn processes_work_without_pidfd_open() {
    for errno in [libc::ENOSYS, libc::EPERM, libc::EINVAL] {
        in_fork(|| {
            refuse_pidfd_open(errno);
            assert_eq!(wait(&start("exit 7").process).code(), Some(7));
            let mut started = start(
                "trap '' TERM; setsid sh -c 'echo $$; exec sleep 300' & while :; do wait; done",
            );
            let tool: u32 = first_line(&mut started).parse().unwrap();
            started.process.shut_down(ShutdownStep::Terminate);
            assert_eq!(wait(&started.process).signal(), Some(9));
            eventually("the tool is gone", || is_gone(tool) || is_zombie(tool));
            assert_eq!(own_zombies(), 0);
        });
    }
}

#[test]
fn exit_status_is_unknown_in_a_host_that_ignores_sigchld() {
    in_fork(|| {
        ignore_signals(&[libc::SIGCHLD]);
        let started = start("exit 7");
        assert_eq!(in_time(started.process.wait()).unwrap(), Ended::Unknown);
        assert_eq!(started.process.exit_status(), None);
        let mut missing = shell("");
        missing.program = "/nowhere/claude".into();
        assert_eq!(try_start(missing).err().unwrap().kind(), std::io::ErrorKind::NotFound);
    });
}

#[test]
fn child_does_not_inherit_ignored_termination_signals() {
    let signals =
        [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE, libc::SIGCHLD];
    in_fork(|| {
        ignore_signals(&signals);
        ignore_signals(&[libc::SIGTTOU]);
        for program in ["/usr/bin/grep", "grep"] {
            for die_with_parent in [true, false] {
                let arguments = ["SigIgn", "/proc/self/status"].map(Into::into).to_vec();
                let program = program.into();
                let spec = Spec { program, arguments, die_with_parent, ..shell("") };
                let line = first_line(&mut try_start(spec).unwrap());
                let ignored = u64::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap();
                let is_ignored = |signal: &libc::c_int| ignored & 1 << (signal - 1) != 0;
                assert!(!signals.iter().any(is_ignored), "{line}");
                assert!(is_ignored(&libc::SIGTTOU), "others are inherited: {line}");
            }
        }
    });
}

#[test]
fn forked_host_starts_its_own_processes_and_keeps_those_of_the_parent() {
    let mut of_parent = start("echo ready; cat; exit 5");
    assert_eq!(first_line(&mut of_parent), "ready");
    let inherited = of_parent.process.clone();
    in_fork(move || {
        assert_eq!(wait(&start("exit 6").process).code(), Some(6));
        inherited.shut_down(ShutdownStep::Terminate);
        drop(inherited);
        // A fork of a fork.
        in_fork(|| assert_eq!(wait(&start("exit 8").process).code(), Some(8)));
        assert_eq!((threads("claude-reaper"), threads("claude-starter")), (1, 1));
    });
    assert_eq!(of_parent.process.exit_status(), None);
    drop(of_parent.stdin);
    assert_eq!(wait(&of_parent.process).code(), Some(5));
}

#[derive(Default)]
struct FlagWaker(AtomicUsize);

impl std::task::Wake for FlagWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waker that panics, with a payload that panics as well.
struct PanickingWaker;

impl std::task::Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                panic!("dropping the payload panics");
            }
        }
        std::panic::panic_any(Payload);
    }
}

#[test]
fn panicking_waker_does_not_end_a_background_thread() {
    in_fork(|| {
        let bomb: Waker = Arc::new(PanickingWaker).into();
        let mut context = Context::from_waker(&bomb);
        // In a starter thread, then twice in the reaper thread.
        let mut starting: Starting = Box::pin(Process::start(shell("cat; exit 9"), SOON));
        let mut polled = starting.as_mut().poll(&mut context);
        let began = Instant::now();
        while polled.is_pending() {
            assert!(began.elapsed() < LIMIT, "the process is started");
            polled = poll(&mut starting);
        }
        let Poll::Ready(Ok(Started { process, stdin, .. })) = polled else {
            panic!("the process is not started")
        };
        let waits = process.clone();
        let mut ended = Box::pin(async move { waits.wait().await });
        assert!(ended.as_mut().poll(&mut context).is_pending());
        drop(stdin);
        let _alarm = Alarm::set(Instant::now() + Duration::from_millis(1), &bomb).unwrap();
        // Other tasks that wait for the same process may not be woken, so none waits here.
        eventually("the exit is known", || process.exit_status().is_some());
        let wakes = Arc::new(FlagWaker::default());
        let soon = Instant::now() + Duration::from_millis(10);
        let _alarm = Alarm::set(soon, &wakes.clone().into()).unwrap();
        eventually("an alarm fires", || wakes.0.load(Ordering::SeqCst) == 1);
        assert_eq!(wait(&start("exit 6").process).code(), Some(6));
        assert_eq!((threads("claude-reaper"), threads("claude-starter")), (1, 1));
    });
}

/// Runs a host whose child exits while a debugger delays the exit.
fn host_of_a_traced_child(folder: &Path) {
    let started = start("read line; exit 3");
    let pid = started.process.pid();
    fs::write(folder.join("new"), pid.to_string()).unwrap();
    fs::rename(folder.join("new"), folder.join("pid")).unwrap();
    eventually("the child is traced", || folder.join("traced").exists());
    drop(started.stdin);
    eventually("the child has exited", || is_zombie(pid));
    let before = ROUNDS.load(Ordering::Relaxed);
    let wakes = Arc::new(FlagWaker::default());
    let later = Instant::now() + Duration::from_millis(400);
    let _alarm = Alarm::set(later, &wakes.clone().into()).unwrap();
    eventually("the alarm fires", || wakes.0.load(Ordering::SeqCst) == 1);
    let rounds = ROUNDS.load(Ordering::Relaxed) - before;
    assert_eq!(started.process.exit_status(), None);
    // About twenty; hundreds of thousands if the thread spins.
    assert!(rounds < 1000, "{rounds} rounds");
    fs::write(folder.join("seen"), "").unwrap();
    assert_eq!(wait(&started.process).code(), Some(3));
}

#[test]
fn delayed_exit_under_a_debugger_does_not_spin_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let of_host = folder.path().to_owned();
    let host = std::thread::spawn(move || in_fork(|| host_of_a_traced_child(&of_host)));
    eventually("the child has started", || file("pid").exists() || host.is_finished());
    if host.is_finished() {
        return host.join().unwrap();
    }
    let pid: u32 = fs::read_to_string(file("pid")).unwrap().parse().unwrap();
    // An ancestor of the child, which systems that restrict tracing allow.
    trace(pid);
    fs::write(file("traced"), "").unwrap();
    eventually("the host has checked", || file("seen").exists() || host.is_finished());
    let traced = rustix::process::Pid::from_raw(pid.cast_signed());
    rustix::process::waitpid(traced, rustix::process::WaitOptions::empty()).unwrap();
    host.join().unwrap();
}
