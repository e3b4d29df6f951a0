//! The CLI under test, as a scenario uses it. Everything is recorded.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use claude_agent_testkit::mock_api::ApiRequest;
use claude_agent_testkit::recorder::RecordingWriter;
use claude_agent_testkit::recording::{Channel, Exit, Recording};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::harness::processes;

use super::backend::{Process, StartedCli};
use super::ids::Ids;
use super::response::{Handler, Response, default_response};
use super::sim_backend::Api;
use super::{Failure, line};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

/// Further bytes of stderr are discarded.
const STDERR_KEPT: usize = 256 * 1024;

/// A running CLI in a scenario.
pub struct Cli {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    lines: mpsc::Receiver<Vec<u8>>,
    readers: Vec<JoinHandle<()>>,
    process: Box<dyn Process>,
    api: Option<Api>,
    recorder: RecordingWriter,
    ids: Ids,
    handler: Handler,
    history: Vec<Value>,
}

impl Cli {
    pub(super) fn new(running: StartedCli, recorder: RecordingWriter, ids: Ids) -> Self {
        let (lines_in, lines) = mpsc::channel(1024);
        let readers = vec![
            tokio::spawn(read_stdout(running.stdout, recorder.clone(), lines_in)),
            tokio::spawn(read_stderr(running.stderr, recorder.clone())),
        ];
        Self {
            stdin: Some(running.stdin),
            lines,
            readers,
            process: running.process,
            api: running.api,
            recorder,
            ids,
            handler: Box::new(default_response),
            history: Vec::new(),
        }
    }

    /// Replaces the handler for requests of the CLI.
    pub(super) fn on_request(&mut self, handler: impl FnMut(&Value) -> Response + Send + 'static) {
        self.handler = Box::new(handler);
    }

    /// Returns the API that the CLI talks to.
    pub(super) fn api(&self) -> Result<&Api, Failure> {
        self.api.as_ref().ok_or_else(|| self.fail("the backend has an API"))
    }

    /// Returns everything that the CLI has written so far.
    pub(super) fn history(&self) -> &[Value] {
        &self.history
    }

    /// Whether the CLI has written a matching line.
    pub(super) fn saw(&self, like: impl Fn(&Value) -> bool) -> bool {
        self.history.iter().any(like)
    }

