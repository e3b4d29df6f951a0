//! The fake CLI of the benchmarks. It implements the parts of the protocol that the workloads need, with minimal
//! overhead. The file `plan` beside it contains the workload and the count.
//!
//! The text of its result is the figure of the round trips, or the time at which it started to write.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::time::Instant;

use claude_benches::{Outcome, Work, median, now};
use serde_json::Value;

const INIT: &str = r#"{"type":"system","subtype":"init","cwd":"/srv/project","session_id":"26b2e340-f3b7-46c3-a124-f93c60a48c96","tools":["Bash","Read"],"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","slash_commands":["clear"],"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.325","output_style":"default","agents":[],"skills":[],"plugins":[],"uuid":"6a9d514e-510a-44a6-aa26-e67fccfbf8e0"}"#;

const DELTA: &str = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some more words "}},"session_id":"4ca8c1ef-bad4-40ce-9e0c-b53b36c052b3","parent_tool_use_id":null,"uuid":"90b07c11-5db6-48a4-8b74-d15f4c8c6194"}"#;

/// The number of bytes per write.
const CHUNK: usize = 1 << 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--version" || argument == "-v") {
        println!("2.1.325 (Claude Code)");
        return Ok(());
    }
    let plan = fs::read_to_string(env::current_exe()?.with_file_name("plan"))?;
    let (work, count) =
        plan.trim().split_once(' ').ok_or("`plan` does not contain a workload and a count")?;
    let mut cli = Cli {
        work: Work::named(work)?,
        count: count.parse()?,
        input: io::stdin().lock(),
        output: io::stdout().lock(),
        hook: String::new(),
    };
    if arguments.iter().any(|argument| argument.starts_with("--input-format")) {
        cli.serve()
    } else {
        // The prompt is a line of text.
        cli.read(&mut String::new())?;
        cli.turn()
    }
}

struct Cli {
    work: Work,
    count: usize,
    input: io::StdinLock<'static>,
    output: io::StdoutLock<'static>,
    /// The ID of the client's hook callback.
    hook: String,
}

