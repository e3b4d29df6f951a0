//! Callbacks, from a line of the CLI to the response.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use claude_wire::{FromCli, Json};

use super::{BoxError, Call, CallResult, CallbackRun, CancelToken, IgnoredFields, Registry};
use crate::hook::{
    HookRegistration, HookResponse, IntoHookResponse, PostToolUse, PreToolUse, RawHookResponse,
    Stop, UserPromptSubmit, input::PreToolUseInput,
};
use crate::permission::{Permission, PermissionOrigin};
use crate::question::Answers;
use crate::session::SessionLink;
use crate::{Options, Timeouts};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn hook_ids_follow_the_order_of_registration() {
    let plan = Options::new()
        .on(PreToolUse.matching("Bash").fail_closed(), |_, _| async {})
        .on(Stop, |_, _| async {})
        .on_blocking(PreToolUse.timeout(Duration::from_millis(1500)), |_, _| {})
        .on(HookRegistration::named("SomethingNew").matching("x"), |_, _| async {})
        .on(UserPromptSubmit, |_, _| async {})
        .host
        .callbacks
        .plan();
    let plans: Vec<_> = plan
        .plans
        .iter()
        .map(|(id, plan)| (id, &*plan.event, plan.timeout, plan.fail_closed))
        .collect();
    let millis = Duration::from_millis;
    assert_eq!(
        plans,
        [
            ("hook_0", "PreToolUse", millis(60_000), true),
            ("hook_1", "Stop", millis(60_000), false),
            ("hook_2", "PreToolUse", millis(1500), false),
            ("hook_3", "SomethingNew", millis(60_000), false),
            ("hook_4", "UserPromptSubmit", millis(25_000), false),
        ]
    );
    assert_eq!(
        Json::from_serialize(&plan.matchers.unwrap()).unwrap().text(),
        concat!(
            r#"{"PreToolUse":["#,
            r#"{"matcher":"Bash","hookCallbackIds":["hook_0"],"timeout":65,"onFailure":"block"},"#,
            r#"{"matcher":null,"hookCallbackIds":["hook_2"],"timeout":7}],"#,
            r#""SomethingNew":[{"matcher":"x","hookCallbackIds":["hook_3"],"timeout":65}],"#,
            r#""Stop":[{"matcher":null,"hookCallbackIds":["hook_1"],"timeout":65}],"#,
            r#""UserPromptSubmit":[{"matcher":null,"hookCallbackIds":["hook_4"],"timeout":30}]}"#,
        )
    );
}

#[test]
fn callback_plan_is_empty_without_callbacks() {
    let registry = Registry::default();
    let plan = registry.plan();
    assert!(
        !registry.has_hooks()
            && !registry.has_permission()
            && plan.plans.is_empty()
            && plan.matchers.is_none()
    );
    assert_eq!((plan.permission_timeout, registry.cancel_grace), (None, SECOND));
}

#[test]
fn options_for_all_callbacks_reach_the_plan() {
    let options = Options::new()
        .on(Stop, |_, _| async {})
        .can_use_tool(|_, _| async { Permission::allow() })
        .timeouts(Timeouts::new().hook(Duration::from_secs(90)).permission(SECOND))
        .hooks_fail_closed(true)
        .timeouts(Timeouts::new().cancel_grace(Duration::ZERO));
    let plan = options.host.callbacks.plan();
    let hook = plan.plans.values().next().unwrap();
    assert_eq!((hook.timeout, hook.fail_closed), (Duration::from_secs(90), true));
    assert_eq!(plan.permission_timeout, Some(SECOND));
    assert_eq!(options.host.callbacks.cancel_grace, Duration::ZERO);
    assert!(options.host.needs.hooks && options.host.needs.permission_callback);
}

