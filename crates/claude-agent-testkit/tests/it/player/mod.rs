//! Replays of recordings, for clients that follow the recording and clients that deviate from it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here fails the test")]

mod concurrency;
mod program;

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use claude_agent_testkit::player::{Mismatch, Player, PlayerProcess};
use claude_agent_testkit::recording::{Entry, EntryKind, Exit, Recording};
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
};
use tokio::process::Command;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(120);

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(TIMEOUT, future).await.expect("the operation times out")
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.326")
}

fn recordings() -> Vec<(String, Recording)> {
    let files = fs::read_dir(corpus()).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "wire"));
    let read = |file: PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        (name, Recording::parse(&fs::read(file).unwrap()).unwrap())
    };
    files.map(read).collect()
}

fn recording(entries: &str) -> Recording {
    Recording::parse(format!("## {{\"format\":1}}\n{entries}").as_bytes()).unwrap()
}

#[test]
fn debug_of_a_recording_that_cannot_be_parsed_is_the_text() {
    let error = Recording::parse(b"").unwrap_err();
    assert_eq!(error.to_string(), "line 1: the file is empty");
    assert_eq!(format!("{error:?}"), error.to_string());
}

/// A client of a player in memory.
struct Client {
    cli: PlayerProcess,
    stdin: Option<DuplexStream>,
    stdout: Lines<BufReader<DuplexStream>>,
}

impl Client {
    fn new(player: Player) -> Self {
        let mut cli = player.start();
        let stdin = cli.stdin.take();
        let stdout = BufReader::new(cli.stdout.take().unwrap()).lines();
        Self { cli, stdin, stdout }
    }

    async fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        let line = [line.as_ref(), b"\n"].concat();
        within(stdin.write_all(&line)).await.unwrap();
    }

    async fn next_line(&mut self) -> Option<String> {
        within(self.stdout.next_line()).await.unwrap()
    }

    fn close(&mut self) {
        self.stdin = None;
    }

    async fn wait(&mut self) -> Result<Exit, Mismatch> {
        within(self.cli.wait()).await
    }

    async fn stderr(&mut self) -> String {
        let mut text = String::new();
        within(self.cli.stderr.take().unwrap().read_to_string(&mut text)).await.unwrap();
        text
    }
}

/// Replaces each id that the client generated in a recording.
struct OtherIds {
    ids: HashMap<String, String>,
}

impl OtherIds {
    fn new(recording: &Recording) -> Self {
        let mut ids = HashMap::new();
        for (index, line) in recording.sent().enumerate() {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            if let Some(id) = line["request_id"].as_str() {
                ids.insert(id.to_owned(), format!("mine \"{index}\""));
            }
            for id in [
                &line["uuid"],
                &line["request"]["message_uuid"],
                &line["request"]["user_message_id"],
            ] {
                let other = format!("00000000-0000-4000-9000-{:012}", ids.len());
                id.as_str().map(|id| ids.entry(id.to_owned()).or_insert(other));
            }
        }
        Self { ids }
    }

    /// Returns a line of the CLI with the other ids; all other bytes are unchanged.
    fn text(&self, line: &str) -> String {
        self.ids.iter().fold(line.to_owned(), |line, (id, other)| {
            line.replace(
                &Value::from(id.as_str()).to_string(),
                &Value::from(other.as_str()).to_string(),
            )
        })
    }

    /// Returns a line of the client with the other ids, other whitespace and another key order.
    fn line(&self, line: &[u8]) -> Vec<u8> {
        let Ok(value) = serde_json::from_slice::<Value>(line) else { return line.to_vec() };
        serde_json::to_string_pretty(&self.value(&value)).unwrap().replace('\n', " ").into_bytes()
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.ids.get(text).unwrap_or(text).as_str()),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.value(value))).collect()
            }
            other => other.clone(),
        }
    }
}

/// Sends the recorded lines of the client with other ids, and checks every line of the CLI.
async fn replay(recording: &Recording, player: Player) -> Result<Exit, Mismatch> {
    replay_in_order(recording, recording.entries.iter(), player).await
}

