//! The mock API, tested with a minimal HTTP client.

#![expect(clippy::unwrap_used, reason = "clippy takes what tests share for code outside tests")]

mod http_client;
mod program;

use std::io;
use std::time::{Duration, Instant};

use claude_agent_testkit::mock_api::{ApiRequest, MockApi, Reply, Script};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use http_client::{Connection, Framing, HttpResponse, TIMEOUT};

#[tokio::test]
async fn a_streamed_text_reassembles_from_its_deltas() {
    let text = "Grüße, 世界 🦀 and \"quotes\"\nand lines";
    let chars = text.chars().count();
    for (text, size, deltas) in [
        (text, None, 3),
        (text, Some(1), chars),
        (text, Some(1000), 1),
        ("ab", None, 2),
        ("", None, 0),
    ] {
        let reply = Reply::text(text).usage(7, 9);
        let reply = if let Some(size) = size { reply.deltas_of(size) } else { reply };
        let api = start(Script::new().otherwise([reply])).await;
        let events = send(&api, &streaming("hi")).await.events();

        assert_eq!(events.first().unwrap()["type"], "message_start");
        assert_eq!(events[0]["message"]["model"], "model-x");
        assert_eq!(events[0]["message"]["id"], "msg_1");
        assert_eq!(events[0]["message"]["usage"]["input_tokens"], 7);
        assert_eq!(events[1]["content_block"], json!({"type": "text", "text": ""}));
        assert_eq!(joined(&events, 0, "text"), text);
        assert_eq!(of_type(&events, "content_block_delta").len(), deltas);
        let end = of_type(&events, "message_delta")[0];
        assert_eq!(end["delta"]["stop_reason"], "end_turn");
        assert_eq!(end["usage"]["output_tokens"], 9);
        assert_eq!(events.last().unwrap()["type"], "message_stop");
    }
}

#[tokio::test]
async fn a_reply_without_streaming_is_one_message() {
    let reply = Reply::thinking("hm").and_text("hello").stop_reason("max_tokens").usage(3, 4);
    let api = start(Script::new().otherwise([reply])).await;
    let answer = send(&api, &request(false, &json!([user("hi")]))).await;

    assert_eq!(answer.head.header("content-type"), Some("application/json"));
    let message = answer.json();
    assert_eq!(message["type"], "message");
    assert_eq!(message["role"], "assistant");
    assert_eq!(message["stop_reason"], "max_tokens");
    assert_eq!(message["usage"]["output_tokens"], 4);
    assert_eq!(message["content"][0]["thinking"], "hm");
    assert_eq!(message["content"][1], json!({"type": "text", "text": "hello"}));
}

#[tokio::test]
async fn several_tool_calls_of_one_reply_have_numbered_ids() {
    let input = json!({"command": "echo \"ü\"", "n": [1, 2]});
    let reply =
        Reply::text("Now.").and_tool("Bash", input.clone()).and_tool("Read", json!({"path": "/"}));
    let api = start(Script::new().otherwise([reply])).await;
    let events = send(&api, &streaming("go")).await.events();

    let starts = of_type(&events, "content_block_start");
    let ids: Vec<_> = starts.iter().map(|start| &start["content_block"]["id"]).collect();
    assert_eq!(ids, [&Value::Null, &json!("toolu_1"), &json!("toolu_2")]);
    assert_eq!(starts[1]["content_block"]["input"], json!({}));
    assert_eq!(starts[2]["content_block"]["name"], "Read");
    let sent: Value = serde_json::from_str(&joined(&events, 1, "partial_json")).unwrap();
    assert_eq!(sent, input);
    assert_eq!(of_type(&events, "message_delta")[0]["delta"]["stop_reason"], "tool_use");

    let again = send(&api, &request(false, &json!([user("go")]))).await.json();
    assert_eq!(again["id"], "msg_2");
    assert_eq!(again["content"][1]["id"], "toolu_3");
    assert_eq!(again["content"][1]["input"], input);
}

