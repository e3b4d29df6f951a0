//! The version probe: the user, environment and time limit with which the CLI is run before a run.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Output};

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::{Check, Cli, Options, OsUser, WarningCode, doctor};
use tests_e2e::harness::processes::marked;
use tests_e2e::workspace::is_root;

use crate::support::{
    FakeProgram, HANDSHAKE, HOST, RESULT, ask, codes, in_time, run, until, write_executable,
};

/// A user and a group that own nothing on this machine.
const NOBODY: (u32, u32) = (65_534, 65_533);

/// Returns the user and group that these tests run a CLI as: other ones if they run as root.
fn other_ids() -> (u32, u32) {
    let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    if own.0 == 0 { NOBODY } else { own }
}

/// Gives the directory of a fake CLI and its files to the other user.
fn give_to_other_user(fake: &FakeProgram) {
    let (user, group) = other_ids();
    let directory = fake.sibling("");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    for entry in fs::read_dir(&directory).unwrap() {
        chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
    }
    chown(&directory, Some(user), Some(group)).unwrap();
}

/// Returns a script that logs each execution: user, group, working directory and variables, then
/// the flag.
fn logging_script() -> String {
    let log = "echo \"$(id -u) $(id -g) $(pwd) $(env | grep -v ^_= | sort | tr '\\n' ' ')$1\"";
    let version = "if [ \"$1\" = --version ]; then echo 2.1.325; exit; fi";
    format!("#!/bin/sh\n{log} >> \"${{0%/*}}/log\"\n{version}\n{HANDSHAKE}{RESULT}")
}

/// Returns the logged executions without the flag: those with `--version`, and those of runs.
fn log(fake: &FakeProgram) -> (Vec<String>, Vec<String>) {
    let text = fs::read_to_string(fake.sibling("log")).unwrap();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let (probes, runs): (Vec<_>, Vec<_>) = lines.partition(|(_, flag)| *flag == "--version");
    let facts =
        |lines: Vec<(&str, &str)>| lines.into_iter().map(|line| line.0.to_owned()).collect();
    (facts(probes), facts(runs))
}

fn options(fake: &FakeProgram) -> Options {
    let (user, group) = other_ids();
    fake.options().user(OsUser::ids(user, group)).cwd("/").env("KIT_OWN", "own")
}

#[test]
fn version_probe_uses_the_user_environment_and_directory_of_the_run() {
    // A variable of this host that must not reach the CLI.
    let secret = "CARGO_MANIFEST_DIR";
    assert!(std::env::var_os(secret).is_some());
    run(async {
        let fake = FakeProgram::bare(&logging_script());
        give_to_other_user(&fake);
        assert!(ask("hello", options(&fake)).await.result().is_some());
        let (probes, runs) = log(&fake);
        assert_eq!((probes.len(), runs.len()), (1, 1));
        assert_eq!(probes, runs);
        let (user, group) = other_ids();
        assert!(probes[0].starts_with(&format!("{user} {group} / ")), "{}", probes[0]);
        assert!(probes[0].contains("KIT_OWN=own") && probes[0].ends_with("PWD=/"), "{}", probes[0]);
        assert!(!probes[0].contains(secret), "{}", probes[0]);
    });
}

#[test]
fn replaced_cli_is_never_run_as_the_host_user() {
    run(async {
        let fake = FakeProgram::bare(&logging_script());
        for round in 0..3 {
            // As an agent could do: another file with another modification time and size.
            write_executable(
                &fake.path(),
                &format!("{}# {}\n", logging_script(), "x".repeat(round)),
            );
            give_to_other_user(&fake);
            let version = in_time(Cli::find(options(&fake))).await.unwrap().version();
            assert_eq!(version.to_string(), "2.1.325");
            let report = in_time(doctor(options(&fake)).into_future()).await;
            assert!(report.findings().iter().any(|finding| finding.check() == Check::Version));
            assert!(ask("hello", options(&fake)).await.result().is_some());
        }
        let (probes, runs) = log(&fake);
        assert_eq!((probes.len(), runs.len()), (3, 3), "a new file is probed once");
        let (user, _) = other_ids();
        for execution in probes.iter().chain(&runs) {
            assert!(execution.starts_with(&format!("{user} ")), "{execution}");
        }
    });
}

#[test]
fn doctor_runs_nothing_with_invalid_options() {
    run(async {
        let fake = FakeProgram::bare(&logging_script());
        let report = in_time(doctor(fake.options().max_turns(0)).into_future()).await;
        let version = report.findings().iter().find(|finding| finding.check() == Check::Version);
        assert!(version.unwrap().what().contains("not checked"), "{report}");
        assert!(!fake.sibling("log").exists());
    });
}

/// Returns a working CLI that runs `script` for its version.
fn cli_with_probe(script: &str) -> FakeProgram {
    let version = format!("if [ \"$1\" = --version ]; then {script}; exit; fi");
    FakeProgram::bare(&format!("#!/bin/sh\n{version}\n{HANDSHAKE}{RESULT}"))
}

