//! What the model of a seed says.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::draw::Draw;
use super::record::Record;

/// The most tool calls between a prompt and its result.
const MOST_ROUNDS: usize = 3;

/// A model that draws each of its answers.
pub(super) fn script(draw: Draw, record: &Record, healthy: bool) -> Script {
    let state = Mutex::new((draw, 0_u64));
    let record = record.clone();
    Script::respond_with(move |request| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (draw, calls) = &mut *state;
        let rounds = request.assistant_turns_after_last_prompt();
        let reply = if rounds < MOST_ROUNDS && draw.chance(50) {
            record.count("model: tools");
            tools(draw, calls)
        } else {
            record.count("model: text");
            text(draw)
        };
        fault(draw, reply, &record, healthy)
    })
}

fn text(draw: &mut Draw) -> Reply {
    let text = "word ".repeat(draw.between(1, 60));
    let reply = if draw.chance(20) {
        Reply::thinking("hm ".repeat(draw.between(1, 10))).and_text(text)
    } else {
        Reply::text(text)
    };
    reply.deltas_of(draw.pick(&[5, 50, 1_000]))
}

/// Each call has a number of its own, by which approvals are checked.
fn tools(draw: &mut Draw, calls: &mut u64) -> Reply {
    let mut reply = if draw.chance(30) { text(draw) } else { Reply::new() };
    for _ in 0..draw.pick(&[1, 1, 2, 4]) {
        *calls += 1;
        if draw.chance(10) {
            let background = draw.chance(50);
            let input = json!({"description": "help", "prompt": "help", "subagent_type":
                               "general-purpose", "run_in_background": background});
            reply = reply.and_tool("Agent", input);
            continue;
        }
        if draw.chance(10) {
            let options = json!([{"label": "yes", "description": "y"},
                                 {"label": "no", "description": "n"}]);
            let question = json!({"question": format!("Is {calls} enough?"), "header": "Enough",
                                  "options": options, "multiSelect": false});
            reply = reply.and_tool("AskUserQuestion", json!({"questions": [question]}));
            continue;
        }
        let tool = draw.pick(&["mcp__sim__work", "mcp__sim__work", "mcp__sim__look"]);
        reply = reply.and_tool(tool, json!({"call": *calls}));
    }
    reply
}

fn fault(draw: &mut Draw, reply: Reply, record: &Record, healthy: bool) -> Reply {
    match draw.between(0, 19) {
        0 => {
            record.count("model: pauses");
            reply.pause_between(Duration::from_millis(draw.between(1, 200) as u64))
        }
        1 => {
            record.count("model: late");
            reply.pause_before(draw.moment())
        }
        2 if !healthy => {
            record.count("model: cut off");
            reply.drop_after_events(draw.between(0, 6))
        }
        3 => {
            record.count("model: error");
            let (status, kind) =
                draw.pick(&[(400, "invalid_request_error"), (529, "overloaded_error")]);
            Reply::error(status, kind, "no")
        }
        4 if !healthy => {
            record.count("model: silent");
            reply.hold()
        }
        _ => reply,
    }
}