#[tokio::test]
async fn streamed_thinking_ends_with_a_signature() {
    let api = start(Script::new().otherwise([Reply::thinking("let me see").and_text("ok")])).await;
    let events = send(&api, &streaming("hi")).await.events();

    assert_eq!(events[1]["content_block"]["type"], "thinking");
    assert_eq!(joined(&events, 0, "thinking"), "let me see");
    assert!(!joined(&events, 0, "signature").is_empty());
    assert_eq!(joined(&events, 1, "text"), "ok");
}

#[tokio::test]
async fn the_rule_of_the_latest_prompt_answers_and_tool_rounds_advance_it() {
    let steps = |name: &str| [0, 1, 2].map(|step| Reply::text(format!("{name}{step}")));
    let script =
        Script::new().when("alpha", steps("a")).when("beta", steps("b")).otherwise(steps("o"));
    let api = start(script).await;
    let beside_result = json!({"role": "user", "content": [tool_result("x"), text("beta")]});
    let cases = [
        (json!([user("alpha")]), "a0"),
        (json!([user("alpha"), assistant(), result("")]), "a1"),
        (json!([user("alpha"), assistant(), result(""), assistant(), result("")]), "a2"),
        (json!([user("alpha"), assistant(), assistant(), assistant(), assistant()]), "a2"),
        (json!([user("alpha"), assistant(), user("beta")]), "b0"),
        (json!([user("beta"), assistant(), user("alpha")]), "a0"),
        (json!([user("alpha"), assistant(), user("alpha again")]), "a0"),
        // If two rules match the same text, the first one wins; two texts in one entry are
        // different positions.
        (json!([user("beta and alpha")]), "a0"),
        (json!([{"role": "user", "content": [text("alpha"), text("beta")]}]), "b0"),
        // The CLI adds entries of its own, and adds reminders to the entry of the prompt.
        (json!([user("beta"), {"role": "system", "content": "alpha"}]), "b0"),
        (json!([{"role": "user", "content": [text(REMINDER), text("alpha")]}]), "a0"),
        (json!([user("x"), assistant(), {"role": "user", "content": [text(REMINDER)]}]), "o1"),
        // A message joins a running turn after a tool result or in its own system entry.
        (json!([user("alpha"), assistant(), beside_result]), "b0"),
        (json!([user("alpha"), assistant(), result(""), joined_as_system("beta")]), "b0"),
        (json!([user("beta"), assistant(), result(""), joined_as_system("alpha")]), "a0"),
        (json!([user("alpha"), assistant(), result("beta")]), "a1"),
        (json!([user("other"), assistant(), result("")]), "o1"),
        // A rule does not answer later prompts that match no rule; texts that are not prompts
        // change nothing.
        (json!([user("alpha"), assistant(), user("other")]), "o0"),
        (json!([user("alpha"), assistant(), user("other"), assistant(), result("")]), "o1"),
        (json!([user("alpha"), assistant(), result(""), joined_as_system("other")]), "o0"),
        (json!([user("alpha"), assistant(), {"role": "user", "content": [text(REMINDER)]}]), "a1"),
        (json!([]), "o0"),
    ];
    for (messages, expected) in cases {
        let answer = send(&api, &request(false, &messages)).await.json();
        assert_eq!(answer["content"][0]["text"], expected, "{messages}");
    }
}

#[tokio::test]
async fn a_later_prompt_that_matches_no_rule_is_an_error_that_names_it() {
    let api = start(Script::new().when("alpha", [Reply::text("a0"), Reply::text("a1")])).await;
    let messages = json!([user("alpha"), assistant(), user("other")]);
    let answer = send(&api, &request(false, &messages)).await;
    assert_eq!(answer.head.status, 400);
    let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("no rule of the script matches the prompt \"other\""), "{message}");
}

