//! Approvals that outlive the process.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claude_agent_kit::approval::{
    self, Approval, ApprovalPolicy, ApprovalRule, ApprovalStatus, Approvals, Decision,
};
use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::store::{MemoryStore, StoreOptions};
use claude_agent_kit::{
    Body, Conversation, Item, Options, Permission, PermissionUpdate, Session, SessionId, ToolInput,
    TurnOutcome, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::prove::approvals;

use crate::helpers::{calls, real_with_and_without_tools, turn, with_and_without_tools};
use crate::support::{HOST, in_time, real, run, until};

/// The beginning of the prompt with which the CLI continues after a replayed call.
const REPLAYED: &str = "Continue from where you left off";

fn new_approvals() -> Approvals {
    Approvals::new("tenant", MemoryStore::new())
}

fn parking(approvals: &Approvals) -> ApprovalPolicy {
    ApprovalPolicy::new(approvals.clone()).tools(["Bash"]).park_after(Duration::ZERO)
}

/// Returns options under which a rule allows every command, and transcripts are stored.
fn options(harness: &Harness) -> Options {
    let config = harness.root().join("home/.claude");
    harness
        .options()
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .allowed_tools(["Bash", "Agent"])
}

fn command(text: &str) -> String {
    format!("echo {text} >> executed")
}

/// Returns how often each command was executed.
fn executed(harness: &Harness) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(harness.project().join("executed")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    counts
}

fn once(names: &[&str]) -> BTreeMap<String, usize> {
    names.iter().map(|name| ((*name).to_owned(), 1)).collect()
}

/// Runs a query that parks, and returns its session and approvals.
async fn park(options: Options) -> (SessionId, Vec<Approval>) {
    let output = in_time(query("run it", options)).await.unwrap().collect().await;
    let output = output.into_result().unwrap();
    assert!(output.is_parked());
    assert!(output.approvals.iter().all(|approval| approval.is_parked));
    let result = output.result().unwrap();
    assert!(result.permission_denials.is_empty(), "{:?}", result.permission_denials);
    let warnings: Vec<_> = output.warnings().collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    (output.session_id().unwrap().clone(), output.approvals.clone())
}

async fn resume(options: Options, id: &SessionId) -> TurnOutcome {
    let options = options.conversation(Conversation::resume(id.clone()));
    in_time(approval::resume(options)).await.unwrap().unwrap().into_result().unwrap()
}

/// Returns a model that runs one command, and ends its turn after the replay.
fn one_command() -> Script {
    Script::new()
        .when("run it", [calls(&[&command("one")]), Reply::text("Not this time.")])
        .when(REPLAYED, [Reply::text("Done.")])
}

#[test]
fn an_approved_call_runs_once() {
    with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        assert!(executed(&harness).is_empty());
        let request = &parked[0].request;
        assert_eq!((request.tool_name.as_str(), &request.session_id), ("Bash", &id));
        approvals.decide(&request.id, Decision::allow("ana")).await.unwrap();
        let outcome = resume(options(), &id).await;
        assert!(!outcome.is_parked() && outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        assert_eq!(outcome.text, "Done.");
        assert_eq!(executed(&harness), once(&["one"]));
        let approval = approvals.get(&request.id).await.unwrap().unwrap();
        assert_eq!(approval.status, ApprovalStatus::Finished);
        // A second resume has nothing to do.
        let again = options().conversation(Conversation::resume(id));
        assert!(in_time(approval::resume(again)).await.unwrap().is_none());
        assert_eq!(executed(&harness), once(&["one"]));
    });
}

#[test]
fn a_parked_conversation_continues_as_a_stream() {
    with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        let request = &parked[0].request;
        approvals.decide(&request.id, Decision::allow("ana")).await.unwrap();
        let resumed = || options().conversation(Conversation::resume(id.clone()));
        let session = in_time(Session::start(resumed())).await.unwrap();
        let mut turn = in_time(session.continue_parked()).await.unwrap().unwrap();
        let mut text = String::new();
        while let Some(item) = in_time(turn.next()).await {
            if let Item::Message(message) = item.unwrap()
                && let Body::Assistant(answer) = &message.body
            {
                text.push_str(&answer.text());
            }
        }
        assert_eq!(text, "Done.");
        let outcome = in_time(turn.finish()).await.unwrap().into_result().unwrap();
        assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        in_time(session.wait_until_idle()).await;
        session.stop().await.unwrap();
        assert_eq!(executed(&harness), once(&["one"]));
        let approval = approvals.get(&request.id).await.unwrap().unwrap();
        assert_eq!(approval.status, ApprovalStatus::Finished);
        let session = in_time(Session::start(resumed())).await.unwrap();
        assert!(in_time(session.continue_parked()).await.unwrap().is_none());
        session.stop().await.unwrap();
    });
}

