//! Options that select the conversation, and whether it is stored.

use std::fs;
use std::path::Path;

use claude_agent_kit::{Collected, Conversation, Item, Session};
use claude_wire::message::Body;
use tests_e2e::harness::Harness;

use super::{Row, run_rows};
use crate::support::{ask, hello, real, run};

/// Returns the text of all transcripts.
fn transcripts(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &transcripts(&path);
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

fn stored_transcripts(harness: &Harness) -> String {
    transcripts(&harness.root().join("home/.claude/projects"))
}

#[test]
fn session_is_stored_with_its_title_unless_disabled() {
    run_rows([
        Row::new(
            "conversation: with_id, title",
            |_, options| {
                let id = "5e550000-0000-4000-8000-000000000001";
                let conversation = Conversation::with_id(id).title("The marked title");
                options.conversation(conversation.persistent())
            },
            |seen| {
                seen.assert_success();
                assert!(stored_transcripts(&seen.harness).contains("The marked title"));
                assert_eq!(seen.init()["session_id"], "5e550000-0000-4000-8000-000000000001");
            },
        ),
        Row::new(
            "conversation: ephemeral",
            |_, options| options.conversation(Conversation::new().ephemeral()),
            |seen| {
                seen.assert_success();
                assert_eq!(stored_transcripts(&seen.harness), "");
            },
        ),
    ]);
}

#[test]
fn latest_conversation_of_a_directory_is_resumed() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let first = ask("remember the marked word", harness.options()).await;
        let latest = harness.options().conversation(Conversation::latest());
        let second = ask("hello again", latest).await;
        let session = |collected: &Collected| collected.result().unwrap().session_id.clone();
        assert!(session(&first).is_some());
        assert_eq!(session(&first), session(&second));
        let last = harness.api().requests().pop().unwrap();
        assert!(last.body.to_string().contains("remember the marked word"), "{}", last.body);

        let id = "5e550000-0000-4000-8000-000000000007";
        let copy = harness.options().conversation(Conversation::fork_latest().fork_id(id));
        let third = ask("hello from a copy", copy).await;
        assert_eq!(session(&third).as_ref().map(AsRef::as_ref), Some(id));
        let last = harness.api().requests().pop().unwrap();
        assert!(last.body.to_string().contains("remember the marked word"), "{}", last.body);
    });
}

#[test]
fn resume_drops_a_turn_only_if_it_is_the_named_one() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let session = Session::start(harness.options()).await.unwrap();
        let mut turn = session.send("the first prompt").await.unwrap();
        let mut answer = None;
        while let Some(item) = turn.next().await {
            if let Item::Message(message) = item.unwrap()
                && let Body::Assistant(assistant) = &message.body
            {
                answer.clone_from(&assistant.uuid);
            }
        }
        let answer = answer.unwrap();
        let second = claude_agent_kit::Prompt::from("the second prompt");
        let second = second.with_id("5e550000-0000-4000-8000-000000000002");
        session.send(second).await.unwrap().finish().await.unwrap();
        let id = session.session_id().unwrap();
        session.stop().await.unwrap();
        let resumed = || Conversation::resume(id.clone()).at(answer.clone());

        let wrong = resumed().dropping_turn("5e550000-0000-4000-8000-000000000009");
        let refused = ask("hello", harness.options().conversation(wrong)).await;
        let output = format!("{:?} {:?}", refused.error, refused.result());
        assert!(output.contains("resume-drops-turn"), "{output}");

        let right = resumed().dropping_turn("5e550000-0000-4000-8000-000000000002");
        let collected = ask("the third prompt", harness.options().conversation(right)).await;
        assert!(!collected.result().unwrap().is_error(), "{:?}", collected.result());
        let prompts = harness.api().requests().last().unwrap().prompts().join(" ");
        assert!(prompts.contains("the first") && prompts.contains("the third"), "{prompts}");
        assert!(!prompts.contains("the second"), "{prompts}");
    });
}