/// A JavaScript timer with a too long delay fires immediately.
#[test]
fn cli_hook_timeout_exceeds_ours_and_fits_a_javascript_timer() {
    for (limit, sent) in [
        (Duration::ZERO, "5"),
        (Duration::from_millis(1), "6"),
        (Duration::from_secs(60), "65"),
        (Duration::MAX, "2147483"),
    ] {
        let options = Options::new().on(Stop.timeout(limit), |_, _| async {});
        let matchers = options.host.callbacks.plan().matchers.unwrap();
        assert_eq!(matchers["Stop"][0].timeout.as_ref().unwrap().to_string(), sent);
    }
}

#[tokio::test]
async fn recorded_hook_request_is_decoded_with_its_context() {
    let (line, call) = recorded("hook_denies", "hook_callback");
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let options = Options::new().on(PreToolUse.matching("Bash"), move |call, ctx| {
        *kept.lock().unwrap() = Some((call, ctx));
        async { HookResponse::deny("not here") }
    });
    let answer = run(&options, call).await.unwrap();
    assert_eq!(
        answer.text(),
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not here"}}"#
    );
    let (call, ctx) = seen.lock().unwrap().take().unwrap();
    assert_eq!(call.tool_name.as_deref(), Some("Bash"));
    assert!(call.input.unwrap().text().contains("touch made"));
    assert!(ctx.session().is_none());
    assert_eq!(ctx.callback_id.unwrap(), "hook_0");
    assert_eq!(ctx.tool_use_id.unwrap(), "toolu_1");
    assert!(line.contains(ctx.request_id.as_str()));
    assert_eq!(ctx.session_id, call.session_id, "taken from the input, its only source");
    assert!(!ctx.cancel.is_cancelled());
}

#[tokio::test]
async fn hook_may_return_unit_a_response_or_a_result() {
    fn with<T: IntoHookResponse<PreToolUseInput> + Clone + Sync>(response: T) -> Options {
        Options::new().on_blocking(PreToolUse, move |_, _| response.clone())
    }
    let denied = HookResponse::deny("no");
    let denial = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    assert_eq!(text(&with(()), 0).await, Ok("{}".to_owned()));
    assert_eq!(text(&with(denied.clone()), 0).await, Ok(denial.to_owned()));
    // A result with any error type, through `?`.
    let options = Options::new()
        .on(PreToolUse, |_, _| async {
            "1".parse::<u32>()?;
            Ok(())
        })
        .on(PreToolUse, move |_, _| {
            let denied = denied.clone();
            async move { Ok(denied) }
        })
        .on(PreToolUse, |_, _| async {
            "one".parse::<u32>()?;
            Ok(HookResponse::new())
        })
        .on_blocking(PreToolUse, |_, _| -> Result<(), BoxError> { Err("no rules".into()) });
    assert_eq!(text(&options, 0).await, Ok("{}".to_owned()));
    assert_eq!(text(&options, 1).await, Ok(denial.to_owned()));
    assert_eq!(text(&options, 2).await, Err("invalid digit found in string".to_owned()));
    assert_eq!(text(&options, 3).await, Err("no rules".to_owned()));
}

#[tokio::test]
async fn hook_called_for_another_event_fails() {
    let options = Options::new().on(PostToolUse, |_, _| async {});
    let (_, call) = recorded("hook_denies", "hook_callback");
    let reason = run(&options, call).await.unwrap_err();
    assert!(reason.contains("PostToolUse") && reason.contains("PreToolUse"), "{reason}");
}

