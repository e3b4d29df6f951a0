//! A client of the simulated CLI.

use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::{Sim, SimHandle};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
};
use tokio::time::timeout;

/// The timeout of every operation, far longer than any of them takes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) const SESSION: [&str; 5] =
    ["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"];

/// A minimal client that sends and receives lines.
pub(crate) struct Client {
    pub(crate) stdin: Option<DuplexStream>,
    pub(crate) stdout: Lines<BufReader<DuplexStream>>,
    pub(crate) stderr: DuplexStream,
    pub(crate) handle: SimHandle,
    pub(crate) seen: Vec<Value>,
}

impl Client {
    pub(crate) fn start(sim: Sim) -> Self {
        let (stdin, stdout, stderr, handle) = sim.args(SESSION).start().into_parts();
        let stdout = BufReader::new(stdout).lines();
        Self { stdin: Some(stdin), stdout, stderr, handle, seen: Vec::new() }
    }

    pub(crate) fn scripted(replies: impl IntoIterator<Item = Reply>, arguments: &[&str]) -> Self {
        let script = Script::new().otherwise(replies);
        Self::start(Sim::new().script(script).args(arguments.iter().copied()))
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let written = timeout(TIMEOUT, stdin.write_all(format!("{line}\n").as_bytes())).await;
        written.expect("writing to stdin times out").expect("stdin is open");
    }

    pub(crate) async fn prompt(&mut self, prompt: &str, uuid: &str) {
        let message = json!({"role": "user", "content": prompt});
        self.send(&json!({"type": "user", "message": message, "uuid": uuid})).await;
    }

    pub(crate) async fn request(&mut self, id: &str, request: Value) {
        let frame = json!({"type": "control_request", "request_id": id, "request": request});
        self.send(&frame).await;
    }

    /// Responds to a control request of the CLI.
    pub(crate) async fn respond(&mut self, request: &Value, payload: Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": payload});
        self.send(&json!({"type": "control_response", "response": response})).await;
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line =
            timeout(TIMEOUT, self.stdout.next_line()).await.expect("reading a line times out");
        let line = line.expect("stdout can be read")?;
        let value: Value = serde_json::from_str(&line).expect("every line is JSON");
        self.seen.push(value.clone());
        Some(value)
    }

    /// Reads until a line matches.
    pub(crate) async fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.next().await;
            assert!(line.is_some(), "no line matches: {:#?}", self.seen);
            if let Some(line) = line.filter(&matches) {
                return line;
            }
        }
    }

    pub(crate) async fn result(&mut self) -> Value {
        self.until(|line| line["type"] == "result").await
    }

    /// Returns the next control request of this subtype.
    pub(crate) async fn next_request(&mut self, subtype: &str) -> Value {
        self.until(|line| line["request"]["subtype"] == subtype).await
    }

    pub(crate) async fn response_to(&mut self, id: &str) -> Value {
        let frame = self.until(|line| line["response"]["request_id"] == id).await;
        frame["response"].clone()
    }

    pub(crate) async fn initialize(&mut self, fields: Value) -> Value {
        let mut request = json!({"subtype": "initialize"});
        if let (Some(request), Some(fields)) = (request.as_object_mut(), fields.as_object()) {
            request.extend(fields.clone());
        }
        self.request("init", request).await;
        self.response_to("init").await
    }

    /// Closes stdin and returns the remaining lines, stderr and the exit.
    pub(crate) async fn finish(mut self) -> (Vec<Value>, String, Exit) {
        self.stdin = None;
        let before = self.seen.len();
        while self.next().await.is_some() {}
        let mut stderr = String::new();
        let read = timeout(TIMEOUT, self.stderr.read_to_string(&mut stderr)).await;
        read.expect("reading stderr times out").expect("stderr can be read");
        let exit = timeout(TIMEOUT, self.handle.wait()).await.expect("the CLI does not exit");
        (self.seen.split_off(before), stderr, exit)
    }
}
