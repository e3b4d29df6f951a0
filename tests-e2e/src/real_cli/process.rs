//! A CLI process: its pipes, its exit, and the removal of its process group.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use claude_agent_testkit::recording::Exit;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;

/// How long the CLI may take to exit on its own.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// How long each further step of the shutdown may take.
const GRACE: Duration = Duration::from_secs(5);

/// A running CLI in its own process group. Dropping it ends the group and waits for the exit.
#[derive(Debug)]
pub struct RealProcess {
    group: Arc<Group>,
    exit: watch::Receiver<Option<Exit>>,
    reaper: Option<thread::JoinHandle<()>>,
}

/// The host's ends of the pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A process group, which may be signalled until its leader is reaped: until then no other process can get its ID.
/// The lock serializes signals and reaping.
#[derive(Debug)]
struct Group {
    leader: Pid,
    unreaped: Mutex<Option<Child>>,
}

impl RealProcess {
    /// Starts `program` with exactly these environment variables. Must be called inside a Tokio runtime.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        variables: &BTreeMap<String, String>,
        directory: &Path,
    ) -> io::Result<(Self, Pipes)> {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(variables)
            .current_dir(directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let missing = || io::Error::other("a pipe of the child is missing");
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        let leader = Pid::from_child(&child);
        let group = Arc::new(Group { leader, unreaped: Mutex::new(Some(child)) });
        let (report, exit) = watch::channel(None);
        let followed = Arc::clone(&group);
        // A thread rather than a task: it also works after the runtime of a panicking test is gone.
        let reaper = thread::spawn(move || {
            let exit = followed.reap();
            report.send_replace(Some(exit));
        });
        let process = Self { group, exit, reaper: Some(reaper) };
        let pipes = Pipes {
            stdin: ChildStdin::from_std(stdin)?,
            stdout: ChildStdout::from_std(stdout)?,
            stderr: ChildStderr::from_std(stderr)?,
        };
        Ok((process, pipes))
    }

    /// Returns the process ID of the CLI.
    pub fn id(&self) -> u32 {
        self.group.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the CLI has exited.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future has no effect.
    pub async fn exited(&self) -> Exit {
        let mut exit = self.exit.clone();
        match exit.wait_for(Option::is_some).await {
            Ok(exit) => exit.unwrap_or(Exit::Code(-1)),
            Err(_) => Exit::Code(-1),
        }
    }

    /// Waits for the exit after stdin was closed; sends SIGTERM and then SIGKILL if necessary.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops waiting; dropping the process still ends it.
    pub async fn end(&self) -> Exit {
        if let Ok(exit) = tokio::time::timeout(EXIT_TIMEOUT, self.exited()).await {
            return exit;
        }
        self.group.terminate();
        if let Ok(exit) = tokio::time::timeout(GRACE, self.exited()).await {
            return exit;
        }
        self.group.kill();
        self.exited().await
    }
}

impl Drop for RealProcess {
    fn drop(&mut self) {
        let Some(reaper) = self.reaper.take() else { return };
        // SIGTERM first: tool shells have their own process sessions, and only the CLI can end them.
        self.group.terminate();
        let deadline = Instant::now() + GRACE;
        while !reaper.is_finished() && Instant::now() < deadline {
            thread::park_timeout(Duration::from_millis(5));
        }
        self.group.kill();
        drop(reaper.join());
    }
}

impl Group {
    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group and every descendant, because tool shells leave the group.
    fn kill(&self) {
        if self.lock().is_none() {
            return;
        }
        let descendants = descendants(self.leader);
        self.signal(Signal::KILL);
        for process in descendants {
            // The process may have exited meanwhile.
            let _: Result<(), Errno> = kill_process(process, Signal::KILL);
        }
    }

    fn signal(&self, signal: Signal) {
        if self.lock().is_some() {
            // Fails only if the group is empty.
            let _: Result<(), Errno> = kill_process_group(self.leader, signal);
        }
    }

    /// Blocks until the leader has exited, kills the rest of its group, and reaps it.
    fn reap(&self) -> Exit {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(self.leader), ended), Err(Errno::INTR)) {}
        let mut unreaped = self.lock();
        let _: Result<(), Errno> = kill_process_group(self.leader, Signal::KILL);
        let status = unreaped.take().map(|mut child| child.wait());
        match status {
            Some(Ok(status)) => status.into(),
            _ => Exit::Code(-1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Child>> {
        self.unreaped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the descendants of `root`, found through `/proc`; empty on systems without it.
fn descendants(root: Pid) -> HashSet<Pid> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) =
            name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name in parentheses may contain anything, including spaces and parentheses.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        let parent = fields.split_whitespace().nth(1).and_then(|parent| parent.parse().ok());
        parents.extend(parent.and_then(Pid::from_raw).map(|parent| (process, parent)));
    }
    let mut found = HashSet::from([root]);
    while let Some((process, _)) =
        parents.iter().find(|(process, parent)| found.contains(parent) && !found.contains(process))
    {
        found.insert(*process);
    }
    found.remove(&root);
    found
}
