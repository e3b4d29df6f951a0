//! The service as a process: tasks, approvals, a kill in between, and what it refuses.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the way to fail")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_kit::approval::{ApprovalId, Approvals, Decision};
use claude_agent_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A bound against hanging, far above the time that anything takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running service. It is killed when it is dropped.
struct Process {
    child: Child,
    address: String,
    tokens: Vec<String>,
    /// Stays open: the service prints when it stops.
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_approval_service"))
            .args(["--simulated", "--port", "0", "--approver", "ana", "--approver", "ben"])
            .args(options)
            .arg("--folder")
            .arg(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (mut printed, mut file) = (Vec::new(), None);
        while file.is_none() {
            let mut line = String::new();
            assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the service printed no path");
            file = line
                .split_once("the URLs of the approvers are in ")
                .map(|(_, path)| path.trim().to_owned());
            printed.push(line);
        }
        let urls = std::fs::read_to_string(file.unwrap()).unwrap();
        let urls = urls.lines().map(|line| {
            let (address, token) =
                line.split_once(": http://").unwrap().1.split_once("/#").unwrap();
            (address.to_owned(), token.to_owned())
        });
        let (addresses, tokens): (Vec<_>, Vec<_>) = urls.unzip();
        assert_eq!(tokens.len(), 2);
        for token in &tokens {
            assert!(!printed.concat().contains(token.as_str()), "{printed:?}");
        }
        Self { child, address: addresses[0].clone(), tokens, _stdout: stdout }
    }

    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Sends a request and returns the status, the head and the body of the response.
    fn request(&self, head: &str, headers: &str, body: &str) -> (u16, String, String) {
        // With HTTP/1.0 the end of the body is the end of the connection.
        let length = body.len();
        let request = format!("{head} HTTP/1.0\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        let mut response = String::new();
        self.connect(&request).read_to_string(&mut response).unwrap();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    fn headers(&self, approver: usize) -> String {
        let token = &self.tokens[approver];
        format!("authorization: Bearer {token}\r\ncontent-type: application/json\r\n")
    }

    fn post(&self, path: &str, approver: usize, body: &Value) -> (u16, Value) {
        let head = format!("POST {path}");
        let (status, _, body) = self.request(&head, &self.headers(approver), &body.to_string());
        (status, serde_json::from_str(&body).unwrap())
    }

    fn start_task(&self, command: &str) -> String {
        let (status, body) = self.post("/tasks", 0, &json!({"prompt": command}));
        assert_eq!(status, 202, "{body}");
        body["session"].as_str().unwrap().to_owned()
    }

    fn decide(&self, id: &str, approver: usize, body: &Value) -> (u16, Value) {
        self.post(&format!("/approvals/{id}"), approver, body)
    }

    /// Follows the events until one is accepted, and returns what was selected.
    fn wait_for<T>(&self, select: impl Fn(&Value) -> Option<T>) -> T {
        let request = format!("GET /events HTTP/1.0\r\n{}\r\n", self.headers(0));
        let events = BufReader::new(self.connect(&request));
        let mut last = Value::Null;
        let began = Instant::now();
        for line in events.lines() {
            // Lines that keep the connection alive arrive all the time.
            assert!(began.elapsed() < TIMEOUT, "too late; the last event is {last}");
            let line = line.unwrap_or_else(|error| panic!("{error}; the last event is {last}"));
            let Some(data) = line.strip_prefix("data: ") else { continue };
            last = serde_json::from_str(data).unwrap();
            if let Some(selected) = select(&last) {
                return selected;
            }
        }
        panic!("the events ended with {last}");
    }

    /// Waits for the approval of a task and returns its ID.
    fn pending(&self, session: &str) -> String {
        self.wait_for(|event| {
            let pending = event["pending"].as_array()?;
            let of_task = pending.iter().find(|approval| approval["session"] == *session)?;
            Some(of_task["id"].as_str().unwrap().to_owned())
        })
    }

    /// Waits until a task has a state, and returns its text.
    fn task(&self, session: &str, state: &str) -> String {
        self.wait_for(|event| {
            let task =
                event["tasks"].as_array()?.iter().find(|task| task["session"] == *session)?;
            assert!(state == "failed" || task["state"] != "failed", "{task}");
            (task["state"] == *state).then(|| task["text"].as_str().unwrap().to_owned())
        })
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM, and waits for the end.
    fn stop(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        let mut status = None;
        wait_until("the service stops", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        assert!(status.is_some_and(|status| status.success()), "{status:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Fails if the process has ended, which is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn wait_until(event: &str, mut is_reached: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_reached() {
        assert!(began.elapsed() < TIMEOUT, "too late: {event}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn executed(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join("work/executed")).unwrap_or_default()
}

const COMMAND: &str = "echo once >> executed";

fn allow() -> Value {
    json!({"verdict": "allow"})
}

#[test]
fn an_approval_outlives_a_killed_service() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::start(folder.path(), &[]);
    let session = first.start_task(COMMAND);
    first.task(&session, "parked");
    let id = first.pending(&session);
    first.kill();
    assert_eq!(executed(&folder), "");

    let second = Process::start(folder.path(), &[]);
    assert_eq!(second.pending(&session), id);
    assert_eq!(second.decide(&id, 0, &allow()).0, 200);
    second.task(&session, "finished");
    assert_eq!(executed(&folder), "once\n");

    let (status, body) = second.decide(&id, 1, &json!({"verdict": "deny", "message": "no"}));
    assert_eq!(status, 409, "{body}");
    assert!(body["error"].as_str().unwrap().contains("allowed by \"ana\""), "{body}");
    second.stop();

    // Nothing is left to continue.
    let third = Process::start(folder.path(), &[]);
    third.wait_for(|event| event["pending"].as_array()?.is_empty().then_some(()));
    assert_eq!(executed(&folder), "once\n");
}

#[test]
fn an_approval_outlives_a_service_that_is_stopped_while_a_run_waits() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::start(folder.path(), &["--park-after", "3"]);
    let session = first.start_task(COMMAND);
    let id = first.pending(&session);
    // Neither an open stream of events nor an unfinished request keeps the service from stopping.
    let _events = first.connect(&format!("GET /events HTTP/1.1\r\n{}\r\n", first.headers(0)));
    let _unfinished = first.connect(&format!(
        "POST /tasks HTTP/1.1\r\n{}content-length: 100\r\n\r\n{{",
        first.headers(0)
    ));
    first.stop();

    let second = Process::start(folder.path(), &[]);
    assert_eq!(second.decide(&id, 1, &allow()).0, 200);
    second.task(&session, "finished");
    assert_eq!(executed(&folder), "once\n");
}

#[test]
fn a_decision_that_was_made_while_the_service_was_down_is_used_when_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::start(folder.path(), &[]);
    let (allowed, denied) = (first.start_task(COMMAND), first.start_task("echo never >> executed"));
    first.task(&allowed, "parked");
    first.task(&denied, "parked");
    let ids = [first.pending(&allowed), first.pending(&denied)];
    first.kill();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(folder.path().join("service.db")).await.unwrap();
        let approvals = Approvals::new("example", store);
        let decisions = [Decision::allow("ana"), Decision::deny("ana", "not today")];
        for (id, decision) in ids.iter().zip(decisions) {
            approvals.decide(&ApprovalId::parse(id).unwrap(), decision).await.unwrap();
        }
    });

    let second = Process::start(folder.path(), &[]);
    second.task(&allowed, "finished");
    let text = second.task(&denied, "finished");
    assert!(text.contains("not today"), "{text}");
    assert_eq!(executed(&folder), "once\n");
}

#[test]
fn a_command_that_ran_when_the_service_was_killed_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = Process::start(folder.path(), &[]);
    let command = "echo once >> executed; while [ -e running ]; do sleep 0.1; done";
    std::fs::write(folder.path().join("work/running"), "").unwrap();
    let session = first.start_task(command);
    let id = first.pending(&session);
    assert_eq!(first.decide(&id, 0, &allow()).0, 200);
    wait_until("the command starts", || !executed(&folder).is_empty());
    first.kill();

    let second = Process::start(folder.path(), &[]);
    let text = second.task(&session, "interrupted");
    assert!(text.contains("died while an approved command ran"), "{text}");
    assert_eq!(executed(&folder), "once\n");
    std::fs::remove_file(folder.path().join("work/running")).unwrap();
}

#[test]
fn a_run_that_waits_uses_the_decision_itself() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &["--park-after", "10"]);
    let session = service.start_task(COMMAND);
    let id = service.pending(&session);
    assert_eq!(service.decide(&id, 0, &allow()).0, 200);
    service.task(&session, "finished");
    assert_eq!(executed(&folder), "once\n");
}

