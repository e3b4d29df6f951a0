//! Reordering by a concurrent client is accepted; every other deviation is a mismatch.

use std::collections::HashMap;
use std::time::Duration;

use claude_agent_testkit::player::{Mismatch, Player};
use claude_agent_testkit::recording::{Entry, EntryKind, Exit};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Client, recording, recordings, replay_in_order};

fn request(id: &str) -> String {
    json!({"type": "control_request", "request_id": id, "request": {"subtype": "can_use_tool"}})
        .to_string()
}

fn cancel(id: &str) -> String {
    json!({"type": "control_cancel_request", "request_id": id}).to_string()
}

fn response(id: &str) -> String {
    json!({"type": "control_response", "response": {"subtype": "success", "request_id": id}})
        .to_string()
}

fn prompt(text: &str) -> String {
    json!({"type": "user", "message": text, "uuid": format!("id of {text}")}).to_string()
}

fn operation(id: &str, subtype: &str) -> String {
    json!({"type": "control_request", "request_id": id, "request": {"subtype": subtype}})
        .to_string()
}

fn result(texts: &[&str]) -> String {
    let ids: Vec<String> = texts.iter().map(|text| format!("id of {text}")).collect();
    json!({"type": "result", "user_message_uuids": ids}).to_string()
}

/// Formats recorded lines, each with its mark, all with the same time.
fn entries(lines: &[(&str, String)]) -> String {
    let lines: Vec<String> = lines.iter().map(|(mark, line)| format!("{mark} 0 {line}")).collect();
    lines.join("\n")
}

/// Sends these lines and closes stdin; returns the lines of the CLI and the outcome.
async fn replay_lines(player: Player, lines: &[String]) -> (Vec<String>, Result<Exit, Mismatch>) {
    let mut client = Client::new(player);
    for line in lines {
        client.send(line).await;
    }
    client.close();
    let mut lines = Vec::new();
    while let Some(line) = client.next_line().await {
        lines.push(line);
    }
    let outcome = client.wait().await;
    (lines, outcome)
}

#[track_caller]
fn check(outcome: &Result<Exit, Mismatch>, line: Option<usize>) {
    match (outcome, line) {
        (Ok(Exit::Code(0)), None) => {}
        (Err(mismatch), Some(line)) => assert_eq!(mismatch.line(), line, "{mismatch}"),
        _ => panic!("{outcome:?}, expected {line:?}"),
    }
}

fn two_requests() -> Player {
    Player::new(recording(&entries(&[
        (">>", prompt("go")),
        ("<<", request("r1")),
        ("<<", request("r2")),
        (">>", response("r1")),
        ("<<", result(&[])),
        (">>", response("r2")),
        (">>", prompt("more")),
        ("<<", result(&["go", "more"])),
        (">>", "EOF".to_owned()),
        ("EXIT", "0".to_owned()),
    ])))
}

#[tokio::test]
async fn responses_may_arrive_in_any_order_after_their_requests() {
    let [go, more, one, two] = [prompt("go"), prompt("more"), response("r1"), response("r2")];
    for lines in [
        [&go, &one, &two, &more],
        [&go, &two, &one, &more],
        [&go, &two, &more, &one],
        [&go, &more, &one, &two],
    ] {
        let (lines, outcome) = replay_lines(two_requests(), &lines.map(Clone::clone)).await;
        check(&outcome, None);
        assert_eq!(lines.len(), 4, "the player writes the same lines in every order");
    }
}

#[tokio::test]
async fn an_early_duplicate_or_missing_response_is_a_mismatch() {
    let [go, more, one, two] = [prompt("go"), prompt("more"), response("r1"), response("r2")];
    let early = [one.clone(), go.clone()];
    check(&replay_lines(two_requests(), &early).await.1, Some(2));
    let twice = [go.clone(), two.clone(), two.clone(), one.clone(), more.clone()];
    check(&replay_lines(two_requests(), &twice).await.1, Some(5));
    let unknown = [go.clone(), response("r3")];
    check(&replay_lines(two_requests(), &unknown).await.1, Some(5));
    let missing = [go.clone(), two.clone(), more.clone()];
    check(&replay_lines(two_requests(), &missing).await.1, Some(5));
    let other = [go, two.replace("success", "error")];
    check(&replay_lines(two_requests(), &other).await.1, Some(7));
}

