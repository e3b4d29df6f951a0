#![cfg(target_os = "linux")]

/// Unusual hosts and systems.
mod hosts;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claude_agent_core::session::{GracePeriods, ShutdownStep};

use super::{Alarm, Ended, Process, Spec, Started};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// Short grace periods for every step.
const SOON: GracePeriods = GracePeriods {
    interrupt: Duration::ZERO,
    exit: Duration::ZERO,
    terminate: Duration::from_millis(200),
};

/// Longer than any test takes.
const AN_HOUR: GracePeriods = GracePeriods {
    interrupt: Duration::from_secs(3600),
    exit: Duration::from_secs(3600),
    terminate: Duration::from_secs(3600),
};

/// Returns a shell that runs this script.
pub(crate) fn shell(script: &str) -> Spec {
    Spec {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        user: None,
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: None,
        die_with_parent: true,
    }
}

fn start(script: &str) -> Started {
    try_start(shell(script)).unwrap()
}

fn start_with(script: &str, grace: GracePeriods) -> Started {
    in_time(Process::start(shell(script), grace)).unwrap()
}

fn try_start(spec: Spec) -> std::io::Result<Started> {
    in_time(Process::start(spec, SOON))
}

fn wait(process: &Process) -> std::process::ExitStatus {
    match in_time(process.wait()).unwrap() {
        Ended::Status(status) => status,
        other => panic!("{other:?}"),
    }
}

fn in_time<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, future).await.unwrap() })
}

/// Polls until a condition holds, because `/proc` sends no notification when a process ends.
pub(crate) fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < LIMIT, "{what}");
        std::thread::yield_now();
    }
}

fn is_gone(pid: u32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

/// Returns the number of child processes of this process that have exited and were not reaped.
fn own_zombies() -> usize {
    let me = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
            fields.next() == Some("Z") && fields.next() == Some(me.as_str())
        })
        .count()
}

fn first_line(started: &mut Started) -> String {
    let mut line = String::new();
    BufReader::new(&mut started.stdout).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

#[test]
fn pipes_and_exit_status_are_forwarded() {
    let mut started = start("cat; echo warning >&2; exit 7");
    started.stdin.write_all(b"hello").unwrap();
    drop(started.stdin);
    let (mut out, mut err) = (String::new(), String::new());
    started.stdout.read_to_string(&mut out).unwrap();
    started.stderr.read_to_string(&mut err).unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("hello", "warning\n"));
    assert_eq!(wait(&started.process).code(), Some(7));
    assert_eq!(started.process.exit_status().unwrap().code(), Some(7));
}

