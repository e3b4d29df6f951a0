//! Groups of runs that are shut down together.

use claude_agent_kit::{ErrorKind, Options, RunGroup, Session, SessionState, Timeouts, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::exists;

use crate::fake_cli;
use crate::helpers::{start, turn};
use crate::support::{LIMIT, SHORT, SIM, hello, in_time, run, until};

fn story_script() -> Script {
    Script::new().otherwise([Reply::text("Once upon a time").hold()])
}

#[test]
fn group_shutdown_ends_its_runs_and_keeps_others() {
    run(async {
        for harness in [
            Harness::sim_process(story_script(), SIM).await.unwrap(),
            Harness::real(story_script(), crate::support::real()).await.unwrap(),
        ] {
            let group = RunGroup::new();
            assert_eq!(in_time(RunGroup::new().shutdown(LIMIT)).await, 0);
            let options = harness.options().group(&group);
            let session = start(options.clone()).await;
            drop(session.send("story").await.unwrap());
            let stream = query("story", options.clone()).await.unwrap();
            let other = start(harness.options()).await;
            assert_eq!(group.len(), 2);
            let pids = [session.pid().unwrap(), stream.pid().unwrap()];
            assert_eq!(in_time(group.shutdown(LIMIT)).await, 0);
            assert!(group.is_empty() && pids.iter().all(|pid| !exists(*pid)));
            assert!(matches!(session.state(), SessionState::Stopped(_)), "{:?}", session.state());
            // The interrupt of the shutdown sequence may produce a result before the end.
            let error = in_time(stream.collect()).await.into_result().unwrap_err();
            let kinds = [ErrorKind::SessionStopped, ErrorKind::Interrupted];
            assert!(kinds.contains(&error.kind()), "{error}");
            assert!(!other.state().is_final());
            let refused = [
                Session::start(options.clone()).await.unwrap_err(),
                query("story", options).await.unwrap_err(),
            ];
            assert!(refused.iter().all(|error| error.kind() == ErrorKind::GroupClosed));
            other.stop().await.unwrap();
        }
    });
}

#[test]
fn query_stopped_before_its_result_ends_with_an_error() {
    run(async {
        let group = RunGroup::new();
        let (options, mut clis) = fake_cli::with_fake_clis(Options::new().group(&group));
        let stream = query("story", options).await.unwrap();
        let mut cli = clis.recv().await.unwrap();
        cli.handshake().await;
        let stopping = tokio::spawn(async move { group.shutdown(LIMIT).await });
        while cli.next_line().await.is_some() {}
        cli.exit(claude_agent_kit::Exit::Code(0));
        assert_eq!(in_time(stopping).await.unwrap(), 0);
        let collected = in_time(stream.collect()).await;
        assert_eq!(collected.error.unwrap().kind(), ErrorKind::SessionStopped);
    });
}

#[test]
fn ended_run_leaves_its_group() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let group = RunGroup::new();
        let session = start(harness.options().group(&group)).await;
        turn(&session, "hello").await;
        session.stop().await.unwrap();
        until("the run has left the group", || group.is_empty()).await;
        query("hello", harness.options().group(&group)).await.unwrap().collect().await;
        until("the run has left the group", || group.is_empty()).await;
        drop(query("hello", harness.options().group(&group)).await.unwrap());
        until("the run has left the group", || group.is_empty()).await;
    });
}

#[test]
fn group_shutdown_counts_runs_that_do_not_end_in_time() {
    run(async {
        let group = RunGroup::new();
        let options = Options::new().timeouts(Timeouts::new().exit_grace(LIMIT)).group(&group);
        let (session, cli) = fake_cli::connect(options).await;
        assert_eq!(in_time(group.shutdown(SHORT)).await, 1);
        assert_eq!(group.len(), 1);
        drop((session, cli));
    });
}

#[test]
fn group_shutdown_rejects_and_awaits_a_start_in_progress() {
    run(async {
        let group = RunGroup::new();
        let (begun, mut at_transport) = tokio::sync::mpsc::unbounded_channel();
        let (go, gone) = tokio::sync::watch::channel(false);
        let options = Options::new().group(&group).transport(
            claude_agent_kit::transport::InMemory::new(move |_| {
                let mut gone = gone.clone();
                begun.send(()).unwrap();
                async move {
                    gone.wait_for(|go| *go).await.map_err(std::io::Error::other)?;
                    Err(std::io::Error::other("not reached in this test's group"))
                }
            }),
        );
        let starting = tokio::spawn(Session::start(options));
        at_transport.recv().await.unwrap();
        assert_eq!(group.len(), 1);
        assert_eq!(in_time(group.shutdown(SHORT)).await, 1, "the start is still in progress");
        go.send_replace(true);
        starting.await.unwrap().unwrap_err();
        assert!(group.is_empty());
    });
}
