//! The mirror of transcripts to a store: batches, retries, held results and the end of a run.

use std::time::Duration;

use claude_agent_core::session::{
    AppendFailure, BatchNumber, Effect, Event, Plan, QueryLimits, RunMode, RunWarning, StorePolicy,
};

use crate::seeds::times;
use crate::session_harness::{
    ANSWER, Harness, RESULT, hook, lifecycle, oversized, permission, result_for, with_callbacks,
};

const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";
const OTHER: &str = "1b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

fn frame(session: &str, entries: &str) -> String {
    file(&format!("/c/projects/-w/{session}.jsonl"), entries)
}

fn file(path: &str, entries: &str) -> String {
    format!(r#"{{"type":"transcript_mirror","filePath":"{path}","entries":[{entries}]}}"#)
}

fn plan(policy: StorePolicy) -> Plan {
    let mut plan = with_callbacks();
    plan.mirror = Some(policy);
    plan
}

fn mirrored() -> Harness {
    with(StorePolicy::Continue)
}

fn with(policy: StorePolicy) -> Harness {
    let mut harness = Harness::ready(plan(policy));
    harness.effects();
    harness
}

fn query(policy: StorePolicy) -> Harness {
    let mut plan = plan(policy);
    plan.run = RunMode::Query { prompt: None, limits: QueryLimits::default() };
    let mut harness = Harness::ready(plan);
    harness.effects();
    harness
}

impl Harness {
    fn appended(&mut self, batch: u64) -> Vec<String> {
        self.handle(Event::Appended(BatchNumber(batch)))
    }

    fn append_fails(&mut self, batch: u64, failure: AppendFailure) -> Vec<String> {
        let batch = BatchNumber(batch);
        self.handle(Event::AppendFailed { batch, failure, reason: "down".to_owned() })
    }

    fn unavailable(&mut self, batch: u64) -> Vec<String> {
        self.append_fails(batch, AppendFailure::Retryable)
    }
}

fn degraded(reason: &str) -> String {
    format!("warn MirrorDegraded({reason:?})")
}

const RETRIES_OVER: &str = "appends failed for 30s: down";

fn deliver(line: &str) -> String {
    format!("deliver {line}")
}

#[test]
fn without_a_store_frames_are_ignored() {
    let mut harness = Harness::session();
    harness.effects();
    assert!(harness.line(&frame(ID, "1")).is_empty());
    assert_eq!(harness.line(RESULT), [deliver(RESULT)]);
}

#[test]
fn entries_are_appended_in_order_one_batch_at_a_time() {
    let mut harness = mirrored();
    assert_eq!(harness.line(&frame(ID, r#"{"a": 1},2"#)), [r#"append 1 [{"a": 1} 2]"#]);
    assert!(harness.line(&frame(ID, "3")).is_empty());
    let agent = format!("/c/projects/-w/{ID}/subagents/agent-x.jsonl");
    assert!(harness.line(&file(&agent, "4")).is_empty());
    assert!(harness.line(&frame(OTHER, "5")).is_empty());
    assert!(harness.line(&frame(ID, "6")).is_empty());
    assert_eq!(harness.appended(1), ["append 2 [3 subagents/agent-x:4]"]);
    assert_eq!(harness.appended(2), ["append 3 [5]"]);
    assert_eq!(harness.appended(3), ["append 4 [6]"]);
    assert!(harness.appended(4).is_empty());
    // Late reports of earlier batches change nothing.
    assert!(harness.appended(4).is_empty() && harness.unavailable(2).is_empty());
    assert_eq!(harness.machine.wake_at(), None);
}

#[test]
fn a_batch_has_at_most_five_hundred_entries_and_a_mebibyte() {
    let sizes = |harness: &mut Harness| -> Vec<usize> {
        let mut sizes = Vec::new();
        while let Some(effect) = harness.machine.next_effect() {
            if let Effect::Append(batch) = effect {
                sizes.push(batch.entries.len());
                harness.machine.handle(Event::Appended(batch.number), harness.now);
            }
        }
        sizes
    };
    let line = |entries: Vec<String>| Event::Line(frame(ID, &entries.join(",")).into());
    let mut harness = mirrored();
    harness.machine.handle(line(vec!["1".to_owned(); 1_001]), harness.now);
    assert_eq!(sizes(&mut harness), [500, 500, 1]);
    let half = format!("\"{}\"", "x".repeat(512 * 1024 - 2));
    let large = format!("\"{}\"", "x".repeat(3 * 1024 * 1024));
    let mixed = vec![half.clone(), half.clone(), half, large, "1".to_owned()];
    harness.machine.handle(line(mixed), harness.now);
    assert_eq!(sizes(&mut harness), [2, 1, 1, 1]);
}

#[test]
fn a_result_waits_for_the_entries_before_it_and_nothing_else_does() {
    let mut harness = mirrored();
    harness.send(1, "m");
    harness.line(&lifecycle("m", "started"));
    harness.line(&frame(ID, "1"));
    assert_eq!(harness.line(ANSWER), [deliver(ANSWER)]);
    let result = result_for(&["m"]);
    assert!(harness.line(&result).is_empty());
    assert!(harness.line(&frame(ID, "2")).is_empty());
    assert!(harness.line(ANSWER).is_empty());
    // Control traffic does not wait.
    assert_eq!(harness.line(&hook("r", "hook_0")), ["run 1 for r"]);
    assert_eq!(harness.respond(1, "{}"), ["respond r {}"]);
    assert_eq!(harness.interrupt(2).len(), 1);
    let after = ["stored true".to_owned(), deliver(&result), "turn m ended with []".to_owned()];
    let mut expected = after.to_vec();
    expected.extend([deliver(ANSWER), "append 2 [2]".to_owned()]);
    assert_eq!(harness.appended(1), expected);
    // The second entry came after the result.
    assert!(harness.appended(2).is_empty());
    assert_eq!(harness.line(RESULT), ["stored true".to_owned(), deliver(RESULT)]);
}

#[test]
fn each_held_result_waits_for_its_own_entries() {
    let mut harness = mirrored();
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    harness.line(&frame(ID, "2"));
    harness.line(RESULT);
    let first = ["stored true".to_owned(), deliver(RESULT), "append 2 [2]".to_owned()];
    assert_eq!(harness.appended(1), first);
    assert_eq!(harness.appended(2), first[..2]);
}

#[test]
fn a_delivered_permission_request_does_not_wait_for_the_store() {
    let mut plan = plan(StorePolicy::Wait);
    plan.delivered_permissions = claude_agent_core::session::DeliveredPermissions::All;
    let mut harness = Harness::ready(plan);
    harness.effects();
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    let request = permission("p");
    let expected = [format!("deliver permission {request}"), "run 1 for p".to_owned()];
    assert_eq!(harness.line(&request), expected);
    // The result does: another host may have the session.
    assert_eq!(harness.appended(1), ["stored true".to_owned(), deliver(RESULT)]);
}

#[test]
fn a_failed_append_is_retried_and_then_the_run_continues_without_the_store() {
    let mut harness = mirrored();
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    harness.line(&frame(ID, "2"));
    let mut retries = Vec::new();
    let mut effects = harness.unavailable(1);
    while effects.is_empty() {
        let at = harness.machine.wake_at().unwrap();
        let step = at.checked_sub(harness.now).unwrap().as_millis();
        effects = harness.advance(u64::try_from(step).unwrap() + 1);
        if effects == ["retry 1"] {
            retries.push(harness.now);
            effects = harness.unavailable(1);
        }
    }
    let expected =
        ["abandon".to_owned(), degraded(RETRIES_OVER), "stored false".to_owned(), deliver(RESULT)];
    assert_eq!(effects, expected);
    assert!((6..=9).contains(&retries.len()), "{retries:?}");
    assert!(harness.now >= Duration::from_secs(30) && harness.now < Duration::from_secs(31));
    // Later entries would leave a gap.
    assert!(harness.line(&frame(ID, "3")).is_empty());
    assert_eq!(harness.line(RESULT), ["stored false".to_owned(), deliver(RESULT)]);
}

/// Returns a degraded mirror, 30 seconds before the store is tried again.
fn degraded_mirror() -> Harness {
    let mut harness = mirrored();
    harness.line(&frame(ID, "1"));
    assert_eq!(harness.advance(30_000).len(), 2);
    assert!(harness.line(&frame(ID, "2")).is_empty());
    harness
}

fn catch_up(number: u64) -> String {
    format!(r#"catch up {number} ["/c/projects/-w/{ID}.jsonl"]"#)
}

#[test]
fn a_degraded_mirror_is_caught_up_from_the_files() {
    let mut harness = degraded_mirror();
    assert!(harness.advance(29_999).is_empty());
    assert_eq!(harness.advance(1), [catch_up(2)]);
    assert_eq!(harness.line(RESULT), ["stored false".to_owned(), deliver(RESULT)]);
    assert_eq!(harness.appended(2), ["warn MirrorRecovered"]);
    assert_eq!(harness.line(RESULT), ["stored true".to_owned(), deliver(RESULT)]);
    assert_eq!(harness.line(&frame(ID, "3")), ["append 3 [3]"]);
    harness.appended(3);
    assert_eq!(harness.machine.wake_at(), None);
}

#[test]
fn files_that_still_change_are_read_again() {
    let mut harness = degraded_mirror();
    assert_eq!(harness.advance(30_000), [catch_up(2)]);
    harness.advance(5_000);
    assert!(harness.line(&frame(ID, "3")).is_empty());
    assert!(harness.appended(2).is_empty());
    assert_eq!(harness.advance(1_000), [catch_up(3)]);
    // A file that the attempt does not know.
    harness.line(&frame(OTHER, "4"));
    harness.advance(5_000);
    assert!(harness.appended(3).is_empty());
    assert_eq!(harness.advance(1_000).len(), 1);
    assert_eq!(harness.appended(4), ["warn MirrorRecovered"]);
}

#[test]
fn a_store_that_fails_again_is_tried_again_unless_it_cannot_help() {
    let mut harness = degraded_mirror();
    harness.advance(30_000);
    assert!(harness.unavailable(2).is_empty());
    assert!(harness.advance(29_999).is_empty());
    assert_eq!(harness.advance(1), [catch_up(3)]);
    assert!(harness.append_fails(3, AppendFailure::Permanent).is_empty());
    assert_eq!(harness.machine.wake_at(), None);

    let mut harness = degraded_mirror();
    harness.advance(30_000);
    let effects = harness.append_fails(2, AppendFailure::Superseded);
    assert_eq!(effects[0], r#"state Failed(Superseded("down"))"#);
    assert_eq!(harness.end_process(0), [r#"end Failed(Superseded("down"))"#]);
}

#[test]
fn the_end_of_a_run_tries_a_failed_store_once_more() {
    let at_end = catch_up(2).replace("up 2", "up 2 at the end");
    let mut harness = degraded_mirror();
    harness.stop();
    assert_eq!(harness.end_process(0), [&*at_end]);
    assert_eq!(harness.appended(2), ["warn MirrorRecovered", "end Stopped"]);

    let mut harness = degraded_mirror();
    harness.stop();
    assert_eq!(harness.end_process(0), [&*at_end]);
    assert_eq!(harness.unavailable(2), ["end Stopped"]);

    let mut harness = degraded_mirror();
    harness.stop();
    assert_eq!(harness.end_process(0), [&*at_end]);
    assert!(harness.advance(9_999).is_empty());
    assert_eq!(harness.advance(1), ["abandon", "end Stopped"]);
}

#[test]
fn a_retry_that_succeeds_releases_the_result() {
    let mut harness = mirrored();
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    harness.unavailable(1);
    assert_eq!(harness.advance(300), ["retry 1"]);
    assert_eq!(harness.appended(1), ["stored true".to_owned(), deliver(RESULT)]);
}

#[test]
fn an_append_that_hangs_is_abandoned() {
    let mut harness = mirrored();
    harness.line(&frame(ID, "1"));
    assert!(harness.advance(29_999).is_empty());
    let reason = "appends failed for 30s: the append did not return";
    assert_eq!(harness.advance(1), ["abandon".to_owned(), degraded(reason)]);
    assert!(harness.appended(1).is_empty());
}

#[test]
fn memory_is_limited_while_an_append_hangs() {
    let limit = "more than 8388608 bytes are waiting for the store";
    for policy in [StorePolicy::Continue, StorePolicy::Wait] {
        // Entries.
        let mut harness = with(policy);
        let entry = format!("\"{}\"", "x".repeat(1024 * 1024));
        let effects: Vec<String> = (0..9).flat_map(|_| harness.line(&frame(ID, &entry))).collect();
        assert_eq!(effects[1..], ["abandon".to_owned(), degraded(limit)]);
        // Messages behind a held result.
        let mut harness = with(policy);
        harness.line(&frame(ID, "1"));
        let message = format!(r#"{{"type":"assistant","text":"{}"}}"#, "x".repeat(1024 * 1024));
        let result = format!(r#"{{"type":"result","text":"{}"}}"#, "x".repeat(9 * 1024 * 1024));
        assert!(harness.line(&result).is_empty());
        let effects: Vec<String> = (0..9).flat_map(|_| harness.line(&message)).collect();
        assert_eq!(effects[..3], ["abandon", &degraded(limit), "stored false"]);
        let delivered = effects.iter().filter(|effect| effect.starts_with("deliver"));
        assert_eq!(delivered.count(), 10);
    }
    // A single entry may have any size.
    let mut harness = mirrored();
    let entry = format!("\"{}\"", "x".repeat(20 * 1024 * 1024));
    assert_eq!(harness.line(&frame(ID, &entry)).len(), 1);
    assert!(harness.line(&frame(ID, "2")).is_empty());
    assert_eq!(harness.appended(1), ["append 2 [2]"]);
}

#[test]
fn the_policy_decides_about_a_store_that_fails() {
    let mut harness = with(StorePolicy::Wait);
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    harness.unavailable(1);
    for _ in 0..100 {
        assert_eq!(harness.advance(12_500), ["retry 1"]);
        harness.unavailable(1);
    }
    assert_eq!(harness.appended(1), ["stored true".to_owned(), deliver(RESULT)]);

    let mut harness = with(StorePolicy::Stop);
    harness.line(&frame(ID, "1"));
    let effects = harness.append_fails(1, AppendFailure::Permanent);
    let expected = ["abandon", &degraded("down"), r#"state Failed(StoreFailed("down"))"#];
    assert_eq!(effects[..3], expected);
    assert!(effects.contains(&"close stdin".to_owned()));
    assert_eq!(harness.end_process(0), [r#"end Failed(StoreFailed("down"))"#]);
}

#[test]
fn a_superseded_run_fails() {
    for policy in [StorePolicy::Continue, StorePolicy::Wait, StorePolicy::Stop] {
        let mut harness = with(policy);
        harness.line(&frame(ID, "1"));
        harness.line(RESULT);
        let effects = harness.append_fails(1, AppendFailure::Superseded);
        let expected = [
            "abandon".to_owned(),
            degraded("down"),
            r#"state Failed(Superseded("down"))"#.to_owned(),
            "close stdin".to_owned(),
            "terminate at once".to_owned(),
        ];
        assert_eq!(effects, expected);
        assert!(harness.line(ANSWER).is_empty());
        assert_eq!(harness.end_process(0), [r#"end Failed(Superseded("down"))"#]);
    }
}

#[test]
fn a_query_fails_if_its_result_was_held() {
    let mut harness = query(StorePolicy::Continue);
    harness.line(&frame(ID, "1"));
    harness.line(RESULT);
    harness.append_fails(1, AppendFailure::Superseded);
    assert_eq!(harness.end_process(0), [r#"end Failed(Superseded("down"))"#]);

    // After its result, nothing becomes an error.
    let mut harness = query(StorePolicy::Stop);
    harness.line(RESULT);
    harness.line(&frame(ID, "1"));
    let effects = harness.append_fails(1, AppendFailure::Superseded);
    let expected = ["abandon".to_owned(), degraded("down"), "terminate at once".to_owned()];
    assert_eq!(effects, expected);
    assert_eq!(harness.end_process(0), ["warn StoppedAfterResult", "end Finished"]);
}

#[test]
fn the_end_of_a_run_waits_for_the_store_for_ten_seconds() {
    let mut harness = mirrored();
    harness.stop();
    harness.line(&frame(ID, "1"));
    harness.line(&frame(ID, "2"));
    harness.line(RESULT);
    assert!(harness.end_process(0).is_empty());
    assert_eq!(harness.appended(1), ["append 2 [2]"]);
    let expected = ["stored true".to_owned(), deliver(RESULT), "end Stopped".to_owned()];
    assert_eq!(harness.appended(2), expected);

    let mut harness = with(StorePolicy::Wait);
    harness.stop();
    harness.line(&frame(ID, "1"));
    assert!(harness.end_process(0).is_empty());
    assert!(harness.unavailable(1).is_empty());
    assert_eq!(harness.advance(300), ["retry 1"]);
    assert!(harness.advance(9_699).is_empty());
    let reason = "appends failed for 10s: down";
    let expected = ["abandon".to_owned(), degraded(reason), "end Stopped".to_owned()];
    assert_eq!(harness.advance(1)[..], expected);
}

#[test]
fn frames_that_cannot_be_stored_are_reported() {
    let mut harness = mirrored();
    let elsewhere = file("/tmp/notes.jsonl", "1");
    assert_eq!(harness.line(&elsewhere), [r#"warn UnknownTranscript("/tmp/notes.jsonl")"#]);
    assert!(harness.line(&elsewhere).is_empty());
    assert_eq!(harness.line(&frame(ID, "1")), ["append 1 [1]"]);
    let broken = r#"{"type":"transcript_mirror","filePath":"/c/projects/-w/x.jsonl"}"#;
    let effects = harness.line(broken);
    assert!(effects[1].contains("cannot be decoded: missing field `entries`"), "{effects:?}");

    let mut harness = mirrored();
    let long = frame(ID, &format!("\"{}\"", "x".repeat(9_000)));
    let effects = harness.handle(oversized(&long));
    assert!(effects[1].contains("line of 9"), "{effects:?}");
    assert_eq!(harness.line(RESULT), ["stored false".to_owned(), deliver(RESULT)]);
}

/// Random orders of frames, results, outcomes of appends and time.
#[test]
fn random_orders_keep_the_order_and_lose_nothing_silently() {
    for seed in 0..times(400) {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = |limit: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % limit
        };
        let mut run = RandomRun::new();
        for _ in 0..60 {
            match next(8) {
                0..=2 => run.frame(1 + next(3)),
                3 => run.result(),
                4 | 5 => run.outcome(Ok(())),
                6 => run.outcome(Err(AppendFailure::Retryable)),
                _ => run.advance(next(if seed % 2 == 0 { 2_000 } else { 20_000 })),
            }
        }
        run.check(seed);
    }
}

struct RandomRun {
    harness: Harness,
    sent: u64,
    results: u64,
    /// The batch in flight and its entries, while the store works on it.
    in_flight: Option<(BatchNumber, Vec<u64>)>,
    waiting: Option<(BatchNumber, Vec<u64>)>,
    stored: Vec<u64>,
    /// The results as delivered: the number of entries before it, and whether they are stored.
    delivered: Vec<(u64, bool)>,
    last_mark: Option<bool>,
    degraded: bool,
    catch_up: Option<BatchNumber>,
}

impl RandomRun {
    fn new() -> Self {
        Self {
            harness: mirrored(),
            sent: 0,
            results: 0,
            in_flight: None,
            waiting: None,
            stored: Vec::new(),
            delivered: Vec::new(),
            last_mark: None,
            degraded: false,
            catch_up: None,
        }
    }

    fn handle(&mut self, event: Event) {
        self.harness.machine.handle(event, self.harness.now);
        while let Some(effect) = self.harness.machine.next_effect() {
            match effect {
                Effect::Append(batch) => {
                    assert!(self.in_flight.is_none() && self.waiting.is_none());
                    let texts = batch.entries.iter().map(|entry| entry.text.parse().unwrap());
                    self.in_flight = Some((batch.number, texts.collect()));
                }
                Effect::RetryAppend(number) => {
                    self.in_flight = self.waiting.take();
                    assert_eq!(self.in_flight.as_ref().map(|it| it.0), Some(number));
                }
                Effect::AbandonAppend => (self.in_flight, self.waiting) = (None, None),
                Effect::Stored(stored) => self.last_mark = Some(stored),
                Effect::Deliver(line) => {
                    let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
                    let before = line["before"].as_u64().unwrap();
                    self.delivered.push((before, self.last_mark.take().unwrap()));
                    let is_stored = self.stored.len() as u64 >= before;
                    assert_eq!(self.delivered.last(), Some(&(before, is_stored && !self.degraded)));
                }
                Effect::Warn(RunWarning::MirrorRecovered) => self.degraded = false,
                Effect::Warn(_) => self.degraded = true,
                Effect::CatchUp(request) => self.catch_up = Some(request.number),
                _ => {}
            }
        }
    }

    fn frame(&mut self, entries: u64) {
        let texts: Vec<String> = (0..entries).map(|n| (self.sent + n).to_string()).collect();
        self.sent += entries;
        self.handle(Event::Line(frame(ID, &texts.join(",")).into()));
    }

    fn result(&mut self) {
        self.results += 1;
        let line = format!(r#"{{"type":"result","before":{}}}"#, self.sent);
        self.handle(Event::Line(line.into()));
    }

    fn outcome(&mut self, outcome: Result<(), AppendFailure>) {
        if let Some(batch) = self.catch_up.take() {
            if let Err(failure) = outcome {
                let reason = "down".to_owned();
                return self.handle(Event::AppendFailed { batch, failure, reason });
            }
            self.stored.extend(self.stored.len() as u64..self.sent);
            return self.handle(Event::Appended(batch));
        }
        let Some((batch, entries)) = self.in_flight.take() else { return };
        match outcome {
            Ok(()) => {
                self.stored.extend(entries);
                self.handle(Event::Appended(batch));
            }
            Err(failure) => {
                self.waiting = Some((batch, entries));
                let reason = "down".to_owned();
                self.handle(Event::AppendFailed { batch, failure, reason });
            }
        }
    }

    fn advance(&mut self, milliseconds: u64) {
        self.harness.now += Duration::from_millis(milliseconds);
        if self.harness.machine.wake_at().is_some_and(|at| at <= self.harness.now) {
            self.handle(Event::Tick);
        }
    }

    fn check(mut self, seed: u64) {
        // The store recovers.
        for _ in 0..500 {
            self.advance(1_000);
            self.outcome(Ok(()));
        }
        let expected: Vec<u64> = (0..self.stored.len() as u64).collect();
        assert_eq!(self.stored, expected, "{seed}");
        assert!(!self.degraded && self.stored.len() as u64 == self.sent, "{seed}");
        assert_eq!(self.delivered.len() as u64, self.results, "{seed}");
    }
}
