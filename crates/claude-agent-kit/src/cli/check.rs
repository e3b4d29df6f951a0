//! Detects the version of an executable, once per process.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::OnceCell;

use super::program::Program;
use super::version::{CliVersion, Probe};
use crate::diagnose;
use crate::error::Result;
use crate::lock::lock;
use crate::tasks::BoxFuture;
use crate::transport::{Launch, Output, before, output};

/// The timeout of `--version`, longer in tests for the sake of busy machines.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 120 } else { 5 });

/// How much longer to wait for a probe that another start shares. Only a start whose future is not polled
/// takes longer.
const SHARED_MARGIN: Duration = Duration::from_secs(1);

/// The outputs of earlier probes, and the probes that are in flight, of the few programs of a host.
static CACHE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The program and the user who runs it. A user who can replace the program can forge its output, and
/// does so only for runs of that user.
#[derive(Clone, PartialEq, Eq)]
struct CacheKey {
    program: Program,
    user: (u32, u32),
}

struct Entry {
    key: CacheKey,
    file: FileStamp,
    probe: Arc<OnceCell<Result<Probe>>>,
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

/// Returns what `program` prints for its version, as the CLI of `launch` would be run: with its
/// user, environment and working directory. Runs the program once per file and user; concurrent starts
/// share the probe.
///
/// # Errors
/// [`SpawnFailed`](crate::ErrorKind::SpawnFailed) when the program cannot be started.
pub(crate) fn probe<'a>(program: &'a Program, launch: &'a Launch) -> BoxFuture<'a, Result<Probe>> {
    Box::pin(async move {
        let Some(file) = FileStamp::of(program) else {
            return run_version(program, launch, TIMEOUT).await;
        };
        let key = CacheKey { program: program.clone(), user: user_ids(launch) };
        let shared = shared(&key, file);
        let mut is_own = false;
        let probing = shared.get_or_init(|| {
            is_own = true;
            run_version(program, launch, TIMEOUT)
        });
        // A large future that most starts do not need.
        let probing = Box::pin(before(Instant::now() + TIMEOUT + SHARED_MARGIN, probing));
        match probing.await {
            Ok(Some(Ok(printed @ Probe::Printed(_)))) => Ok(printed.clone()),
            Ok(Some(failed)) if is_own => {
                forget(&key, &shared);
                failed.clone()
            }
            // The options of the other start may be the reason, or its future is not polled.
            _ => Box::pin(run_version(program, launch, TIMEOUT)).await,
        }
    })
}

fn shared(key: &CacheKey, file: FileStamp) -> Arc<OnceCell<Result<Probe>>> {
    let mut cache = cache();
    if let Some(at) = cache.iter().position(|entry| entry.key == *key) {
        if cache[at].file == file {
            return cache[at].probe.clone();
        }
        cache.swap_remove(at);
    }
    let probe = Arc::<OnceCell<Result<Probe>>>::default();
    cache.push(Entry { key: key.clone(), file, probe: probe.clone() });
    probe
}

/// Discards a failure, which may not happen the next time.
fn forget(key: &CacheKey, probe: &Arc<OnceCell<Result<Probe>>>) {
    let mut cache = cache();
    let is_same = |entry: &Entry| entry.key == *key && Arc::ptr_eq(&entry.probe, probe);
    if let Some(at) = cache.iter().position(is_same) {
        cache.swap_remove(at);
    }
}

fn cache() -> MutexGuard<'static, Vec<Entry>> {
    lock(&CACHE)
}

/// Returns the user ID and group ID of the CLI.
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

async fn run_version(program: &Program, launch: &Launch, timeout: Duration) -> Result<Probe> {
    let spec = launch.spec(program, &["--version".to_owned()]);
    let has_version = |line: &str| CliVersion::find_in(line).is_some();
    match output(&spec, timeout, has_version).await {
        Ok(output) => Ok(evaluate(output, timeout)),
        Err(error) => {
            let failed = diagnose::spawn_failed(&error, program.path(), launch.cwd());
            Err(failed.caused_by(error))
        }
    }
}

fn evaluate(output: Output, timeout: Duration) -> Probe {
    let Output { stdout, exit, timed_out } = output;
    if timed_out && CliVersion::find_in(&stdout).is_none() {
        return Probe::TimedOut(timeout);
    }
    match exit {
        _ if !stdout.trim().is_empty() => Probe::Printed(stdout),
        Some(status) if status.success() => Probe::Printed(stdout),
        Some(status) => Probe::Failed(format!("nothing was printed ({status})")),
        None => Probe::Failed("nothing was printed, and the exit status is unknown".to_owned()),
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
    async fn the_program_is_run_with_the_options_of_the_run() {
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
    async fn the_same_file_is_probed_once() {
        let folder = tempfile::tempdir().unwrap();
        let (program, count) = counting(&folder, "echo 1.2.3");
        let launch = launch(Options::new()).await;
        for _ in 0..3 {
            assert_eq!(probe(&program, &launch).await.unwrap(), printed("1.2.3\n"));
        }
        assert_eq!(count(), 1);
        // Another file of the same size and age at the same path is probed again.
        let age = program.path().metadata().unwrap().modified().unwrap();
        let (program, count) = counting(&folder, "echo 1.2.4");
        fs::File::options().write(true).open(program.path()).unwrap().set_modified(age).unwrap();
        assert_eq!(probe(&program, &launch).await.unwrap(), printed("1.2.4\n"));
        assert_eq!(count(), 2);
    }

    #[tokio::test]
    async fn the_version_for_one_user_is_not_used_for_another() {
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
    async fn concurrent_starts_share_one_probe() {
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
    async fn a_dropped_start_leaves_the_probe_to_the_next() {
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
    async fn a_failed_probe_is_neither_cached_nor_shared() {
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
    async fn timeout_failure_and_spawn_error_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let launch = launch(Options::new()).await;
        let timeout = Duration::from_millis(100);
        for silent in ["exec sleep 60", "echo words; exec sleep 60"] {
            let silent = script(&folder, silent);
            let probe = run_version(&silent, &launch, timeout).await.unwrap();
            assert_eq!(probe, Probe::TimedOut(timeout));
        }
        let failing = script(&folder, "exit 7");
        let failed = probe(&failing, &launch).await.unwrap();
        assert!(matches!(&failed, Probe::Failed(reason) if reason.contains('7')), "{failed:?}");
        let missing = Program::from(folder.path().join("missing"));
        let error = probe(&missing, &launch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SpawnFailed);
    }
}
