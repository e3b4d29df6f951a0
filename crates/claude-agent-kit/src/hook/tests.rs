//! Every answer as it goes over the wire.

use std::time::Duration;

use claude_wire::control::HookInput;

use super::event::known;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn every_answer_to_a_tool_that_is_about_to_run_has_its_form() {
    let specific = |rest: &str| own("PreToolUse", rest);
    for (answer, expected) in [
        (PreToolUseAnswer::new(), "{}".to_owned()),
        (PreToolUseAnswer::allow(), specific(r#""permissionDecision":"allow""#)),
        (
            PreToolUseAnswer::allow().because("it is fine"),
            specific(r#""permissionDecision":"allow","permissionDecisionReason":"it is fine""#),
        ),
        (
            PreToolUseAnswer::deny("no"),
            specific(r#""permissionDecision":"deny","permissionDecisionReason":"no""#),
        ),
        (
            PreToolUseAnswer::ask("odd"),
            specific(r#""permissionDecision":"ask","permissionDecisionReason":"odd""#),
        ),
        (PreToolUseAnswer::defer(), specific(r#""permissionDecision":"defer""#)),
        (
            PreToolUseAnswer::new().updated_input(json(r#"{"command":"ls"}"#)),
            specific(r#""updatedInput":{"command":"ls"}"#),
        ),
        (
            PreToolUseAnswer::new().additional_context("noon"),
            specific(r#""additionalContext":"noon""#),
        ),
        (
            PreToolUseAnswer::new().system_message("look out").suppress_output(),
            r#"{"suppressOutput":true,"systemMessage":"look out"}"#.to_owned(),
        ),
    ] {
        check(answer, &expected);
    }
    assert_eq!(PreToolUseAnswer::block("no"), PreToolUseAnswer::deny("no"));
}

#[test]
fn ending_the_turn_before_a_tool_always_denies_the_tool() {
    let stopped = |reason: &str| {
        format!(
            r#"{{"continue":false,"stopReason":"enough","hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"{reason}"}}}}"#
        )
    };
    check(PreToolUseAnswer::new().stop("enough"), &stopped("enough"));
    check(PreToolUseAnswer::allow().stop("enough"), &stopped("enough"));
    check(PreToolUseAnswer::deny("no").stop("enough"), &stopped("no"));
    let request = |message: &str| {
        format!(
            r#"{{"continue":false,"stopReason":"enough","hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{{"behavior":"deny","message":"{message}","interrupt":true}}}}}}"#
        )
    };
    check(PermissionRequestAnswer::allow().stop("enough"), &request("enough"));
    check(PermissionRequestAnswer::deny("no").stop("enough"), &request("no"));
}

#[test]
fn blocking_other_events_is_a_decision_with_a_reason() {
    let blocked = r#"{"decision":"block","reason":"not so"}"#;
    check(PostToolUseAnswer::block("not so"), blocked);
    check(PostToolUseFailureAnswer::block("not so"), blocked);
    check(UserPromptSubmitAnswer::block("not so"), blocked);
    check(StopAnswer::block("not so"), blocked);
    check(SubagentStopAnswer::block("not so"), blocked);
    check(PreCompactAnswer::block("not so"), blocked);
    check(StopAnswer::new().stop("enough"), r#"{"continue":false,"stopReason":"enough"}"#);
}

#[test]
fn every_other_answer_has_its_form() {
    let context = |event| own(event, r#""additionalContext":"noon""#);
    check(PostToolUseAnswer::new().additional_context("noon"), &context("PostToolUse"));
    check(
        PostToolUseFailureAnswer::new().additional_context("noon"),
        &context("PostToolUseFailure"),
    );
    check(UserPromptSubmitAnswer::new().additional_context("noon"), &context("UserPromptSubmit"));
    check(StopAnswer::new().additional_context("noon"), &context("Stop"));
    check(SubagentStartAnswer::new().additional_context("noon"), &context("SubagentStart"));
    check(SubagentStopAnswer::new().additional_context("noon"), &context("SubagentStop"));
    check(NotificationAnswer::new().additional_context("noon"), &context("Notification"));
    check(
        PostToolUseAnswer::new()
            .classifier_context("calm")
            .updated_tool_output(json("1"))
            .updated_mcp_tool_output(json("2")),
        &own(
            "PostToolUse",
            r#""classifierContext":"calm","updatedToolOutput":1,"updatedMCPToolOutput":2"#,
        ),
    );
    check(
        UserPromptSubmitAnswer::new().session_title("Tidy").suppress_original_prompt(true),
        &own("UserPromptSubmit", r#""sessionTitle":"Tidy","suppressOriginalPrompt":true"#),
    );
    check(PreCompactAnswer::new().system_message("soon"), r#"{"systemMessage":"soon"}"#);
    check(NotificationAnswer::run_async(SECOND), r#"{"async":true,"asyncTimeout":1000}"#);
}

#[test]
fn every_answer_to_a_permission_request_has_its_form() {
    let decision = |rest: &str| own("PermissionRequest", &format!(r#""decision":{{{rest}}}"#));
    check(PermissionRequestAnswer::new(), "{}");
    check(PermissionRequestAnswer::allow(), &decision(r#""behavior":"allow""#));
    check(
        PermissionRequestAnswer::allow().with_input(json("{}")).with_permissions([]),
        &decision(r#""behavior":"allow","updatedInput":{},"updatedPermissions":[]"#),
    );
    check(
        PermissionRequestAnswer::deny("no").and_interrupt().with_input(json("{}")),
        &decision(r#""behavior":"deny","message":"no","interrupt":true"#),
    );
}

/// The CLI looks at nothing else of an asynchronous answer.
#[test]
fn a_denial_is_not_lost_beside_an_asynchronous_answer() {
    check(
        PreToolUseAnswer::run_async(SECOND).because("no").stop("enough"),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#,
    );
}

#[test]
fn a_denial_is_not_lost_beside_an_asynchronous_raw_answer() {
    let dropped = ["async", "asyncTimeout"];
    assert_eq!(
        raw("Stop", RawAnswer::run_async(SECOND).block("no"), &dropped),
        r#"{"decision":"block","reason":"no"}"#,
    );
    assert_eq!(
        raw("PreToolUse", RawAnswer::run_async(SECOND).block("no"), &dropped),
        own("PreToolUse", r#""permissionDecision":"deny","permissionDecisionReason":"no""#),
    );
}

#[test]
fn raw_answers_are_sent_as_they_are_with_the_name_of_the_event() {
    let new = |answer: RawAnswer| raw("SomethingNew", answer, &[]);
    assert_eq!(new(RawAnswer::new()), "{}");
    assert_eq!(
        new(RawAnswer::new().field("novel", json("1")).specific("alsoNovel", json("2"))),
        r#"{"novel":1,"hookSpecificOutput":{"hookEventName":"SomethingNew","alsoNovel":2}}"#,
    );
    assert_eq!(
        new(RawAnswer::json(json(
            r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"Stop","retry":true}}"#
        ))),
        r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"SomethingNew","retry":true}}"#,
    );
    assert_eq!(new(RawAnswer::run_async(SECOND)), r#"{"async":true,"asyncTimeout":1000}"#);
}

#[test]
fn raw_answers_block_in_the_form_of_their_event() {
    let block = |event| raw(event, RawAnswer::new().block("no"), &[]);
    assert_eq!(block("Stop"), r#"{"decision":"block","reason":"no"}"#);
    assert_eq!(block("SomethingNew"), r#"{"decision":"block","reason":"no"}"#);
    for event in ["PreToolUse", "PreModelSwitch"] {
        let denied = r#""permissionDecision":"deny","permissionDecisionReason":"no""#;
        assert_eq!(block(event), own(event, denied));
    }
    assert_eq!(
        block("PermissionRequest"),
        own("PermissionRequest", r#""decision":{"behavior":"deny","message":"no"}"#),
    );
    assert_eq!(
        raw("PreToolUse", RawAnswer::new().stop("enough"), &[]),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#,
    );
    let given =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"\u0041"}}"#;
    assert_eq!(raw("PreToolUse", RawAnswer::json(json(given)), &[]), given, "sent as given");
    let allows = RawAnswer::new().specific("permissionDecision", "allow").stop("enough");
    assert_eq!(
        raw("PreToolUse", allows, &[]),
        raw("PreToolUse", RawAnswer::new().stop("enough"), &[]),
        "nothing runs in a turn that ends"
    );
    assert_eq!(
        raw("PermissionRequest", RawAnswer::new().stop("enough"), &[]),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"enough","interrupt":true}}}"#,
    );
}

#[test]
fn what_does_not_fit_the_event_is_left_out_of_a_raw_answer_and_named() {
    assert_eq!(
        raw(
            "Notification",
            RawAnswer::new().block("no").specific("additionalContext", "noon"),
            &["decision", "reason"],
        ),
        own("Notification", r#""additionalContext":"noon""#),
    );
    assert_eq!(
        raw(
            "PreToolUse",
            RawAnswer::new().specific("updatedToolOutput", "x").specific("novel", "y"),
            &["hookSpecificOutput.updatedToolOutput"],
        ),
        own("PreToolUse", r#""novel":"y""#),
    );
    assert_eq!(
        raw(
            "SessionEnd",
            RawAnswer::new().specific("watchPaths", json("[]")),
            &["hookSpecificOutput.watchPaths"],
        ),
        "{}",
    );
}

#[test]
fn a_raw_answer_that_is_no_object_is_a_failure() {
    for text in ["[]", "1", r#"{"hookSpecificOutput":3}"#] {
        let failed = RawAnswer::json(json(text)).encode("Stop");
        assert!(failed.is_err_and(|reason| reason.contains("no JSON object")), "{text}");
    }
}

#[test]
fn limits_are_those_of_the_specification() {
    for name in HookInput::KNOWN {
        let limit = known(name).map(|known| known.limit);
        assert_eq!(Some(AnyEvent::named(*name).place.default_limit), limit, "{name}");
    }
    let seconds = |name: &str| AnyEvent::named(name).place.limit(None).as_secs();
    assert_eq!(seconds("PreToolUse"), 60);
    assert_eq!(seconds("UserPromptSubmit"), 25);
    assert_eq!(seconds("MessageDisplay"), 8);
}

#[test]
fn the_most_specific_limit_wins() {
    let seconds = Duration::from_secs;
    let all = Some(seconds(120));
    assert_eq!(PreToolUse.place().limit(all), seconds(120));
    assert_eq!(
        UserPromptSubmit.place().limit(all),
        seconds(25),
        "not longer than the CLI holds it"
    );
    assert_eq!(UserPromptSubmit.place().limit(Some(seconds(3))), seconds(3));
    assert_eq!(UserPromptSubmit.timeout(seconds(40)).place().limit(all), seconds(40));
    assert_eq!(PreToolUse::matching("Bash").timeout(SECOND).place().limit(all), SECOND);
}

fn check(answer: impl HookOutput, expected: &str) {
    let encoded = answer.encode("").unwrap();
    assert_eq!(encoded.json.text(), expected);
    assert!(encoded.dropped.is_empty());
}

fn raw(event: &str, answer: RawAnswer, dropped: &[&str]) -> String {
    let encoded = answer.encode(event).unwrap();
    assert_eq!(encoded.dropped, dropped);
    encoded.json.text().to_owned()
}

fn own(event: &str, rest: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{event}",{rest}}}}}"#)
}

fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}