impl Cli {
    /// Handles messages of the client until EOF.
    fn serve(&mut self) -> Outcome<()> {
        let mut line = String::new();
        while self.read(&mut line)? {
            let message: Value = serde_json::from_str(&line)?;
            match message["type"].as_str() {
                Some("control_request") => self.respond(&message)?,
                Some("user") => self.turn()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, line: &mut String) -> Outcome<bool> {
        line.clear();
        Ok(self.input.read_line(line)? > 0)
    }

    fn write_line(&mut self, line: &str) -> Outcome<()> {
        self.output.write_all(line.as_bytes())?;
        self.output.write_all(b"\n")?;
        Ok(self.output.flush()?)
    }

    fn respond(&mut self, request: &Value) -> Outcome<()> {
        let request_id = &request["request_id"];
        let response = if request["request"]["subtype"] == "initialize" {
            if let Some(id) = first_string(&request["request"]["hooks"]) {
                self.hook = id.to_owned();
            }
            r#"{"commands":[],"agents":[],"output_style":"default","available_output_styles":["default"],"models":[],"account":{},"pid":1,"hooks_applied":true}"#
        } else {
            "{}"
        };
        self.write_line(&format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{request_id},"response":{response}}}}}"#
        ))
    }

    fn turn(&mut self) -> Outcome<()> {
        self.write_line(INIT)?;
        let reported = match self.work {
            Work::Flood => self.write_many(&assistant(400))?.to_string(),
            Work::Deltas => self.write_many(DELTA)?.to_string(),
            Work::Line => self.write_long()?.to_string(),
            Work::Hook | Work::Permission | Work::Tool => match self.round_trips() {
                Ok(figure) => format!("{figure:.3}"),
                Err(error) => error.to_string(),
            },
            Work::First | Work::Sessions | Work::Idle => {
                self.write_line(&assistant(400))?;
                "done".to_owned()
            }
        };
        let reported = Value::from(reported);
        self.write_line(&format!(
            r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":{reported},"stop_reason":"end_turn","session_id":"26b2e340-f3b7-46c3-a124-f93c60a48c96","total_cost_usd":0.01,"usage":{{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard"}},"modelUsage":{{}},"permission_denials":[],"uuid":"08fea91c-77c0-4916-8415-fd4fea3f62db"}}"#
        ))
    }

    /// Writes a line `count` times in large chunks and returns the start time.
    fn write_many(&mut self, line: &str) -> Outcome<u64> {
        let line = format!("{line}\n");
        let at_once = (CHUNK / line.len()).min(self.count);
        let chunk = line.repeat(at_once);
        let began = now();
        let mut left = self.count;
        while left > 0 {
            let now = at_once.min(left);
            self.output.write_all(&chunk.as_bytes()[..now * line.len()])?;
            left -= now;
        }
        Ok(began)
    }

    fn write_long(&mut self) -> Outcome<u64> {
        let line = assistant(self.count);
        let began = now();
        self.write_line(&line)?;
        Ok(began)
    }

    /// Returns the median of `count` sequential round trips, in microseconds.
    fn round_trips(&mut self) -> Outcome<f64> {
        if self.work == Work::Tool {
            self.initialize_server()?;
        }
        let (mut request, mut answer) = (String::new(), String::new());
        let mut trips = Vec::with_capacity(self.count);
        for trip in 0..self.count {
            request.clear();
            self.write_request(&mut request, trip)?;
            let began = Instant::now();
            self.write_line(&request)?;
            self.read(&mut answer)?;
            trips.push(began.elapsed().as_secs_f64() * 1e6);
            self.check(&answer, &format!("cli_{trip}"))?;
        }
        median(trips)
    }

    /// Initializes the MCP server as the real CLI does.
    fn initialize_server(&mut self) -> Outcome<()> {
        for (id, message) in [
            (
                "mcp_0",
                r#"{"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"claude-code","version":"2.1.325"}},"jsonrpc":"2.0","id":0}"#,
            ),
            ("mcp_1", r#"{"method":"notifications/initialized","jsonrpc":"2.0"}"#),
            ("mcp_2", r#"{"method":"tools/list","jsonrpc":"2.0","id":1}"#),
        ] {
            self.write_line(&format!(
                r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"mcp_message","server_name":"calc","message":{message}}}}}"#
            ))?;
            let mut answer = String::new();
            self.read(&mut answer)?;
        }
        Ok(())
    }

    fn write_request(&self, line: &mut String, trip: usize) -> Outcome<()> {
        match self.work {
            Work::Hook => write!(
                line,
                r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"hook_callback","callback_id":"{}","input":{{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"ls"}},"tool_use_id":"toolu_{trip}"}},"tool_use_id":"toolu_{trip}"}}}}"#,
                self.hook
            )?,
            Work::Permission => write!(
                line,
                r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{{"command":"ls"}},"permission_suggestions":[],"tool_use_id":"toolu_{trip}"}}}}"#
            )?,
            _ => write!(
                line,
                r#"{{"type":"control_request","request_id":"cli_{trip}","request":{{"subtype":"mcp_message","server_name":"calc","message":{{"method":"tools/call","params":{{"name":"add","arguments":{{"a":2,"b":3}},"_meta":{{"claudecode/toolUseId":"toolu_{trip}","progressToken":{trip}}}}},"jsonrpc":"2.0","id":{}}}}}}}"#,
                trip + 2
            )?,
        }
        Ok(())
    }

    /// Checks a response. Not timed.
    fn check(&self, answer: &str, id: &str) -> Outcome<()> {
        let message: Value = serde_json::from_str(answer).unwrap_or_default();
        let response = &message["response"];
        let good = response["subtype"] == "success"
            && response["request_id"] == id
            && match self.work {
                Work::Hook => true,
                Work::Permission => response["response"]["behavior"] == "allow",
                _ => response["response"]["mcp_response"]["result"]["content"][0]["text"] == "5",
            };
        if good { Ok(()) } else { Err(format!("unexpected response: {}", answer.trim()).into()) }
    }
}

/// Returns the first callback ID among the hooks of `initialize`.
fn first_string(hooks: &Value) -> Option<&str> {
    let mut matchers = hooks.as_object()?.values().filter_map(Value::as_array).flatten();
    matchers.find_map(|matcher| matcher["hookCallbackIds"][0].as_str())
}

/// Formats an assistant message with a text of this many bytes.
fn assistant(bytes: usize) -> String {
    let words = "The quick brown fox jumps over the lazy dog. ";
    let text = words.repeat(bytes / words.len() + 1);
    format!(
        r#"{{"type":"assistant","message":{{"id":"msg_1794769616569207","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":"{}"}}],"stop_reason":null,"stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}},"context_management":null}},"parent_tool_use_id":null,"session_id":"26b2e340-f3b7-46c3-a124-f93c60a48c96","uuid":"5cac1209-2cab-44a4-bb84-e158f8cb4683","timestamp":"2026-11-15T19:06:56.574Z"}}"#,
        &text[..bytes]
    )
}
