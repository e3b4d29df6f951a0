//! Determining the version of an executable, with a cache for the process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OnceCell;

use super::program::Program;
use super::version::{CliVersion, Probe};
use crate::diagnose;
use crate::error::Result;
use crate::lock::lock;
use crate::transport::{Launch, Output, before, output};

/// The timeout of `--version`. Longer in unit tests, which may run on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 5 });

/// The additional time to wait for a concurrent start that runs `--version`. Only a start whose future
/// is not polled takes longer.
const SHARED_MARGIN: Duration = Duration::from_secs(1);

/// The known versions, and the probes in flight.
static CACHE: LazyLock<Mutex<HashMap<CacheKey, Entry>>> = LazyLock::new(Mutex::default);

/// The program and the user. A user who can replace the program can forge the version, but only for
/// runs as that user.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CacheKey {
    program: Program,
    user: (u32, u32),
}

struct Entry {
    file: FileStamp,
    answer: Arc<OnceCell<Result<Probe>>>,
}

/// Metadata that changes when a file is replaced or written.
#[derive(Clone, PartialEq, Eq)]
struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    /// Device, inode and time of the last change, which the owner of a file cannot set.
    #[cfg(unix)]
    change: (u64, u64, i64, i64),
}

impl FileStamp {
    fn of(program: &Program) -> Option<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;

        let file = program.path().metadata().ok()?;
        Some(Self {
            size: file.len(),
            modified: file.modified().ok(),
            #[cfg(unix)]
            change: (file.dev(), file.ino(), file.ctime(), file.ctime_nsec()),
        })
    }
}

/// Runs `program --version` with the user, environment and working directory of `launch`, and returns
/// its output. The output is cached for each file and user; concurrent starts share one probe.
///
/// # Errors
/// [`SpawnFailed`](crate::ErrorKind::SpawnFailed) if the program cannot be started.
pub(crate) async fn probe(program: &Program, launch: &Launch) -> Result<Probe> {
    let Some(file) = FileStamp::of(program) else { return ask(program, launch, TIMEOUT).await };
    let key = CacheKey { program: program.clone(), user: user_ids(launch) };
    let answer = shared(&key, file);
    let mut is_own = false;
    let asked = answer.get_or_init(|| {
        is_own = true;
        ask(program, launch, TIMEOUT)
    });
    // Boxed because the future is large and most starts do not need it.
    let asked = Box::pin(before(Instant::now() + TIMEOUT + SHARED_MARGIN, asked));
    match asked.await {
        Ok(Some(Ok(printed @ Probe::Printed(_)))) => Ok(printed.clone()),
        Ok(Some(failed)) if is_own => {
            remove(&key, &answer);
            failed.clone()
        }
        // The options of the other start may be the reason, or its future is not polled.
        _ => Box::pin(ask(program, launch, TIMEOUT)).await,
    }
}

fn shared(key: &CacheKey, file: FileStamp) -> Arc<OnceCell<Result<Probe>>> {
    let mut cache = cache();
    match cache.get(key) {
        Some(entry) if entry.file == file => entry.answer.clone(),
        _ => {
            let answer = Arc::<OnceCell<Result<Probe>>>::default();
            cache.insert(key.clone(), Entry { file, answer: answer.clone() });
            answer
        }
    }
}

/// Removes a failed probe from the cache, so that the next start tries again.
fn remove(key: &CacheKey, answer: &Arc<OnceCell<Result<Probe>>>) {
    let mut cache = cache();
    if cache.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.answer, answer)) {
        cache.remove(key);
    }
}

fn cache() -> MutexGuard<'static, HashMap<CacheKey, Entry>> {
    lock(&CACHE)
}

/// Returns the user and group IDs of the CLI.
fn user_ids(launch: &Launch) -> (u32, u32) {
    match launch.user() {
        Some(ids) => (ids.user, ids.group),
        #[cfg(unix)]
        None => {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            (user.as_raw(), group.as_raw())
        }
        #[cfg(not(unix))]
        None => (0, 0),
    }
}

async fn ask(program: &Program, launch: &Launch, timeout: Duration) -> Result<Probe> {
    let spec = launch.spec(program, &["--version".to_owned()]);
    let has_version = |line: &str| CliVersion::find_in(line).is_some();
    match output(&spec, timeout, has_version).await {
        Ok(output) => Ok(answer(output, timeout)),
        Err(error) => {
            let failed = diagnose::spawn_failed(&error, program.path(), launch.cwd());
            Err(failed.caused_by(error))
        }
    }
}