    /// Fails with this expectation unless `fact` is true.
    pub(super) fn check(&self, fact: bool, expected: &str) -> Result<(), Failure> {
        if fact { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// Creates a failure that contains everything seen so far.
    pub(super) fn fail(&self, expected: &str) -> Failure {
        let recording = String::from_utf8_lossy(&self.recorder.recording().to_bytes()).into_owned();
        let lines = recording.lines().map(|line| {
            let short: String = line.chars().take(600).collect();
            if short.len() < line.len() { short + " …" } else { short }
        });
        Failure::new(expected, lines.collect::<Vec<_>>().join("\n"))
    }

    // --- sending ------------------------------------------------------------------------------

    /// Writes one line.
    pub(super) async fn send(&mut self, frame: &str) -> Result<(), Failure> {
        self.send_lines(&[frame]).await
    }

    /// Writes several lines at once, so that the CLI reads them together.
    pub(super) async fn send_lines(&mut self, frames: &[&str]) -> Result<(), Failure> {
        let bytes = frames.iter().flat_map(|frame| [*frame, "\n"]).collect::<String>();
        let Some(stdin) = &mut self.stdin else {
            return Err(self.fail("stdin is still open"));
        };
        // Recorded before it is written: no response may precede its request.
        self.recorder.record_bytes(Channel::Sent, bytes.as_bytes());
        stdin.write_all(bytes.as_bytes()).await?;
        Ok(stdin.flush().await?)
    }

    /// Returns a new message ID.
    pub(super) fn message_id(&self) -> String {
        self.ids.message()
    }

    /// Sends a prompt with a new ID and returns the ID.
    pub(super) async fn send_prompt(&mut self, prompt: &str) -> Result<String, Failure> {
        let uuid = self.message_id();
        self.send(&user_frame(&json!(prompt), Some(&uuid))).await?;
        Ok(uuid)
    }

    /// Sends a control request and returns its ID.
    pub(super) async fn request(
        &mut self,
        subtype: &str,
        fields: Value,
    ) -> Result<String, Failure> {
        let id = self.ids.request();
        self.send(&request_frame(&id, subtype, &fields)).await?;
        Ok(id)
    }

    /// Closes stdin.
    pub(super) async fn close_input(&mut self) {
        if let Some(mut stdin) = self.stdin.take() {
            self.recorder.record_stdin_closed();
            // Dropping it closes the pipe even if this fails.
            drop(stdin.shutdown().await);
        }
    }

    // --- receiving ----------------------------------------------------------------------------

    /// Returns the next line, or `None` at EOF. Responds to requests of the CLI on the way.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Failure> {
        let Ok(line) = timeout(LIMIT, self.lines.recv()).await else {
            return Err(self.fail("a line within the time limit"));
        };
        let Some(line) = line else { return Ok(None) };
        let value = line::read(&line);
        self.history.push(value.clone());
        if value["type"] == "control_request" {
            self.answer(&value).await?;
        }
        Ok(Some(value))
    }

    /// Responds to a request of the CLI that the handler ignored.
    pub(super) async fn respond(
        &mut self,
        request: &Value,
        payload: &Value,
    ) -> Result<(), Failure> {
        let response = success(&request["request_id"], payload);
        self.send(&format!(r#"{{"type":"control_response","response":{response}}}"#)).await
    }

    async fn answer(&mut self, request: &Value) -> Result<(), Failure> {
        let id = &request["request_id"];
        let response = match (self.handler)(&request["request"]) {
            Response::Ignore => return Ok(()),
            Response::Success(payload) => success(id, &payload),
            Response::Error(text) => {
                format!(r#"{{"subtype":"error","request_id":{id},"error":{}}}"#, json!(text))
            }
        };
        // The CLI may send requests after stdin was closed.
        if self.stdin.is_none() {
            return Ok(());
        }
        self.send(&format!(r#"{{"type":"control_response","response":{response}}}"#)).await
    }

    /// Reads until a line matches, and returns it.
    pub(super) async fn until(
        &mut self,
        expected: &str,
        like: impl Fn(&Value) -> bool,
    ) -> Result<Value, Failure> {
        let overall = tokio::time::Instant::now() + LIMIT;
        while let Some(line) = self.next().await? {
            if like(&line) {
                return Ok(line);
            }
            if tokio::time::Instant::now() > overall {
                break;
            }
        }
        Err(self.fail(expected))
    }

    /// Waits for the next `result`.
    pub(super) async fn result(&mut self) -> Result<Value, Failure> {
        self.until("a result", |line| line["type"] == "result").await
    }

    /// Waits until the CLI reports that it is idle.
    pub(super) async fn idle(&mut self) -> Result<Value, Failure> {
        self.until("the CLI becomes idle", |line| {
            line["subtype"] == "session_state_changed" && line["state"] == "idle"
        })
        .await
    }

    /// Waits for the next request of the CLI with this subtype and returns the whole message.
    pub(super) async fn next_request(&mut self, subtype: &str) -> Result<Value, Failure> {
        self.until(&format!("a control request `{subtype}`"), |line| {
            line["type"] == "control_request" && line["request"]["subtype"] == subtype
        })
        .await
    }

    /// Waits for the response to a control request and returns its `response` object.
    pub(super) async fn response_to(&mut self, id: &str) -> Result<Value, Failure> {
        let frame = self
            .until(&format!("the response to {id}"), |line| {
                line["type"] == "control_response" && line["response"]["request_id"] == id
            })
            .await?;
        Ok(frame["response"].clone())
    }

    // --- request and response -----------------------------------------------------------------

    /// Sends `initialize` without hooks.
    pub(super) async fn initialize(&mut self) -> Result<Value, Failure> {
        self.operation("initialize", json!({})).await
    }

    /// Sends an operation that must succeed and returns its payload.
    pub(super) async fn operation(
        &mut self,
        subtype: &str,
        fields: Value,
    ) -> Result<Value, Failure> {
        let id = self.request(subtype, fields).await?;
        let answer = self.response_to(&id).await?;
        self.check(answer["subtype"] == "success", &format!("`{subtype}` succeeds"))?;
        Ok(answer["response"].clone())
    }

    /// Sends an operation that must fail and returns the response.
    pub(super) async fn rejected_operation(
        &mut self,
        subtype: &str,
        fields: Value,
    ) -> Result<Value, Failure> {
        let id = self.request(subtype, fields).await?;
        let answer = self.response_to(&id).await?;
        self.check(answer["subtype"] == "error", &format!("`{subtype}` is rejected"))?;
        Ok(answer)
    }

    /// Sends a prompt, waits for its result and for idle, and returns the result.
    pub(super) async fn turn(&mut self, prompt: &str) -> Result<Value, Failure> {
        self.send_prompt(prompt).await?;
        let result = self.result().await?;
        self.idle().await?;
        Ok(result)
    }

    /// Waits with the time limit for something other than a message.
    pub(super) async fn wait<T>(
        &mut self,
        expected: &str,
        what: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        timeout(LIMIT, what).await.map_err(|_| self.fail(expected))
    }

    /// Waits until the model has received a prompt that contains `part`.
    pub(super) async fn model_is_asked(&mut self, part: &str) -> Result<(), Failure> {
        let api = self.api()?;
        let is_asked = || {
            let requests = api.requests();
            let mut prompts = requests.iter().flat_map(ApiRequest::prompts);
            prompts.any(|prompt| prompt.contains(part))
        };
        let asked = processes::until(LIMIT, is_asked).await;
        self.check(asked, "the model receives the prompt")
    }

    /// Closes stdin, reads the rest, and expects this exit code.
    pub(super) async fn finish(mut self, code: i32) -> Result<Recording, Failure> {
        let exit = self.run_to_the_end().await;
        self.check(exit == Exit::Code(code), &format!("exit code {code}"))?;
        Ok(self.recorder.recording())
    }

    /// Closes stdin, reads the rest and waits for the exit, with any status.
    pub(super) async fn end(mut self) -> Recording {
        self.run_to_the_end().await;
        self.recorder.recording()
    }

    async fn run_to_the_end(&mut self) -> Exit {
        self.close_input().await;
        let exit = self.read_until_the_end().await;
        for reader in self.readers.drain(..) {
            // The streams end with the process unless one of its children holds them open.
            drop(timeout(LIMIT, reader).await);
        }
        self.recorder.record_exit(exit);
        exit
    }
}

impl Cli {
    /// Keeps reading while the process exits, because it cannot exit while it blocks on a write.
    async fn read_until_the_end(&mut self) -> Exit {
        let mut end = self.process.end();
        let exit = loop {
            tokio::select! {
                biased;
                Some(line) = self.lines.recv() => self.history.push(line::read(&line)),
                exit = &mut end => break exit,
            }
        };
        while let Ok(Some(line)) = timeout(LIMIT, self.lines.recv()).await {
            self.history.push(line::read(&line));
        }
        exit
    }
}

impl fmt::Debug for Cli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cli").finish_non_exhaustive()
    }
}

fn success(id: &Value, payload: &Value) -> String {
    format!(r#"{{"subtype":"success","request_id":{id},"response":{payload}}}"#)
}

/// Formats a user message with the key order of the SDK.
pub(super) fn user_frame(content: &Value, uuid: Option<&str>) -> String {
    let uuid = uuid.map(|uuid| format!(r#","uuid":"{uuid}""#)).unwrap_or_default();
    format!(
        r#"{{"type":"user","message":{{"role":"user","content":{content}}},"parent_tool_use_id":null,"session_id":""{uuid}}}"#
    )
}

fn request_frame(id: &str, subtype: &str, fields: &Value) -> String {
    let fields = fields.to_string();
    let rest = match fields.strip_prefix('{') {
        Some("}") | None => "}".to_owned(),
        Some(rest) => format!(",{rest}"),
    };
    format!(
        r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"{subtype}"{rest}}}"#
    )
}

/// Records stdout and splits it into lines until EOF.
async fn read_stdout(
    mut stdout: Box<dyn AsyncRead + Send + Unpin>,
    recorder: RecordingWriter,
    lines: mpsc::Sender<Vec<u8>>,
) {
    let mut chunk = vec![0; 64 * 1024];
    let mut unfinished = Vec::new();
    while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
        recorder.record_bytes(Channel::Received, &chunk[..count]);
        unfinished.extend_from_slice(&chunk[..count]);
        while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
            let rest = unfinished.split_off(end + 1);
            unfinished.truncate(end);
            // Keeps recording after the receiver was dropped.
            drop(lines.send(std::mem::replace(&mut unfinished, rest)).await);
        }
    }
    recorder.record_stdout_closed();
}

async fn read_stderr(mut stderr: Box<dyn AsyncRead + Send + Unpin>, recorder: RecordingWriter) {
    let mut chunk = vec![0; 16 * 1024];
    let mut kept = 0;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        if kept < STDERR_KEPT {
            recorder.record_bytes(Channel::Stderr, &chunk[..count]);
            kept += count;
        }
    }
}
