//! The cost of turns, sessions and queries, compared with the totals of the CLI.

use std::process::Command;

use claude_agent_kit::hook::{HookResponse, UserPromptSubmit};
use claude_agent_kit::{
    Conversation, Cost, ErrorKind, Include, Item, Options, QueryStream, Session, Tokens, Turn,
    query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Sim};
use claude_wire::control::GetUsage;
use claude_wire::id::SessionId;
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::helpers::{calls, find, has_file, is_delta, is_result, on_both, start, turn};
use crate::support::{ask, error_of, hello, in_time, real, run, until};

/// Returns a model whose responses all have different numbers of tokens.
fn script() -> Script {
    let agent = |prompt: &str, background: bool| {
        let input = json!({"description": "Greet", "prompt": prompt,
                           "subagent_type": "general-purpose", "run_in_background": background});
        Reply::tool("Agent", input)
    };
    let story = || Reply::text("Once upon a time").deltas_of(3).usage(9_000, 90).hold();
    Script::new()
        .when("summary of the conversation", [summary()])
        .when("greet at once", [Reply::text("Greeted.").usage(100_000, 1_000)])
        .when("greet later", [Reply::text("Greeted.").usage(200_000, 2_000).hold()])
        .when("one", [Reply::text("1").usage(1_000, 10)])
        .when("run it", [calls(&["true"]).usage(2_000, 20), Reply::text("2").usage(3_000, 30)])
        .when(
            "delegate",
            [agent("greet at once", false).usage(4_000, 40), Reply::text("3").usage(5_000, 50)],
        )
        .when(
            "hire",
            [agent("greet later", true).usage(6_000, 60), Reply::text("4").usage(7_000, 70)],
        )
        .when("long tale", [calls(&["true"]).usage(2_000, 20), story()])
        .when("story", [story()])
        .when("wait", [calls(&["touch begun; sleep 60"]).usage(12_000, 120)])
}

fn summary() -> Reply {
    Reply::text("<summary>Numbers and stories.</summary>").usage(10_000, 100)
}