#[tokio::test]
async fn a_rule_added_with_since_answers_later_prompts_that_match_none() {
    let steps = |name: &str| [0, 1, 2].map(|step| Reply::text(format!("{name}{step}")));
    let script =
        Script::new().since("alpha", steps("a")).when("beta", steps("b")).otherwise(steps("o"));
    let api = start(script).await;
    let cases = [
        (json!([user("other")]), "o0"),
        (json!([user("alpha")]), "a0"),
        (json!([user("alpha"), assistant(), user("other")]), "a1"),
        (json!([user("alpha"), assistant(), user("beta")]), "b0"),
        (json!([user("alpha"), assistant(), user("beta"), assistant(), user("other")]), "a2"),
        (json!([user("beta"), assistant(), user("other")]), "o0"),
    ];
    for (messages, expected) in cases {
        let answer = send(&api, &request(false, &messages)).await.json();
        assert_eq!(answer["content"][0]["text"], expected, "{messages}");
    }
}

#[tokio::test]
async fn an_earlier_prompt_in_the_entry_of_a_later_one_is_not_answered_again() {
    let script = Script::new()
        .when("alpha", [Reply::error(400, "invalid_request_error", "no")])
        .when("beta", [Reply::text("b")])
        .otherwise([Reply::text("o")]);
    let api = start(script).await;
    let entry = |texts: &[&str]| {
        let blocks: Vec<Value> = texts.iter().map(|prompt| text(prompt)).collect();
        json!([{"role": "user", "content": blocks}])
    };
    let ask_for = async |texts: &[&str]| send(&api, &request(false, &entry(texts))).await;
    let text_of = |answer: &HttpResponse| answer.json()["content"][0]["text"].clone();

    // One prompt of two texts: the rule may match either.
    assert_eq!(ask_for(&["alpha one", "more"]).await.head.status, 400);
    // A prompt that failed and the next one, which the CLI adds to the same entry.
    assert_eq!(ask_for(&["alpha two"]).await.head.status, 400);
    assert_eq!(text_of(&ask_for(&["alpha two\n", "more"]).await), "o");
    assert_eq!(text_of(&ask_for(&["alpha two\n", "more\n", "beta", "end"]).await), "b");
    assert_eq!(ask_for(&["alpha two", "more", "alpha three"]).await.head.status, 400);
    // A retry of the same request gets the same answer.
    assert_eq!(text_of(&ask_for(&["alpha two", "more"]).await), "o");
    assert_eq!(ask_for(&["alpha two"]).await.head.status, 400);
}

#[tokio::test]
async fn clones_of_a_script_count_together() {
    let script = Script::new().when_attempts("go", [Reply::text("1"), Reply::text("2")]);
    let (first, second) = (start(script.clone()).await, start(script).await);
    assert_eq!(joined(&send(&first, &streaming("go")).await.events(), 0, "text"), "1");
    assert_eq!(joined(&send(&second, &streaming("go")).await.events(), 0, "text"), "2");
}

