//! A fake CLI in memory: the test itself reads and writes every line.

use std::sync::Arc;

use claude_agent_kit::Exit;
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory};
use claude_agent_kit::{Options, Session};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::sync::{mpsc, watch};

use crate::support::in_time;

/// The capacity of a pipe in bytes.
const PIPE: usize = 64 * 1024;

/// The CLI's end of a session.
pub(crate) struct FakeCli {
    lines: Lines<BufReader<DuplexStream>>,
    stdout: Option<DuplexStream>,
    stderr: DuplexStream,
    exit: Arc<watch::Sender<Option<Exit>>>,
}

/// Runs a future on a current-thread runtime with a paused clock, which advances only when all
/// tasks are idle. A fake CLI has no other time source.
pub(crate) fn on_paused_clock<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(in_time(future))
}

/// Opens a session and returns it with its fake CLI.
pub(crate) async fn open(options: Options) -> (Session, FakeCli) {
    let (options, mut clis) = with_fake_clis(options);
    let session = Session::open(options).await.unwrap();
    (session, clis.recv().await.unwrap())
}

/// Returns options for sessions and queries on fake CLIs, and the channel that receives the fake
/// CLIs.
pub(crate) fn with_fake_clis(options: Options) -> (Options, mpsc::UnboundedReceiver<FakeCli>) {
    let (sender, clis) = mpsc::unbounded_channel();
    let options = options.transport(InMemory::new(move |_| {
        let (stdin, their_stdin) = tokio::io::duplex(PIPE);
        let (stdout, their_stdout) = tokio::io::duplex(PIPE);
        let exit = Arc::new(watch::Sender::new(None));
        let mut ended = exit.subscribe();
        let (terminated, killed) = (exit.clone(), exit.clone());
        let child = ChildFuture::new(async move {
            let exit = ended.wait_for(Option::is_some).await.ok().and_then(|exit| *exit);
            exit.unwrap_or(Exit::Code(0))
        })
        .on_terminate(move || {
            terminated.send_replace(Some(Exit::Signal(15)));
        })
        .on_kill(move || {
            killed.send_replace(Some(Exit::Signal(9)));
        });
        let (stderr, their_stderr) = tokio::io::duplex(PIPE);
        let lines = BufReader::new(their_stdin).lines();

        sender
            .send(FakeCli { lines, stdout: Some(their_stdout), stderr: their_stderr, exit })
            .unwrap();
        std::future::ready(Ok(Connection::new(stdin, stdout, child).stderr(stderr)))
    }));
    (options, clis)
}

/// Starts a session on a fake CLI and completes the handshake.
pub(crate) async fn connect(options: Options) -> (Session, FakeCli) {
    let (session, mut cli) = open(options).await;
    cli.handshake().await;
    in_time(session.ready()).await.unwrap();
    (session, cli)
}

impl FakeCli {
    /// Returns the next line that the host wrote, or `None` at end of stream.
    pub(crate) async fn next_line(&mut self) -> Option<Value> {
        let line = in_time(self.lines.next_line()).await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Returns the next line that the host wrote.
    pub(crate) async fn read_line(&mut self) -> Value {
        self.next_line().await.expect("the host closed stdin")
    }

    /// Returns the next request of the host, which must have this subtype.
    pub(crate) async fn expect_request(&mut self, subtype: &str) -> Value {
        let line = self.read_line().await;
        assert_eq!(line["request"]["subtype"], subtype, "{line}");
        line
    }

    pub(crate) async fn send(&mut self, line: Value) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        in_time(self.stdout.as_mut().unwrap().write_all(bytes)).await.unwrap();
    }

    pub(crate) async fn handshake(&mut self) {
        let request = self.expect_request("initialize").await;
        self.respond(&request, json!({"hook_on_failure_supported": true})).await;
    }

    /// Sends a successful response to a request of the host.
    pub(crate) async fn respond(&mut self, request: &Value, body: Value) {
        let id = &request["request_id"];
        let response = json!({"subtype": "success", "request_id": id, "response": body});
        self.send(json!({"type": "control_response", "response": response})).await;
    }

    pub(crate) async fn respond_error(&mut self, request: &Value, error: &str) {
        let id = &request["request_id"];
        let response = json!({"subtype": "error", "request_id": id, "error": error});
        self.send(json!({"type": "control_response", "response": response})).await;
    }

    /// Sends a control request to the host.
    pub(crate) async fn send_request(&mut self, id: &str, request: Value) {
        self.send(json!({"type": "control_request", "request_id": id, "request": request})).await;
    }

    /// Calls the hook that was registered first, for Bash.
    pub(crate) async fn call_hook(&mut self, id: &str) {
        let input = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
                           "tool_input": {"command": id}, "session_id": "s"});
        let request = json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": input});
        self.send_request(id, request).await;
    }

    /// Requests permission to run Bash.
    pub(crate) async fn request_permission(&mut self, id: &str) {
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash",
                             "input": {"command": id}, "tool_use_id": id});
        self.send_request(id, request).await;
    }

    /// Sends an `assistant` message with this text.
    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send(message(text)).await;
    }

    /// Sends the result of a user message.
    pub(crate) async fn send_result(&mut self, user: &Value) {
        let line = json!({"type": "result", "subtype": "success", "is_error": false,
                          "result": "Done.", "session_id": "s",
                          "user_message_uuids": [user["uuid"]]});
        self.send(line).await;
    }

    /// Sends the state of a user message.
    pub(crate) async fn send_lifecycle(&mut self, user: &Value, state: &str) {
        let line = json!({"type": "command_lifecycle", "command_uuid": user["uuid"],
                          "state": state, "session_id": "s"});
        self.send(line).await;
    }

    /// Closes stdout without exiting.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Writes to stderr.
    pub(crate) async fn write_stderr(&mut self, text: &str) {
        in_time(self.stderr.write_all(text.as_bytes())).await.unwrap();
    }

    /// Exits with this status.
    pub(crate) fn exit(self, exit: Exit) {
        self.exit.send_replace(Some(exit));
    }
}

/// Returns an `assistant` message with this text.
pub(crate) fn message(text: &str) -> Value {
    let content = json!([{"type": "text", "text": text}]);
    json!({"type": "assistant", "message": {"role": "assistant", "content": content},
           "parent_tool_use_id": null, "session_id": "s"})
}
