//! The denial of each hook event, and the hook requests that are denied.

use std::time::Duration;

use claude_agent_core::session::{CallbackOutcome, HookPlan, Plan, RunMode};
use claude_wire::control::HookDenial;
use claude_wire::hook_input::HookInput;

use crate::session_harness::{Harness, oversized, request};

/// A session with a hook for each event: `hook_0` fail-open, `hook_1` fail-closed, and so on.
fn with_hooks(hooks: &[(&str, bool)]) -> Harness {
    let mut plan = Plan::new(RunMode::Session);
    for (index, (event, fail_closed)) in hooks.iter().enumerate() {
        let hook = HookPlan::new((*event).to_owned(), Duration::from_secs(60), *fail_closed);
        plan.hooks.insert(format!("hook_{index}"), hook);
    }
    Harness::ready(plan)
}

fn asks(event: &str) -> String {
    let body = format!(
        r#""subtype":"hook_callback","callback_id":"hook_0","input":{{"hook_event_name":"{event}"}}"#
    );
    request("a", &body)
}

/// The answer to the request `a`.
fn answer(effects: &[String]) -> &str {
    effects.iter().find_map(|effect| effect.strip_prefix("respond a ")).unwrap_or_default()
}

/// The response to a fail-closed hook that failed.
fn refusal(event: &str) -> String {
    let mut harness = with_hooks(&[(event, true)]);
    harness.line(&asks(event));
    let effects = harness.finish_callback(1, CallbackOutcome::Failed("oh".to_owned()));
    answer(&effects).replace("the host's callback failed: oh", "why")
}

#[test]
fn every_event_is_denied_in_its_own_form() {
    let specific = |event: &str, fields: &str| {
        format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{event}",{fields}}}}}"#)
    };
    let deny = r#""permissionDecision":"deny","permissionDecisionReason":"why""#;
    for event in HookInput::KNOWN {
        let expected = match HookDenial::for_event(event) {
            HookDenial::Deny if *event == "PermissionRequest" => {
                r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"why"},"hookEventName":"PermissionRequest"}}"#
                    .to_owned()
            }
            HookDenial::Deny => specific(event, deny),
            HookDenial::Block => r#"{"decision":"block","reason":"why"}"#.to_owned(),
            HookDenial::End => r#"{"continue":false,"stopReason":"why"}"#.to_owned(),
            HookDenial::Decline => {
                format!(r#"{{"hookSpecificOutput":{{"action":"decline","hookEventName":"{event}"}}}}"#)
            }
            HookDenial::Hide => {
                r#"{"hookSpecificOutput":{"displayContent":"","hookEventName":"MessageDisplay"}}"#
                    .to_owned()
            }
            HookDenial::Impossible => r#"{"continue":true}"#.to_owned(),
        };
        assert_eq!(refusal(event), expected, "{event}");
    }
    // What an unknown event understands is not known, so it gets both.
    let both = r#"{"continue":false,"decision":"block","reason":"why","stopReason":"why"}"#;
    assert_eq!(refusal("SomethingNew"), both);
}

#[test]
fn no_denial_makes_the_model_continue() {
    for event in ["Stop", "SubagentStop", "TeammateIdle"] {
        assert_eq!(HookDenial::for_event(event), HookDenial::End);
        assert!(!HookDenial::for_event(event).is_blocking(), "{event}");
        // Too many callbacks, for a hook that is fail-open.
        let mut harness = with_hooks(&[(event, false)]);
        for index in 0..256 + 4_096 {
            harness.line(&asks(event).replace(r#""a""#, &format!(r#""w{index}""#)));
        }
        let effects = harness.line(&asks(event));
        assert!(answer(&effects).starts_with(r#"{"continue":false,"#), "{event}: {effects:?}");
    }
}

/// Requests whose callback cannot be identified, as they come for this event.
fn unidentified(event: &str) -> [String; 4] {
    let input = format!(r#""input":{{"hook_event_name":"{event}"}}"#);
    [
        format!(r#""subtype":"hook_callback","callback_id":"hook_99",{input}"#),
        format!(r#""subtype":"hook_callback",{input}"#),
        format!(r#""subtype":"hook_callback","callback_id":7,{input}"#),
        r#""subtype":"hook_callback","input":7"#.to_owned(),
    ]
}

#[test]
fn unidentified_hook_request_is_denied_if_it_may_be_fail_closed() {
    let hooks = [("PreToolUse", false), ("PreToolUse", true), ("PostToolUse", false)];
    for body in unidentified("PreToolUse") {
        let effects = with_hooks(&hooks).line(&request("a", &body));
        let answer = answer(&effects);
        let denied = answer.contains(r#""permissionDecision":"deny""#)
            || answer.starts_with(r#"{"continue":false,"decision":"block""#);
        assert!(denied, "{body}: {effects:?}");
    }
}

#[test]
fn request_of_an_event_without_fail_closed_hooks_is_allowed() {
    let hooks = [("PreToolUse", true), ("PostToolUse", false)];
    for body in &unidentified("PostToolUse")[..3] {
        let effects = with_hooks(&hooks).line(&request("a", body));
        assert_eq!(answer(&effects), r#"{"continue":true}"#, "{body}: {effects:?}");
    }
    // Where the event is lost as well, it may have been for the guard.
    let effects = with_hooks(&hooks).line(&request("a", &unidentified("")[3]));
    assert!(answer(&effects).starts_with(r#"{"continue":false,"decision":"block""#), "{effects:?}");
}

#[test]
fn undecodable_hook_request_is_denied_without_an_error_response() {
    let hooks = [("PreToolUse", false), ("PreToolUse", true)];
    let broken = request("a", r#""subtype":"hook_callback","callback_id":"hook_1""#)
        .replace(r#""type":"control_request""#, r#""type":"control_request","request":7"#);
    let effects = with_hooks(&hooks).line(&broken);
    assert!(!answer(&effects).starts_with("error"), "{effects:?}");
    let long = format!(
        r#""subtype":"hook_callback","callback_id":"hook_1","input":{{"x":"{}"}}"#,
        "x".repeat(200_000)
    );
    let effects = with_hooks(&hooks).handle(oversized(&request("a", &long)));
    assert!(answer(&effects).starts_with(r#"{"continue":false,"decision":"block""#), "{effects:?}");
}
