//! The model of a run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::record::Record;
use super::rng::Rng;

/// The maximum number of tool calls between a prompt and its result.
const MOST_ROUNDS: usize = 3;

/// Returns a model whose answers are random.
pub(super) fn script(rng: Rng, record: &Record, healthy: bool) -> Script {
    let state = Mutex::new((rng, 0_u64));
    let record = record.clone();
    Script::respond_with(move |request| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (rng, calls) = &mut *state;
        let rounds = request.assistant_turns_after_last_prompt();
        let reply = if rounds < MOST_ROUNDS && rng.chance(50) {
            record.count("model: tools");
            tools(rng, calls)
        } else {
            record.count("model: text");
            text(rng)
        };
        fault(rng, reply, &record, healthy)
    })
}

fn text(rng: &mut Rng) -> Reply {
    let text = "word ".repeat(rng.between(1, 60));
    let reply = if rng.chance(20) {
        Reply::thinking("hm ".repeat(rng.between(1, 10))).and_text(text)
    } else {
        Reply::text(text)
    };
    reply.deltas_of(rng.pick(&[5, 50, 1_000]))
}

// Each call has a unique number, by which approvals are checked.
fn tools(rng: &mut Rng, calls: &mut u64) -> Reply {
    let mut reply = if rng.chance(30) { text(rng) } else { Reply::new() };
    for _ in 0..rng.pick(&[1, 1, 2, 4]) {
        *calls += 1;
        if rng.chance(10) {
            let background = rng.chance(50);
            let input = json!({"description": "help", "prompt": "help", "subagent_type":
                               "general-purpose", "run_in_background": background});
            reply = reply.and_tool("Agent", input);
            continue;
        }
        if rng.chance(10) {
            let options = json!([{"label": "yes", "description": "y"},
                                 {"label": "no", "description": "n"}]);
            let question = json!({"question": format!("Is {calls} enough?"), "header": "Enough",
                                  "options": options, "multiSelect": false});
            reply = reply.and_tool("AskUserQuestion", json!({"questions": [question]}));
            continue;
        }
        let tool = rng.pick(&["mcp__sim__work", "mcp__sim__work", "mcp__sim__look"]);
        reply = reply.and_tool(tool, json!({"call": *calls}));
    }
    reply
}

fn fault(rng: &mut Rng, reply: Reply, record: &Record, healthy: bool) -> Reply {
    match rng.between(0, 19) {
        0 => {
            record.count("model: pauses");
            reply.pause_between(Duration::from_millis(rng.between(1, 200) as u64))
        }
        1 => {
            record.count("model: late");
            reply.pause_before(rng.moment())
        }
        2 if !healthy => {
            record.count("model: cut off");
            reply.drop_after_events(rng.between(0, 6))
        }
        3 => {
            record.count("model: error");
            let (status, kind) =
                rng.pick(&[(400, "invalid_request_error"), (529, "overloaded_error")]);
            Reply::error(status, kind, "no")
        }
        4 if !healthy => {
            record.count("model: silent");
            reply.hold()
        }
        _ => reply,
    }
}
