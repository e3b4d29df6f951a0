//! A conversation with the simulated CLI, line by line: a hook, a permission, a tool, an interrupt.
//!
//! `cargo run --example quickstart` needs nothing but Rust: no CLI, no key, no network. What goes
//! over the wire is what the real CLI says and wants to hear.

#![expect(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::error::Error;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Sim, SimProcess};
use claude_wire::content::ContentBlock;
use claude_wire::control::{
    CliControlRequest, CliRequest, ControlResponse, HookMatcher, HookOutput, HostControlRequest,
    HostRequest, Initialize, Interrupt, PermissionAllow, PermissionAnswer,
};
use claude_wire::message::{StreamEvent, SystemMessage, UserMessage};
use claude_wire::{Body, Frame, Framer, FromCli, FromHost, Json};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let folder = tempfile::tempdir()?;
    let script = Script::new()
        .when(
            "shopping",
            [
                Reply::thinking("A file will do.")
                    .and_tool("Bash", json!({"command": "echo milk > list.txt && cat list.txt"})),
                Reply::text("I wrote it down."),
            ],
        )
        .when("story", [Reply::text("Once upon a time there was a very long story.").hold()]);
    let process = Sim::new()
        .script(script)
        .args(["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"])
        .args(["--permission-prompt-tool", "stdio", "--include-partial-messages"])
        .cwd(folder.path())
        .start();
    let mut host = Host { process, framer: Framer::default(), requests: 0 };

    println!("-- the handshake registers a hook for the tool Bash");
    let hooks =
        [("PreToolUse".to_owned(), vec![HookMatcher::new(Some("Bash".into()), ["hook_0"])])];
    let mut initialize = Initialize::default();
    initialize.hooks = Some(hooks.into());
    host.ask(HostRequest::Initialize(Box::new(initialize))).await?;
    host.until(|frame| matches!(frame, FromCli::Response(_))).await?;

    println!("\n-- a prompt that takes a tool: the hook and the permission are asked first");
    host.say("Put milk on the shopping list.").await?;
    host.until(is_result).await?;
    println!("   list.txt now holds: {}", std::fs::read_to_string(folder.path().join("list.txt"))?);

    println!("-- a prompt whose answer is interrupted after its first words");
    host.say("Tell me a story.").await?;
    host.until(|frame| delta(frame).is_some()).await?;
    host.ask(HostRequest::Interrupt(Interrupt::default())).await?;
    host.until(is_result).await?;

    println!("\n-- the end");
    host.process.stdin.shutdown().await?;
    println!("   the CLI exits with {}", host.process.wait().await);
    Ok(())
}

/// The host's side of the conversation.
struct Host {
    process: SimProcess,
    framer: Framer,
    requests: u32,
}

impl Host {
    async fn say(&mut self, prompt: &str) -> Outcome<()> {
        self.send("prompt", &FromHost::User(Box::new(UserMessage::prompt(prompt)))).await
    }

    async fn ask(&mut self, request: HostRequest) -> Outcome<()> {
        self.requests += 1;
        let name = request.kind().unwrap_or_default().to_owned();
        let id = format!("req_{}_00000000", self.requests);
        let frame = FromHost::Request(Box::new(HostControlRequest::new(id, request)));
        self.send(&name, &frame).await
    }

    async fn send(&mut self, what: &str, frame: &FromHost) -> Outcome<()> {
        let line = frame.encode()?;
        println!("-> {what:<14} {}", shortened(&String::from_utf8_lossy(&line)));
        Ok(self.process.stdin.write_all(&line).await?)
    }

    /// Reads until a line is like this; answers what the CLI asks on the way.
    async fn until(&mut self, like: impl Fn(&FromCli) -> bool) -> Outcome<()> {
        loop {
            while let Some(Frame::Line(bytes)) = self.framer.next_frame() {
                let frame = FromCli::decode(bytes)?;
                if let Some((what, text)) = told(&frame) {
                    println!("<- {what:<14} {}", shortened(&text));
                }
                if let FromCli::Request(request) = &frame {
                    self.answer(request).await?;
                }
                if like(&frame) {
                    return Ok(());
                }
            }
            if self.process.stdout.read_buf(self.framer.space()).await? == 0 {
                return Err("the CLI closed its output".into());
            }
        }
    }

    async fn answer(&mut self, request: &CliControlRequest) -> Outcome<()> {
        let id = request.request_id.clone();
        let answer = match &request.request {
            // An empty answer lets the tool go on to the permission.
            CliRequest::HookCallback(_) => Json::of(&HookOutput::default())?,
            CliRequest::CanUseTool(call) => {
                let allow = PermissionAllow::with_input(call.input.clone());
                Json::of(&PermissionAnswer::from(allow))?
            }
            other => {
                let text = format!("Unsupported control request subtype: {:?}", other.kind());
                let refusal = FromHost::Response(Box::new(ControlResponse::error(id, text)));
                return self.send("refusal", &refusal).await;
            }
        };
        let response = ControlResponse::success(id, answer);
        self.send("answer", &FromHost::Response(Box::new(response))).await
    }
}

fn is_result(frame: &FromCli) -> bool {
    matches!(frame, FromCli::Message(message) if matches!(message.body, Body::Result(_)))
}

/// The text of a piece of an answer.
fn delta(frame: &FromCli) -> Option<String> {
    let FromCli::Message(message) = frame else { return None };
    let Body::StreamEvent(event) = &message.body else { return None };
    let Some(StreamEvent::ContentBlockDelta(delta)) = &event.event else { return None };
    match delta.delta.as_ref()? {
        claude_wire::message::Delta::Text(text) => Some(text.text.clone()),
        _ => None,
    }
}

/// What a line of the CLI says, for a person. Most lines are left out.
fn told(frame: &FromCli) -> Option<(&'static str, String)> {
    Some(match frame {
        FromCli::Request(request) => match &request.request {
            CliRequest::HookCallback(call) => ("hook?", format!("{:?}", call.input.kind()?)),
            CliRequest::CanUseTool(call) => {
                ("permission?", format!("{} {}", call.tool_name, call.input))
            }
            other => ("request", other.kind()?.to_owned()),
        },
        FromCli::Response(response) => ("response", format!("to {}", response.request_id()?)),
        FromCli::Message(message) => match &message.body {
            Body::System(SystemMessage::Init(init)) => ("turn begins", init.model.clone()?),
            Body::Assistant(answer) => ("assistant", blocks(answer.content())),
            Body::User(user) => ("to the model", blocks(user.content()?.blocks())),
            Body::Result(result) => {
                ("result", format!("{}, error: {}", result.subtype.as_ref()?, result.is_error()))
            }
            _ => ("delta", delta(frame)?),
        },
        _ => return None,
    })
}

fn blocks(blocks: &[ContentBlock]) -> String {
    let words = blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => format!("says {:?}", text.text),
        ContentBlock::Thinking(thinking) => format!("thinks {:?}", thinking.thinking),
        ContentBlock::ToolUse(call) => format!("calls {} {}", call.name, call.input),
        ContentBlock::ToolResult(result) => {
            let text = result.content.as_ref().map(claude_wire::content::Content::to_text);
            format!("the tool gave {:?}", text.unwrap_or_default())
        }
        other => format!("{:?}", other.kind()),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn shortened(text: &str) -> String {
    let line = text.trim_end().replace('\n', " ");
    match line.char_indices().nth(96) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
