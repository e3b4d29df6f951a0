//! What the tests of the SDK share.

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

/// The simulated CLI as a program.
pub(crate) const SIM: &str = env!("CARGO_BIN_EXE_sim");

/// A host of the SDK as a program.
pub(crate) const HOST: &str = env!("CARGO_BIN_EXE_host");

/// Far more than any single step takes: a bound against hanging.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Far more than a whole test takes, on a machine that may have other things to do.
const WHOLE: Duration = LIMIT.saturating_mul(5);

/// A grace that is over soon.
pub(crate) const SHORT: Duration = Duration::from_millis(100);

/// The pinned CLI.
pub(crate) fn real() -> &'static InstalledCli {
    static CLI: OnceLock<InstalledCli> = OnceLock::new();
    CLI.get_or_init(|| {
        let cli = real_cli::install().unwrap_or_else(|error| panic!("{error}"));
        know_version(&cli);
        cli
    })
}

/// Asks a CLI for its version until it answers in time. The SDK remembers the answer, so that no
/// test depends on how fast its own question is answered.
pub(crate) fn know_version(cli: &InstalledCli) {
    let home = tempfile::tempdir().unwrap();
    let options = Options::new()
        .cli_path(&cli.path)
        .cwd(home.path())
        .environment(EnvironmentPolicy::Clean)
        .env("HOME", home.path().to_string_lossy())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin");
    // On a thread of its own: the caller's may already drive a runtime.
    let known = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let known = || run(Cli::find(&options)).is_ok();
            processes::wait_until(LIMIT, known)
        });
        asking.join().unwrap()
    });
    assert!(known, "{}", cli.path.display());
}

/// Runs a future to its end, in time.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { timeout(WHOLE, future).await.expect("it takes too long") })
}

/// The future's value, in time.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("it takes too long")
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, condition: impl FnMut() -> bool) {
    assert!(processes::until(LIMIT, condition).await, "{what}");
}

/// Plays the same on all three CLIs, each with a script of its own.
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

/// A model that says hello to everybody.
pub(crate) fn hello() -> Script {
    Script::new().otherwise([Reply::text("Hello.")])
}

/// A harness in memory whose CLI has these faults.
pub(crate) async fn faulty(faults: Faults) -> Harness {
    Harness::faulty(hello(), faults).await.unwrap()
}

/// A harness as a process whose CLI has these faults.
pub(crate) async fn faulty_process(faults: &str) -> Harness {
    let file = format!("otherwise say \"Hello.\"\nfaults\n{faults}\n");
    Harness::scripted(&file, SIM).await.unwrap()
}

/// Everything that a query gives.
pub(crate) async fn ask(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Collected {
    query(prompt, options).await.unwrap().collect().await
}

/// Why a query does not even start.
pub(crate) async fn refused(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Error {
    match query(prompt, options).await {
        Ok(stream) => panic!("it started: {stream:?}"),
        Err(error) => error,
    }
}

/// The codes of all warnings.
pub(crate) fn codes(collected: &Collected) -> Vec<WarningCode> {
    collected.warnings().map(Warning::code).collect()
}

/// The error that ended a query.
pub(crate) fn error_of(collected: &Collected) -> &Error {
    collected.error.as_ref().unwrap_or_else(|| panic!("no error: {:?}", collected.items))
}

/// The kind of the error that ended a query, if one did.
pub(crate) fn kind_of(collected: &Collected) -> Option<ErrorKind> {
    collected.error.as_ref().map(Error::kind)
}

/// The types of all messages.
pub(crate) fn kinds(collected: &Collected) -> Vec<&str> {
    collected.messages().map(|message| message.body.kind().unwrap_or("?")).collect()
}

/// How many messages are of this type.
pub(crate) fn count(collected: &Collected, kind: &str) -> usize {
    kinds(collected).into_iter().filter(|other| *other == kind).count()
}

/// Everything that an error can be asked for, as text.
pub(crate) fn everything(error: &Error) -> String {
    let mut text = format!("{error} {error:?} {error:#?}");
    let line = error.line().map(|line| String::from_utf8_lossy(line).into_owned());
    let facts = [error.stderr_tail(), error.stdout_tail(), error.output(), error.hint()];
    for fact in facts.into_iter().flatten().chain(line.as_deref()).chain(error.help()) {
        write!(text, " {fact}").unwrap();
    }
    write!(text, " {:?} {:?}", error.problems(), error.flag()).unwrap();
    text
}

/// Options that write every warning down.
pub(crate) fn noting(options: Options) -> (Options, Arc<Mutex<Vec<WarningCode>>>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&noted);
    (options.on_warning(move |warning| notes.lock().unwrap().push(warning.code())), noted)
}

/// What a host of its own tells, which must come to a good end in time.
pub(crate) fn host(arguments: &[&str]) -> String {
    told_by(Command::new(HOST).args(arguments))
}

/// Runs a command, which must succeed in time, and returns what it printed.
pub(crate) fn told_by(command: &mut Command) -> String {
    let mut host = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let in_time = processes::wait_until(WHOLE, || host.try_wait().unwrap().is_some());
    if !in_time {
        host.kill().unwrap();
    }
    let output = host.wait_with_output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(in_time && output.status.success(), "{command:?}: {complaints}");
    String::from_utf8(output.stdout).unwrap()
}

/// A shell script in the place of the CLI.
pub(crate) struct Fake {
    folder: TempDir,
}

/// What every script begins with that wants to be taken for a CLI.
const VERSION: &str = "if [ \"$1\" = --version ]; then echo '2.1.325 (Claude Code)'; exit; fi\n";

/// Lines of a script that answer the handshake and read the prompt.
pub(crate) const HANDSHAKE: &str = r#"read -r line
id=${line#*\"request_id\":\"}; id=${id%%\"*}
echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}"
read -r prompt
"#;

/// A line of a script that writes a result.
pub(crate) const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s"}'
"#;

/// Writes a file that can be executed at once.
///
/// By another process: while this one has it open for writing, a child that is just being started
/// inherits that, and nobody may execute the file.
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

impl Fake {
    /// A script that says its version when it is asked, and else does this.
    pub(crate) fn new(body: &str) -> Self {
        Self::bare(&format!("#!/bin/sh\n{VERSION}{body}\n"))
    }

    /// A file of exactly this text, executable.
    pub(crate) fn bare(text: &str) -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap() };
        write_executable(&fake.path(), text);
        fake
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("claude")
    }

    /// A file beside the script.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Options that run it, in its own directory and with nothing of this machine.
    pub(crate) fn options(&self) -> Options {
        Options::new()
            .cli_path(self.path())
            .cwd(self.folder.path())
            .environment(EnvironmentPolicy::Clean)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
    }
}