fn answer(output: Output, timeout: Duration) -> Probe {
    let Output { stdout, exit, timed_out } = output;
    if timed_out && CliVersion::find_in(&stdout).is_none() {
        return Probe::Failed(format!("no version within {} s", timeout.as_secs()));
    }
    match exit {
        _ if !stdout.trim().is_empty() => Probe::Printed(stdout),
        Some(status) if status.success() => Probe::Printed(stdout),
        Some(status) => Probe::Failed(format!("no output ({status})")),
        None => Probe::Failed("no output, and the exit status is unknown".to_owned()),
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::options::{Options, prepare};
    use crate::process::UserIds;
    use crate::{ErrorKind, driver};

    fn script(folder: &tempfile::TempDir, text: &str) -> Program {
        let path = folder.path().join("claude");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.into()
    }

    /// A script that counts how often it is run.
    fn counting(folder: &tempfile::TempDir, text: &str) -> (Program, impl Fn() -> usize) {
        let count = folder.path().join("count");
        let program = script(folder, &format!("echo x >> {}; {text}", count.display()));
        (program, move || fs::read_to_string(&count).unwrap_or_default().lines().count())
    }

    async fn launch(options: Options) -> Launch {
        let prepared = prepare(&options, None).unwrap();
        driver::launch(&options, &prepared).await.unwrap()
    }

    fn printed(text: &str) -> Probe {
        Probe::Printed(text.to_owned())
    }

    #[tokio::test]
    async fn the_version_is_what_the_program_prints() {
        let folder = tempfile::tempdir().unwrap();
        let program = script(&folder, "echo \"$1: 1.2.3\"; echo noise >&2");
        let launch = launch(Options::new()).await;
        assert_eq!(probe(&program, &launch).await.unwrap(), printed("--version: 1.2.3\n"));
    }

    #[tokio::test]
    async fn the_program_is_run_as_the_run_itself() {
        let folder = tempfile::tempdir().unwrap();
        let program = script(&folder, "echo \"1.2.3 $PWD $MARK $HOME.\"");
        let options = Options::new()
            .environment(claude_wire::settings::EnvironmentPolicy::Clean)
            .env("MARK", "mark")
            .cwd("/");
        let probe = probe(&program, &launch(options).await).await.unwrap();
        assert_eq!(probe, printed("1.2.3 / mark .\n"));
    }

    #[tokio::test]
    async fn the_same_file_is_asked_once() {
        let folder = tempfile::tempdir().unwrap();
        let (program, count) = counting(&folder, "echo 1.2.3");
        let launch = launch(Options::new()).await;
        for _ in 0..3 {
            assert_eq!(probe(&program, &launch).await.unwrap(), printed("1.2.3\n"));
        }
        assert_eq!(count(), 1);
        // Another file of the same size and age at the same path is asked again.
        let age = program.path().metadata().unwrap().modified().unwrap();
        let (program, count) = counting(&folder, "echo 1.2.4");
        fs::File::options().write(true).open(program.path()).unwrap().set_modified(age).unwrap();
        assert_eq!(probe(&program, &launch).await.unwrap(), printed("1.2.4\n"));
        assert_eq!(count(), 2);
    }

    #[tokio::test]
    async fn the_answer_for_one_user_is_not_taken_for_another() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = script(&folder, "echo 1.2.$(id -u)");
        let launch = launch(Options::new()).await;
        let own = format!("1.2.{}\n", rustix::process::geteuid().as_raw());
        assert_eq!(probe(&program, &launch).await.unwrap(), printed(&own));
        for user in [65_534, 65_533] {
            let launch = launch.clone().run_by(UserIds { user, group: user });
            // Where this process may not become that user, the probe fails.
            if let Ok(answer) = probe(&program, &launch).await {
                assert_eq!(answer, printed(&format!("1.2.{user}\n")));
            }
        }
    }

    #[tokio::test]
    async fn concurrent_starts_ask_once() {
        let folder = tempfile::tempdir().unwrap();
        let (program, count) = counting(&folder, "sleep 0.1; echo 1.2.3");
        let launch = launch(Options::new()).await;
        let asking: Vec<_> = (0..8)
            .map(|_| {
                let (program, launch) = (program.clone(), launch.clone());
                tokio::spawn(async move { probe(&program, &launch).await.unwrap() })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.await.unwrap(), printed("1.2.3\n"));
        }
        assert_eq!(count(), 1);
    }

    #[tokio::test]
    async fn a_start_that_is_dropped_while_it_asks_leaves_the_question_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (program, count) = counting(&folder, "sleep 0.3; echo 1.2.3");
        let launch = launch(Options::new()).await;
        let mut second = Box::pin(probe(&program, &launch));
        {
            let mut first = Box::pin(probe(&program, &launch));
            while count() == 0 {
                let step = tokio::time::timeout(Duration::from_millis(1), first.as_mut());
                assert!(step.await.is_err());
                let waiting = tokio::time::timeout(Duration::ZERO, second.as_mut());
                assert!(waiting.await.is_err());
            }
        }
        assert_eq!(second.await.unwrap(), printed("1.2.3\n"));
        assert_eq!(count(), 2);
    }

    #[tokio::test]
    async fn a_failure_is_neither_remembered_nor_shared_with_other_options() {
        let folder = tempfile::tempdir().unwrap();
        let (program, count) =
            counting(&folder, "[ -n \"$MARK\" ] && sleep 0.2 && exit 7; echo 1.2.3");
        let failing = launch(Options::new().env("MARK", "x")).await;
        let good = launch(Options::new()).await;
        let first = tokio::spawn({
            let (program, failing) = (program.clone(), failing.clone());
            async move { probe(&program, &failing).await.unwrap() }
        });
        while count() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // In flight at the same time, in another environment.
        assert_eq!(probe(&program, &good).await.unwrap(), printed("1.2.3\n"));
        assert!(matches!(first.await.unwrap(), Probe::Failed(reason) if reason.contains('7')));
        assert_eq!(probe(&program, &good).await.unwrap(), printed("1.2.3\n"));
        assert_eq!(count(), 3);
    }

    #[tokio::test]
    async fn silence_failure_and_a_program_that_cannot_start_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let launch = launch(Options::new()).await;
        let reason = |probe| match probe {
            Probe::Failed(reason) => reason,
            Probe::Printed(text) => panic!("{text}"),
        };
        for silent in ["exec sleep 60", "echo words; exec sleep 60"] {
            let silent = script(&folder, silent);
            let asked = ask(&silent, &launch, Duration::from_millis(100)).await.unwrap();
            let reason = reason(asked);
            assert!(reason.contains("no version within"), "{reason}");
        }
        let failing = script(&folder, "exit 7");
        assert!(reason(probe(&failing, &launch).await.unwrap()).contains('7'));
        let missing = Program::from(folder.path().join("missing"));
        let error = probe(&missing, &launch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SpawnFailed);
    }
}
