//! What the tests of sessions share.

use std::future::Future;
use std::sync::{Arc, Mutex};

use claude_agent_kit::{
    ErrorKind, Item, Json, Messages, Options, Session, Turn, TurnInterruption, TurnOutcome,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;
use claude_wire::message::TerminalReason;
use serde_json::json;
use tests_e2e::harness::{Harness, processes};

use crate::support::{LIMIT, in_time, real, run};

/// Plays the same in memory and on the real CLI.
pub(crate) fn on_both<F: Future<Output = ()>>(
    script: impl Fn() -> Script,
    play: impl Fn(Harness) -> F,
) {
    run(async {
        play(Harness::in_memory(script()).await.unwrap()).await;
        play(Harness::real(script(), real()).await.unwrap()).await;
    });
}

/// Plays in memory.
pub(crate) fn in_memory<F: Future<Output = ()>>(script: Script, play: impl FnOnce(Harness) -> F) {
    run(async { play(Harness::in_memory(script).await.unwrap()).await });
}

/// A model that runs these commands, all in one answer, and then is done.
pub(crate) fn bash(commands: &[&str]) -> Script {
    Script::new().otherwise([calls(commands), Reply::text("Done.")])
}

/// An answer that calls Bash with each of these commands.
pub(crate) fn calls(commands: &[&str]) -> Reply {
    let call = |reply: Reply, command: &&str| {
        reply.and_tool("Bash", json!({"command": command, "description": "Run it"}))
    };
    commands.iter().fold(Reply::new(), call)
}

/// A model that touches the file `made`.
pub(crate) fn touching() -> Script {
    bash(&["touch made"])
}

/// Whether there is such a file in the project.
pub(crate) fn is_made(harness: &Harness, name: &str) -> bool {
    harness.project().join(name).exists()
}

/// The command of a call of Bash.
pub(crate) fn command_of(input: Option<&Json>) -> String {
    let input: serde_json::Value =
        input.and_then(|input| input.deserialize().ok()).unwrap_or_default();
    input["command"].as_str().unwrap_or_default().to_owned()
}

/// Starts a session.
pub(crate) async fn start(options: Options) -> Session {
    in_time(Session::start(options)).await.unwrap()
}

/// Sends a prompt and waits for its result.
pub(crate) async fn turn(session: &Session, prompt: &str) -> TurnOutcome {
    let turn = session.send(prompt).await.unwrap();
    in_time(turn.finish()).await.unwrap()
}

/// One session with one turn.
pub(crate) async fn one_turn(options: Options) -> TurnOutcome {
    let session = start(options).await;
    let outcome = turn(&session, "run it").await;
    session.stop().await.unwrap();
    outcome
}

/// Does something until it has its effect, and not only once: whoever watches for it may begin to do
/// so a moment too late.
pub(crate) async fn again_until(what: &str, mut act: impl FnMut(usize), is_so: impl Fn() -> bool) {
    for round in 0..24 {
        act(round);
        if processes::until(LIMIT / 24, &is_so).await {
            return;
        }
    }
    panic!("{what}");
}

/// Panics without a word: writing a backtrace can take longer than the callback has.
pub(crate) fn panic_silently() -> ! {
    std::panic::resume_unwind(Box::new("as the test wants it"))
}

/// A list that callbacks write to.
#[derive(Debug)]
pub(crate) struct Notes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Notes<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn add(&self, note: T) {
        self.0.lock().unwrap().push(note);
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// The type of a message, or `warning`.
pub(crate) fn kind(item: &Item) -> String {
    match item {
        Item::Message(message) => message.body.kind().unwrap_or("?").to_owned(),
        Item::PermissionRequest(_) => "permission_request".to_owned(),
        Item::Warning(_) => "warning".to_owned(),
    }
}

/// Reads until there is an item like this.
pub(crate) async fn find(messages: &mut Messages, wanted: impl Fn(&Item) -> bool) -> Item {
    in_time(async {
        loop {
            let item = messages.next().await.expect("the stream ended").unwrap();
            if wanted(&item) {
                return item;
            }
        }
    })
    .await
}

/// Whether it is a result.
pub(crate) fn is_result(item: &Item) -> bool {
    item.message().is_some_and(|message| matches!(message.body, Body::Result(_)))
}

/// Whether it is a piece of an answer.
pub(crate) fn is_piece(item: &Item) -> bool {
    let raw = item.message().and_then(|message| message.raw_str().map(str::to_owned));
    raw.is_some_and(|raw| raw.contains("content_block_delta"))
}

/// How many turns are interrupted at once after their message was sent.
pub(crate) const ENDLESS_ROUNDS: usize = 50;

/// A model that never comes to an end of its answer, unless it is asked again.
pub(crate) fn endless() -> Script {
    let answer = Reply::text("A long answer.").deltas_of(3).hold();
    Script::new().when("again", [Reply::text("yes")]).otherwise([answer])
}

/// How a turn of [`endless`] ended, which only an interrupt or a withdrawal can end.
async fn end_of(turn: Turn) -> TurnInterruption {
    match in_time(turn.finish()).await {
        Ok(outcome) => {
            let reason = outcome.result.terminal_reason.as_ref();
            assert_eq!(reason, Some(&TerminalReason::AbortedStreaming), "{:?}", outcome.result);
            TurnInterruption::Interrupted
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::TurnCancelled, "{error}");
            TurnInterruption::Withdrawn
        }
    }
}

/// Sends messages and interrupts the turn of each at once.
pub(crate) async fn end_each_turn_at_once(session: &Session, rounds: usize) {
    for round in 0..rounds {
        let turn = session.send(format!("round {round}")).await.unwrap();
        let told = in_time(turn.interrupt()).await.unwrap();
        assert_eq!(end_of(turn).await, told, "round {round}");
    }
}

/// Sends messages and interrupts the session after each at once. What then still waits is dropped.
pub(crate) async fn interrupt_each_turn_at_once(session: &Session, rounds: usize) {
    for round in 0..rounds {
        let turn = session.send(format!("round {round}")).await.unwrap();
        let id = turn.message_id().clone();
        let told = in_time(session.interrupt()).await.unwrap();
        assert!(told.cancelled.is_empty(), "round {round}: {told:?}");
        if told.turns.contains(&id) {
            assert_eq!(end_of(turn).await, TurnInterruption::Interrupted, "round {round}");
            continue;
        }
        // A message that the CLI has not read yet is named nowhere.
        assert!(
            told.still_queued.is_empty() || told.still_queued == [id],
            "round {round}: {told:?}"
        );
        assert_ne!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::StillQueued);
        end_of(turn).await;
    }
}

/// Whether the model has been told this.
pub(crate) fn model_was_told(harness: &Harness, text: &str) -> bool {
    harness.api().requests().iter().any(|request| request.body.to_string().contains(text))
}