#[test]
fn a_denied_call_does_not_run_and_the_model_reads_why() {
    with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        let decision = Decision::deny("ana", "not on a Friday");
        approvals.decide(&parked[0].request.id, decision).await.unwrap();
        let outcome = resume(options(), &id).await;
        assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        assert!(executed(&harness).is_empty());
        if harness.program().is_some() {
            let requests = harness.api().requests();
            let results = requests.last().unwrap().tool_results();
            assert!(format!("{results:?}").contains("not on a Friday"), "{results:?}");
        }
    });
}

#[test]
fn an_approval_can_change_the_input_and_the_rules() {
    with_and_without_tools(one_command, |harness| async move {
        for with_rules in [false, true] {
            let approvals = new_approvals();
            let options = || options(&harness).approvals(parking(&approvals));
            let (id, parked) = park(options()).await;
            let name = if with_rules { "ruled" } else { "changed" };
            let mut decision = Decision::allow("ana")
                .with_input(json!({"command": command(name), "description": "Run it"}));
            if with_rules {
                decision = decision.with_permissions([PermissionUpdate::allow("Read", None)]);
            }
            approvals.decide(&parked[0].request.id, decision).await.unwrap();
            resume(options(), &id).await;
            assert_eq!(executed(&harness).get(name), Some(&1));
        }
        assert_eq!(executed(&harness), once(&["changed", "ruled"]));
    });
}

#[test]
fn a_decision_while_the_run_waits_needs_no_resume() {
    let script = || Script::new().otherwise([calls(&[&command("one")]), Reply::text("Done.")]);
    with_and_without_tools(script, |harness| async move {
        let approvals = new_approvals();
        let policy = ApprovalPolicy::new(approvals.clone()).park_after(Duration::from_secs(120));
        let running = tokio::spawn(query("run it", options(&harness).approvals(policy)));
        let stream = running.await.unwrap().unwrap();
        let collecting = tokio::spawn(stream.collect());
        let pending = loop {
            if let Some(pending) = approvals.pending().await.unwrap().pop() {
                break pending;
            }
            tokio::task::yield_now().await;
        };
        approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
        let output = in_time(collecting).await.unwrap().into_result().unwrap();
        assert!(!output.is_parked());
        assert_eq!(output.text(), "Done.");
        assert_eq!(executed(&harness), once(&["one"]));
        let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
        assert_eq!(approval.status, ApprovalStatus::Finished);
    });
}

#[test]
fn an_expired_request_denies_the_call() {
    with_and_without_tools(one_command, |harness| async move {
        let inbox = new_approvals();
        let policy = || parking(&inbox).expires_after(Duration::from_secs(2));
        let options = || options(&harness).approvals(policy());
        let (id, parked) = park(options()).await;
        while !parked[0].is_expired(approvals::now_ms()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let outcome = resume(options(), &id).await;
        assert!(!outcome.is_parked());
        assert!(executed(&harness).is_empty());
        let late = inbox.decide(&parked[0].request.id, Decision::allow("ana")).await;
        assert!(late.unwrap_err().to_string().contains("expired"));
    });
}

/// Runs this number of commands in one answer. Every third one is denied.
fn several(count: usize) {
    let names: Vec<String> = (0..count).map(|index| format!("call-{index}")).collect();
    let script = move || {
        let commands: Vec<String> = names.iter().map(|name| command(name)).collect();
        let all: Vec<&str> = commands.iter().map(String::as_str).collect();
        // The model issues all calls but the replayed one again.
        Script::new()
            .when("run it", [calls(&all), Reply::text("Not this time.")])
            .when(REPLAYED, [calls(&all[1..]), Reply::text("Done.")])
    };
    with_and_without_tools(script, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        assert_eq!(parked.len(), count, "{parked:?}");
        assert!(executed(&harness).is_empty());
        let mut allowed = Vec::new();
        for approval in &parked {
            let text = approval.request.input.text();
            let index = (0..count).find(|index| text.contains(&format!("call-{index} "))).unwrap();
            let decision = if index % 3 == 1 {
                Decision::deny("ana", "not this one")
            } else {
                allowed.push(format!("call-{index}"));
                Decision::allow("ana")
            };
            approvals.decide(&approval.request.id, decision).await.unwrap();
        }
        let outcome = resume(options(), &id).await;
        assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        assert_eq!(outcome.text, "Done.");
        let allowed: Vec<&str> = allowed.iter().map(String::as_str).collect();
        assert_eq!(executed(&harness), once(&allowed));
    });
}

