//! Hosts with unusual signal dispositions and permissions.

use std::process::{Command, Stdio};

use tests_e2e::harness::processes::{exists, marked};
use tests_e2e::workspace::is_root;

use crate::support::{FakeProgram, HOST, SIM, stdout_of, until};

/// Returns the command of a host that starts with these signals ignored.
fn host_ignoring(signals: &str) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("--ignore-signal={signals}")).arg(HOST);
    command
}

#[test]
fn runs_succeed_with_sigchld_ignored_and_unknown_exit() {
    let output = stdout_of(host_ignoring("CHLD").args(["exits", SIM]));
    let lines: Vec<&str> = output.lines().collect();
    let expected =
        ["query: None []", "end_input: Some(Completed(Some(Unknown)))", "stop: Ok(Some(Unknown))"];
    assert_eq!(lines, expected);
}

#[test]
fn stop_without_kill_permission_ends_and_names_the_process() {
    if !is_root() {
        return;
    }
    let fake = FakeProgram::new("exec sleep 1000");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(fake.path().parent().unwrap(), open).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-kill", "--inh-caps", "-kill", HOST, "stops-another-user"]);
    let output = stdout_of(command.arg(fake.path()));
    let lines: Vec<&str> = output.lines().collect();
    let pid = lines[0];
    let alive = exists(pid.parse().unwrap());
    // This process has the permission to kill it.
    let killed = Command::new("kill").args(["-9", pid]).status().unwrap();
    assert_eq!(lines[1], "Ok(Some(Unknown))", "{output}");
    let warning = format!("ExitUnknown: the CLI (process {pid}) is still running");
    assert!(lines[2].starts_with(&warning), "{output}");
    assert!(alive && killed.success() && lines.len() == 3, "{output}");
}

#[test]
fn killed_host_that_ignores_signals_takes_a_hanging_cli_with_it() {
    crate::support::run(async {
        let fake = FakeProgram::new("echo $$ > started; exec sleep 1000");
        let mark = fake.path().to_string_lossy().into_owned();
        let mut host = host_ignoring("TERM,INT,HUP,QUIT")
            .arg("turn")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("CLAUDE_CLI_PATH", fake.path())
            .env("KIT_MARK", &mark)
            .current_dir(fake.path().parent().unwrap())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the CLI runs", || fake.sibling("started").exists()).await;
        host.kill().unwrap();
        host.wait().unwrap();
        until("the CLI ends", || marked("KIT_MARK", &mark).is_empty()).await;
    });
}