#[test]
fn version_probe_is_ended_after_its_output() {
    run(async {
        for script in ["echo 2.1.325; exec >&-; sleep 600", "printf 2.1.325; exec >&-; sleep 600"] {
            let fake = cli_with_probe(script);
            let collected = ask("hello", fake.options().env("KIT_MARK", "lives-on")).await;
            assert!(collected.result().is_some(), "{:?}", collected.error);
            assert_eq!(codes(&collected), [], "{script}");
            until("the probe is gone", || marked("KIT_MARK", "lives-on").is_empty()).await;
        }
    });
}

#[test]
fn orphan_of_the_version_probe_does_not_hide_the_version() {
    run(async {
        for printed in ["echo 2.1.325", "printf 2.1.325"] {
            let fake =
                cli_with_probe(&format!("sleep 600 & echo $! > \"${{0%/*}}/pid\"; {printed}"));
            let collected = ask("hello", fake.options()).await;
            assert_eq!(codes(&collected), [], "{printed}");
            assert!(collected.result().is_some(), "{:?}", collected.error);
            let leftover = fs::read_to_string(fake.sibling("pid")).unwrap();
            // The process is already gone if the shell exited so late that its group was killed.
            Command::new("kill").arg(leftover.trim()).output().unwrap();
        }
    });
}

#[test]
fn timed_out_version_probe_is_killed_with_its_children() {
    run(async {
        let fake = cli_with_probe("sleep 600 & sleep 600");
        let collected = ask("hello", fake.options().env("KIT_MARK", "too-long")).await;
        assert_eq!(codes(&collected), [WarningCode::VersionDetection]);
        assert!(collected.result().is_some(), "{:?}", collected.error);
        until("the probe is gone", || marked("KIT_MARK", "too-long").is_empty()).await;
    });
}

/// Returns the command of a host that looks for its CLI, without the variables of this machine
/// except `PATH`.
fn host_command(directory: &Path, path: &str, arguments: &[&str]) -> Command {
    let mut host = Command::new(HOST);
    host.arg("find").args(arguments).current_dir(directory).env_clear().env("PATH", path);
    host
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn version_is_found_by_a_host_that_ignores_sigchld() {
    for script in ["echo 2.1.325", "printf 2.1.325"] {
        let fake = cli_with_probe(script);
        let mut host = Command::new("sh");
        host.args(["-c", "trap '' CHLD; exec \"$0\" find cli_path \"$1\"", HOST]).arg(fake.path());
        let output = host.env_clear().env("PATH", "/usr/bin:/bin").output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("2.1.325"), "{}", text(&output));
    }
}

#[test]
fn host_that_cannot_create_threads_gets_an_error() {
    if !is_root() {
        return;
    }
    let fake = cli_with_probe("echo 2.1.325");
    let host = fake.sibling("host");
    fs::copy(HOST, &host).unwrap();
    give_to_other_user(&fake);
    // A user without other processes.
    let output = Command::new("setpriv")
        .args(["--reuid=64321", "--regid=64321", "--clear-groups", "prlimit", "--nproc=1"])
        .arg(host)
        .args(["find", "cli_path"])
        .arg(fake.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("failed to start"), "{}", text(&output));
}

#[test]
fn user_lookup_runs_no_program_of_the_working_directory() {
    let fake = cli_with_probe("echo \"2.1.$(id -u)\"");
    write_executable(&fake.sibling("id"), "#!/bin/sh\necho x >> asked\necho 0\n");
    give_to_other_user(&fake);
    let path = fake.path();
    let arguments = ["cli_path", path.to_str().unwrap(), "user", "no-such-user-here"];
    for directories in [".", ".:/usr/bin:/bin", ""] {
        let output = host_command(&fake.sibling(""), directories, &arguments).output().unwrap();
        assert!(
            text(&output).contains("`user`: \"no-such-user-here\" was not found"),
            "{}",
            text(&output)
        );
    }
    assert!(!fake.sibling("asked").exists());
}

#[test]
fn relative_home_is_not_searched_for_a_cli() {
    if Path::new("/usr/local/bin/claude").exists() {
        println!("SKIPPED: the CLI that is installed on this machine is found");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join(".claude/local");
    fs::create_dir_all(&local).unwrap();
    write_executable(&local.join("claude"), "#!/bin/sh\ntouch ran\necho 2.1.325\n");
    for home in [".", "", ".claude/.."] {
        let output = host_command(folder.path(), ".", &[]).env("HOME", home).output().unwrap();
        assert!(text(&output).contains("`claude` was not found"), "{}", text(&output));
    }
    assert!(!folder.path().join("ran").exists());
    // An absolute home is searched.
    let output = host_command(folder.path(), ".", &[]).env("HOME", folder.path()).output().unwrap();
    assert!(text(&output).contains("2.1.325"), "{}", text(&output));
}

#[test]
fn environment_policy_applies_to_the_version_probe() {
    run(async {
        let fake = FakeProgram::bare(&logging_script());
        let only = EnvironmentPolicy::Only(vec!["PATH".to_owned()]);
        let options = Options::new().cli_path(fake.path()).environment(only);
        assert!(ask("hello", options).await.result().is_some());
        let (probes, runs) = log(&fake);
        assert_eq!(probes, runs);
        assert!(!probes[0].contains("HOME="), "{}", probes[0]);
    });
}
