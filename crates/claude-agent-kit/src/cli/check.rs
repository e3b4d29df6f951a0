//! Asking an executable for its version, once per process.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use super::program::Program;
use super::version::Probe;

/// How long `--version` may take. Tests of other things do not depend on a busy machine.
const LIMIT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 5 });

/// How often, and how far apart, a file is tried that is being written.
const BUSY_TRIES: usize = if cfg!(test) { 2_000 } else { 20 };
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// More than any version has; a program that prints on and on is cut off here.
const MOST: u64 = 64 * 1024;

/// What was found out about an executable, as long as it stays the same file, or is just being asked.
static KNOWN: LazyLock<Mutex<HashMap<Identity, Asked>>> = LazyLock::new(Mutex::default);

/// Filled by who asks first; the others wait for it.
type Asked = Arc<OnceLock<Probe>>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    program: Program,
    size: u64,
    modified: Option<SystemTime>,
}

impl Identity {
    fn of(program: &Program) -> Option<Self> {
        let file = program.path().metadata().ok()?;
        Some(Self { program: program.clone(), size: file.len(), modified: file.modified().ok() })
    }
}

/// Asks for the version, or remembers it; of many who want to know at once one asks. Blocks for up to
/// five seconds.
pub(crate) fn probe(program: &Program) -> Probe {
    let Some(identity) = Identity::of(program) else { return ask(program, LIMIT) };
    let asked = Arc::clone(known().entry(identity.clone()).or_default());
    // Not under the lock: another executable can be asked meanwhile.
    let probe = asked.get_or_init(|| ask(program, LIMIT)).clone();
    if let Probe::Failed(_) = probe {
        // It may be over the next time. Another may have begun to ask anew.
        let mut known = known();
        if known.get(&identity).is_some_and(|other| Arc::ptr_eq(other, &asked)) {
            known.remove(&identity);
        }
    }
    probe
}

/// What was found out about this file before. Starts nothing.
pub(crate) fn remembered(program: &Program) -> Option<Probe> {
    let identity = Identity::of(program)?;
    let probe = known().get(&identity)?.get().cloned();
    probe.filter(|probe| matches!(probe, Probe::Printed(_)))
}

fn known() -> std::sync::MutexGuard<'static, HashMap<Identity, Asked>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask(program: &Program, limit: Duration) -> Probe {
    match start(program, || thread::sleep(BUSY_PAUSE)) {
        Ok(child) => printed(child, limit),
        Err(error) => Probe::Failed(format!("it could not be started ({error})")),
    }
}

/// What a child prints that ends soon. One that does not is ended.
pub(crate) fn printed(mut child: Child, limit: Duration) -> Probe {
    let printed = read(&mut child, limit);
    // It has said all it will be heard to say.
    let killed = printed.is_none() && child.kill().is_ok();
    let status = child.wait();
    match (printed, status) {
        (None, _) => Probe::Failed(format!(
            "it printed nothing within {} s{}",
            limit.as_secs(),
            if killed { "" } else { " and could not be ended" }
        )),
        (Some(_), Err(error)) => {
            Probe::Failed(format!("its end could not be waited for ({error})"))
        }
        (Some(text), Ok(status)) if status.success() || !text.trim().is_empty() => {
            Probe::Printed(text)
        }
        (Some(_), Ok(status)) => Probe::Failed(format!("it ended with {status}")),
    }
}

fn start(program: &Program, mut pause: impl FnMut()) -> io::Result<Child> {
    let mut command = Command::new(program.executable());
    command.args(program.arguments_before());
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // A file that is being written cannot be started: an installer at work, or a process just forked
    // elsewhere in this one, which holds it open for a moment.
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => pause(),
            started => return started,
        }
    }
    command.spawn()
}

