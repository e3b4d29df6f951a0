//! The history beside the real CLI.

use std::fs;

use claude_agent_kit::history::{ForkOptions, History, ListFilter, MessageFilter};
use claude_agent_kit::{Conversation, ErrorKind, Options, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::id::SessionId;
use serde_json::Value;
use tests_e2e::harness::Harness;

use crate::support::{hello, in_time, on_all, real, run};

/// How many prompts each of two CLIs gets, and how often the history is changed meanwhile.
const ROUNDS: usize = 6;

async fn turn(session: &Session, prompt: &str) {
    in_time(session.send(prompt).await.unwrap().finish()).await.unwrap();
}

/// Runs a session with one turn, and returns its ID.
async fn one_turn(options: Options, prompt: &str) -> SessionId {
    let session = in_time(Session::start(options)).await.unwrap();
    turn(&session, prompt).await;
    let id = session.session_id().unwrap();
    session.stop().await.unwrap();
    id
}

async fn turns(session: Session, name: &str) {
    for round in 0..ROUNDS {
        turn(&session, &format!("{name} {round}")).await;
    }
    session.stop().await.unwrap();
}

/// Asserts that every line is a whole entry, and returns the entries.
async fn whole_entries(history: &History, id: &SessionId) -> Vec<Value> {
    let transcript = history.open(id).await.unwrap();
    assert_eq!(transcript.index().issues(), [], "{id}");
    let text = fs::read_to_string(transcript.path().unwrap()).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn is_prompt(entry: &Value, text: &str) -> bool {
    entry["type"] == "user" && entry["message"]["content"].to_string().contains(text)
}

#[test]
fn changes_beside_two_running_clis_tear_nothing() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let history = History::at(harness.sandbox().config());
        let id = one_turn(harness.options(), "the beginning").await;
        let resumed = || {
            let options = harness.options().conversation(Conversation::resume(id.clone()));
            async { in_time(Session::start(options)).await.unwrap() }
        };
        let (one, two) = tokio::join!(resumed(), resumed());
        let change = async {
            let mut forks = Vec::new();
            for round in 0..ROUNDS {
                history.rename(&id, format!("Title {round}")).await.unwrap();
                history.tag(&id, Some(&format!("tag-{round}"))).await.unwrap();
                forks.push(history.fork(&id, ForkOptions::new()).await.unwrap());
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            forks
        };
        let (forks, (), ()) = tokio::join!(change, turns(one, "one"), turns(two, "two"));
        let entries = whole_entries(&history, &id).await;
        for name in ["one", "two"] {
            for round in 0..ROUNDS {
                let text = format!("{name} {round}");
                let count = entries.iter().filter(|entry| is_prompt(entry, &text)).count();
                assert_eq!(count, 1, "{text}");
            }
        }
        for (kind, member, text) in
            [("custom-title", "customTitle", "Title"), ("tag", "tag", "tag-")]
        {
            for round in 0..ROUNDS {
                let text = format!("{text}{}{round}", if kind == "tag" { "" } else { " " });
                let is_change = |entry: &&Value| entry["type"] == kind && entry[member] == *text;
                assert!(entries.iter().any(|entry| is_change(&entry)), "{text}");
            }
        }
        // A CLI may write a title again that it read before the last change.
        let info = history.info(&id).await.unwrap().unwrap();
        assert!(info.custom_title.is_some_and(|title| title.starts_with("Title ")));
        assert!(info.tag.is_some_and(|tag| tag.starts_with("tag-")));
        history.rename(&id, "The last title").await.unwrap();
        let info = history.info(&id).await.unwrap().unwrap();
        assert_eq!(info.custom_title.as_deref(), Some("The last title"));
        for fork in forks {
            let entries = whole_entries(&history, &fork).await;
            assert!(entries.iter().any(|entry| is_prompt(entry, "the beginning")), "{fork}");
            assert!(entries.iter().all(|entry| entry["sessionId"] == fork.as_str()), "{fork}");
        }
    });
}

