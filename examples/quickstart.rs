//! Plays a recorded session with the real CLI through the decoder and prints the conversation.
//!
//! `cargo run --example quickstart` needs nothing but Rust: no CLI, no key, no network.

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::error::Error;

use claude_agent_testkit::recording::{Recording, What};
use claude_wire::content::ContentBlock;
use claude_wire::control::{CliRequest, ControlOutcome, HostRequest};
use claude_wire::message::SystemMessage;
use claude_wire::{Body, FromCli, FromHost};

const RECORDING: &[u8] =
    include_bytes!("../crates/claude-wire/tests/corpus/2.1.325/hooks_permission.wire");

fn main() -> Result<(), Box<dyn Error>> {
    let recording = Recording::parse(RECORDING)?;
    println!("{}: {}", recording.header.scenario, recording.header.about);
    println!(
        "recorded with claude {} on {}\n",
        recording.header.cli_version, recording.header.date
    );
    for entry in &recording.entries {
        let said = match &entry.what {
            What::Sent(line) => host(&FromHost::decode(line.clone())?).map(|text| ("->", text)),
            What::Received(line) => cli(&FromCli::decode(line.clone())?).map(|text| ("<-", text)),
            What::InputClosed => Some(("->", "closes stdin".to_owned())),
            What::Exited(exit) => Some(("<-", format!("exits with {exit}"))),
            _ => None,
        };
        if let Some((arrow, text)) = said {
            println!("{:8.3}  {arrow} {}", entry.at.as_secs_f64(), shortened(&text));
        }
    }
    Ok(())
}

/// What the host says.
fn host(frame: &FromHost) -> Option<String> {
    Some(match frame {
        FromHost::User(prompt) => format!("prompt: {}", prompt.content()?.to_text()),
        FromHost::Request(request) => match &request.request {
            HostRequest::Initialize(initialize) => {
                let events = initialize.hooks.as_ref().map_or(0, std::collections::BTreeMap::len);
                format!("handshake, with hooks on {events} events")
            }
            request => format!("asks: {}", request.kind()?),
        },
        FromHost::Response(answer) => match &answer.response {
            ControlOutcome::Success(success) => format!("answers: {}", success.response.as_ref()?),
            ControlOutcome::Error(failure) => format!("refuses: {}", failure.error),
            _ => return None,
        },
        _ => return None,
    })
}

/// What the CLI says.
fn cli(frame: &FromCli) -> Option<String> {
    Some(match frame {
        FromCli::Message(message) => match &message.body {
            Body::System(SystemMessage::Init(init)) => {
                format!("a turn begins: {} with {} tools", init.model.as_deref()?, init.tools.len())
            }
            Body::Assistant(answer) => {
                answer.content().iter().filter_map(block).collect::<Vec<_>>().join("; ")
            }
            Body::User(user) => {
                user.content()?.blocks().iter().filter_map(block).collect::<Vec<_>>().join("; ")
            }
            Body::Result(result) => format!(
                "the turn ended: {}, ${:.5}",
                result.subtype.as_ref()?,
                result.total_cost_usd.as_ref()?.as_f64()
            ),
            _ => return None,
        },
        FromCli::Request(request) => match &request.request {
            CliRequest::HookCallback(call) => format!("hook {}?", call.input.kind()?),
            CliRequest::CanUseTool(call) => format!("may {} run {}?", call.tool_name, call.input),
            request => format!("asks: {}", request.kind()?),
        },
        FromCli::Response(answer) => match &answer.response {
            ControlOutcome::Success(_) => "done".to_owned(),
            ControlOutcome::Error(failure) => format!("refuses: {}", failure.error),
            _ => return None,
        },
        _ => return None,
    })
}

fn block(block: &ContentBlock) -> Option<String> {
    Some(match block {
        ContentBlock::Text(text) => format!("says: {}", text.text),
        ContentBlock::Thinking(thinking) => format!("thinks: {}", thinking.thinking),
        ContentBlock::ToolUse(call) => format!("calls {} {}", call.name, call.input),
        ContentBlock::ToolResult(result) => {
            format!("the tool gave: {}", result.content.as_ref()?.to_text())
        }
        _ => return None,
    })
}

fn shortened(text: &str) -> String {
    let line = text.replace('\n', " ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