#[tokio::test]
async fn client_lines_keep_their_order_across_a_line_of_the_cli() {
    let [a, b] = [operation("1", "set_model"), operation("2", "interrupt")];
    let lines = |between: &str| {
        let mut lines = vec![(">>", prompt("go")), (">>", a.clone()), ("<<", between.to_owned())];
        lines.extend([(">>", b.clone()), ("<<", result(&["go"])), ("EXIT", "0".to_owned())]);
        if between.is_empty() {
            lines.remove(2);
        }
        Player::new(recording(&entries(&lines)))
    };
    for order in [[prompt("go"), b.clone(), a.clone()], [a.clone(), prompt("go"), b.clone()]] {
        check(&replay_lines(lines(""), &order).await.1, None);
    }
    check(&replay_lines(lines("{}"), &[a.clone(), prompt("go"), b.clone()]).await.1, None);
    check(&replay_lines(lines("{}"), &[prompt("go"), b, a]).await.1, Some(3));
    let prompts = [(">>", prompt("one")), (">>", prompt("two")), ("EXIT", "0".to_owned())];
    let player = Player::new(recording(&entries(&prompts)));
    check(&replay_lines(player, &[prompt("two"), prompt("one")]).await.1, Some(2));
}

#[tokio::test]
async fn a_response_to_a_cancelled_request_may_be_missing_or_added() {
    let player_with = |answered: bool| {
        let mut lines = vec![
            (">>", prompt("go")),
            ("<<", request("r1")),
            ("<<", cancel("r1")),
            ("<<", result(&["go"])),
        ];
        if answered {
            lines.insert(3, (">>", response("r1")));
        }
        lines.extend([(">>", "EOF".to_owned()), ("EXIT", "0".to_owned())]);
        Player::new(recording(&entries(&lines)))
    };
    for (recorded, lenient) in [(true, false), (false, false), (true, true), (false, true)] {
        for answers in [true, false] {
            let player =
                if lenient { player_with(recorded).lenient() } else { player_with(recorded) };
            let mut client = Client::new(player);
            client.send(prompt("go")).await;
            // The result is written even without the response.
            for _ in 0..3 {
                assert!(client.next_line().await.is_some());
            }
            if answers {
                client.send(response("r1")).await;
            }
            client.close();
            check(&client.wait().await, None);
        }
    }
}

/// A session whose client stopped after the result, with or without an interrupt.
fn stopped(interrupts: bool, is_answered: bool) -> Player {
    let mut lines = vec![(">>", prompt("go"))];
    if is_answered {
        lines.push(("<<", result(&["go"])));
    } else {
        lines.push(("<<", result(&["something else"])));
        lines.insert(1, ("<<", json!({"type": "command_lifecycle"}).to_string()));
    }
    if interrupts {
        lines.extend([(">>", operation("i", "interrupt")), ("<<", response("i"))]);
    }
    lines.extend([(">>", "EOF".to_owned()), ("EXIT", "0".to_owned())]);
    Player::new(recording(&entries(&lines)))
}

#[tokio::test]
async fn a_final_interrupt_is_optional_when_no_message_is_unanswered() {
    let without = [prompt("go")];
    let with = [prompt("go"), operation("mine", "interrupt")];
    let (lines, outcome) = replay_lines(stopped(true, true), &with).await;
    check(&outcome, None);
    assert_eq!(lines, [result(&["go"]), response("mine")]);
    let (lines, outcome) = replay_lines(stopped(true, true), &without).await;
    check(&outcome, None);
    assert_eq!(lines, [result(&["go"])], "a missing request has no response");
    check(&replay_lines(stopped(false, true), &with).await.1, None);
    check(&replay_lines(stopped(false, true), &without).await.1, None);
    // A turn of the client is running, so the interrupt does not depend on timing.
    check(&replay_lines(stopped(true, false), &without).await.1, Some(5));
    check(&replay_lines(stopped(false, false), &with).await.1, Some(5));
    // Nothing else may be added or missing.
    let more = [prompt("go"), operation("mine", "set_model")];
    check(&replay_lines(stopped(false, true), &more).await.1, Some(4));
}