/// Waits until a process has exited, as a zombie or not.
fn exits(pid: &str) {
    eventually("the process has exited", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn process_that_ends_at_once_takes_its_descendants_along() {
    // The first shell exits at SIGTERM and leaves its tool behind, the second one ignores it.
    for (on_signal, signal) in [("exit 3", None), (":", Some(9))] {
        let script = format!(
            "trap '{on_signal}' TERM; setsid sh -c 'trap : TERM; sleep 300 & echo $$ $!; while :; do wait; done' & \
             while :; do wait; done"
        );
        let mut started = start_with(&script, AN_HOUR);
        let line = first_line(&mut started);
        started.process.end_at_once();
        // The usual grace periods do not replace the short one.
        started.process.shut_down(ShutdownStep::CloseStdin);
        let status = wait(&started.process);
        assert_eq!(status.signal(), signal, "{status}");
        for tool in line.split_whitespace() {
            exits(tool);
        }
    }
}

#[test]
fn child_receives_only_the_given_environment() {
    let mut spec = shell("env | sort");
    spec.environment.push(("MARK".into(), "yes".into()));
    let mut started = try_start(spec).unwrap();
    let mut out = String::new();
    started.stdout.read_to_string(&mut out).unwrap();
    let names: Vec<&str> = out.lines().filter_map(|line| line.split('=').next()).collect();
    // The shell adds two variables of its own.
    assert!(
        names.iter().all(|name| ["MARK", "PATH", "PWD", "SHLVL", "_", "OLDPWD"].contains(name)),
        "{out}"
    );
    assert!(out.contains("MARK=yes"));
}

#[test]
fn start_failure_is_an_os_error() {
    let mut missing = shell("");
    missing.program = "/nowhere/claude".into();
    let error = try_start(missing).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    let mut no_directory = shell("");
    no_directory.directory = Some("/nowhere".into());
    assert!(try_start(no_directory).is_err());
    let mut no_program = shell("");
    no_program.program = "/etc/passwd".into();
    let error = try_start(no_program).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
    let mut cut = shell("");
    cut.arguments.push("a\0b".into());
    assert_eq!(try_start(cut).err().unwrap().kind(), std::io::ErrorKind::InvalidInput);
    eventually("the failed child is reaped", || own_zombies() == 0);
}

/// Returns what a process starts with: signals, group, descriptors, directory and arguments.
fn process_state(by_std: bool) -> String {
    let mut spec = shell(
        // Signals above 31 belong to the C library.
        "grep -E '^Sig(Blk|Ign)' /proc/self/status | sed -E 's/[0-9a-f]{9}([0-9a-f]{7})$/\\1/'
         [ \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$ ] && echo a group of its own
         ls /proc/$$/fd; pwd; env | sort; printf '<%s>' \"$@\"",
    );
    spec.arguments.extend(["zero", "", "two words", "--three", "\u{1f600}\n'\""].map(Into::into));
    spec.directory = Some("/usr".into());
    if by_std {
        // The lookup of a program on `PATH` is left to `std`.
        spec.program = "sh".into();
    }
    let mut started = try_start(spec).unwrap();
    let mut out = String::new();
    started.stdout.read_to_string(&mut out).unwrap();
    assert!(wait(&started.process).success());
    out
}

#[test]
fn both_spawn_paths_give_the_same_process_state() {
    let (light, standard) = (process_state(false), process_state(true));
    assert_eq!(light, standard);
    for fact in ["SigBlk:\t0000000\n", "a group of its own", "\n/usr\n", "<two words>"] {
        assert!(light.contains(fact), "{fact:?} is missing in {light}");
    }
    // Other signals may already be ignored in the parent, as with `nohup`.
    let ignored = light.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    let pipe_signal = 1 << (libc::SIGPIPE - 1);
    assert_eq!(u32::from_str_radix(ignored, 16).unwrap() & pipe_signal, 0, "{light}");
}

#[test]
fn script_without_shebang_and_program_on_path_can_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    // Written by another process, because a child that is being started must not inherit the file.
    let write = "echo 'echo it runs' > \"$0\" && chmod 755 \"$0\"";
    let mut writer = shell(write);
    writer.arguments.push(script.clone().into());
    assert!(wait(&try_start(writer).unwrap().process).success());
    for (program, arguments) in [(script, vec![]), ("echo".into(), vec!["it runs".into()])] {
        let spec = Spec { program, arguments, ..shell("") };
        assert_eq!(first_line(&mut try_start(spec).unwrap()), "it runs");
    }
}

#[test]
fn dropped_process_is_terminated_and_reaped() {
    let mut started = start("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
    assert_eq!(first_line(&mut started), "ready");
    let pid = started.process.pid();
    drop(started);
    eventually("the child is gone", || is_gone(pid));
}

#[test]
fn clone_keeps_the_process_alive() {
    let mut started = start("echo ready; cat");
    assert_eq!(first_line(&mut started), "ready");
    let clone = started.process.clone();
    drop(started.process);
    assert_eq!(clone.exit_status(), None);
    drop(started.stdin);
    assert_eq!(wait(&clone).code(), Some(0));
}

#[test]
fn process_that_ignores_sigterm_is_killed() {
    let mut started = start("trap '' TERM; echo ready; while :; do sleep 0.05; done");
    assert_eq!(first_line(&mut started), "ready");
    started.process.shut_down(ShutdownStep::Terminate);
    assert_eq!(wait(&started.process).signal(), Some(9));
}

#[test]
fn later_stop_can_only_shorten_the_shutdown() {
    let mut started = start_with(
        "trap 'echo terminated' TERM; echo ready; while :; do sleep 0.05; done",
        AN_HOUR,
    );
    let mut lines = BufReader::new(&mut started.stdout).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    started.process.shut_down(ShutdownStep::CloseStdin);
    started.process.shut_down(ShutdownStep::Terminate);
    assert_eq!(lines.next().unwrap().unwrap(), "terminated");
    started.process.shut_down(ShutdownStep::CloseStdin);
    started.process.shut_down(ShutdownStep::Terminate);
    started.process.arm_watchdog();
    started.process.shut_down(ShutdownStep::Kill);
    assert_eq!(wait(&started.process).signal(), Some(9));
    assert!(lines.next().is_none(), "SIGTERM is sent once");
}

#[test]
fn driver_signals_start_no_shutdown_sequence() {
    let mut started =
        start("trap 'echo terminated' TERM; echo ready; while :; do sleep 0.05; done");
    let mut lines = BufReader::new(&mut started.stdout).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    // Much longer than the grace period after which a shutdown sequence would kill the process.
    for _ in 0..2 {
        started.process.terminate();
        assert_eq!(lines.next().unwrap().unwrap(), "terminated");
        wait_for_reaper(SOON.terminate * 2);
    }
    assert_eq!(started.process.exit_status(), None);
    started.process.kill();
    assert_eq!(wait(&started.process).signal(), Some(9));
}

#[test]
fn watchdog_ends_a_process_only_if_its_driver_did_not() {
    let grace = GracePeriods { interrupt: Duration::from_millis(500), ..SOON };
    let mut started =
        start_with("trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done", grace);
    assert_eq!(first_line(&mut started), "ready");
    let began = Instant::now();
    started.process.arm_watchdog();
    assert_eq!(wait(&started.process).code(), Some(4));
    assert!(began.elapsed() >= grace.total());
    // The watchdog does not affect a process that its driver ends.
    let mut started = start_with("echo ready; read line; exit 5", grace);
    assert_eq!(first_line(&mut started), "ready");
    started.process.arm_watchdog();
    drop(started.stdin);
    assert_eq!(wait(&started.process).code(), Some(5));
}

#[test]
fn process_that_exits_in_time_receives_no_signal() {
    let mut started = start_with("echo ready; read line; exit 5", AN_HOUR);
    assert_eq!(first_line(&mut started), "ready");
    started.process.shut_down(ShutdownStep::CloseStdin);
    drop(started.stdin);
    assert_eq!(wait(&started.process).code(), Some(5));
}

#[test]
fn tool_in_its_own_process_session_is_killed_with_the_cli() {
    // The child ignores SIGTERM, and its tool would survive a signal to the group.
    let mut started = start(
        "trap '' TERM; setsid sh -c 'echo $$; exec sleep 300' & wait; while :; do sleep 0.05; done",
    );
    let tool: u32 = first_line(&mut started).parse().unwrap();
    assert!(!is_gone(tool));
    started.process.shut_down(ShutdownStep::Terminate);
    assert_eq!(wait(&started.process).signal(), Some(9));
    eventually("the tool is gone", || is_gone(tool) || is_zombie(tool));
}

/// An orphan process is reaped by the process that inherited it.
fn is_zombie(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.trim().starts_with('Z')))
}