/// What the child prints until it closes its output, if it does so in time.
fn read(child: &mut Child, limit: Duration) -> Option<String> {
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::sync_channel(1);
    // The thread ends with the pipe: when the child does, or when it is killed.
    let spawned = thread::Builder::new().name("claude-version".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error counts.
        drop(stdout.take(MOST).read_to_end(&mut bytes));
        // Nobody listens any more if it took too long.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    spawned.ok()?;
    receiver.recv_timeout(limit).ok()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(folder: &tempfile::TempDir, text: &str) -> Program {
        let path = folder.path().join("claude");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    #[test]
    fn what_is_printed_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(&folder, "echo \"$1: 1.2.3\"; echo noise >&2");
        assert_eq!(probe(&path), Probe::Printed("--version: 1.2.3\n".to_owned()));
    }

    #[test]
    fn the_same_file_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let counter = folder.path().join("count");
        let path = script(&folder, &format!("echo x >> {}; echo 1.2.3", counter.display()));
        assert_eq!(remembered(&path), None);
        for _ in 0..3 {
            probe(&path);
        }
        assert_eq!(remembered(&path), Some(Probe::Printed("1.2.3\n".to_owned())));
        assert_eq!(fs::read_to_string(&counter).unwrap(), "x\n");
        // Another file at the same place is asked anew.
        script(&folder, &format!("echo y >> {}; echo 1.2.34", counter.display()));
        assert_eq!(remembered(&path), None);
        assert_eq!(probe(&path), Probe::Printed("1.2.34\n".to_owned()));
        assert_eq!(fs::read_to_string(&counter).unwrap(), "x\ny\n");
    }

    #[test]
    fn of_many_at_once_one_asks() {
        let folder = tempfile::tempdir().unwrap();
        let counter = folder.path().join("count");
        let count = format!("echo x >> {}", counter.display());
        let path = script(&folder, &format!("{count}; sleep 0.1; echo 1.2.3"));
        let at_once = |path: &Program| {
            thread::scope(|scope| {
                let asking: Vec<_> = (0..8).map(|_| scope.spawn(|| probe(path))).collect();
                asking.into_iter().map(|probe| probe.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let printed = Probe::Printed("1.2.3\n".to_owned());
        assert!(at_once(&path).iter().all(|probe| *probe == printed));
        assert_eq!(fs::read_to_string(&counter).unwrap(), "x\n");
    }

    #[test]
    fn a_failure_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let counter = folder.path().join("count");
        let path = script(&folder, &format!("echo x >> {}; exit 7", counter.display()));
        for _ in 0..2 {
            assert!(matches!(probe(&path), Probe::Failed(_)));
            assert_eq!(remembered(&path), None);
        }
        assert_eq!(fs::read_to_string(&counter).unwrap(), "x\nx\n");
    }

    #[test]
    fn a_file_that_is_being_written_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(&folder, "echo 1.2.3");
        let mut writing = Some(fs::OpenOptions::new().append(true).open(path.path()).unwrap());
        let mut pauses = 0;
        let child = start(&path, || {
            pauses += 1;
            drop(writing.take());
            thread::sleep(BUSY_PAUSE);
        });
        assert!(child.unwrap().wait().unwrap().success());
        assert!(pauses > 0 || cfg!(not(target_os = "linux")));
    }

    #[test]
    fn silence_failure_and_what_cannot_start_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let told = |probe| match probe {
            Probe::Failed(reason) => reason,
            Probe::Printed(text) => panic!("{text}"),
        };
        let silent = script(&folder, "exec sleep 60");
        let reason = told(ask(&silent, Duration::from_millis(100)));
        assert!(reason.contains("printed nothing within"), "{reason}");
        let failing = script(&folder, "exit 7");
        assert!(told(ask(&failing, LIMIT)).contains('7'));
        let missing = Program::from(folder.path().join("missing"));
        assert!(told(probe(&missing)).contains("could not be started"));
    }

    #[test]
    fn a_program_that_never_stops_printing_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = script(&folder, "echo 1.2.3; exec yes");
        let Probe::Printed(text) = ask(&path, LIMIT) else { panic!() };
        assert!(text.starts_with("1.2.3\n"));
        assert_eq!(text.len() as u64, MOST);
    }
}