#[tokio::test]
async fn a_request_after_the_last_result_needs_no_response() {
    let player_with = |answered: bool| {
        let mut lines = vec![(">>", prompt("go")), ("<<", result(&["go"])), ("<<", request("r"))];
        if answered {
            lines.push((">>", response("r")));
        }
        lines.extend([("<<", "{}".to_owned()), (">>", "EOF".to_owned()), ("EXIT", "0".to_owned())]);
        Player::new(recording(&entries(&lines)))
    };
    for recorded in [true, false] {
        check(&replay_lines(player_with(recorded), &[prompt("go")]).await.1, None);
        let mut client = Client::new(player_with(recorded));
        client.send(prompt("go")).await;
        assert!(client.next_line().await.is_some() && client.next_line().await.is_some());
        client.send(response("r")).await;
        client.close();
        check(&client.wait().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn the_replay_waits_for_eof_even_if_the_cli_exited_at_the_same_time() {
    // An in-memory CLI exits without any delay.
    let lines = "<< 9 {}\n>> 9.1 EOF\n<| 9.1\nEXIT 9.1 0";
    for player in [Player::new(recording(lines)), Player::new(recording(lines)).lenient()] {
        let mut client = Client::new(player);
        assert_eq!(client.next_line().await.as_deref(), Some("{}"));
        let ended = timeout(Duration::from_secs(3600), client.stdout.next_line()).await;
        assert!(ended.is_err(), "{ended:?}");
        client.close();
        assert_eq!(client.next_line().await, None);
        check(&client.wait().await, None);
    }
}

#[tokio::test]
async fn after_stdout_closes_the_player_waits_for_nothing() {
    let late = prompt("too late");
    let lines = format!("<< 0 {{}}\n<| 0\n>> 5 {late}\n>> 9 EOF\n!! 9 bye\nEXIT 9 3");
    for player in [Player::new(recording(&lines)), Player::new(recording(&lines)).lenient()] {
        let mut client = Client::new(player);
        assert_eq!(client.next_line().await.as_deref(), Some("{}"));
        assert_eq!(client.next_line().await, None);
        assert_eq!(client.stderr().await, "bye\n");
        assert!(client.stdin.is_some());
        assert_eq!(client.wait().await, Ok(Exit::Code(3)));
    }
}

/// A seeded random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Returns the entries in an order that another run of the same client could have produced: a response
/// is moved to any position after its request.
fn another_order<'a>(recorded: &'a [Entry], random: &mut Random) -> Vec<&'a Entry> {
    let mut asked = HashMap::new();
    let mut order: Vec<&Entry> = Vec::new();
    for entry in recorded {
        let line: Value = match &entry.kind {
            EntryKind::Sent(line) | EntryKind::Received(line) => {
                serde_json::from_slice(line).unwrap_or_default()
            }
            _ => Value::Null,
        };
        let id = |id: &Value| id.as_str().unwrap_or_default().to_owned();
        match &entry.kind {
            EntryKind::Received(_) if line["type"] == "control_request" => {
                asked.insert(id(&line["request_id"]), entry);
            }
            EntryKind::Sent(_) if line["type"] == "control_response" => {
                let request = asked.get(&id(&line["response"]["request_id"]));
                let after = request.and_then(|request| {
                    order.iter().rposition(|placed| std::ptr::eq(*placed, *request))
                });
                let first = after.map_or(order.len(), |after| after + 1);
                order.insert(first + random.below(order.len() + 1 - first), entry);
                continue;
            }
            _ => {}
        }
        order.push(entry);
    }
    order
}

#[tokio::test]
async fn every_recording_replays_strictly_with_reordered_responses() {
    let mut moved = 0;
    for (name, recording) in recordings() {
        println!("{name}");
        for seed in 0..4 {
            let order = another_order(&recording.entries, &mut Random(seed));
            moved += usize::from(!order.iter().copied().eq(&recording.entries));
            let player = Player::new(recording.clone()).strict();
            let exit = replay_in_order(&recording, order.into_iter(), player).await;
            assert_eq!(exit, Ok(recording.exit().unwrap()), "{name}, seed {seed}");
        }
    }
    // Most recorded clients responded to each request before they read on.
    assert!(moved > 10, "only {moved} orders differ from the recorded one");
}