/// Like [`replay`], with the entries in another order.
async fn replay_in_order<'a>(
    recording: &Recording,
    entries: impl Iterator<Item = &'a Entry>,
    player: Player,
) -> Result<Exit, Mismatch> {
    let ids = OtherIds::new(recording);
    let mut client = Client::new(player);
    for entry in entries {
        match &entry.kind {
            EntryKind::Sent(line) => client.send(ids.line(line)).await,
            EntryKind::Received(line) => {
                let lines = client.next_line().await.unwrap_or_default();
                assert_eq!(lines, ids.text(&String::from_utf8_lossy(line)));
            }
            EntryKind::StdinClosed => client.close(),
            EntryKind::Stderr(_) | EntryKind::StdoutClosed | EntryKind::Exited(_) => {}
            other => panic!("{other:?} is not in the corpus"),
        }
    }
    assert_eq!(client.next_line().await, None, "the player writes nothing that was not recorded");
    let errors = client.stderr().await;
    let recorded = recording.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Stderr(line) => Some(format!("{}\n", String::from_utf8_lossy(line))),
        _ => None,
    });
    assert_eq!(errors, recorded.collect::<String>());
    client.wait().await
}

#[tokio::test]
async fn every_recording_replays_for_a_client_with_other_ids() {
    let recordings = recordings();
    assert!(recordings.len() > 100);
    for (name, recording) in recordings {
        println!("{name}");
        let exit = replay(&recording, Player::new(recording.clone()).strict()).await;
        assert_eq!(exit, Ok(recording.exit().unwrap()), "{name}");
        let exit = replay(&recording, Player::new(recording.clone()).lenient()).await;
        assert_eq!(exit, Ok(recording.exit().unwrap()), "{name}");
    }
}

#[tokio::test]
async fn a_line_of_the_cli_is_written_byte_for_byte() {
    let odd = br#"{"b" : 1.00000000000000001,"type":"x","a":"\u00e9\/","uuid":"other"}"#;
    let text = String::from_utf8_lossy(odd);
    let recording = recording(&format!(
        ">> 0 {{\"type\":\"user\",\"uuid\":\"u\"}}\n<< 0 {text}\n<< 0 not \"JSON\n<< 0 \n<~ 0 half\nEXIT 1 0"
    ));
    let mut cli = Player::new(recording).start();
    let mut stdin = cli.stdin.take().unwrap();
    within(stdin.write_all(b"{\"type\":\"user\",\"uuid\":\"v\"}\n")).await.unwrap();
    let mut output = Vec::new();
    within(cli.stdout.take().unwrap().read_to_end(&mut output)).await.unwrap();
    assert_eq!(output, [odd, &b"\nnot \"JSON\n\nhalf"[..]].concat());
    assert_eq!(within(cli.wait()).await, Ok(Exit::Code(0)));
}

const SESSION: &str = r#">> 0.1 {"type":"control_request","request_id":"r1","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["h0"]}]}}}
<< 0.2 {"type":"control_response","response":{"subtype":"success","request_id":"r1"}}
>> 0.3 {"type":"user","message":{"role":"user","content":"hello"},"session_id":"","uuid":"u1"}
<< 0.4 {"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback","callback_id":"h0"}}
>> 0.5 {"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"n":1}}}
<< 0.6 {"type":"command_lifecycle","command_uuid":"u1"}
>> 0.7 EOF
EXIT 0.8 7
"#;

/// The lines of a client that follows [`SESSION`] with its own ids.
const CLIENT_LINES: [&str; 3] = [
    r#"{"type":"control_request","request_id":"a","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["b"]}]}}}"#,
    r#"{"type":"user","message":{"role":"user","content":"hello"},"session_id":"","uuid":"c"}"#,
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"n":1.0}}}"#,
];

