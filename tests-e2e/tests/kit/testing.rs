//! The feature `testing`: scripts, recordings and replays, on every CLI.

use std::time::Duration;

use claude_agent_kit::Exit;
use claude_agent_kit::testing::{
    Fault, Faults, Model, Recorder, Recording, Replay, Reply, Script, Sim,
};
use claude_agent_kit::{
    Body, ErrorKind, Include, Item, Options, Prompt, Session, Timeouts, json, query,
};
use tests_e2e::harness::{Harness, processes};

use crate::support::{SIM, ask, hello, in_time, kind_of, on_all, real, run, until};

/// Sends a prompt and returns the text of its turn or of its error.
async fn send_and_read(session: &Session, prompt: impl Into<Prompt>) -> String {
    let turn = session.send(prompt).await.unwrap();
    match in_time(turn.finish()).await.unwrap().into_result() {
        Ok(outcome) => outcome.text,
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_simulated_cli_is_rejected_where_a_process_would_be() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let simulated = |options: Options| options.simulated(hello());
        for (options, kind, part) in [
            (
                Options::new().simulated(Sim::from(hello()).version("2.0.5")),
                ErrorKind::UnsupportedCliVersion,
                "2.0.5",
            ),
            (simulated(Options::new().cwd(&missing)), ErrorKind::SpawnFailed, "does not exist"),
            (simulated(Options::isolated(&missing)), ErrorKind::SpawnFailed, "does not exist"),
        ] {
            let error = Session::start(options).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(part) && !error.is_retryable(), "{error}");
        }
    });
}

#[test]
fn prompts_of_the_user_are_told_from_those_of_the_cli() {
    on_all(hello, async |harness| {
        let session = in_time(Session::start(harness.options())).await.unwrap();
        send_and_read(&session, "/context").await;
        send_and_read(&session, "first").await;
        let request = harness.api().requests().pop().unwrap();
        assert_eq!(request.user_prompts(), ["first"], "{:?}", request.prompts());
        assert_eq!(request.last_user_prompt().as_deref(), Some("first"));
        session.stop().await.unwrap();
    });
}

