//! Helpers for the tests of the SDK.

use std::fmt::Write as _;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::{
    Cli, Collected, Error, ErrorKind, Options, Prompt, Warning, WarningCode, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::Faults;
use tempfile::TempDir;
use tests_e2e::harness::{Harness, processes};
use tests_e2e::real_cli::{self, InstalledCli};
use tokio::time::timeout;

/// The path of the simulated CLI.
pub(crate) const SIM: &str = env!("CARGO_BIN_EXE_sim");

/// The path of a program that uses the SDK.
pub(crate) const HOST: &str = env!("CARGO_BIN_EXE_host");

/// A timeout for a single step, far longer than any step takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// A timeout for a whole test, long enough for a busy machine.
const TEST_LIMIT: Duration = LIMIT.saturating_mul(5);

/// A short grace period.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// Returns the pinned CLI.
pub(crate) fn real() -> &'static InstalledCli {
    static CLI: OnceLock<InstalledCli> = OnceLock::new();
    CLI.get_or_init(|| {
        let cli = real_cli::install().unwrap_or_else(|error| panic!("{error}"));
        cache_version(&cli);
        cli
    })
}

/// Runs `--version` until the CLI responds in time. The SDK caches the version, so that no test
/// depends on how fast its own probe is.
pub(crate) fn cache_version(cli: &InstalledCli) {
    let home = tempfile::tempdir().unwrap();
    let options = Options::new()
        .cli_path(&cli.path)
        .cwd(home.path())
        .environment(EnvironmentPolicy::Clean)
        .env("HOME", home.path().to_string_lossy())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    // In a separate thread: that of the caller may already drive a runtime.
    let known = std::thread::scope(|scope| {
        let probe = scope.spawn(|| {
            let known = || run(Cli::find(&options)).is_ok();
            processes::wait_until(LIMIT, known)
        });
        probe.join().unwrap()
    });
    assert!(known, "{}", cli.path.display());
}

/// Runs a future on a runtime, with the timeout for a whole test.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { timeout(TEST_LIMIT, future).await.expect("it takes too long") })
}

/// Returns the output of a future; panics after the timeout.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("it takes too long")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(processes::until(LIMIT, condition).await, "{what}");
}

/// Runs the same test on all three CLIs, each with its own script.
pub(crate) fn on_all<F: Future<Output = ()>>(
    script: impl Fn() -> Script,
    play: impl Fn(Harness) -> F,
) {
    run(async {
        play(Harness::in_memory(script()).await.unwrap()).await;
        play(Harness::sim_process(script(), SIM).await.unwrap()).await;
        play(Harness::real(script(), real()).await.unwrap()).await;
    });
}

/// Returns a model that always says hello.
pub(crate) fn hello() -> Script {
    Script::new().otherwise([Reply::text("Hello.")])
}

/// Returns a harness in memory whose CLI has these faults.
pub(crate) async fn faulty(faults: Faults) -> Harness {
    Harness::faulty(hello(), faults).await.unwrap()
}

/// Returns a harness with a simulated CLI as a process that has these faults.
pub(crate) async fn faulty_process(faults: &str) -> Harness {
    let file = format!("otherwise say \"Hello.\"\nfaults\n{faults}\n");
    Harness::scripted(&file, SIM).await.unwrap()
}

/// Runs a query and returns its output.
pub(crate) async fn ask(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Collected {
    query(prompt, options).await.unwrap().collect().await
}

/// Returns the error with which a query fails to start.
pub(crate) async fn start_error(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Error {
    match query(prompt, options).await {
        Ok(stream) => panic!("it started: {stream:?}"),
        Err(error) => error,
    }
}

/// Returns the codes of all warnings.
pub(crate) fn codes(collected: &Collected) -> Vec<WarningCode> {
    collected.warnings().map(Warning::code).collect()
}

/// Returns the error that ended a query.
pub(crate) fn error_of(collected: &Collected) -> &Error {
    collected.error.as_ref().unwrap_or_else(|| panic!("no error: {:?}", collected.items))
}

/// Returns the kind of the error that ended a query, if any.
pub(crate) fn kind_of(collected: &Collected) -> Option<ErrorKind> {
    collected.error.as_ref().map(Error::kind)
}

/// Returns the types of all messages.
pub(crate) fn kinds(collected: &Collected) -> Vec<&str> {
    collected.messages().map(|message| message.body.kind().unwrap_or("?")).collect()
}

/// Returns how many messages have this type.
pub(crate) fn count(collected: &Collected, kind: &str) -> usize {
    kinds(collected).into_iter().filter(|other| *other == kind).count()
}

/// Returns the text of all properties of an error.
pub(crate) fn all_text(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let line = error.line().map(|line| String::from_utf8_lossy(line).into_owned());
    let facts = [error.stderr_tail(), error.stdout_tail(), error.output(), error.hint()];
    for fact in facts.into_iter().flatten().chain(line.as_deref()).chain(error.help()) {
        write!(text, " {fact}").unwrap();
    }
    write!(text, " {:?} {:?}", error.problems(), error.flag()).unwrap();
    text
}

/// Returns options that record every warning.
pub(crate) fn record_warnings(options: Options) -> (Options, Arc<Mutex<Vec<WarningCode>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    (options.on_warning(move |warning| notes.lock().unwrap().push(warning.code())), noted)
}

/// Runs a separate host, which must succeed in time, and returns its stdout.
pub(crate) fn host(arguments: &[&str]) -> String {
    stdout_of(Command::new(HOST).args(arguments))
}

/// Runs a command, which must succeed in time, and returns its stdout.
pub(crate) fn stdout_of(command: &mut Command) -> String {
    let mut host = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let in_time = processes::wait_until(TEST_LIMIT, || host.try_wait().unwrap().is_some());
    if !in_time {
        host.kill().unwrap();
    }
    let output = host.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(in_time && output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A fake CLI that is a shell script.
pub(crate) struct FakeProgram {
    folder: TempDir,
}

/// The first line of a script that must be accepted as a CLI.
const VERSION: &str = "if [ \"$1\" = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi\n";

/// Script lines that respond to the handshake and read the prompt.
pub(crate) const HANDSHAKE: &str = r#"read -r line
id=${line#*\"request_id\":\"}; id=${id%%\"*}
echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}"
read -r prompt
"#;

/// A script line that writes a result.
pub(crate) const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}'
"#;

/// Writes a file that can be executed immediately.
///
/// Another process writes the file: while this one has it open for writing, a child that is being
/// started inherits the descriptor, and executing the file fails with `ETXTBSY`.
pub(crate) fn write_executable(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

impl FakeProgram {
    /// Creates a CLI that reports a version and otherwise runs `body`.
    pub(crate) fn new(body: &str) -> Self {
        Self::bare(&format!("#!/bin/sh\n{VERSION}{body}\n"))
    }

    /// Creates an executable file with exactly this text.
    pub(crate) fn bare(text: &str) -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap() };
        write_executable(&fake.path(), text);
        fake
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("claude")
    }

    /// Returns the path of a file next to the script.
    pub(crate) fn sibling(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns options that run the script in its own directory, without the environment of this
    /// machine.
    pub(crate) fn options(&self) -> Options {
        Options::new()
            .cli_path(self.path())
            .cwd(self.folder.path())
            .environment(EnvironmentPolicy::Clean)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
    }
}