fn tokens(cost: Cost) -> (u64, u64) {
    let Tokens { input, output, cache_read, cache_creation, .. } = cost.tokens;
    assert_eq!((cache_read, cache_creation), (0, 0));
    (input, output)
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// Returns options whose conversations can be resumed, also in memory.
fn options(harness: &Harness) -> Options {
    with_home(harness, harness.options())
}

fn with_home(harness: &Harness, options: Options) -> Options {
    let home = harness.root().join("home/.claude");
    options
        .env("CLAUDE_CONFIG_DIR", home.to_string_lossy())
        .include(Include::PARTIAL_MESSAGES)
        .allowed_tools(["Bash"])
}

/// Returns options for a CLI that [`kill`] can kill.
fn killable(harness: &Harness) -> Options {
    if harness.program().is_some() {
        return options(harness);
    }
    let address = harness.api().base_url();
    let faults = Faults::new().on_read("control_request/mcp_status", Fault::Signal(9));
    let sim = Sim::new().api(address).faults(faults);
    with_home(harness, Options::new().cwd(harness.project()).simulated(sim))
}

async fn kill(session: &Session) {
    match session.pid() {
        Some(pid) => kill_process(pid),
        None => assert!(session.mcp().status().await.is_err()),
    }
}

fn kill_process(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

/// Returns the total cost that the CLI reports.
async fn total(session: &Session) -> f64 {
    let mut request = GetUsage::default();
    request.skip_behaviors = Some(true);
    let usage = session.request(request).await.unwrap().session.unwrap();
    usage.total_cost_usd.unwrap().as_f64()
}

/// Reads until the first part of an answer arrives.
async fn wait_for_delta(turn: &mut Turn) {
    while !is_delta(&in_time(turn.next()).await.unwrap().unwrap()) {}
}

/// The costs of the turns of all sessions, each checked against its expected tokens.
#[derive(Debug, Default)]
struct Ledger {
    costs: Vec<(&'static str, Cost)>,
}

impl Ledger {
    fn record(&mut self, name: &'static str, cost: Cost, expected: (u64, u64), is_complete: bool) {
        assert_eq!((tokens(cost), cost.is_complete), (expected, is_complete), "{name}");
        self.costs.push((name, cost));
    }

    /// Runs a turn to its end.
    async fn turn(&mut self, session: &Session, name: &'static str, expected: (u64, u64)) {
        let outcome = turn(session, name).await;
        self.record(name, outcome.cost, expected, true);
    }

    fn sum(&self) -> f64 {
        self.costs.iter().map(|(_, cost)| cost.usd).sum()
    }
}

/// Runs all kinds of turns in one process.
async fn run_first_session(harness: &Harness, ledger: &mut Ledger) -> SessionId {
    let session = start(options(harness)).await;
    ledger.turn(&session, "one", (1_000, 10)).await;
    ledger.turn(&session, "run it", (5_000, 50)).await;
    ledger.turn(&session, "delegate", (109_000, 1_090)).await;
    run_background_agent(harness, &session, ledger).await;
    let mut story = session.send("story").await.unwrap();
    wait_for_delta(&mut story).await;
    session.interrupt().await.unwrap();
    // The CLI estimates the output of a truncated response: a third of its three characters.
    ledger.record("story", in_time(story.finish()).await.unwrap().cost, (9_000, 1), false);
    let waiting = session.send("wait").await.unwrap();
    until("the tool runs", || has_file(harness, "begun")).await;
    session.interrupt().await.unwrap();
    ledger.record("wait", in_time(waiting.finish()).await.unwrap().cost, (12_000, 120), false);
    ledger.turn(&session, "/compact", (10_000, 100)).await;
    ledger.turn(&session, "one", (1_000, 10)).await;
    let before_clear = session.cost();
    assert!(
        is_near(before_clear.usd, ledger.sum()) && is_near(total(&session).await, ledger.sum())
    );
    ledger.turn(&session, "/clear", (0, 0)).await;
    assert_eq!(total(&session).await.to_bits(), 0.0_f64.to_bits());
    ledger.turn(&session, "one", (1_000, 10)).await;
    // After `/clear` the CLI counts from zero; the session does not.
    assert!(is_near(total(&session).await, session.cost().usd - before_clear.usd));
    assert!(is_near(session.cost().usd, ledger.sum()) && !session.cost().is_complete);
    let id = session.session_id().unwrap();
    session.stop().await.unwrap();
    id
}

/// Runs a background agent, whose cost belongs to the turn that the CLI starts when the agent ends.
async fn run_background_agent(harness: &Harness, session: &Session, ledger: &mut Ledger) {
    let mut messages = session.messages();
    ledger.turn(session, "hire", (13_000, 130)).await;
    let is_agents = |prompt: &String| prompt.contains("greet later");
    in_time(harness.api().wait_for_request(|request| request.prompts().iter().any(is_agents)))
        .await;
    let before = session.cost();
    harness.api().release_held();
    find(&mut messages, is_result).await;
    find(&mut messages, is_result).await;
    let mut cost = session.cost();
    cost.usd -= before.usd;
    cost.tokens.input -= before.tokens.input;
    cost.tokens.output -= before.tokens.output;
    ledger.record("background agent", cost, (207_000, 2_070), true);
}

/// Runs two turns in a continued conversation and returns the total that the CLI had restored.
async fn run_continued_session(harness: &Harness, from: Conversation, ledger: &mut Ledger) -> f64 {
    let session = start(options(harness).conversation(from)).await;
    let restored = total(&session).await;
    assert_eq!(session.cost(), Cost::default());
    ledger.turn(&session, "one", (1_000, 10)).await;
    ledger.turn(&session, "run it", (5_000, 50)).await;
    assert!(is_near(total(&session).await - restored, session.cost().usd));
    session.stop().await.unwrap();
    restored
}

/// Runs a session whose CLI is killed during its second turn.
async fn run_killed_session(harness: &Harness, id: &SessionId, ledger: &mut Ledger) {
    let session = start(killable(harness).conversation(Conversation::resume(id.clone()))).await;
    ledger.turn(&session, "one", (1_000, 10)).await;
    let before = session.cost();
    let mut story = session.send("long tale").await.unwrap();
    loop {
        wait_for_delta(&mut story).await;
        if tokens(story.cost()).0 > 2_000 {
            break;
        }
    }
    kill(&session).await;
    let error = loop {
        if let Err(error) = in_time(story.next()).await.unwrap() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::TransportClosed, "{error}");
    ledger.record("killed", story.cost(), (11_000, 20), false);
    assert!(is_near(session.cost().usd, before.usd) && !session.cost().is_complete);
}

async fn run_all_sessions(harness: Harness) -> Ledger {
    let mut ledger = Ledger::default();
    let id = run_first_session(&harness, &mut ledger).await;
    let resume = || Conversation::resume(id.clone());
    let cleared = run_continued_session(&harness, resume(), &mut ledger).await;
    assert!(is_near(cleared, 0.0042), "{cleared}");
    let resumed = run_continued_session(&harness, resume(), &mut ledger).await;
    assert!(is_near(resumed, cleared + 0.0042 + 0.021), "{resumed}");
    let forked = run_continued_session(&harness, Conversation::fork(id.clone()), &mut ledger).await;
    assert!(is_near(forked, resumed + 0.0042 + 0.021), "{forked}");
    run_killed_session(&harness, &id, &mut ledger).await;
    // The total of a killed CLI is not restored.
    let after_kill = run_continued_session(&harness, resume(), &mut ledger).await;
    assert!(is_near(after_kill, forked), "{after_kill} {forked}");
    ledger
}

#[test]
fn turn_costs_add_up_to_the_total_of_the_cli() {
    run(async {
        let simulated = run_all_sessions(Harness::in_memory(script()).await.unwrap()).await;
        let real = run_all_sessions(Harness::real(script(), real()).await.unwrap()).await;
        assert_eq!(simulated.costs.len(), real.costs.len());
        for (simulated, real) in simulated.costs.iter().zip(&real.costs) {
            assert!(is_near(simulated.1.usd, real.1.usd), "{simulated:?} {real:?}");
        }
    });
}

#[test]
fn blocked_prompt_costs_nothing() {
    on_both(hello, async |harness| {
        let block = |_, _| async { HookResponse::block("not today") };
        let session = start(harness.options().on(UserPromptSubmit, block)).await;
        let outcome = turn(&session, "hello").await;
        assert_eq!((outcome.cost, outcome.cost.to_string()), (Cost::default(), "$0.0000".into()));
        assert!(outcome.cost.usd.is_sign_positive());
        let total = outcome.result.total_cost_usd.as_ref().unwrap().as_f64();
        assert_eq!(total.to_bits(), 0.0_f64.to_bits());
        session.stop().await.unwrap();
    });
}

#[test]
fn turn_ended_by_a_limit_reports_its_cost() {
    on_both(script, async |harness| {
        let session = start(options(&harness).max_turns(1)).await;
        let outcome = turn(&session, "run it").await;
        assert!(outcome.result.is_error() && outcome.cost.is_complete);
        assert_eq!(tokens(outcome.cost), (2_000, 20));
        session.stop().await.unwrap();
        // The second response exhausts the budget; after that no request is sent to the model.
        let session = start(options(&harness).max_budget_usd(0.01)).await;
        let outcome = turn(&session, "run it").await;
        assert!(outcome.result.is_error());
        assert_eq!(tokens(outcome.cost), (5_000, 50));
        assert_eq!(outcome.result.usage.clone().unwrap().input_tokens.unwrap(), 2_000);
        let outcome = turn(&session, "one").await;
        assert!(outcome.result.is_error());
        assert_eq!(outcome.cost, Cost::default());
        session.stop().await.unwrap();
    });
}

#[test]
fn budget_excludes_earlier_cost_of_a_resumed_conversation() {
    on_both(script, async |harness| {
        let session = start(options(&harness)).await;
        turn(&session, "delegate").await;
        let id = session.session_id().unwrap();
        session.stop().await.unwrap();
        let resumed = options(&harness).conversation(Conversation::resume(id));
        let session = start(resumed.max_budget_usd(0.005)).await;
        assert!(!turn(&session, "one").await.result.is_error());
        assert!(turn(&session, "one").await.result.is_error());
        session.stop().await.unwrap();
    });
}

#[test]
fn summary_without_its_tag_is_requested_and_charged_twice() {
    let script = || {
        let bare = Reply::text("Numbers.").usage(10_000, 100);
        Script::new().when("summary of the conversation", [bare]).otherwise([Reply::text("Hello.")])
    };
    on_both(script, async |harness| {
        let session = start(harness.options()).await;
        turn(&session, "hello").await;
        assert_eq!(tokens(turn(&session, "/compact").await.cost), (20_000, 200));
        session.stop().await.unwrap();
    });
}

/// Reads a query until the second response of the model starts.
async fn wait_for_second_response(stream: &mut QueryStream) {
    while tokens(stream.cost()).0 < 11_000 {
        in_time(stream.next()).await.unwrap().unwrap();
    }
}

#[test]
fn closed_query_reports_its_cost() {
    on_both(script, async |harness| {
        let mut stream = query("long tale", options(&harness)).await.unwrap();
        wait_for_second_response(&mut stream).await;
        let cost = stream.cost();
        assert_eq!((tokens(cost), cost.is_complete), ((11_000, 20), false));
        in_time(stream.close()).await;
        // The CLI ended the turn with a result, which also counts the truncated response, with an estimate of its
        // output.
        let cost = stream.cost();
        assert_eq!((tokens(cost), cost.is_complete), ((11_000, 21), false));
        assert!(is_near(cost.usd, 0.04442), "{cost}");
    });
}

#[test]
fn query_of_a_killed_cli_reports_the_known_tokens() {
    run(async {
        let harness = Harness::real(script(), real()).await.unwrap();
        let mut stream = query("long tale", options(&harness)).await.unwrap();
        wait_for_second_response(&mut stream).await;
        kill_process(stream.pid().unwrap());
        let collected = in_time(stream.collect()).await;
        assert_eq!(error_of(&collected).kind(), ErrorKind::ProcessFailed);
        let cost = collected.cost;
        assert_eq!((tokens(cost), cost.is_complete), ((11_000, 20), false));
        assert_eq!(cost.to_string(), "at least $0.0000");

        let faults = Faults::new().before("result", Fault::Signal(9));
        let harness = Harness::faulty(script(), faults).await.unwrap();
        let collected = ask("run it", options(&harness)).await;
        assert_eq!(error_of(&collected).kind(), ErrorKind::ProcessFailed);
        let cost = collected.cost;
        assert_eq!((tokens(cost), cost.is_complete), ((5_000, 50), false));
    });
}

#[test]
fn query_cost_includes_all_of_its_results() {
    on_both(script, async |harness| {
        let mut stream = query("hire", options(&harness)).await.unwrap();
        let is_agents = |prompt: &String| prompt.contains("greet later");
        in_time(harness.api().wait_for_request(|request| request.prompts().iter().any(is_agents)))
            .await;
        while !is_result(&in_time(stream.next()).await.unwrap().unwrap()) {}
        harness.api().release_held();
        let mut total = None;
        while let Some(item) = in_time(stream.next()).await {
            if let Item::Message(message) = item.unwrap()
                && let claude_wire::Body::Result(result) = message.body
            {
                total = result.total_cost_usd.clone();
            }
        }
        let cost = stream.cost();
        assert_eq!((tokens(cost), cost.is_complete), ((220_000, 2_200), true));
        assert!(is_near(cost.usd, total.unwrap().as_f64()));
        // A later query reports only its own cost.
        let id = stream.session_id().unwrap().clone();
        let later = options(&harness).conversation(Conversation::resume(id));
        let collected = ask("one", later).await;
        let cost = collected.cost;
        assert_eq!((tokens(cost), cost.is_complete), ((1_000, 10), true));
        let total = collected.result().unwrap().total_cost_usd.as_ref().unwrap().as_f64();
        assert!(total > 0.9 && is_near(cost.usd, 0.0042), "{total} {cost}");
    });
}