#[test]
fn three_calls_in_one_answer_are_decided_one_by_one() {
    several(3);
}

#[test]
fn ten_calls_in_one_answer_are_decided_one_by_one() {
    several(10);
}

#[test]
fn a_decision_that_no_call_used_is_part_of_the_outcome() {
    let script = || {
        Script::new()
            .when("run it", [calls(&[&command("one"), &command("two")]), Reply::text("No.")])
            .when(REPLAYED, [Reply::text("Done.")])
    };
    with_and_without_tools(script, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        for approval in &parked {
            approvals.decide(&approval.request.id, Decision::allow("ana")).await.unwrap();
        }
        let outcome = resume(options(), &id).await;
        let unused: Vec<&str> =
            outcome.approvals.iter().map(|approval| approval.request.input.text()).collect();
        assert!(unused.len() == 1 && unused[0].contains("two"), "{unused:?}");
        assert_eq!(outcome.approvals[0].status, ApprovalStatus::Decided);
        assert!(!outcome.is_parked());
        assert_eq!(executed(&harness), once(&["one"]));
    });
}

/// Runs a subagent that calls Bash; after the decision the model starts it again.
fn subagent(in_background: bool) {
    let script = move || {
        let agent = json!({
            "description": "sub", "prompt": "sub task", "subagent_type": "general-purpose",
            "run_in_background": in_background,
        });
        Script::new()
            .when("sub task", [calls(&[&command("sub")]), Reply::text("sub over")])
            .when("run it", [Reply::tool("Agent", agent.clone()), Reply::text("Waiting.")])
            .when("waiting for approval", [calls(&[&command("sub")]), Reply::text("Done.")])
            .otherwise([Reply::text("Noted.")])
    };
    real_with_and_without_tools(script, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        assert_eq!(parked.len(), 1, "{parked:?}");
        assert!(parked[0].request.agent_id.is_some());
        assert!(executed(&harness).is_empty());
        approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
        let outcome = resume(options(), &id).await;
        assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        assert_eq!(executed(&harness), once(&["sub"]));
    });
}

#[test]
fn a_call_of_a_subagent_becomes_a_request() {
    subagent(false);
}

#[test]
fn a_call_of_a_background_agent_becomes_a_request() {
    subagent(true);
}

#[test]
fn a_call_that_changes_before_the_resume_needs_its_own_approval() {
    real_with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let options = || options(&harness).approvals(parking(&approvals));
        let (id, parked) = park(options()).await;
        approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
        // Somebody edits the transcript.
        let folder = harness.root().join("home/.claude/projects");
        let project = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
        let file = project.join(format!("{id}.jsonl"));
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, text.replace("echo one", "echo other")).unwrap();
        let outcome = resume(options(), &id).await;
        assert!(outcome.is_parked());
        assert!(executed(&harness).is_empty());
        let statuses: Vec<ApprovalStatus> =
            outcome.approvals.iter().map(|approval| approval.status).collect();
        assert_eq!(statuses, [ApprovalStatus::Decided, ApprovalStatus::Pending]);
    });
}