#[test]
fn tasks_beyond_the_concurrency_limit_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &["--park-after", "10"]);
    for _ in 0..4 {
        service.start_task(COMMAND);
    }
    let (status, body) = service.post("/tasks", 0, &json!({"prompt": COMMAND}));
    assert_eq!(status, 503, "{body}");
}

#[test]
fn requests_without_a_token_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &[]);
    let id = "5f0c6f5e-1f0b-4b1c-8a57-0b7f0c3d9a10";
    let wrong = format!("authorization: Bearer {}\r\n", "0".repeat(service.tokens[0].len()));
    for headers in ["", "authorization: Bearer \r\n", &wrong] {
        for head in ["GET /events", "POST /tasks", &format!("POST /approvals/{id}")] {
            let headers = format!("{headers}content-type: application/json\r\ncontent-length: 17");
            let request = format!("{head} HTTP/1.0\r\n{headers}\r\n\r\n{{\"prompt\":\"true\"}}");
            // Not the body, which would not end if events were sent.
            let mut status = String::new();
            BufReader::new(service.connect(&request)).read_line(&mut status).unwrap();
            assert!(status.contains(" 401 "), "{head}: {status}");
        }
    }
    assert_eq!(service.decide(id, 0, &allow()).0, 404);
    assert_eq!(service.decide("x", 0, &allow()).0, 400);
    assert_eq!(service.decide(id, 0, &json!({"verdict": "perhaps"})).0, 422);
    assert_eq!(service.post("/tasks", 0, &json!({"prompt": " "})).0, 400);
    let long = "x".repeat(100_000);
    assert_eq!(service.post("/tasks", 0, &json!({"prompt": long})).0, 413);
}