#[test]
fn concurrent_processes_leak_no_descriptors() {
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    // The background threads and their descriptors stay open.
    wait(&start("exit 0").process);
    let before = descriptors();
    let all: Vec<Started> = (0..100).map(|_| start("cat")).collect();
    let pids: Vec<u32> = all.iter().map(|started| started.process.pid()).collect();
    drop(all);
    for pid in pids {
        eventually("the child is gone", || is_gone(pid));
    }
    // Other tests run at the same time, each with a few descriptors.
    eventually("the descriptors are closed", || descriptors() < before + 60);
}

struct CountingWaker(AtomicUsize);

impl std::task::Wake for CountingWaker {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until the reaper thread has handled everything that is due within this time.
fn wait_for_reaper(time: Duration) {
    for time in [time, Duration::ZERO] {
        let bell = std::sync::Arc::new(CountingWaker(AtomicUsize::new(0)));
        let _alarm = Alarm::set(Instant::now() + time, &bell.clone().into()).unwrap();
        eventually("the alarm fires", || bell.0.load(Ordering::SeqCst) == 1);
    }
}

#[test]
fn alarm_wakes_its_task_unless_it_was_dropped() {
    let bell = || std::sync::Arc::new(CountingWaker(AtomicUsize::new(0)));
    let (rung, late) = (bell(), bell());
    // A timer that is dropped before it fires; a delayed thread may be too late for that.
    let dropped = loop {
        let (soon, dropped) = (Instant::now() + Duration::from_millis(50), bell());
        drop(Alarm::set(soon, &dropped.clone().into()).unwrap());
        if Instant::now() < soon {
            break dropped;
        }
    };
    let after = Instant::now() + Duration::from_millis(100);
    let _alarm = Alarm::set(after, &rung.clone().into()).unwrap();
    let far = Alarm::set(Instant::now() + Duration::from_secs(3600), &late.clone().into()).unwrap();
    eventually("the alarm fires", || rung.0.load(Ordering::SeqCst) == 1);
    assert!(Instant::now() >= after);
    assert_eq!((dropped.0.load(Ordering::SeqCst), late.0.load(Ordering::SeqCst)), (0, 0));
    drop(far);
}