#[test]
fn request_without_a_registered_callback_is_not_run() {
    for id in ["hook_1", "hook_00", "hook_", "hook_-0", "other", ""] {
        let line = hook_line(id, r#"{"hook_event_name":"Stop"}"#);
        let options = Options::new().on(Stop, |_, _| async {});
        assert!(options.host.callbacks.call(call(&line)).is_none(), "{id}");
    }
    let (_, call) = recorded("permission_allow", "can_use_tool");
    assert!(Registry::default().call(call).is_none());
}

#[tokio::test]
async fn raw_hook_receives_the_unmodified_input() {
    let input = r#"{"b":1,  "hook_event_name":"SomethingNew","a":"\ud83d"}"#;
    let options =
        Options::new().on(HookRegistration::named("SomethingNew"), |input, _| async move {
            RawHookResponse::new().field("came", input.json).field("event", input.event.as_str())
        });
    let answer = run(&options, call(&hook_line("hook_0", input))).await.unwrap();
    assert_eq!(answer.text(), format!(r#"{{"came":{input},"event":"SomethingNew"}}"#));
}

#[tokio::test]
async fn ignored_fields_of_raw_responses_are_reported() {
    let options = Options::new().on(HookRegistration::named("Notification"), |_, _| async {
        RawHookResponse::new().block("no")
    });
    let reported = Arc::new(Mutex::new(Vec::new()));
    let kept = reported.clone();
    let registry = options
        .host
        .callbacks
        .clone()
        .on_ignored_fields(move |ignored| kept.lock().unwrap().push(ignored));
    let line = hook_line("hook_0", r#"{"hook_event_name":"Notification"}"#);
    let running = registry.call(call(&line)).unwrap();
    assert_eq!(finish(running).await.unwrap().text(), "{}");
    let fields = vec!["decision".to_owned(), "reason".to_owned()];
    assert_eq!(
        *reported.lock().unwrap(),
        [IgnoredFields { event: "Notification".to_owned(), fields }]
    );
}

#[tokio::test]
async fn recorded_permission_request_reaches_its_callback_completely() {
    let (line, call) = recorded("permission_allow", "can_use_tool");
    let seen = Arc::new(Mutex::new(None));
    let kept = seen.clone();
    let options = Options::new().can_use_tool(move |request, ctx| {
        *kept.lock().unwrap() = Some((request, ctx));
        async { Permission::allow() }
    });
    let answer = run(&options, call).await.unwrap();
    let (request, ctx) = seen.lock().unwrap().take().unwrap();
    assert_eq!(
        answer.text(),
        format!(r#"{{"behavior":"allow","updatedInput":{}}}"#, request.input),
        "the original arguments"
    );
    assert_eq!(request.tool_name, "Bash");
    assert_eq!(request.display_name.as_deref(), Some("Bash"));
    assert_eq!(request.description.as_deref(), Some("Run it"));
    assert_eq!(request.blocked_path.as_deref(), Some("/srv/project/made"));
    assert_eq!(request.suggestions.len(), 3);
    assert_eq!(request.tool_use_id.unwrap(), "toolu_1");
    assert_eq!(request.raw, line);
    assert_eq!(ctx.tool_use_id.unwrap(), "toolu_1");
}

#[tokio::test]
async fn recorded_question_gets_the_recorded_answer() {
    let (_, call) = recorded("ask_user_question", "can_use_tool");
    let options = Options::new().ask_user(|questions, _| async move {
        let question = questions.questions.first().ok_or("no question")?;
        Ok(Answers::new().answer(question, &question.options[0].label))
    });
    let answer = run(&options, call).await.unwrap();
    let answer: serde_json::Value = answer.deserialize().unwrap();
    assert_eq!(answer["behavior"], "allow");
    assert_eq!(answer["updatedInput"]["answers"]["Which colour?"], "Red");
    assert_eq!(answer["updatedInput"]["questions"][0]["header"], "Colour");
}

#[tokio::test]
async fn questions_and_tool_permissions_use_separate_callbacks() {
    let with_questions = Options::new().ask_user_blocking(|_, _| Answers::decline("away"));
    let both = with_questions.clone().can_use_tool_blocking(|_, _| Permission::deny("never"));
    let deciding = Options::new().can_use_tool(|_, _| async { Ok(Permission::deny("never")) });
    let message = async |options: &Options, scenario: &str| {
        let answer = run(options, recorded(scenario, "can_use_tool").1).await.unwrap();
        let answer: serde_json::Value = answer.deserialize().unwrap();
        assert_eq!(answer["behavior"], "deny");
        answer["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(message(&both, "ask_user_question").await, "away");
    assert_eq!(message(&both, "permission_allow").await, "never");
    assert_eq!(message(&with_questions, "ask_user_question").await, "away");
    assert!(message(&with_questions, "permission_allow").await.contains("no callback"));
    assert_eq!(message(&deciding, "ask_user_question").await, "never");
}

#[test]
fn question_tool_is_disabled_without_a_question_callback() {
    let disallowed =
        |options: Options| crate::options::extra_disallowed_tools(&options.host.callbacks);
    let deciding = Options::new().can_use_tool(|_, _| async { Permission::allow() });
    assert!(disallowed(Options::new()).is_empty(), "the CLI does not offer them in this case");
    assert_eq!(disallowed(deciding.clone()), ["AskUserQuestion"]);
    assert!(disallowed(deciding.ask_user(|_, _| async { Answers::new() })).is_empty());
}

#[test]
fn panicking_callback_does_not_panic_before_it_runs() {
    let options = Options::new()
        .on(Stop, |_, _| -> std::future::Ready<()> { panic!("in the closure") })
        .on_blocking(Stop, |_, _| -> () { panic!("in the closure") });
    for id in ["hook_0", "hook_1"] {
        let line = hook_line(id, r#"{"hook_event_name":"Stop"}"#);
        assert!(options.host.callbacks.call(call(&line)).is_some());
    }
}

#[tokio::test]
async fn cancel_token_fires_for_all_clones() {
    let token = CancelToken::new();
    let mut call = call(&hook_line("hook_0", r#"{"hook_event_name":"Stop"}"#));
    call.cancel = token.clone();
    let options = Options::new().on(Stop, |_, ctx| async move {
        ctx.cancel.cancelled().await;
        assert!(ctx.cancel.is_cancelled());
    });
    let running = tokio::spawn(finish(options.host.callbacks.call(call).unwrap()));
    token.cancel();
    tokio::time::timeout(60 * SECOND, running).await.unwrap().unwrap().unwrap();
}

#[test]
fn debug_output_of_callbacks_shows_their_number() {
    let options = Options::new()
        .on(Stop, |_, _| async {})
        .on(Stop, |_, _| async {})
        .ask_user(|_, _| async { Answers::new() });
    let printed = format!("{options:?}");
    assert!(printed.contains("hooks: 2, can_use_tool: false, ask_user: true"), "{printed}");
}

async fn text(options: &Options, hook: usize) -> Result<String, String> {
    let line = hook_line(&format!("hook_{hook}"), r#"{"hook_event_name":"PreToolUse"}"#);
    run(options, call(&line)).await.map(|json| json.text().to_owned())
}

async fn run(options: &Options, call: Call) -> CallResult {
    finish(options.host.callbacks.call(call).unwrap()).await
}

async fn finish(running: CallbackRun) -> CallResult {
    match running {
        CallbackRun::Async(future) => future.await,
        CallbackRun::Blocking(run) => run(),
    }
}

fn hook_line(id: &str, input: &str) -> String {
    format!(
        r#"{{"type":"control_request","request_id":"r1","request":{{"subtype":"hook_callback","callback_id":"{id}","input":{input}}}}}"#
    )
}

fn call(line: &str) -> Call {
    let line = Bytes::copy_from_slice(line.as_bytes());
    let FromCli::Request(request) = FromCli::decode(line.clone()).unwrap() else {
        panic!("no request: {line:?}")
    };
    let session = SessionLink::default();
    let origin = PermissionOrigin::default();
    Call { request, line, origin, session, cancel: CancelToken::new() }
}

/// Returns the first request of this subtype in a recording of the real CLI.
fn recorded(scenario: &str, subtype: &str) -> (String, Call) {
    let path = format!(
        "{}/../claude-wire/tests/corpus/2.1.326/{scenario}.wire",
        env!("CARGO_MANIFEST_DIR")
    );
    let recording = std::fs::read_to_string(path).unwrap();
    let subtype = format!(r#""subtype":"{subtype}""#);
    let mut lines = recording.lines().filter(|line| line.starts_with("<< "));
    let line = lines.find(|line| line.contains(&subtype)).unwrap();
    let line = line.splitn(3, ' ').last().unwrap();
    (line.to_owned(), call(line))
}
