//! The wire format of every hook response.

use std::time::Duration;

use claude_wire::Json;
use claude_wire::hook_input::HookInput;

use super::event::known;
use super::event::sealed::Event as _;
use super::input::*;
use super::response::sealed::Encode;
use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn pre_tool_use_responses_have_the_expected_format() {
    let specific = |rest: &str| own("PreToolUse", rest);
    for (response, expected) in [
        (HookResponse::<PreToolUseInput>::new(), "{}".to_owned()),
        (HookResponse::allow(), specific(r#""permissionDecision":"allow""#)),
        (
            HookResponse::allow().reason("it is fine"),
            specific(r#""permissionDecision":"allow","permissionDecisionReason":"it is fine""#),
        ),
        (
            HookResponse::deny("no"),
            specific(r#""permissionDecision":"deny","permissionDecisionReason":"no""#),
        ),
        (
            HookResponse::ask("odd"),
            specific(r#""permissionDecision":"ask","permissionDecisionReason":"odd""#),
        ),
        (HookResponse::defer(), specific(r#""permissionDecision":"defer""#)),
        (
            HookResponse::new().updated_input(json(r#"{"command":"ls"}"#)),
            specific(r#""updatedInput":{"command":"ls"}"#),
        ),
        (HookResponse::new().additional_context("noon"), specific(r#""additionalContext":"noon""#)),
        (
            HookResponse::new().system_message("look out").suppress_output(),
            r#"{"suppressOutput":true,"systemMessage":"look out"}"#.to_owned(),
        ),
    ] {
        check(response, &expected);
    }
}

#[test]
fn ending_the_turn_before_a_tool_denies_the_tool() {
    let stopped = |reason: &str| {
        format!(
            r#"{{"continue":false,"stopReason":"enough","hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"{reason}"}}}}"#
        )
    };
    check(HookResponse::<PreToolUseInput>::new().stop("enough"), &stopped("enough"));
    check(HookResponse::<PreToolUseInput>::allow().stop("enough"), &stopped("enough"));
    check(HookResponse::<PreToolUseInput>::deny("no").stop("enough"), &stopped("no"));
    let request = |message: &str| {
        format!(
            r#"{{"continue":false,"stopReason":"enough","hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{{"behavior":"deny","message":"{message}","interrupt":true}}}}}}"#
        )
    };
    check(HookResponse::<PermissionRequestInput>::allow().stop("enough"), &request("enough"));
    check(HookResponse::<PermissionRequestInput>::deny("no").stop("enough"), &request("no"));
}

#[test]
fn blocking_other_events_is_a_decision_with_a_reason() {
    let blocked = r#"{"decision":"block","reason":"not so"}"#;
    check(HookResponse::<PostToolUseInput>::block("not so"), blocked);
    check(HookResponse::<PostToolUseFailureInput>::block("not so"), blocked);
    check(HookResponse::<UserPromptSubmitInput>::block("not so"), blocked);
    check(HookResponse::<StopInput>::block("not so"), blocked);
    check(HookResponse::<SubagentStopInput>::block("not so"), blocked);
    check(HookResponse::<PreCompactInput>::block("not so"), blocked);
    check(
        HookResponse::<StopInput>::new().stop("enough"),
        r#"{"continue":false,"stopReason":"enough"}"#,
    );
}

#[test]
fn other_hook_responses_have_the_expected_format() {
    let context = |event| own(event, r#""additionalContext":"noon""#);
    check(
        HookResponse::<PostToolUseInput>::new().additional_context("noon"),
        &context("PostToolUse"),
    );
    check(
        HookResponse::<PostToolUseFailureInput>::new().additional_context("noon"),
        &context("PostToolUseFailure"),
    );
    check(
        HookResponse::<UserPromptSubmitInput>::new().additional_context("noon"),
        &context("UserPromptSubmit"),
    );
    check(HookResponse::<StopInput>::new().additional_context("noon"), &context("Stop"));
    check(
        HookResponse::<SubagentStartInput>::new().additional_context("noon"),
        &context("SubagentStart"),
    );
    check(
        HookResponse::<SubagentStopInput>::new().additional_context("noon"),
        &context("SubagentStop"),
    );
    check(
        HookResponse::<NotificationInput>::new().additional_context("noon"),
        &context("Notification"),
    );
    check(
        HookResponse::<PostToolUseInput>::new()
            .classifier_context("calm")
            .updated_tool_output(json("1"))
            .updated_mcp_tool_output(json("2")),
        &own(
            "PostToolUse",
            r#""classifierContext":"calm","updatedToolOutput":1,"updatedMCPToolOutput":2"#,
        ),
    );
    check(
        HookResponse::<UserPromptSubmitInput>::new()
            .session_title("Tidy")
            .suppress_original_prompt(),
        &own("UserPromptSubmit", r#""sessionTitle":"Tidy","suppressOriginalPrompt":true"#),
    );
    check(
        HookResponse::<PreCompactInput>::new().system_message("soon"),
        r#"{"systemMessage":"soon"}"#,
    );
    check(
        HookResponse::<NotificationInput>::run_async(SECOND),
        r#"{"async":true,"asyncTimeout":1000}"#,
    );
}

#[test]
fn permission_request_responses_have_the_expected_format() {
    let decision = |rest: &str| own("PermissionRequest", &format!(r#""decision":{{{rest}}}"#));
    check(HookResponse::<PermissionRequestInput>::new(), "{}");
    check(HookResponse::<PermissionRequestInput>::allow(), &decision(r#""behavior":"allow""#));
    check(
        HookResponse::<PermissionRequestInput>::allow()
            .updated_input(json("{}"))
            .updated_permissions([]),
        &decision(r#""behavior":"allow","updatedInput":{},"updatedPermissions":[]"#),
    );
    check(
        HookResponse::<PermissionRequestInput>::deny("no").interrupt().updated_input(json("{}")),
        &decision(r#""behavior":"deny","message":"no","interrupt":true"#),
    );
}

/// The CLI ignores everything else in an asynchronous response.
#[test]
fn denial_takes_precedence_over_an_asynchronous_response() {
    check(
        HookResponse::<PreToolUseInput>::run_async(SECOND).reason("no").stop("enough"),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#,
    );
}

#[test]
fn denial_takes_precedence_over_an_asynchronous_raw_response() {
    let dropped = ["async", "asyncTimeout"];
    assert_eq!(
        raw("Stop", RawHookResponse::run_async(SECOND).block("no"), &dropped),
        r#"{"decision":"block","reason":"no"}"#,
    );
    assert_eq!(
        raw("PreToolUse", RawHookResponse::run_async(SECOND).block("no"), &dropped),
        own("PreToolUse", r#""permissionDecision":"deny","permissionDecisionReason":"no""#),
    );
}

#[test]
fn raw_responses_are_sent_unchanged_with_the_event_name() {
    let new = |answer: RawHookResponse| raw("SomethingNew", answer, &[]);
    assert_eq!(new(RawHookResponse::new()), "{}");
    assert_eq!(
        new(RawHookResponse::new().field("novel", json("1")).specific("alsoNovel", json("2"))),
        r#"{"novel":1,"hookSpecificOutput":{"hookEventName":"SomethingNew","alsoNovel":2}}"#,
    );
    assert_eq!(
        new(RawHookResponse::from(json(
            r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"Stop","retry":true}}"#
        ))),
        r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"SomethingNew","retry":true}}"#,
    );
    assert_eq!(new(RawHookResponse::run_async(SECOND)), r#"{"async":true,"asyncTimeout":1000}"#);
}

#[test]
fn raw_responses_block_in_the_format_of_their_event() {
    let block = |event| raw(event, RawHookResponse::new().block("no"), &[]);
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
        raw("PreToolUse", RawHookResponse::new().stop("enough"), &[]),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#,
    );
    let given =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"\u0041"}}"#;
    assert_eq!(raw("PreToolUse", RawHookResponse::from(json(given)), &[]), given, "sent as given");
    let allows = RawHookResponse::new().specific("permissionDecision", "allow").stop("enough");
    assert_eq!(
        raw("PreToolUse", allows, &[]),
        raw("PreToolUse", RawHookResponse::new().stop("enough"), &[]),
        "nothing runs in a turn that ends"
    );
    assert_eq!(
        raw("PermissionRequest", RawHookResponse::new().stop("enough"), &[]),
        r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"enough","interrupt":true}}}"#,
    );
}

#[test]
fn fields_of_other_events_are_removed_from_raw_responses_and_reported() {
    assert_eq!(
        raw(
            "Notification",
            RawHookResponse::new().block("no").specific("additionalContext", "noon"),
            &["decision", "reason"],
        ),
        own("Notification", r#""additionalContext":"noon""#),
    );
    assert_eq!(
        raw(
            "PreToolUse",
            RawHookResponse::new().specific("updatedToolOutput", "x").specific("novel", "y"),
            &["hookSpecificOutput.updatedToolOutput"],
        ),
        own("PreToolUse", r#""novel":"y""#),
    );
    assert_eq!(
        raw(
            "SessionEnd",
            RawHookResponse::new().specific("watchPaths", json("[]")),
            &["hookSpecificOutput.watchPaths"],
        ),
        "{}",
    );
}

#[test]
fn raw_response_must_be_an_object() {
    for text in ["[]", "1", r#"{"hookSpecificOutput":3}"#] {
        let failed = RawHookResponse::from(json(text)).encode("Stop");
        assert!(failed.is_err_and(|reason| reason.contains("not a JSON object")), "{text}");
    }
}

#[test]
fn input_of_another_event_or_with_invalid_fields_is_an_error_without_its_values() {
    for (input, expected) in [
        (
            r#"{"hook_event_name":"Stop"}"#,
            r#"the hook is registered for PreToolUse, and the CLI called it for "Stop""#,
        ),
        ("7", r#"the hook is registered for PreToolUse, and the CLI called it for """#),
        (
            r#"{"hook_event_name":"PreToolUse","tool_name":["secret"]}"#,
            "the input of the hook cannot be decoded: ",
        ),
    ] {
        let error = PreToolUseInput::read(json(input)).unwrap_err();
        assert!(error.starts_with(expected) && !error.contains("secret"), "{error}");
    }
}

#[test]
fn hook_timeouts_match_the_specification() {
    for name in HookInput::KNOWN {
        let limit = known(name).map(|known| known.timeout);
        assert_eq!(
            Some(HookRegistration::named(*name).into_target().default_timeout),
            limit,
            "{name}"
        );
    }
    let seconds = |name: &str| HookRegistration::named(name).into_target().timeout(None).as_secs();
    assert_eq!(seconds("PreToolUse"), 60);
    assert_eq!(seconds("UserPromptSubmit"), 25);
    assert_eq!(seconds("MessageDisplay"), 8);
}

#[test]
fn most_specific_hook_timeout_takes_precedence() {
    let seconds = Duration::from_secs;
    let all = Some(seconds(120));
    assert_eq!(PreToolUse.into_target().timeout(all), seconds(120));
    assert_eq!(
        UserPromptSubmit.into_target().timeout(all),
        seconds(25),
        "not longer than the CLI holds it"
    );
    assert_eq!(UserPromptSubmit.into_target().timeout(Some(seconds(3))), seconds(3));
    assert_eq!(UserPromptSubmit.timeout(seconds(40)).into_target().timeout(all), seconds(40));
    assert_eq!(PreToolUse.matching("Bash").timeout(SECOND).into_target().timeout(all), SECOND);
}

fn check<E: HookEvent>(response: HookResponse<E>, expected: &str) {
    let encoded = response.encode(E::NAME).unwrap();
    assert_eq!(encoded.json.text(), expected);
    assert!(encoded.dropped.is_empty());
}

fn raw(event: &str, answer: RawHookResponse, dropped: &[&str]) -> String {
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