#[tokio::test]
async fn both_sides_may_use_the_same_id_for_different_requests() {
    let mut client = Client::new(Player::new(recording(SESSION)));
    client.send(CLIENT_LINES[0]).await;
    let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"a"}}"#;
    assert_eq!(client.next_line().await.unwrap(), answer);
    client.send(CLIENT_LINES[1]).await;
    let request = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"hook_callback","callback_id":"b"}}"#;
    assert_eq!(client.next_line().await.unwrap(), request);
    client.send(CLIENT_LINES[2]).await;
    let lifecycle = r#"{"type":"command_lifecycle","command_uuid":"c"}"#;
    assert_eq!(client.next_line().await.unwrap(), lifecycle);
    client.close();
    assert_eq!(client.wait().await, Ok(Exit::Code(7)));
    assert_eq!(client.wait().await, Ok(Exit::Code(7)), "the exit can be read again");
}

#[tokio::test]
async fn early_lines_are_matched_in_their_turn() {
    let mut client = Client::new(Player::new(recording(SESSION)));
    for line in CLIENT_LINES {
        client.send(line).await;
    }
    client.close();
    assert_eq!(client.wait().await, Ok(Exit::Code(7)));
}

/// Checks the mismatch for a client that sends these lines and closes stdin.
async fn differs(lines: &[&str], line: usize, expected: &str, found: &str, place: Option<&str>) {
    let mut client = Client::new(Player::new(recording(SESSION)));
    for line in lines {
        client.send(line).await;
    }
    client.close();
    let mismatch = client.wait().await.unwrap_err();
    assert_eq!(mismatch.line(), line, "{mismatch}");
    assert!(mismatch.expected().contains(expected), "{mismatch}");
    assert!(mismatch.found().contains(found), "{mismatch}");
    assert_eq!(mismatch.place(), place, "{mismatch}");
    // As `fn main() -> Result<…>` prints it.
    assert_eq!(format!("{mismatch:?}"), mismatch.to_string());
    assert_eq!(client.wait().await, Err(mismatch));
}

