//! Where a session comes from: another conversation, another command.

use std::fs;

use claude_agent_kit::transport::Wrapped;
use claude_agent_kit::{Conversation, EnvironmentPolicy, ErrorKind, Options, Session, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::id::SessionId;
use tests_e2e::stage::Stage;

use crate::support::{SIM, on_all, real, run, write_executable};

fn script() -> Script {
    Script::new().when("number", [Reply::text("Seven.")]).otherwise([Reply::text("Hello.")])
}

#[test]
fn a_conversation_is_resumed_or_forked_and_says_so() {
    on_all(script, async |stage| {
        // In memory too, transcripts have their place.
        let config = stage.root().join("home/.claude");
        let options = || stage.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
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
            let asked = stage.api().requests();
            let prompts = asked.last().unwrap().prompts();
            assert!(
                prompts.iter().any(|prompt| prompt.contains("The number is 7.")),
                "{prompts:?}"
            );
            session.stop().await.unwrap();
        }
    });
}

#[test]
fn a_conversation_that_is_not_there_is_an_error_before_any_prompt() {
    on_all(script, async |stage| {
        let missing = SessionId::from("00000000-0000-4000-8000-000000000000");
        let options = stage.options().conversation(Conversation::resume(missing.clone()));
        let error = Session::start(&options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert!(error.suggestion().is_some());
        // A query gives what the CLI says.
        let collected = query("Which number?", options).await.unwrap().collect().await;
        assert!(collected.result().unwrap().is_error(), "{collected:?}");
        assert!(stage.api().requests().is_empty());
    });
}

#[test]
fn a_new_conversation_takes_the_id_that_it_is_given() {
    on_all(script, async |stage| {
        let id = SessionId::from("11111111-2222-4333-8444-555555555555");
        let options = stage.options().conversation(Conversation::with_id(id.clone()));
        let session = Session::start(options).await.unwrap();
        session.send("Hi.").await.unwrap().finish().await.unwrap();
        assert_eq!((session.session_id(), session.is_resumed()), (Some(id), Some(false)));
        session.stop().await.unwrap();
    });
}

/// A wrapper that notes what it was given and runs it, as `ssh` or a container's exec does.
fn wrapper(stage: &Stage, run_it: &str) -> std::path::PathBuf {
    let path = stage.root().join("wrapper");
    let noted = stage.root().join("noted");
    let text = format!("#!/bin/sh\necho \"$1\" > '{}'\nshift\n{run_it}\n", noted.display());
    write_executable(&path, &text);
    path
}

#[test]
fn another_command_can_start_the_cli() {
    run(async {
        for path in [SIM, real().path.to_str().unwrap()] {
            for (is_shell, run_it) in [(false, "exec \"$@\""), (true, "exec sh -c \"$*\"")] {
                let stage = Stage::sim_process(script(), path).await.unwrap();
                let program = wrapper(&stage, run_it);
                let wrapped = if is_shell {
                    Wrapped::remote_shell(program, ["far away"])
                } else {
                    Wrapped::command(program, ["far away"])
                };
                // Nothing of this machine but what the stage gives.
                let options = Options::new()
                    .cwd(stage.project())
                    .environment(EnvironmentPolicy::Clean)
                    .envs(stage.variables())
                    .transport(wrapped.cli(path));
                let session = Session::start(options).await.unwrap();
                let outcome = session.send("Which number?").await.unwrap().finish().await.unwrap();
                assert_eq!(outcome.text, "Seven.");
                session.stop().await.unwrap();
                let noted = fs::read_to_string(stage.root().join("noted")).unwrap();
                assert_eq!(noted, "far away\n");
            }
        }
    });
}
