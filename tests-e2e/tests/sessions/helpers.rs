//! Helpers for the tests of sessions.

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

/// Runs the same test in memory and on the real CLI.
pub(crate) fn on_both<F: Future<Output = ()>>(
    script: impl Fn() -> Script,
    play: impl Fn(Harness) -> F,
) {
    run(async {
        play(Harness::in_memory(script()).await.unwrap()).await;
        play(Harness::real(script(), real()).await.unwrap()).await;
    });
}

/// Runs the same test in memory and on the real CLI, without and with an in-process server. With one, the CLI replays
/// a deferred call after the handshake.
pub(crate) fn with_and_without_tools<F: Future<Output = ()>>(
    script: impl Fn() -> Script,
    play: impl Fn(Harness) -> F,
) {
    on_both(&script, &play);
    run(async {
        play(Harness::in_memory(script()).await.unwrap().with_tools()).await;
        play(Harness::real(script(), real()).await.unwrap().with_tools()).await;
    });
}

/// Runs the same test on the real CLI, without and with an in-process server.
pub(crate) fn real_with_and_without_tools<F: Future<Output = ()>>(
    script: impl Fn() -> Script,
    play: impl Fn(Harness) -> F,
) {
    run(async {
        play(Harness::real(script(), real()).await.unwrap()).await;
        play(Harness::real(script(), real()).await.unwrap().with_tools()).await;
    });
}

/// Runs a test in memory.
pub(crate) fn in_memory<F: Future<Output = ()>>(script: Script, play: impl FnOnce(Harness) -> F) {
    run(async { play(Harness::in_memory(script).await.unwrap()).await });
}

/// Returns a model that runs these commands, all in one answer, and then ends its turn.
pub(crate) fn bash(commands: &[&str]) -> Script {
    Script::new().otherwise([calls(commands), Reply::text("Done.")])
}

/// Returns an answer that calls Bash with each of these commands.
pub(crate) fn calls(commands: &[&str]) -> Reply {
    let call = |reply: Reply, command: &&str| {
        reply.and_tool("Bash", json!({"command": command, "description": "Run it"}))
    };
    commands.iter().fold(Reply::new(), call)
}

/// Returns a model that creates the file `made`.
pub(crate) fn touch_script() -> Script {
    bash(&["touch made"])
}

/// Returns whether the project contains this file.
pub(crate) fn has_file(harness: &Harness, name: &str) -> bool {
    harness.project().join(name).exists()
}

/// Returns the command of a Bash call.
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

/// Runs a session with one turn.
pub(crate) async fn one_turn(options: Options) -> TurnOutcome {
    let session = start(options).await;
    let outcome = turn(&session, "run it").await;
    session.stop().await.unwrap();
    outcome
}

/// Repeats an action until it has had its effect, because the observer may start to watch a moment
/// too late.
pub(crate) async fn repeat_until(what: &str, mut act: impl FnMut(usize), is_so: impl Fn() -> bool) {
    for round in 0..24 {
        act(round);
        if processes::until(LIMIT / 24, &is_so).await {
            return;
        }
    }
    panic!("{what}");
}

/// Panics without running the panic hook: writing a backtrace can take longer than the callback may
/// take.
pub(crate) fn panic_silently() -> ! {
    std::panic::resume_unwind(Box::new("deliberate failure"))
}

/// A list that callbacks append to.
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

/// Returns the type of a message, or `warning`.
pub(crate) fn kind(item: &Item) -> String {
    match item {
        Item::Message(message) => message.body.kind().unwrap_or("?").to_owned(),
        Item::PermissionRequest(_) => "permission_request".to_owned(),
        Item::Warning(_) => "warning".to_owned(),
    }
}

/// Reads until an item satisfies `wanted`.
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

/// Returns whether an item is a result.
pub(crate) fn is_result(item: &Item) -> bool {
    item.message().is_some_and(|message| matches!(message.body, Body::Result(_)))
}

/// Returns whether an item is a part of a streamed answer.
pub(crate) fn is_delta(item: &Item) -> bool {
    let raw = item.message().and_then(|message| message.raw_str().map(str::to_owned));
    raw.is_some_and(|raw| raw.contains("content_block_delta"))
}

/// How many turns are interrupted immediately after their message was sent.
pub(crate) const ENDLESS_ROUNDS: usize = 50;

/// Returns a model whose answer never ends, unless the prompt is "again".
pub(crate) fn endless_script() -> Script {
    let answer = Reply::text("A long answer.").deltas_of(3).hold();
    Script::new().when("again", [Reply::text("yes")]).otherwise([answer])
}

/// Returns how a turn of [`endless_script`] ended; only an interrupt or a withdrawal can end it.
async fn interruption_of(turn: Turn) -> TurnInterruption {
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

/// Sends messages and interrupts each turn immediately.
pub(crate) async fn interrupt_each_turn(session: &Session, rounds: usize) {
    for round in 0..rounds {
        let turn = session.send(format!("round {round}")).await.unwrap();
        let interruption = in_time(turn.interrupt()).await.unwrap();
        assert_eq!(interruption_of(turn).await, interruption, "round {round}");
    }
}

/// Sends messages and interrupts the session immediately after each one; a message that is then
/// still queued is withdrawn.
pub(crate) async fn interrupt_session_after_each_send(session: &Session, rounds: usize) {
    for round in 0..rounds {
        let turn = session.send(format!("round {round}")).await.unwrap();
        let id = turn.message_id().clone();
        let interruption = in_time(session.interrupt()).await.unwrap();
        assert!(interruption.cancelled.is_empty(), "round {round}: {interruption:?}");
        if interruption.turns.contains(&id) {
            assert_eq!(interruption_of(turn).await, TurnInterruption::Interrupted, "round {round}");
            continue;
        }
        // A message that the CLI has not read yet is in neither list.
        assert!(
            interruption.still_queued.is_empty() || interruption.still_queued == [id],
            "round {round}: {interruption:?}"
        );
        assert_ne!(in_time(turn.interrupt()).await.unwrap(), TurnInterruption::StillQueued);
        interruption_of(turn).await;
    }
}

/// Returns whether a request to the model contains this text.
pub(crate) fn model_received(harness: &Harness, text: &str) -> bool {
    harness.api().requests().iter().any(|request| request.body.to_string().contains(text))
}
