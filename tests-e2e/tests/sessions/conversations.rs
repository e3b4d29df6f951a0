//! What a session starts from: another conversation, another command.

use std::fs;

use claude_agent_kit::settings::EnvironmentPolicy;
use claude_agent_kit::transport::Wrapped;
use claude_agent_kit::{Conversation, ErrorKind, Options, Session, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::id::SessionId;
use tests_e2e::harness::Harness;

use crate::support::{FakeProgram, SIM, on_all, real, run, write_executable};

fn script() -> Script {
    Script::new().when("number", [Reply::text("Seven.")]).otherwise([Reply::text("Hello.")])
}

#[test]
fn conversation_can_be_resumed_and_forked() {
    on_all(script, async |harness| {
        // Transcripts need a directory, in memory too.
        let config = harness.root().join("home/.claude");
        let options = || harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        let mut first = query("The number is 7.", options()).await.unwrap();
        while let Some(item) = first.next().await {
            item.unwrap();
        }
        let id = first.session_id().unwrap().clone();
        for (conversation, same) in
            [(Conversation::resume(id.clone()), true), (Conversation::fork(id.clone()), false)]
        {
            let options = options().conversation(conversation);
            let session = Session::start(options).await.unwrap();
            let turn = session.send("Which number?").await.unwrap();
            assert_eq!(turn.finish().await.unwrap().text, "Seven.");
            assert_eq!(session.session_id().unwrap() == id, same);
            assert_eq!(session.is_resumed(), Some(true));
            let requests = harness.api().requests();
            let prompts = requests.last().unwrap().prompts();
            assert!(
                prompts.iter().any(|prompt| prompt.contains("The number is 7.")),
                "{prompts:?}"
            );
            session.stop().await.unwrap();
        }
    });
}

#[test]
fn missing_conversation_is_an_error_before_any_prompt() {
    on_all(script, async |harness| {
        let missing = SessionId::from("00000000-0000-4000-8000-000000000000");
        let options = harness.options().conversation(Conversation::resume(missing.clone()));
        let error = Session::start(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert!(error.help().is_some());
        let collected = query("Which number?", options).await.unwrap().collect().await;
        let error = collected.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert!(harness.api().requests().is_empty());
    });
}

#[test]
fn new_conversation_uses_the_given_id() {
    on_all(script, async |harness| {
        let id = SessionId::from("11111111-2222-4333-8444-555555555555");
        let options = harness.options().conversation(Conversation::with_id(id.clone()));
        let session = Session::start(options).await.unwrap();
        session.send("Hi.").await.unwrap().finish().await.unwrap();
        assert_eq!((session.session_id(), session.is_resumed()), (Some(id), Some(false)));
        session.stop().await.unwrap();
    });
}

#[test]
fn session_id_is_known_before_any_output() {
    on_all(script, async |harness| {
        let config = harness.root().join("home/.claude");
        let options = || harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        let named = |collected: &claude_agent_kit::Collected| {
            collected.result().unwrap().session_id.clone().unwrap()
        };
        let stream = query("The number is 7.", options()).await.unwrap();
        let first = stream.session_id().unwrap().clone();
        assert_eq!(named(&stream.collect().await), first);
        let forked = options().conversation(Conversation::fork(first.clone()));
        let stream = query("Which number?", forked).await.unwrap();
        let copy = stream.session_id().unwrap().clone();
        assert_ne!(copy, first);
        let collected = stream.collect().await;
        assert_eq!((named(&collected), collected.text()), (copy, "Seven.".to_owned()));
        let session = Session::open(options()).await.unwrap();
        let id = session.session_id().unwrap();
        let outcome = session.send("Hi.").await.unwrap().finish().await.unwrap();
        assert_eq!(outcome.result.session_id.as_ref(), Some(&id));
        session.stop().await.unwrap();
        let resumed = options().conversation(Conversation::resume(first.clone()));
        let session = Session::open(resumed).await.unwrap();
        assert_eq!(session.session_id(), Some(first));
        session.stop().await.unwrap();
        let latest = options().conversation(Conversation::latest());
        let session = Session::open(latest).await.unwrap();
        assert_eq!(session.session_id(), None, "only the CLI knows");
        session.send("Hi.").await.unwrap().finish().await.unwrap();
        assert!(session.session_id().is_some() && session.is_resumed().is_none());
        session.stop().await.unwrap();
    });
}

#[test]
fn resume_or_start_reports_which_one_happened() {
    on_all(script, async |harness| {
        let config = harness.root().join("home/.claude");
        let options = |id: &str| {
            let options = harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
            options.conversation(Conversation::resume_or_start(id))
        };
        let id = "11111111-2222-4333-8444-555555555555";
        for expected in [false, true] {
            let session = Session::start(options(id)).await.unwrap();
            assert_eq!(session.is_resumed(), Some(expected));
            assert_eq!(session.session_id().unwrap(), id);
            let outcome = session.send("The number is 7.").await.unwrap().finish().await.unwrap();
            assert_eq!(outcome.result.session_id.as_ref().unwrap(), id);
            session.stop().await.unwrap();
        }
        let of_queries = "11111111-2222-4333-8444-666666666666";
        for expected in [false, true] {
            let stream = query("The number is 7.", options(of_queries)).await.unwrap();
            assert_eq!(stream.is_resumed(), Some(expected));
            assert_eq!(stream.session_id().unwrap(), of_queries);
            let collected = stream.collect().await.into_result().unwrap();
            assert_eq!(collected.result().unwrap().session_id.as_ref().unwrap(), of_queries);
        }
        let requests = harness.api().requests();
        let times = |request: &claude_agent_testkit::mock_api::ApiRequest| {
            request.prompts().iter().filter(|prompt| prompt.contains("The number")).count()
        };
        assert_eq!(requests.iter().map(times).collect::<Vec<_>>(), [1, 2, 1, 2]);
    });
}

/// A CLI that is killed while it starts can leave a transcript that it does not resume, whose ID it does not use again.
#[test]
fn transcript_without_messages_does_not_prevent_a_start() {
    let id = "11111111-2222-4333-8444-777777777777";
    let line = format!(
        r#"{{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-18T00:00:00.000Z","sessionId":"{id}","content":"Hi."}}"#
    );
    let check = async |harness: Harness| {
        let config = harness.root().join("home/.claude");
        let cwd = fs::canonicalize(harness.project()).unwrap();
        let name = claude_wire::transcript::project_folder_name(cwd.to_str().unwrap());
        let folder = config.join("projects").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
        let options = harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        let options = options.conversation(Conversation::resume_or_start(id));
        for expected in [false, true] {
            let session = Session::start(&options).await.unwrap();
            assert_eq!(session.is_resumed(), Some(expected));
            session.send("The number is 7.").await.unwrap().finish().await.unwrap();
            session.stop().await.unwrap();
        }
        let kept = fs::read_to_string(folder.join(format!("{id}.jsonl.unused"))).unwrap();
        assert_eq!(kept, format!("{line}\n"));
    };
    run(async {
        // Not in memory: files are renamed only where the SDK itself starts the CLI.
        check(Harness::sim_process(script(), SIM).await.unwrap()).await;
        check(Harness::real(script(), real()).await.unwrap()).await;
    });
}

/// What the CLI also writes to stdout when it cannot start.
const RESULT: &str = r#"{"type":"result","subtype":"error_during_execution","is_error":true}"#;

#[test]
fn only_the_exact_cli_error_starts_a_new_conversation() {
    let id = "11111111-2222-4333-8444-555555555555";
    run(async {
        for (output, expected, starts) in [
            ("echo 'out of memory' >&2", ErrorKind::ExitedDuringInit, 1),
            (
                "echo 'No conversation found with session ID: other' >&2",
                ErrorKind::ConversationNotFound,
                1,
            ),
            (
                &*format!("echo 'No conversation found with session ID: {id}' >&2"),
                ErrorKind::ConversationNotFound,
                2,
            ),
        ] {
            let fake = FakeProgram::new(&format!(
                "echo started >> $0.started; {output}; echo '{RESULT}'; exit 1"
            ));
            let options = fake.options().conversation(Conversation::resume_or_start(id));
            let error = Session::start(&options).await.unwrap_err();
            assert_eq!(error.kind(), expected, "{error}");
            let count = || {
                fs::read_to_string(fake.path().with_extension("started")).unwrap().lines().count()
            };
            assert_eq!(count(), starts, "{output}");
            let collected = query("Hi.", options).await.unwrap().collect().await;
            assert_eq!(collected.error.unwrap().kind(), expected);
            assert_eq!(count(), 2 * starts, "{output}");
        }
    });
}

/// Creates a wrapper that records its arguments and runs them, as `ssh` or `docker exec` does.
fn wrapper(harness: &Harness, run_it: &str) -> std::path::PathBuf {
    let path = harness.root().join("wrapper");
    let noted = harness.root().join("noted");
    let text = format!("#!/bin/sh\necho \"$1\" > '{}'\nshift\n{run_it}\n", noted.display());
    write_executable(&path, &text);
    path
}

#[test]
fn cli_can_be_started_through_a_wrapper() {
    run(async {
        for path in [SIM, real().path.to_str().unwrap()] {
            for (is_shell, run_it) in [(false, "exec \"$@\""), (true, "exec sh -c \"$*\"")] {
                let harness = Harness::sim_process(script(), path).await.unwrap();
                let program = wrapper(&harness, run_it);
                let wrapped = if is_shell {
                    Wrapped::remote_shell(program, ["far away"])
                } else {
                    Wrapped::command(program, ["far away"])
                };
                // Only the variables of the harness, none of this machine.
                let options = Options::new()
                    .cwd(harness.project())
                    .environment(EnvironmentPolicy::Clean)
                    .transport(wrapped.cli(path));
                let variables = harness.variables().into_iter();
                let options = variables.fold(options, |all, (name, value)| all.env(name, value));
                let session = Session::start(options).await.unwrap();
                let outcome = session.send("Which number?").await.unwrap().finish().await.unwrap();
                assert_eq!(outcome.text, "Seven.");
                session.stop().await.unwrap();
                let noted = fs::read_to_string(harness.root().join("noted")).unwrap();
                assert_eq!(noted, "far away\n");
            }
        }
    });
}