#[test]
fn simulated_and_real_transcripts_are_read_as_one_conversation() {
    on_all(hello, async |harness| {
        let config = harness.sandbox().config();
        let options = || harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy());
        let session = in_time(Session::start(options())).await.unwrap();
        turn(&session, "one").await;
        turn(&session, "two").await;
        let id = session.session_id().unwrap();
        session.stop().await.unwrap();
        let resumed = options().conversation(Conversation::resume(id.clone()));
        assert_eq!(one_turn(resumed, "three").await, id);
        let history = History::from_options(&options()).unwrap();
        let mut messages = history.messages(&id, MessageFilter::default()).await.unwrap();
        let mut texts = Vec::new();
        while let Some(message) = messages.next().await {
            texts.push(message.unwrap().content().unwrap().to_text());
        }
        assert_eq!(texts, ["one", "Hello.", "two", "Hello.", "three", "Hello."]);
    });
}

#[test]
fn cli_resumes_a_fork_up_to_a_message() {
    let script = || Script::new().otherwise([Reply::text("Hello.")]);
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let history = History::at(harness.sandbox().config());
        let session = in_time(Session::start(harness.options())).await.unwrap();
        turn(&session, "the first prompt").await;
        turn(&session, "the second prompt").await;
        let id = session.session_id().unwrap();
        session.stop().await.unwrap();
        let mut messages = history.messages(&id, MessageFilter::default()).await.unwrap().skip(1);
        let answer = messages.next().await.unwrap().unwrap().uuid().unwrap().into_owned();
        let fork = history.fork(&id, ForkOptions::new().up_to(answer)).await.unwrap();
        let options = harness.options().conversation(Conversation::resume(fork.clone()));
        assert_eq!(one_turn(options, "the third prompt").await, fork);
        let prompts = harness.api().requests().last().unwrap().prompts();
        let has = |text: &str| prompts.iter().any(|prompt| prompt.contains(text));
        assert!(has("the first prompt") && has("the third prompt"), "{prompts:?}");
        assert!(!has("the second prompt"), "{prompts:?}");
    });
}

#[test]
fn resume_or_start_looks_at_all_projects() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let history = History::at(harness.sandbox().config());
        let id = one_turn(harness.options(), "here").await;
        let with = |id: &SessionId| {
            harness.options().conversation(Conversation::resume_or_start(id.clone()))
        };
        let elsewhere = harness.root().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        // It exists, in this project or in another one: resumed, and written where it was.
        for options in [with(&id), with(&id).cwd(&elsewhere)] {
            let session = in_time(Session::start(options)).await.unwrap();
            turn(&session, "again").await;
            assert_eq!(
                (session.session_id(), session.is_resumed()),
                (Some(id.clone()), Some(true))
            );
            session.stop().await.unwrap();
        }
        let there = history.for_directory(&elsewhere).list(ListFilter::new()).await.unwrap();
        assert!(there.sessions.is_empty(), "{there:?}");
        let info = history.info(&id).await.unwrap().unwrap();
        assert_eq!(info.first_prompt.as_deref(), Some("here"));
        // It does not exist: started with this ID.
        let new = SessionId::from("11111111-2222-4333-8444-555555555555");
        let session = in_time(Session::start(with(&new).cwd(&elsewhere))).await.unwrap();
        turn(&session, "there").await;
        assert_eq!((session.session_id(), session.is_resumed()), (Some(new.clone()), Some(false)));
        session.stop().await.unwrap();
        let info = history.for_directory(&elsewhere).info(&new).await.unwrap().unwrap();
        assert_eq!(info.first_prompt.as_deref(), Some("there"));
    });
}

#[test]
fn session_of_another_project_that_the_cli_cannot_resume_is_not_started_again() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let history = History::at(harness.sandbox().config());
        let source = one_turn(harness.options(), "here").await;
        let path = history.open(&source).await.unwrap().path().unwrap().to_owned();
        // A title is all that is left of it.
        let id = SessionId::from("11111111-2222-4333-8444-555555555555");
        let rest =
            format!("{{\"type\":\"custom-title\",\"customTitle\":\"T\",\"sessionId\":\"{id}\"}}\n");
        fs::write(path.with_file_name(format!("{id}.jsonl")), &rest).unwrap();
        let elsewhere = harness.root().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let conversation = Conversation::resume_or_start(id.clone());
        let options = harness.options().cwd(&elsewhere).conversation(conversation);
        let error = Session::start(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        assert!(error.to_string().contains("did not find it from here"), "{error}");
        let there = history.for_directory(&elsewhere).list(ListFilter::new()).await.unwrap();
        assert!(there.sessions.is_empty(), "{there:?}");
    });
}