#[tokio::test]
async fn a_gap_in_the_script_is_a_bad_request() {
    let panics = Script::respond_with(|_| panic!("on purpose"));
    for script in [Script::new().when("x", [Reply::text("y")]), Script::new().otherwise([]), panics]
    {
        let answer = send(&start(script).await, &streaming("hi")).await;
        assert_eq!(answer.head.status, 400);
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
}

#[tokio::test]
async fn a_closure_sees_the_request_and_a_new_script_replaces_it() {
    let echo = |request: &ApiRequest| Reply::text(request.last_prompt().unwrap_or_default());
    let api = start(Script::respond_with(echo)).await;
    assert_eq!(joined(&send(&api, &streaming("one")).await.events(), 0, "text"), "one");

    api.set_script(Script::new().otherwise([Reply::text("fixed")]));
    assert_eq!(joined(&send(&api, &streaming("two")).await.events(), 0, "text"), "fixed");
}

#[tokio::test]
async fn attempts_advance_with_every_request() {
    let limited = Reply::error(429, "rate_limit_error", "Slow down").retry_after(3);
    let api = start(Script::new().when_attempts("go", [limited, Reply::text("ok")])).await;

    let first = send(&api, &streaming("go")).await;
    assert_eq!((first.head.status, first.head.header("retry-after")), (429, Some("3")));
    for _ in 0..2 {
        assert_eq!(joined(&send(&api, &streaming("go")).await.events(), 0, "text"), "ok");
    }
}

#[tokio::test]
async fn errors_have_the_status_and_format_of_the_api() {
    for (status, kind) in [
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ] {
        let script = Script::new().otherwise([Reply::error(status, kind, "Not \"now\"")]);
        let answer = send(&start(script).await, &streaming("hi")).await;
        assert_eq!(answer.head.status, status);
        let expected = json!({"type": "error", "error": {"type": kind, "message": "Not \"now\""}});
        assert_eq!(answer.json(), expected);
    }
}

#[tokio::test]
async fn headers_are_sent_and_invalid_ones_are_reported() {
    let script = Script::new()
        .when("good", [Reply::text("x").header("anthropic-ratelimit-unified-status", "allowed")])
        .otherwise([Reply::text("x").header("bad name", "x")]);
    let api = start(script).await;

    let good = send(&api, &streaming("good")).await;
    assert_eq!(good.head.header("anthropic-ratelimit-unified-status"), Some("allowed"));
    assert_eq!(send(&api, &streaming("bad")).await.head.status, 400);
}

#[tokio::test]
async fn a_dropped_stream_ends_abnormally_after_exactly_its_events() {
    for (cut, expected) in [(0, 0), (3, 3), (7, 7), (8, 8), (100, 8)] {
        let reply = Reply::text("hello").deltas_of(2).drop_after_events(cut);
        let answer = send(&start(Script::new().otherwise([reply])).await, &streaming("hi")).await;
        assert_eq!((answer.head.status, answer.complete), (200, false));
        assert_eq!(answer.events().len(), expected);
    }
}

#[tokio::test]
async fn events_before_a_cut_arrive_even_if_they_exceed_socket_buffers() {
    let text = "x".repeat(8 << 20);
    let reply = Reply::text(&text).deltas_of(1 << 14).drop_after_events(510);
    let answer = send(&start(Script::new().otherwise([reply])).await, &streaming("hi")).await;
    assert!(!answer.complete);
    assert_eq!(answer.events().len(), 510);
}

#[tokio::test]
async fn a_dropped_reply_without_streaming_ends_abnormally() {
    let api = start(Script::new().otherwise([Reply::text("hello").drop_after_events(1)])).await;
    let answer = send(&api, &request(false, &json!([user("hi")]))).await;
    assert!(!answer.complete && !answer.body.is_empty());
}

#[tokio::test]
async fn a_held_reply_stops_after_its_first_delta_until_released() {
    let api = start(Script::new().otherwise([Reply::text("abcdef").deltas_of(2).hold()])).await;
    let mut connection = Connection::open(&api).await;
    connection.send("POST", "/v1/messages?beta=true", &[], &streaming("hi")).await;
    connection.head().await;
    let mut received = String::new();
    while !received.contains("text_delta") {
        received.push_str(&connection.chunk().await.unwrap().unwrap());
    }
    assert!(received.contains("ab") && !received.contains("cd"));
    let quiet = timeout(Duration::from_millis(100), connection.chunk()).await;
    assert!(quiet.is_err(), "more came: {quiet:?}");

    api.release_held();
    while let Some(chunk) = connection.chunk().await.unwrap() {
        received.push_str(&chunk);
    }
    assert!(received.contains("cd") && received.contains("message_stop"));
}

#[tokio::test]
async fn a_release_affects_all_received_requests_and_no_later_one() {
    let api = start(Script::new().otherwise([Reply::text("abcdef").hold()])).await;
    let mut connection = Connection::open(&api).await;
    for stream in [true, false] {
        let body = request(stream, &json!([user("hi")]));
        let seen = api.requests().len();
        connection.send("POST", "/v1/messages", &[], &body).await;
        // The hold is released before any byte of the reply has been read.
        timeout(TIMEOUT, api.wait_for_request(|_| api.requests().len() > seen)).await.unwrap();
        api.release_held();
        assert!(connection.response().await.complete);
    }
    connection.send("POST", "/v1/messages", &[], &streaming("hi")).await;
    assert!(timeout(Duration::from_millis(100), connection.response()).await.is_err());
}

#[tokio::test]
async fn pauses_occur_before_and_between_events() {
    let (before, between) = (Duration::from_millis(60), Duration::from_millis(20));
    let reply = Reply::text("abc").pause_before(before).pause_between(between);
    let api = start(Script::new().otherwise([reply])).await;
    let mut connection = Connection::open(&api).await;

    let begun = Instant::now();
    connection.send("POST", "/v1/messages", &[], &streaming("hi")).await;
    connection.head().await;
    assert!(begun.elapsed() >= before);
    let mut chunks = 0;
    while connection.chunk().await.unwrap().is_some() {
        chunks += 1;
    }
    // One chunk per event: no event is delayed and sent with the next one.
    assert_eq!(chunks, 8);
    assert!(begun.elapsed() >= before + 7 * between);
}

#[tokio::test]
async fn a_raw_literal_is_sent_verbatim() {
    let literal = r#""broken \ud83d here""#;
    let api = start(Script::new().otherwise([Reply::new().raw_text_json(literal)])).await;
    for stream in [true, false] {
        let answer = send(&api, &request(stream, &json!([user("hi")]))).await;
        assert!(answer.body.contains(&format!(r#""text":{literal}"#)), "{}", answer.body);
    }
}

#[tokio::test]
async fn waiting_finds_earlier_and_later_requests() {
    let api = start(Script::new().otherwise([Reply::text("x")])).await;
    let body = json!({
        "model": "model-x", "stream": true,
        "system": [text("You are"), text("a mock.")],
        "tools": [{"name": "Bash"}, {"name": "Read"}],
        "messages": [
            {"role": "user", "content": [text(REMINDER), text("first")]},
            assistant(),
            {"role": "user", "content": [tool_result("42"), text("second")]},
            {"role": "system", "content": "not a prompt"},
            joined_as_system("third\n\npart"),
        ],
    });
    let mut connection = Connection::open(&api).await;
    let secrets = [("X-Api-Key", "sk-secret"), ("Authorization", "Bearer top-secret")];
    connection.send("POST", "/v1/messages?beta=true", &secrets, &body.to_string()).await;
    connection.response().await;

    let found = timeout(TIMEOUT, api.wait_for_request(|request| request.query == "beta=true"));
    let found = found.await.unwrap();
    assert_eq!((found.method.as_str(), found.path.as_str()), ("POST", "/v1/messages"));
    assert_eq!((found.model(), found.stream()), ("model-x", true));
    assert_eq!(found.prompts(), ["first", "second", "third\n\npart"]);
    assert_eq!(found.last_prompt().as_deref(), Some("third\n\npart"));
    assert_eq!(found.last_user_prompt(), found.last_prompt());
    assert_eq!(found.tool_results(), [tool_result("42")]);
    assert_eq!(found.system_text(), "You are\na mock.");
    assert_eq!(found.tool_names(), ["Bash", "Read"]);
    assert_eq!(found.assistant_turns_after_last_prompt(), 0);
    assert_eq!(found.body, body);
    assert_eq!(found.headers.get("x-api-key"), Some("sk-secret"));
    let debug = format!("{found:?}");
    assert!(debug.contains("x-api-key") && !debug.contains("secret"), "{debug}");

    let user = |text: &str| json!({"role": "user", "content": text});
    let interrupted = "[Request interrupted by user]";
    let noted = json!({"model": "m", "messages": [user("first"), user(interrupted)]}).to_string();
    let mut connection = Connection::open(&api).await;
    connection.send("POST", "/v1/messages?noted", &[], &noted).await;
    connection.response().await;
    let noted = timeout(TIMEOUT, api.wait_for_request(|request| request.query == "noted"));
    let noted = noted.await.unwrap();
    assert_eq!(noted.last_prompt().as_deref(), Some(interrupted));
    assert_eq!(noted.last_user_prompt().as_deref(), Some("first"));

    let next = async { api.wait_for_request(|request| request.prompts() == ["later"]).await };
    let later = streaming("later");
    let (next, _) =
        timeout(TIMEOUT, async { tokio::join!(next, send(&api, &later)) }).await.unwrap();
    assert_eq!(next.last_prompt().as_deref(), Some("later"));
    assert_eq!((api.requests().len(), api.dropped_requests()), (3, 0));
}

#[tokio::test]
async fn an_invalid_or_oversized_body_is_rejected() {
    let api = start(Script::new().otherwise([Reply::text("x")])).await;
    for body in ["{\"model\":", "", "[]", "\u{0}"] {
        let answer = send(&api, body).await;
        assert_eq!(answer.head.status, 400);
        assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    }
    let mut connection = Connection::open(&api).await;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: mock\r\ncontent-length: 67108865\r\n\r\n{";
    connection.write(head).await;
    assert_eq!(connection.response().await.head.status, 400);
    assert!(api.requests().is_empty());
}

#[tokio::test]
async fn other_paths_are_served_on_the_same_connection() {
    let api = start(Script::new()).await;
    let mut connection = Connection::open(&api).await;
    connection.send("POST", "/v1/messages/count_tokens", &[], &streaming("hi")).await;
    assert!(connection.response().await.json()["input_tokens"].as_u64().unwrap() > 0);
    connection.send("GET", "/anything", &[], "").await;
    assert_eq!(connection.response().await.json(), json!({}));
    connection.send("POST", "/v1/unknown", &[], "{}").await;
    let unknown = connection.response().await;
    assert_eq!((unknown.head.status, &unknown.json()["type"]), (404, &json!("error")));
    connection.send("HEAD", "/", &[], "").await;
    assert_eq!(connection.head().await.status, 200);
}

#[tokio::test]
async fn dropping_the_server_closes_connections_and_the_port() {
    let api = start(Script::new().otherwise([Reply::text("abcdef").hold()])).await;
    let address = api.base_url().replace("http://", "");
    let mut held = Connection::open(&api).await;
    held.send("POST", "/v1/messages", &[], &streaming("hi")).await;
    held.head().await;

    drop(api);
    assert!(!held.rest(Framing::Chunked).await.1);
    let refused = async {
        loop {
            match TcpStream::connect(&address).await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error.kind(),
            }
        }
    };
    assert_eq!(timeout(TIMEOUT, refused).await.unwrap(), io::ErrorKind::ConnectionRefused);
}

const REMINDER: &str = "<system-reminder>\nremember\n</system-reminder>\n";

fn user(prompt: &str) -> Value {
    json!({"role": "user", "content": prompt})
}

fn assistant() -> Value {
    json!({"role": "assistant", "content": [text("alpha beta")]})
}

fn result(output: &str) -> Value {
    json!({"role": "user", "content": [tool_result(output)]})
}

/// Returns a message that was sent while a tool ran, as the CLI (2.1.325) forwards it.
fn joined_as_system(message: &str) -> Value {
    let advice = "This is how Claude Code surfaces messages the user sends mid-turn. beta";
    let joined =
        format!("The user sent a new message while you were working:\n{message}\n\n{advice}");
    json!({"role": "system", "content": [text(&joined)]})
}

fn tool_result(output: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [text(output)]})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn streaming(prompt: &str) -> String {
    request(true, &json!([user(prompt)]))
}

fn request(stream: bool, messages: &Value) -> String {
    json!({"model": "model-x", "stream": stream, "messages": messages}).to_string()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// Joins one field of all deltas of a block.
fn joined(events: &[Value], index: usize, field: &str) -> String {
    let deltas = of_type(events, "content_block_delta").into_iter();
    deltas.filter(|e| e["index"] == index).filter_map(|e| e["delta"][field].as_str()).collect()
}

async fn start(script: Script) -> MockApi {
    MockApi::start(script).await.unwrap()
}

async fn send(api: &MockApi, body: &str) -> HttpResponse {
    let mut connection = Connection::open(api).await;
    connection.send("POST", "/v1/messages?beta=true", &[], body).await;
    connection.response().await
}