#[test]
fn script_rule_answers_only_its_own_prompt() {
    let script = || {
        Script::new()
            .when("count", [Reply::text("1, 2, ").hold()])
            .when("fail", [Reply::error(400, "invalid_request_error", "no such luck")])
            .when("first", [Reply::text("First.")])
            .otherwise([Reply::text("Otherwise.")])
    };
    on_all(script, async |harness| {
        let options = harness.options().include(Include::PARTIAL_MESSAGES);
        let session = in_time(Session::start(options)).await.unwrap();
        assert_eq!(send_and_read(&session, "first").await, "First.");
        assert_eq!(send_and_read(&session, "and then").await, "Otherwise.");

        // After an interrupt, the conversation holds both prompts in one entry.
        let mut turn = session.send("count").await.unwrap();
        loop {
            let item = in_time(turn.next()).await.unwrap().unwrap();
            let is_delta = |item: &Item| matches!(item, Item::Message(message) if matches!(message.body, Body::StreamEvent(_)));
            if is_delta(&item) {
                break;
            }
        }
        in_time(turn.interrupt()).await.unwrap();
        in_time(turn.finish()).await.unwrap();
        assert_eq!(send_and_read(&session, "go on").await, "Otherwise.");

        // The same after an error.
        assert!(send_and_read(&session, "fail").await.contains("no such luck"));
        assert_eq!(send_and_read(&session, "try again").await, "Otherwise.");
        assert_eq!(send_and_read(&session, "first once more").await, "First.");
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn prompt_without_a_rule_fails_with_an_error_that_quotes_it() {
    let script = || Script::new().when("hello", [Reply::text("Hello.")]);
    on_all(script, async |harness| {
        let session = in_time(Session::start(harness.options())).await.unwrap();
        assert_eq!(send_and_read(&session, "hello").await, "Hello.");
        let error = send_and_read(&session, "goodbye").await;
        assert!(error.contains("no rule of the script matches the prompt"), "{error}");
        assert!(error.contains("goodbye"), "{error}");
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn rule_added_with_since_answers_later_prompts() {
    let script = || {
        let french = [Reply::text("Oui."), Reply::text("Non."), Reply::text("Peut-être.")];
        Script::new().since("French", french).otherwise([Reply::text("Yes.")])
    };
    on_all(script, async |harness| {
        let session = in_time(Session::start(harness.options())).await.unwrap();
        let mut answers = Vec::new();
        for prompt in ["a", "in French: b", "c", "d"] {
            answers.push(send_and_read(&session, prompt).await);
        }
        assert_eq!(answers, ["Yes.", "Oui.", "Non.", "Peut-être."]);
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn runs_share_the_script_and_a_retry_succeeds() {
    let script = || {
        let overloaded = Reply::error(529, "overloaded_error", "Overloaded").no_retry();
        Script::new().when_attempts("go", [overloaded, Reply::text("Done.")])
    };
    let retried = async |options: Options| {
        let first = ask("go", &options).await;
        let error = first.into_result().unwrap_err();
        assert!(error.is_retryable(), "{error}");
        assert_eq!(ask("go", &options).await.into_result().unwrap().text(), "Done.");
    };
    on_all(script, async |harness| retried(harness.options()).await);
    run(retried(Options::new().simulated(script())));
    // Separate options, with clones of one script.
    run(async {
        let script = script();
        let [first, second] = [script.clone(), script].map(|it| Options::new().simulated(it));
        assert!(ask("go", first).await.into_result().is_err());
        assert_eq!(ask("go", second).await.into_result().unwrap().text(), "Done.");
    });
}

/// A batch adds up what its failed attempts cost.
#[test]
fn the_error_of_a_failed_attempt_has_its_cost() {
    run(async {
        let script = Script::new().otherwise([
            Reply::tool("Bash", json!({"command": "true"})),
            Reply::error(529, "overloaded_error", "Overloaded").no_retry(),
        ]);
        let options = Options::new().simulated(script).allowed_tools(["Bash"]);
        let collected = ask("go", &options).await;
        let (cost, error) = (collected.cost, collected.into_result().unwrap_err());
        assert!(error.cost().tokens.total() > 0, "{error}");
        assert_eq!(error.cost(), cost);
        let session = Session::start(&options).await.unwrap();
        let outcome = session.send("go").await.unwrap().finish().await.unwrap();
        let (cost, error) = (outcome.cost, outcome.into_result().unwrap_err());
        assert_eq!((error.kind(), error.cost()), (ErrorKind::Overloaded, cost));
        session.stop().await.unwrap();
        // A crash in the middle: what was read until then.
        let sim = Sim::from(hello()).faults(Faults::new().before("result", Fault::Signal(9)));
        let error = ask("hi", Options::new().simulated(sim)).await.into_result().unwrap_err();
        assert!(error.cost().tokens.total() > 0 && !error.cost().is_complete, "{error}");
    });
}

#[test]
fn fault_of_the_first_run_does_not_affect_the_retry() {
    run(async {
        let crash = Faults::new().before("result", Fault::Signal(9));
        let sim = Sim::from(hello()).faults_in_run(1, crash);
        let options = Options::new().simulated(sim);
        let crashed = ask("hi", &options).await;
        assert_eq!(crashed.error.as_ref().unwrap().exit(), Some(Exit::Signal(9)));
        assert_eq!(ask("hi", &options).await.into_result().unwrap().text(), "Hello.");
    });
}

#[test]
fn held_answer_is_released_through_the_model() {
    run(async {
        let sim = Sim::from(Script::new().otherwise([Reply::text("Slowly.").hold()]));
        let model: Model = sim.model();
        let session = in_time(Session::start(Options::new().simulated(sim))).await.unwrap();
        let turn = session.send("hi").await.unwrap();
        let run_query =
            model.wait_for_request(|request| request.last_prompt().as_deref() == Some("hi"));
        in_time(run_query).await;
        model.release_held();
        assert_eq!(in_time(turn.finish()).await.unwrap().text, "Slowly.");
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn timeouts_expire_immediately_on_a_paused_clock() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let silent = Sim::new().faults(Faults::new().at_start(Fault::Hang));
        let hour = Duration::from_secs(3600);
        let options = Options::new().simulated(silent).timeouts(Timeouts::new().initialize(hour));
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeTimeout);
    });
}

/// Records a query with these options and replays it strictly and leniently.
async fn record_and_replay(options: Options) {
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join("made/when/needed");
    let options = options.recorded_to(recordings.as_path());
    assert_eq!(ask("hi", &options).await.into_result().unwrap().text(), "Hello.");
    assert_eq!(ask("hi", &options).await.into_result().unwrap().text(), "Hello.");
    let files: Vec<_> = recordings.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "each run has a file");
    for file in files {
        let recording = Recording::parse(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(recording.exit().map(Exit::from), Some(Exit::Code(0)));
        assert!(!recording.header.argv.is_empty());
        for replay in [Replay::strict(recording.clone()), Replay::lenient(recording.clone())] {
            let options = Options::new().replayed(&replay);
            assert_eq!(ask("hi", options).await.into_result().unwrap().text(), "Hello.");
            assert_eq!(replay.mismatch(), None);
        }
        // Another prompt is another line of the same type.
        let strict = Replay::strict(recording.clone());
        let error = ask("ho", Options::new().replayed(&strict)).await.into_result().unwrap_err();
        let mismatch = strict.mismatch().expect("the prompt is another one");
        let reason = format!("does not follow the recording: line {}", mismatch.line());
        assert!(error.to_string().contains(&reason), "{error}");
        let lenient = Replay::lenient(recording);
        assert!(ask("ho", Options::new().replayed(&lenient)).await.into_result().is_ok());
        assert_eq!(lenient.mismatch(), None);
    }
}

#[test]
fn recorded_query_can_be_replayed_on_every_cli() {
    run(record_and_replay(Options::new().simulated(hello())));
    on_all(hello, async |harness| record_and_replay(harness.options()).await);
}

#[test]
fn recording_of_a_crash_ends_with_the_crash() {
    run(async {
        let recorder = Recorder::new();
        let sim = Sim::from(hello()).faults(Faults::new().before("result", Fault::Exit(3)));
        let options = Options::new().simulated(sim).recorded_to(&recorder);
        assert_eq!(kind_of(&ask("hi", options).await), Some(ErrorKind::ProcessFailed));
        let recording = recorder.recordings().unwrap().remove(0);
        assert_eq!(recording.exit().map(Exit::from), Some(Exit::Code(3)));
        let replayed = ask("hi", Options::new().replayed(recording)).await;
        assert_eq!(replayed.error.unwrap().exit(), Some(Exit::Code(3)));
    });
}

#[test]
fn session_dropped_while_recording_leaks_no_process() {
    run(async {
        for program in [SIM, real().path.to_str().unwrap()] {
            let harness = Harness::sim_process(hello(), program).await.unwrap();
            let recorder = Recorder::new();
            let options = harness.options().recorded_to(&recorder);
            let session = in_time(Session::start(options)).await.unwrap();
            let pid = session.pid().unwrap();
            assert_eq!(send_and_read(&session, "hi").await, "Hello.");
            drop(session);
            let gone = || !processes::exists(pid);
            until("the process is gone", gone).await;
            let recording = recorder.recordings().unwrap().remove(0);
            assert!(recording.sent().count() >= 2 && recording.received().count() >= 3);
        }
    });
}

#[test]
fn run_that_cannot_be_recorded_does_not_start() {
    run(async {
        let file = tempfile::NamedTempFile::new().unwrap();
        let options = Options::new().simulated(hello()).recorded_to(file.path());
        let error = query("hi", options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SpawnFailed);
        assert!(error.to_string().contains("cannot record the run"), "{error}");
        assert!(!error.is_retryable(), "{error}");
    });
}
