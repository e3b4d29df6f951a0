//! What a refusal is for each hook event, and which hook requests are refused.

use std::time::Duration;

use claude_wire::hook_input::HookInput;
use claude_wire::id::CallbackId;
use claude_wire::session::{CallOutcome, HookPlan, HookRefusal, Plan, Run};

use crate::session_play::{Play, oversized, request};

/// A session with a hook for each event: `hook_0` fail-open, `hook_1` fail-closed, and so on.
fn with_hooks(hooks: &[(&str, bool)]) -> Play {
    let mut plan = Plan::new(Run::Session);
    for (index, (event, fail_closed)) in hooks.iter().enumerate() {
        let id = CallbackId::from(format!("hook_{index}"));
        let hook = HookPlan::new((*event).to_owned(), Duration::from_secs(60), *fail_closed);
        plan.hooks.insert(id, hook);
    }
    Play::ready(plan)
}

fn asks(event: &str) -> String {
    let body = format!(
        r#""subtype":"hook_callback","callback_id":"hook_0","input":{{"hook_event_name":"{event}"}}"#
    );
    request("a", &body)
}

/// The answer to the request `a`.
fn answer(effects: &[String]) -> &str {
    effects.iter().find_map(|effect| effect.strip_prefix("answer a ")).unwrap_or_default()
}

/// The response to a fail-closed hook that failed.
fn refusal(event: &str) -> String {
    let mut play = with_hooks(&[(event, true)]);
    play.line(&asks(event));
    let effects = play.done(1, CallOutcome::Failed("oh".to_owned()));
    answer(&effects).replace("the host's callback failed: oh", "why")
}

#[test]
fn every_event_is_refused_in_the_form_that_stops_it() {
    let specific = |event: &str, fields: &str| {
        format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{event}",{fields}}}}}"#)
    };
    let deny = r#""permissionDecision":"deny","permissionDecisionReason":"why""#;
    for event in HookInput::KNOWN {
        let expected = match HookRefusal::of(event) {
            HookRefusal::Deny if *event == "PermissionRequest" => {
                r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"why"},"hookEventName":"PermissionRequest"}}"#
                    .to_owned()
            }
            HookRefusal::Deny => specific(event, deny),
            HookRefusal::Block => r#"{"decision":"block","reason":"why"}"#.to_owned(),
            HookRefusal::End => r#"{"continue":false,"stopReason":"why"}"#.to_owned(),
            HookRefusal::Decline => {
                format!(r#"{{"hookSpecificOutput":{{"action":"decline","hookEventName":"{event}"}}}}"#)
            }
            HookRefusal::Hide => {
                r#"{"hookSpecificOutput":{"displayContent":"","hookEventName":"MessageDisplay"}}"#
                    .to_owned()
            }
            HookRefusal::Impossible => r#"{"continue":true}"#.to_owned(),
        };
        assert_eq!(refusal(event), expected, "{event}");
    }
    // What an unknown event understands is not known, so it gets both.
    let both = r#"{"continue":false,"decision":"block","reason":"why","stopReason":"why"}"#;
    assert_eq!(refusal("SomethingNew"), both);
}

#[test]
fn no_refusal_makes_the_model_continue() {
    for event in ["Stop", "SubagentStop", "TeammateIdle"] {
        assert_eq!(HookRefusal::of(event), HookRefusal::End);
        assert!(!HookRefusal::of(event).is_blocking(), "{event}");
        // Too many callbacks, for a hook that is fail-open.
        let mut play = with_hooks(&[(event, false)]);
        for index in 0..256 + 4_096 {
            play.line(&asks(event).replace(r#""a""#, &format!(r#""w{index}""#)));
        }
        let effects = play.line(&asks(event));
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
fn a_request_that_may_be_for_a_guard_is_refused_if_its_callback_cannot_be_identified() {
    let hooks = [("PreToolUse", false), ("PreToolUse", true), ("PostToolUse", false)];
    for body in unidentified("PreToolUse") {
        let effects = with_hooks(&hooks).line(&request("a", &body));
        let answer = answer(&effects);
        let refused = answer.contains(r#""permissionDecision":"deny""#)
            || answer.starts_with(r#"{"continue":false,"decision":"block""#);
        assert!(refused, "{body}: {effects:?}");
    }
}

#[test]
fn a_request_of_an_event_without_guards_is_let_through() {
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
fn a_hook_request_that_does_not_decode_is_refused_and_not_answered_with_an_error() {
    let hooks = [("PreToolUse", false), ("PreToolUse", true)];
    let broken = request("a", r#""subtype":"hook_callback","callback_id":"hook_1""#)
        .replace(r#""type":"control_request""#, r#""type":"control_request","request":7"#);
    let effects = with_hooks(&hooks).line(&broken);
    assert!(!answer(&effects).starts_with("error"), "{effects:?}");
    let long = format!(
        r#""subtype":"hook_callback","callback_id":"hook_1","input":{{"x":"{}"}}"#,
        "x".repeat(200_000)
    );
    let effects = with_hooks(&hooks).happens(oversized(&request("a", &long)));
    assert!(answer(&effects).starts_with(r#"{"continue":false,"decision":"block""#), "{effects:?}");
}