#[tokio::test]
async fn a_mismatch_names_the_line_and_the_difference() {
    let [initialize, prompt, answer] = CLIENT_LINES;
    let other = prompt.replace("hello", "bye");
    let place = Some(r#"`/message/content` should be `"hello"`, is `"bye"`"#);
    differs(&[initialize, &other], 4, "hello", "bye", place).await;
    let other = answer.replace("r1", "a");
    let place = Some(r#"`/response/request_id` should be `"r1"`, is `"a"`"#);
    differs(&[initialize, prompt, &other], 6, "r1", "a", place).await;
    let more = prompt.replacen('{', r#"{"more":1,"#, 1);
    differs(&[initialize, &more], 4, "", "", Some("`/more` was not recorded")).await;
    let less = prompt.replace(r#","uuid":"c""#, "");
    differs(&[initialize, &less], 4, "", "", Some("`/uuid` is missing")).await;
    let hooks = initialize.replace(r#"["b"]"#, r#"["b","b"]"#);
    let place =
        Some(r#"`/request/hooks/Stop/0/hookCallbackIds` should be `["h0"]`, is `["b","b"]`"#);
    differs(&[&hooks], 2, "", "", place).await;
    differs(
        &[prompt, initialize],
        2,
        "initialize",
        "hello",
        Some(r#"`/type` should be `"control_request"`, is `"user"`"#),
    )
    .await;
    differs(&["nonsense"], 2, "initialize", "`nonsense`", None).await;
    let after = "`{\"type\":\"keep_alive\"}`";
    let keep_alive = "{\"type\":\"keep_alive\"}";
    differs(&[initialize, prompt, answer, keep_alive], 8, "EOF", after, None).await;
}

#[tokio::test]
async fn closing_stdin_early_is_a_mismatch() {
    differs(&[], 2, "initialize", "EOF", None).await;
    differs(&CLIENT_LINES[..2], 6, "control_response", "EOF", None).await;
    let mut client = Client::new(Player::new(recording(SESSION)));
    client.stdin.as_mut().unwrap().write_all(CLIENT_LINES[0].as_bytes()).await.unwrap();
    client.close();
    let mismatch = client.wait().await.unwrap_err();
    assert!(mismatch.found().ends_with("without a newline"), "{mismatch}");
}

#[tokio::test]
async fn an_unfinished_line_matches_an_unfinished_line() {
    let entries = ">~ 0.1 {\"type\"\n>> 0.1 EOF\n!~ 0.2 oh\nEXIT 0.3 SIGKILL";
    let mut cli = Player::new(recording(entries)).start();
    within(cli.stdin.take().unwrap().write_all(b"{\"type\"")).await.unwrap();
    let mut errors = String::new();
    within(cli.stderr.take().unwrap().read_to_string(&mut errors)).await.unwrap();
    assert_eq!(errors, "oh");
    assert_eq!(within(cli.wait()).await, Ok(Exit::Signal(9)));
}

#[tokio::test]
async fn an_id_is_bound_to_one_recorded_id() {
    let entries = concat!(
        ">> 0 {\"type\":\"user\",\"uuid\":\"u1\"}\n>> 0 {\"type\":\"user\",\"uuid\":\"u2\"}\n",
        ">> 0 {\"type\":\"x\",\"message_uuid\":\"u1\"}\n>> 0 EOF\nEXIT 0 0"
    );
    let run = |ids: [&'static str; 3]| async move {
        let mut client = Client::new(Player::new(recording(entries)));
        client.send(format!("{{\"type\":\"user\",\"uuid\":\"{}\"}}", ids[0])).await;
        client.send(format!("{{\"type\":\"user\",\"uuid\":\"{}\"}}", ids[1])).await;
        client.send(format!("{{\"type\":\"x\",\"message_uuid\":\"{}\"}}", ids[2])).await;
        client.close();
        client.wait().await.map_err(|mismatch| mismatch.line())
    };
    assert_eq!(run(["a", "b", "a"]).await, Ok(Exit::Code(0)));
    assert_eq!(run(["a", "a", "a"]).await, Err(3), "one id for two messages");
    assert_eq!(run(["a", "b", "b"]).await, Err(4), "the id of another message");
}

#[tokio::test]
async fn a_session_id_in_the_arguments_is_bound() {
    let file = concat!(
        "## {\"format\":1,\"argv\":[\"--session-id\",\"11111111-1111-4111-8111-111111111111\"]}\n",
        "<< 0 {\"type\":\"x\",\"session_id\":\"11111111-1111-4111-8111-111111111111\",",
        "\"path\":\"/s/11111111-1111-4111-8111-111111111111.jsonl\"}\n",
        ">> 0 {\"type\":\"user\",\"session_id\":\"11111111-1111-4111-8111-111111111111\"}\n",
        "EXIT 0 0"
    );
    let player = Player::new(Recording::parse(file.as_bytes()).unwrap());
    let mut client = Client::new(player.arguments(["--print", "--session-id=mine"]));
    let line = r#"{"type":"x","session_id":"mine","path":"/s/mine.jsonl"}"#;
    // The id is replaced in its field and in the file name.
    assert_eq!(client.next_line().await.unwrap(), line);
    client.send(r#"{"type":"user","session_id":"mine"}"#).await;
    assert_eq!(client.wait().await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn a_lenient_player_compares_kinds_only() {
    let mut client = Client::new(Player::new(recording(SESSION)).lenient());
    let initialize = r#"{"type":"control_request","request_id":"a","request":{"subtype":"initialize","hooks":null}}"#;
    // Unknown lines, other texts, another order.
    client.send("nonsense").await;
    client.send(r#"{"type":"keep_alive"}"#).await;
    client.send(r#"{"type":"user","message":"whatever","uuid":"c"}"#).await;
    client.send(r#"{"type":"control_response","response":{"request_id":"unknown"}}"#).await;
    client.send(initialize).await;
    assert!(client.next_line().await.unwrap().contains(r#""request_id":"a""#));
    assert!(client.next_line().await.unwrap().contains("hook_callback"));
    client
        .send(r#"{"type":"control_response","response":{"subtype":"error","request_id":"r1"}}"#)
        .await;
    assert_eq!(
        client.next_line().await.unwrap(),
        r#"{"type":"command_lifecycle","command_uuid":"c"}"#
    );
    client.send("one more").await;
    client.close();
    assert_eq!(client.wait().await, Ok(Exit::Code(7)));
}

#[tokio::test]
async fn a_lenient_player_skips_to_the_recorded_eof() {
    let entries = ">> 0.1 {\"type\":\"user\"}\n<< 0.2 {\"type\":\"result\"}\n>> 0.3 EOF\n<< 0.4 {\"type\":\"bye\"}\nEXIT 0.5 1";
    let mut client = Client::new(Player::new(recording(entries)).lenient());
    client.close();
    assert_eq!(client.next_line().await.as_deref(), Some(r#"{"type":"bye"}"#));
    assert_eq!(client.next_line().await, None);
    assert_eq!(client.wait().await, Ok(Exit::Code(1)));
}

#[tokio::test]
async fn a_recorded_exit_needs_no_eof_from_the_client() {
    let file = fs::read(corpus().join("unknown_flag.wire")).unwrap();
    let mut client = Client::new(Player::new(Recording::parse(&file).unwrap()));
    assert_eq!(client.next_line().await, None);
    assert!(client.stdin.is_some());
    assert_eq!(client.wait().await, Ok(Exit::Code(1)));
}

#[tokio::test(start_paused = true)]
async fn recorded_times_are_used_only_on_request() {
    let start = tokio::time::Instant::now();
    let mut client = Client::new(Player::new(recording("<< 5 {}\n<< 60 {}\nEXIT 100 0")));
    assert_eq!(client.wait().await, Ok(Exit::Code(0)));
    assert_eq!(start.elapsed(), Duration::ZERO);
    let entries = "<< 5 {}\n>> 20 {}\n<< 21 {}\nEXIT 23 0";
    let mut client = Client::new(Player::new(recording(entries)).at_recorded_speed());
    client.next_line().await;
    assert_eq!(start.elapsed().as_secs(), 5);
    client.send("{}").await;
    assert_eq!(client.wait().await, Ok(Exit::Code(0)));
    assert_eq!(start.elapsed().as_secs(), 8, "the time of the client is not replayed");
}

#[tokio::test(start_paused = true)]
async fn a_player_without_a_reader_buffers_no_more_than_a_pipe() {
    let flood = "<< 0 {\"type\":\"flood\",\"text\":\"0123456789012345678901234567890123456789\"}\n";
    let entries = format!("{}>> 0 {{}}\nEXIT 0 0", flood.repeat(10_000));
    let mut cli = Player::new(recording(&entries)).start();
    let mut stdin = cli.stdin.take().unwrap();
    let mut written = 0;
    // The paused clock moves only when the player and the client are both stuck.
    while let Ok(done) = timeout(Duration::from_secs(1), stdin.write_all(&[b'x'; 1024])).await {
        done.unwrap();
        written += 1024;
        assert!(written <= 64 * 1024, "the player reads input before it needs it");
    }
    cli.kill();
    assert_eq!(within(cli.wait()).await, Ok(Exit::Signal(9)));
}

#[tokio::test]
async fn a_line_over_the_limit_is_not_buffered() {
    let check = |player: Player| async move {
        let mut client = Client::new(player.max_line_bytes(1024));
        let stdin = client.stdin.as_mut().unwrap();
        for _ in 0..4096 {
            within(stdin.write_all(&[b'x'; 4096])).await.unwrap();
        }
        within(stdin.write_all(b"\n{\"type\":\"user\"}\n")).await.unwrap();
        client.close();
        client.wait().await
    };
    let player = Player::new(recording(">> 0 {\"type\":\"user\"}\n>> 0 EOF\nEXIT 0 0"));
    let mismatch = check(player.clone()).await.unwrap_err();
    assert_eq!(mismatch.found(), "a line of 16777216 bytes, which exceeds the limit");
    assert_eq!(check(player.lenient()).await, Ok(Exit::Code(0)));
}

#[tokio::test]
async fn closed_output_streams_do_not_end_the_replay() {
    let mut cli = Player::new(recording("<< 0 {}\n!! 0 oh\n>> 0 {}\n<< 0 {}\nEXIT 0 3")).start();
    cli.stdout = None;
    cli.stderr = None;
    within(cli.stdin.as_mut().unwrap().write_all(b"{}\n")).await.unwrap();
    assert_eq!(within(cli.wait()).await, Ok(Exit::Code(3)));
}