#[test]
fn a_call_in_another_directory_needs_its_own_approval() {
    let script = || {
        let change = calls(&["mkdir -p build && cd build"]);
        Script::new()
            .when("run it", [change, calls(&[&command("one")]), Reply::text("Not this time.")])
            .when(REPLAYED, [Reply::text("Done.")])
    };
    with_and_without_tools(script, |harness| async move {
        let approvals = new_approvals();
        let policy = parking(&approvals).decide_with(|call| async move {
            match call.tool_input() {
                ToolInput::Bash(bash) if bash.command.contains("cd build") => ApprovalRule::Allow,
                _ => ApprovalRule::Require,
            }
        });
        let options = || options(&harness).approvals(policy.clone());
        let (id, parked) = park(options()).await;
        let project = harness.project().canonicalize().unwrap();
        let build = project.join("build");
        assert_eq!(parked[0].request.cwd.as_ref(), Some(&build));
        approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
        // The resumed CLI starts in the project, and would run the command there.
        let outcome = resume(options(), &id).await;
        assert!(outcome.is_parked());
        let is_pending = |it: &&Approval| it.status == ApprovalStatus::Pending;
        let moved = outcome.approvals.iter().find(is_pending).unwrap();
        assert_eq!(moved.request.moved_from.as_ref(), Some(&parked[0].request.id));
        assert_eq!(moved.request.cwd.as_ref(), Some(&project));
        assert!(executed(&harness).is_empty() && !build.join("executed").exists());
        approvals.decide(&moved.request.id, Decision::allow("ana")).await.unwrap();
        resume(options(), &id).await;
        assert_eq!(executed(&harness), once(&["one"]));
        assert!(!build.join("executed").exists());
    });
}

/// Returns a model whose agent runs a command in the background. After a decision, the model starts the agent again.
fn in_background(command: &str) -> Script {
    let agent = json!({
        "description": "sub", "prompt": "sub task", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let start = || [Reply::tool("Agent", agent.clone()), Reply::text("Waiting.")];
    Script::new()
        .when("sub task", [calls(&[command]), Reply::text("sub over")])
        .when("run it", start())
        .when("waiting for approval", start())
        .otherwise([Reply::text("Noted.")])
}

#[test]
fn an_approval_of_a_background_agent_outlives_the_turns_of_the_session() {
    let command = "echo sub >> executed; while [ ! -e release ]; do sleep 0.1; done";
    with_and_without_tools(
        || in_background(command),
        |harness| async move {
            let approvals = new_approvals();
            let policy = ApprovalPolicy::new(approvals.clone())
                .tools(["Bash"])
                .park_after(Duration::from_secs(120));
            let session =
                in_time(Session::start(options(&harness).approvals(policy))).await.unwrap();
            let first = turn(&session, "run it").await;
            assert!(!first.is_parked());
            let pending = loop {
                if let Some(pending) = approvals.pending().await.unwrap().pop() {
                    break pending;
                }
                tokio::task::yield_now().await;
            };
            assert!(pending.request.agent_id.is_some());
            // The agent waits, whatever turns end.
            let other = turn(&session, "something else").await;
            assert!(!other.is_parked(), "{:?}", other.approvals);
            let stored = async || approvals.get(&pending.request.id).await.unwrap().unwrap();
            assert!(!stored().await.is_parked);
            approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
            until("the command runs", || executed(&harness) == once(&["sub"])).await;
            turn(&session, "something else").await;
            let started = stored().await;
            assert_eq!(started.status, ApprovalStatus::Started);
            // The result of the call finishes its approval, without another turn.
            fs::write(harness.project().join("release"), "").unwrap();
            let finished = in_time(approvals.changed(&started)).await.unwrap().unwrap();
            assert_eq!(finished.status, ApprovalStatus::Finished);
            session.stop().await.unwrap();
        },
    );
}

#[test]
fn a_resume_waits_for_the_approved_call_of_a_background_agent() {
    let command = "echo sub >> executed; sleep 3; echo end >> executed";
    with_and_without_tools(
        || in_background(command),
        |harness| async move {
            let approvals = new_approvals();
            let options = || options(&harness).approvals(parking(&approvals));
            let (id, parked) = park(options()).await;
            assert_eq!(parked.len(), 1, "{parked:?}");
            approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
            let outcome = resume(options(), &id).await;
            assert_eq!(outcome.text, "Waiting.");
            assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
            assert_eq!(executed(&harness), once(&["end", "sub"]));
            let approval = approvals.get(&parked[0].request.id).await.unwrap().unwrap();
            assert_eq!(approval.status, ApprovalStatus::Finished);
        },
    );
}

#[test]
fn another_machine_with_a_store_continues_the_conversation() {
    with_and_without_tools(one_command, |harness| async move {
        let store = Arc::new(MemoryStore::new());
        let approvals = Approvals::new("tenant", store.clone());
        let options = |machine: &str| {
            let config = harness.root().join(machine);
            harness
                .options()
                .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
                .allowed_tools(["Bash"])
                .store(StoreOptions::new("tenant", store.clone()).project("app"))
                .approvals(parking(&approvals))
        };
        let (id, parked) = park(options("one")).await;
        let key = parked[0].request.store_key().unwrap();
        assert_eq!((key.project(), key.session()), ("app", &id));
        approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
        let outcome = resume(options("two"), &id).await;
        assert_eq!(outcome.stored, Some(true));
        assert_eq!(executed(&harness), once(&["one"]));
    });
}

#[test]
fn the_policy_takes_precedence_over_the_permission_callback() {
    with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let options = || {
            let count = count.clone();
            options(&harness).allowed_tools([""; 0]).approvals(parking(&approvals)).can_use_tool(
                move |_, _| {
                    count.fetch_add(1, Ordering::SeqCst);
                    async { Permission::deny("the callback denies everything") }
                },
            )
        };
        let (id, parked) = park(options()).await;
        approvals.decide(&parked[0].request.id, Decision::allow("ana")).await.unwrap();
        resume(options(), &id).await;
        assert_eq!(executed(&harness), once(&["one"]));
        assert_eq!(asked.load(Ordering::SeqCst), 0);
    });
}

