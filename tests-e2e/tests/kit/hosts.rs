//! Hosts with unusual signal dispositions and permissions.

use std::process::{Command, Stdio};

use tests_e2e::stage::processes::{exists, marked};

use crate::support::{Fake, HOST, SIM, told_by, until};

/// Returns the command of a host that starts with these signals ignored.
fn ignoring(signals: &str) -> Command {
    let mut command = Command::new("env");
    command.arg(format!("--ignore-signal={signals}")).arg(HOST);
    command
}

#[test]
fn with_sigchld_ignored_runs_end_well_and_their_exit_is_unknown() {
    let told = told_by(ignoring("CHLD").args(["exits", SIM]));
    let lines: Vec<&str> = told.lines().collect();
    let expected =
        ["query: None []", "end_input: Some(Completed(Some(Unknown)))", "stop: Ok(Some(Unknown))"];
    assert_eq!(lines, expected);
}

#[test]
fn without_the_right_to_kill_a_stop_ends_and_names_the_process_that_still_runs() {
    if !rustix::process::geteuid().is_root() {
        // Only root can start a CLI as another user.
        return;
    }
    let fake = Fake::new("exec sleep 1000");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(fake.path().parent().unwrap(), open).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-kill", "--inh-caps", "-kill", HOST, "stops-another-user"]);
    let told = told_by(command.arg(fake.path()));
    let lines: Vec<&str> = told.lines().collect();
    let pid = lines[0];
    let alive = exists(pid.parse().unwrap());
    // This process has the permission to kill it.
    let killed = Command::new("kill").args(["-9", pid]).status().unwrap();
    assert_eq!(lines[1], "Ok(Some(Unknown))", "{told}");
    let warning = format!("ExitUnknown: the CLI (process {pid}) still runs");
    assert!(lines[2].starts_with(&warning), "{told}");
    assert!(alive && killed.success() && lines.len() == 3, "{told}");
}

#[test]
fn a_killed_host_that_ignored_signals_takes_a_cli_that_hangs_with_it() {
    crate::support::run(async {
        let fake = Fake::new("echo $$ > started; exec sleep 1000");
        let mark = fake.path().to_string_lossy().into_owned();
        let mut host = ignoring("TERM,INT,HUP,QUIT")
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
        until("the CLI runs", || fake.beside("started").exists()).await;
        host.kill().unwrap();
        host.wait().unwrap();
        until("the CLI ends", || marked("KIT_MARK", &mark).is_empty()).await;
    });
}
