//! The CLI under test, as a scenario sees it: frames in, lines out, everything on tape.

use std::{fmt, future::Future, time::Duration};

use claude_agent_testkit::{
    mock_api::ApiRequest,
    recorder::RecordingWriter,
    recording::{Channel, Exit, Recording},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use crate::stage::processes;

use super::{
    Failure,
    answer::{Answer, Handler, agreeable},
    backend::{Process, Running},
    ids::Ids,
    line,
    sim_backend::Api,
};

/// Far more than anything here takes, so that only what never comes runs into it.
const LIMIT: Duration = Duration::from_secs(120);

/// Beyond this much stderr is drained and not kept.
const STDERR_KEPT: usize = 256 * 1024;

/// A running CLI in a scenario.
pub struct Cli {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    lines: mpsc::Receiver<Vec<u8>>,
    readers: Vec<JoinHandle<()>>,
    process: Box<dyn Process>,
    api: Option<Api>,
    tape: RecordingWriter,
    ids: Ids,
    handler: Handler,
    history: Vec<Value>,
}

impl Cli {
    pub(super) fn new(running: Running, tape: RecordingWriter, ids: Ids) -> Self {
        let (lines_in, lines) = mpsc::channel(1024);
        let readers = vec![
            tokio::spawn(read_stdout(running.stdout, tape.clone(), lines_in)),
            tokio::spawn(read_stderr(running.stderr, tape.clone())),
        ];
        Self {
            stdin: Some(running.stdin),
            lines,
            readers,
            process: running.process,
            api: running.api,
            tape,
            ids,
            handler: Box::new(agreeable),
            history: Vec::new(),
        }
    }

    /// Replaces what is answered to the requests of the CLI.
    pub(super) fn on_request(&mut self, handler: impl FnMut(&Value) -> Answer + Send + 'static) {
        self.handler = Box::new(handler);
    }

    /// What stands behind the CLI.
    pub(super) fn api(&self) -> Result<&Api, Failure> {
        self.api.as_ref().ok_or_else(|| self.fail("there is something behind the CLI"))
    }

    /// Everything that the CLI wrote until now.
    pub(super) fn history(&self) -> &[Value] {
        &self.history
    }

    /// Whether the CLI has written a line like this.
    pub(super) fn saw(&self, like: impl Fn(&Value) -> bool) -> bool {
        self.history.iter().any(like)
    }

    /// Fails with this text unless it is true.
    pub(super) fn check(&self, fact: bool, expected: &str) -> Result<(), Failure> {
        if fact { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// A failure that shows everything seen so far.
    pub(super) fn fail(&self, expected: &str) -> Failure {
        let recording = String::from_utf8_lossy(&self.tape.recording().to_bytes()).into_owned();
        let lines = recording.lines().map(|line| {
            let short: String = line.chars().take(600).collect();
            if short.len() < line.len() { short + " …" } else { short }
        });
        Failure::new(expected, lines.collect::<Vec<_>>().join("\n"))
    }

    // --- what is sent -------------------------------------------------------------------------

    /// Writes one line.
    pub(super) async fn send(&mut self, frame: &str) -> Result<(), Failure> {
        self.send_lines(&[frame]).await
    }

    /// Writes several lines in one go, so that the CLI finds them together.
    pub(super) async fn send_lines(&mut self, frames: &[&str]) -> Result<(), Failure> {
        let bytes = frames.iter().flat_map(|frame| [*frame, "\n"]).collect::<String>();
        let Some(stdin) = &mut self.stdin else {
            return Err(self.fail("stdin is still open"));
        };
        // Noted before it is written: no answer may stand before its question.
        self.tape.record_bytes(Channel::Sent, bytes.as_bytes());
        stdin.write_all(bytes.as_bytes()).await?;
        Ok(stdin.flush().await?)
    }

    /// A fresh id for a message.
    pub(super) fn message_id(&self) -> String {
        self.ids.message()
    }

    /// Sends a prompt with an id, which it returns.
    pub(super) async fn say(&mut self, prompt: &str) -> Result<String, Failure> {
        let uuid = self.message_id();
        self.send(&user_frame(&json!(prompt), Some(&uuid))).await?;
        Ok(uuid)
    }

    /// Sends a control request and returns its id.
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
            self.tape.record_stdin_closed();
            // Dropping closes it whatever the answer.
            drop(stdin.shutdown().await);
        }
    }

    // --- what is received ---------------------------------------------------------------------

    /// The next line, or nothing at the end of stdout. Requests of the CLI are answered on the way.
    pub(super) async fn next(&mut self) -> Result<Option<Value>, Failure> {
        let Ok(line) = timeout(LIMIT, self.lines.recv()).await else {
            return Err(self.fail("a line within the limit"));
        };
        let Some(line) = line else { return Ok(None) };
        let value = line::read(&line);
        self.history.push(value.clone());
        if value["type"] == "control_request" {
            self.answer(&value).await?;
        }
        Ok(Some(value))
    }

    async fn answer(&mut self, request: &Value) -> Result<(), Failure> {
        let id = &request["request_id"];
        let response = match (self.handler)(&request["request"]) {
            Answer::Silence => return Ok(()),
            Answer::Success(payload) => {
                format!(r#"{{"subtype":"success","request_id":{id},"response":{payload}}}"#)
            }
            Answer::Error(text) => {
                format!(r#"{{"subtype":"error","request_id":{id},"error":{}}}"#, json!(text))
            }
        };
        // The CLI may ask while its input is already closed; then nobody can answer it.
        if self.stdin.is_none() {
            return Ok(());
        }
        self.send(&format!(r#"{{"type":"control_response","response":{response}}}"#)).await
    }

    /// Reads until a line is like this, and returns it.
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

    /// The next `result`.
    pub(super) async fn result(&mut self) -> Result<Value, Failure> {
        self.until("a result", |line| line["type"] == "result").await
    }

    /// The next report that the CLI is idle.
    pub(super) async fn idle(&mut self) -> Result<Value, Failure> {
        self.until("the CLI becomes idle", |line| {
            line["subtype"] == "session_state_changed" && line["state"] == "idle"
        })
        .await
    }

    /// The next request of the CLI of this subtype: the whole frame.
    pub(super) async fn asked(&mut self, subtype: &str) -> Result<Value, Failure> {
        self.until(&format!("a control request `{subtype}`"), |line| {
            line["type"] == "control_request" && line["request"]["subtype"] == subtype
        })
        .await
    }

    /// The answer to a control request: its `response` object, success or error.
    pub(super) async fn answer_to(&mut self, id: &str) -> Result<Value, Failure> {
        let frame = self
            .until(&format!("the answer to {id}"), |line| {
                line["type"] == "control_response" && line["response"]["request_id"] == id
            })
            .await?;
        Ok(frame["response"].clone())
    }

    // --- both together ------------------------------------------------------------------------

    /// The handshake without hooks.
    pub(super) async fn initialize(&mut self) -> Result<Value, Failure> {
        self.ask("initialize", json!({})).await
    }

    /// Asks for an operation that succeeds; returns its payload.
    pub(super) async fn ask(&mut self, subtype: &str, fields: Value) -> Result<Value, Failure> {
        let id = self.request(subtype, fields).await?;
        let answer = self.answer_to(&id).await?;
        self.check(answer["subtype"] == "success", &format!("`{subtype}` succeeds"))?;
        Ok(answer["response"].clone())
    }

    /// Asks for an operation that fails; returns the answer.
    pub(super) async fn refused(&mut self, subtype: &str, fields: Value) -> Result<Value, Failure> {
        let id = self.request(subtype, fields).await?;
        let answer = self.answer_to(&id).await?;
        self.check(answer["subtype"] == "error", &format!("`{subtype}` is refused"))?;
        Ok(answer)
    }

    /// Sends a prompt and waits for its result and for idle; returns the result.
    pub(super) async fn turn(&mut self, prompt: &str) -> Result<Value, Failure> {
        self.say(prompt).await?;
        let result = self.result().await?;
        self.idle().await?;
        Ok(result)
    }

    /// Waits under the limit for something beside the wire.
    pub(super) async fn wait<T>(
        &mut self,
        expected: &str,
        what: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        timeout(LIMIT, what).await.map_err(|_| self.fail(expected))
    }

    /// Waits until the model was asked something of which this is a part.
    pub(super) async fn model_is_asked(&mut self, part: &str) -> Result<(), Failure> {
        let api = self.api()?;
        let is_asked = || {
            let requests = api.requests();
            let mut prompts = requests.iter().flat_map(ApiRequest::prompts);
            prompts.any(|prompt| prompt.contains(part))
        };
        let asked = processes::until(LIMIT, is_asked).await;
        self.check(asked, "the model is asked")
    }

    /// Closes stdin, reads the rest, waits for the end, and expects this exit code.
    pub(super) async fn finish(mut self, code: i32) -> Result<Recording, Failure> {
        let exit = self.run_to_the_end().await;
        self.check(exit == Exit::Code(code), &format!("exit code {code}"))?;
        Ok(self.tape.recording())
    }

    /// Closes stdin, reads the rest and waits for the end, whatever it is.
    pub(super) async fn end(mut self) -> Recording {
        self.run_to_the_end().await;
        self.tape.recording()
    }

    async fn run_to_the_end(&mut self) -> Exit {
        self.close_input().await;
        let exit = self.read_until_the_end().await;
        for reader in self.readers.drain(..) {
            // The streams end with the process unless something it left behind holds them.
            drop(timeout(LIMIT, reader).await);
        }
        self.tape.record_exit(exit);
        exit
    }
}

impl Cli {
    /// Goes on reading while the process ends: one that cannot write does not end.
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

/// A user message, in the order of keys in which the SDK writes it.
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

/// Notes and cuts what the CLI writes; goes on until the end, whether or not anybody listens.
async fn read_stdout(
    mut stdout: Box<dyn AsyncRead + Send + Unpin>,
    tape: RecordingWriter,
    lines: mpsc::Sender<Vec<u8>>,
) {
    let mut chunk = vec![0; 64 * 1024];
    let mut unfinished = Vec::new();
    while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
        tape.record_bytes(Channel::Received, &chunk[..count]);
        unfinished.extend_from_slice(&chunk[..count]);
        while let Some(end) = unfinished.iter().position(|byte| *byte == b'\n') {
            let rest = unfinished.split_off(end + 1);
            unfinished.truncate(end);
            // Without a listener there is still the tape.
            drop(lines.send(std::mem::replace(&mut unfinished, rest)).await);
        }
    }
    tape.record_stdout_closed();
}

async fn read_stderr(mut stderr: Box<dyn AsyncRead + Send + Unpin>, tape: RecordingWriter) {
    let mut chunk = vec![0; 16 * 1024];
    let mut kept = 0;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        if kept < STDERR_KEPT {
            tape.record_bytes(Channel::Stderr, &chunk[..count]);
            kept += count;
        }
    }
}
