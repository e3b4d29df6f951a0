//! What the SDK traces: events and durations, never content. A separate process, because `tracing`
//! caches globally whether there is a subscriber, and other tests have none.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::{Debug, Write as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::{Permission, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A subscriber that records everything.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<(Level, String)>>>);

impl Notes {
    fn note(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Text)) {
        // Other crates in this process trace too.
        if metadata.target().starts_with("claude") {
            let mut text = Text(format!("{} ", metadata.name()));
            record(&mut text);
            self.0.lock().unwrap().push((*metadata.level(), text.0));
        }
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{field}={value:?} ").unwrap();
    }
}

impl Subscriber for Notes {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.note(attributes.metadata(), |text| attributes.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(event.metadata(), |text| event.record(text));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const MARKS: [&str; 4] = ["PROMPT-MARK", "ANSWER-MARK", "COMMAND-MARK", "SYSTEM-MARK"];

fn script() -> Script {
    Script::new().when(
        MARKS[0],
        [
            Reply::tool("Bash", json!({"command": format!("touch {}", MARKS[2])})),
            Reply::text(MARKS[1]),
        ],
    )
}

#[test]
fn events_are_traced_by_level_without_content() {
    let notes = Notes::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // On one thread, so that the thread's default subscriber receives everything.
    tracing::subscriber::with_default(notes.clone(), || {
        runtime.block_on(async {
            let play = async {
                let harness = Harness::in_memory(script()).await.unwrap();
                let options = harness
                    .options()
                    .system_prompt(claude_agent_kit::SystemPrompt::default().append(MARKS[3]))
                    .on(PreToolUse, |_, _| async { Err::<(), _>("broken on purpose".into()) })
                    .can_use_tool(|_, _| async { Permission::allow() });
                let session = Session::start(options).await.unwrap();
                session.send(MARKS[0]).await.unwrap().finish().await.unwrap();
                session.mcp().reconnect("missing").await.unwrap_err();
                session.stop().await.unwrap();
            };
            tokio::time::timeout(Duration::from_secs(60), play).await.unwrap();
        });
    });
    let notes = notes.0.lock().unwrap();
    let all = format!("{notes:?}");
    for mark in MARKS {
        assert!(!all.contains(mark), "{mark} in {all}");
    }
    let count = |level: Level, word: &str| {
        notes.iter().filter(|(at, text)| *at == level && text.contains(word)).count()
    };
    assert_eq!(count(Level::DEBUG, "claude_run"), 1, "{all}");
    // The hook and the permission callback.
    assert_eq!(count(Level::DEBUG, "claude_callback"), 2, "{all}");
    assert_eq!(count(Level::WARN, "CallbackFailed"), 1, "{all}");
    assert_eq!(count(Level::ERROR, "mcp_reconnect"), 1, "{all}");
    // The duration of a turn is traced when the turn ends.
    assert_eq!(count(Level::DEBUG, "claude_turn"), 1, "{all}");
    assert_eq!(count(Level::DEBUG, "the turn ended"), 1, "{all}");
    assert!(count(Level::DEBUG, "claude_operation") >= 1, "{all}");
}