#[test]
fn another_hook_that_denies_the_call_withdraws_the_request() {
    with_and_without_tools(one_command, |harness| async move {
        let approvals = new_approvals();
        let options = options(&harness)
            .approvals(parking(&approvals))
            .on(PreToolUse, |_, _| async { HookResponse::deny("a hook denies everything") });
        let output = in_time(query("run it", options)).await.unwrap().collect().await;
        let output = output.into_result().unwrap();
        assert!(!output.is_parked() && output.approvals.is_empty());
        assert!(approvals.pending().await.unwrap().is_empty());
        assert!(executed(&harness).is_empty());
    });
}

/// `cargo xtask prove approvals` plays ten times as many rounds.
#[test]
fn tools_run_as_decided_by_other_processes() {
    run(async {
        let harness = Harness::real(Script::new(), real()).await.unwrap();
        let rounds = approvals::AREA.repetitions / 10;
        for kind in approvals::KINDS {
            let played = approvals::count(&harness, Path::new(HOST), kind, rounds, 7).await;
            println!("{kind:?}: {}", played.unwrap());
        }
    });
}

#[test]
fn a_run_that_is_stopped_while_it_waits_keeps_its_request() {
    let script = || {
        Script::new()
            .when("run it", [calls(&[&command("one")]), Reply::text("Not this time.")])
            .when("available", [calls(&[&command("one")]), Reply::text("Done.")])
    };
    with_and_without_tools(script, |harness| async move {
        let inbox = new_approvals();
        let policy = || ApprovalPolicy::new(inbox.clone()).park_after(Duration::from_secs(120));
        let session = in_time(Session::start(options(&harness).approvals(policy()))).await.unwrap();
        let id = session.session_id().unwrap();
        let turn = session.send("run it").await.unwrap();
        let pending = loop {
            if let Some(pending) = inbox.pending().await.unwrap().pop() {
                break pending;
            }
            tokio::task::yield_now().await;
        };
        let (outcome, stopped) = tokio::join!(in_time(turn.finish()), in_time(session.stop()));
        drop((outcome, stopped.unwrap()));
        inbox.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
        let outcome = resume(options(&harness).approvals(policy()), &id).await;
        assert!(outcome.approvals.is_empty(), "{:?}", outcome.approvals);
        assert_eq!(executed(&harness), once(&["one"]));
    });
}
