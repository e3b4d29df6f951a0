//! No process survives, however the host side ends.

use std::fs;
use std::process::{Child, Command, Stdio};

use claude_agent_kit::Exit;
use claude_agent_kit::{Timeouts, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{exists, marked, wait_until};

use crate::support::{
    FakeProgram, HANDSHAKE, HOST, LIMIT, SHORT, SIM, hello, host, real, run, until,
};

/// Drops a query at every step of its life, in a separate host that counts its children.
fn drop_at_every_step(runtime: &str) {
    let steps: usize = host(&["drops", SIM, runtime]).trim().parse().unwrap();
    assert!(steps > 10, "the query had only {steps} steps");
}

#[test]
fn query_dropped_at_every_step_on_a_multi_thread_runtime_leaks_nothing() {
    drop_at_every_step("multi-thread");
}

#[test]
fn query_dropped_at_every_step_on_a_current_thread_runtime_leaks_nothing() {
    drop_at_every_step("current-thread");
}

#[test]
fn query_dropped_at_every_step_after_its_runtime_leaks_nothing() {
    drop_at_every_step("gone");
}

#[test]
fn query_dropped_on_an_idle_runtime_is_ended_by_the_reaper_thread() {
    let backstage = tokio::runtime::Runtime::new().unwrap();
    let held = Script::new().otherwise([Reply::text("Never.").hold()]);
    let harness = backstage.block_on(Harness::sim_process(held, SIM)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let options = harness.options().timeouts(Timeouts::new().exit_grace(SHORT));
    let mut stream = runtime.block_on(query("hello", options)).unwrap();
    runtime.block_on(stream.next()).unwrap().unwrap();
    let pid = stream.pid().unwrap();
    drop(stream);
    assert!(wait_until(LIMIT, || !exists(pid)), "the process ends and is reaped");
}

#[test]
fn query_that_outlives_its_runtime_returns_an_error() {
    let backstage = tokio::runtime::Runtime::new().unwrap();
    let held = Script::new().otherwise([Reply::text("Never.").hold()]);
    let harness = backstage.block_on(Harness::sim_process(held, SIM)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = harness.options().timeouts(Timeouts::new().exit_grace(SHORT));
    let mut stream = runtime.block_on(query("hello", options)).unwrap();
    runtime.block_on(stream.next()).unwrap().unwrap();
    let pid = stream.pid().unwrap();
    drop(runtime);
    let error = backstage.block_on(async {
        loop {
            if let Err(error) = stream.next().await.unwrap() {
                break error;
            }
        }
    });
    assert_eq!(error.kind(), claude_agent_kit::ErrorKind::RuntimeGone);
    assert!(backstage.block_on(stream.next()).is_none());
    drop(stream);
    assert!(wait_until(LIMIT, || !exists(pid)), "the process ends and is reaped");
}

#[test]
fn dropped_real_cli_ends_with_its_running_tool() {
    run(async {
        let harness = Harness::real(sleep_script(), real()).await.unwrap();
        let mark = harness.root().to_string_lossy().into_owned();
        let options = harness.options().allowed_tools(["Bash"]).env("KIT_MARK", &mark);
        let mut stream = query("run it", options).await.unwrap();
        let started = harness.project().join("started");
        until("the tool runs", || {
            // An unread stream blocks nothing before the backlog limits are reached.
            started.exists()
        })
        .await;
        stream.next().await.unwrap().unwrap();
        drop(stream);
        until("all processes end", || marked("KIT_MARK", &mark).is_empty()).await;
    });
}

/// Returns a model that runs a tool that never ends.
fn sleep_script() -> Script {
    let command = "echo $$ > started; sleep 1000";
    Script::new().otherwise([Reply::tool("Bash", json!({"command": command, "timeout": 600_000}))])
}

/// Starts a separate host that is in the middle of a turn.
fn spawn_host_mid_turn(harness: &Harness, mark: &str) -> Child {
    Command::new(HOST)
        .arg("turn")
        .env_clear()
        .envs(harness.variables())
        .env("CLAUDE_CLI_PATH", harness.program().unwrap())
        .env("KIT_MARK", mark)
        .current_dir(harness.project())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills a host while its CLI runs a tool, and waits until all of its processes have ended.
async fn kill_mid_turn(harness: Harness) {
    let mark = harness.root().to_string_lossy().into_owned();
    let mut host = spawn_host_mid_turn(&harness, &mark);
    let started = harness.project().join("started");
    until("the tool runs", || started.exists() || host.try_wait().unwrap().is_some()).await;
    assert!(started.exists(), "the host ended before its tool ran");
    // The host, its CLI, the shell and its `sleep`.
    assert!(marked("KIT_MARK", &mark).len() >= 3, "{:?}", marked("KIT_MARK", &mark));
    host.kill().unwrap();
    host.wait().unwrap();
    until("the CLI and its tool end", || marked("KIT_MARK", &mark).is_empty()).await;
}

#[test]
fn killed_host_takes_the_simulated_cli_and_its_tool_with_it() {
    run(async { kill_mid_turn(Harness::sim_process(sleep_script(), SIM).await.unwrap()).await });
}

#[test]
fn killed_host_takes_the_real_cli_and_its_tool_with_it() {
    run(async { kill_mid_turn(Harness::real(sleep_script(), real()).await.unwrap()).await });
}

#[test]
fn dropping_the_start_future_leaks_nothing() {
    run(async {
        let harness = Harness::sim_process(hello(), SIM).await.unwrap();
        let mark = format!("{}-start", harness.root().display());
        for _ in 0..20 {
            let options = harness.options().env("KIT_MARK", &mark);
            tokio::select! {
                biased;
                stream = query("hello", options) => drop(stream),
                () = tokio::task::yield_now() => {}
            }
        }
        until("all of them end", || marked("KIT_MARK", &mark).is_empty()).await;
    });
}

#[test]
fn close_interrupts_the_turn_and_then_closes_stdin() {
    run(async {
        let fake =
            FakeProgram::new(&format!("{HANDSHAKE} echo '{{\"type\":\"x\"}}'; cat > log; exit 6"));
        let mut stream = query("hello", fake.options().timeouts(Timeouts::new().exit_grace(LIMIT)))
            .await
            .unwrap();
        stream.next().await.unwrap().unwrap();
        assert_eq!(stream.close().await, Some(Exit::Code(6)), "the CLI exited by itself");
        let log = fs::read_to_string(fake.sibling("log")).unwrap();
        assert!(log.contains("\"subtype\":\"interrupt\""), "{log}");
    });
}

#[test]
fn sigterm_is_sent_before_sigkill() {
    run(async {
        let cleans = "trap 'echo cleaned > log; exit 7' TERM";
        let loops = "while :; do sleep 0.05; done";
        let fake =
            FakeProgram::new(&format!("{cleans}\n{HANDSHAKE} echo '{{\"type\":\"x\"}}'; {loops}"));
        let mut stream = query("hello", fake.options().timeouts(Timeouts::new().exit_grace(SHORT)))
            .await
            .unwrap();
        stream.next().await.unwrap().unwrap();
        let pid = stream.pid().unwrap();
        drop(stream);
        until("the process ends and is reaped", || !exists(pid)).await;
        assert_eq!(fs::read_to_string(fake.sibling("log")).unwrap(), "cleaned\n");
    });
}