#[test]
fn the_page_contains_no_data_and_inserts_it_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &[]);
    let payload = "<img src=x onerror=alert(1)>";
    let session = service.start_task(&format!("echo '{payload}'"));
    service.pending(&session);

    for path in ["/", "/page.js", "/page.css"] {
        let (status, head, body) = service.request(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{path}");
        assert!(!body.contains("onerror") && !body.contains(&session), "{path}: {body}");
        for part in ["content-security-policy: default-src 'none'; script-src 'self';", "nosniff"] {
            assert!(head.contains(part), "{path}: {head}");
        }
        for inserting in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
        {
            assert!(!body.contains(inserting), "{path} uses {inserting}");
        }
        for inline in ["<script>", "<style", " onclick", " style=", "https://"] {
            assert!(!body.contains(inline), "{path} contains {inline}");
        }
    }
    // The only place with data is JSON.
    let request = format!("GET /events HTTP/1.0\r\n{}\r\n", service.headers(0));
    let mut lines = BufReader::new(service.connect(&request)).lines().map(Result::unwrap);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    assert!(
        head.iter().any(|line| line.starts_with("content-type: text/event-stream")),
        "{head:?}"
    );
    let data = lines.find_map(|line| line.strip_prefix("data: ").map(str::to_owned)).unwrap();
    let event: Value = serde_json::from_str(&data).unwrap();
    assert!(event["pending"][0]["input"].as_str().unwrap().contains(payload), "{event}");
}

#[test]
fn an_approver_sees_invisible_characters_and_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &[]);
    let session = service.start_task("echo ok \u{202e}# \u{2066}x\u{2069} \u{9b}31m \\u{202e}");
    service.pending(&session);
    let (pending, task) = service.wait_for(|event| {
        let find = |list: &str| {
            let list = event[list].as_array()?;
            list.iter().find(|item| item["session"] == *session).cloned()
        };
        Some((find("pending")?, find("tasks")?))
    });
    // The input is JSON, in which a backslash is doubled.
    let shown = r"echo ok \u{202e}# \u{2066}x\u{2069} \u{9b}31m \\u{5c}u{202e}";
    assert!(pending["input"].as_str().unwrap().contains(shown), "{pending}");
    let cwd = folder.path().join("work").canonicalize().unwrap();
    assert_eq!(pending["cwd"].as_str().unwrap(), cwd.to_str().unwrap());
    assert_eq!(task["prompt"], r"echo ok \u{202e}# \u{2066}x\u{2069} \u{9b}31m \u{5c}u{202e}");
    let (_, _, script) = service.request("GET /page.js", "", "");
    assert!(script.contains("cwd"), "{script}");
}

#[test]
fn tokens_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("service");
    let service = Process::start(&inner, &[]);
    let mode = |name: &str| inner.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode(""), mode("work"), mode("config"), mode("urls")),
        (0o700, 0o700, 0o700, 0o600)
    );
    // New tokens, in a new file.
    let old = service.tokens.clone();
    // The service handles signals when it serves.
    assert_eq!(service.request("GET /", "", "").0, 200);
    service.stop();
    std::fs::set_permissions(inner.join("urls"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let service = Process::start(&inner, &[]);
    assert_eq!(mode("urls"), 0o600);
    assert!(service.tokens.iter().all(|token| !old.contains(token)));
}

#[test]
fn unfinished_requests_are_closed_and_do_not_keep_others_out() {
    let folder = tempfile::tempdir().unwrap();
    let service = Process::start(folder.path(), &[]);
    // More than the service accepts at once.
    let unfinished: Vec<TcpStream> =
        (0..150).map(|_| service.connect("GET /events HTTP/1.1\r\nauthorization: ")).collect();
    assert_eq!(service.request("GET /", "", "").0, 200);
    for mut stream in unfinished {
        let mut rest = Vec::new();
        // The end, or a reset.
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
    }
}
