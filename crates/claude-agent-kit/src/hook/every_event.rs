//! Every published event: its fields are named, what was recorded of it is read whole, and all
//! that can be answered can be said.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use claude_wire::Extra;
use claude_wire::control::{HookInput, HookSpecificOutput};

use super::*;

/// What every input has.
const BASE: &str =
    "session_id transcript_path cwd prompt_id permission_mode agent_id agent_type effort";

/// What a callback of each event was first asked, in all recordings.
fn recorded() -> BTreeMap<String, Json> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.325");
    let mut paths: Vec<_> =
        fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut inputs = BTreeMap::new();
    for path in paths {
        let text = String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        for line in text.lines().filter(|line| line.starts_with("<<")) {
            let Some(input) = line.splitn(3, ' ').nth(2).and_then(input_of) else { continue };
            let event: String = input
                .deserialize::<Extra>()
                .unwrap()
                .get("hook_event_name")
                .unwrap()
                .deserialize()
                .unwrap();
            inputs.entry(event).or_insert(input);
        }
    }
    inputs
}

/// The input of a hook's request.
fn input_of(line: &str) -> Option<Json> {
    let frame: Extra = serde_json::from_str(line).ok()?;
    let request: Extra = frame.get("request")?.deserialize().ok()?;
    (request.get("subtype")?.text() == r#""hook_callback""#)
        .then(|| request.get("input").cloned())?
}

/// An input that has every published field, with nothing in it.
fn published(event: &str, fields: &str) -> Json {
    let mut input = Extra::default();
    input.set("hook_event_name", event);
    for field in BASE.split(' ').chain(fields.split_whitespace()) {
        input.set(field, Json::from_text("null").unwrap());
    }
    Json::from(&input)
}

fn asked(json: &Json) -> Asked {
    Asked { input: json.deserialize().unwrap(), line: Bytes::new() }
}

/// The fields of an object that are not null, by name.
fn entries(object: &Json) -> BTreeMap<String, serde_json::Value> {
    let fields: Extra = object.deserialize().unwrap();
    let fields = fields.iter().map(|(name, value)| (name.to_owned(), value.deserialize().unwrap()));
    fields.filter(|(_, value): &(_, serde_json::Value)| !value.is_null()).collect()
}

/// The names of the fields that an answer has of its event alone.
fn said(answer: &Json) -> Vec<String> {
    let answer: Extra = answer.deserialize().unwrap();
    let own = answer.get("hookSpecificOutput").map(|own| own.deserialize::<Extra>().unwrap());
    let own = own.unwrap_or_default();
    own.iter().map(|(name, _)| name.to_owned()).filter(|name| name != "hookEventName").collect()
}

/// One line per event: what is published of its input, the answer that says most, and how that
/// is sent.
macro_rules! events {
    ($( $event:ident [$fields:literal] $answer:expr => $sent:literal )+) => {
        #[test]
        fn every_event_is_read_whole_and_answered_in_its_form() {
            let recorded = recorded();
            let mut unseen = Vec::new();
            $(
                let name = $event::NAME;
                let input = $event::read(asked(&published(name, $fields))).unwrap();
                assert!(input.extra.is_empty(), "{name}: {:?}", input.extra);
                if let Some(json) = recorded.get(name) {
                    let input = $event::read(asked(json)).unwrap();
                    assert!(input.extra.is_empty(), "{name}: {:?}", input.extra);
                    assert_eq!(entries(&Json::from_serialize(&input).unwrap()), entries(json), "{name}");
                } else {
                    unseen.push(name);
                }
                let answer = $answer.encode(name).unwrap();
                assert_eq!(answer.json.text(), $sent, "{name}");
                let mut fields = HookSpecificOutput::fields_of(name).to_vec();
                // They say the same of different tools.
                fields.retain(|field| *field != "updatedMCPToolOutput");
                assert_eq!(said(&answer.json), fields, "{name}");
            )+
            let names = [$( $event::NAME ),+];
            assert_eq!(names, HookInput::KNOWN, "the published events");
            assert_eq!(unseen, ["Setup", "TeammateIdle", "CwdChanged"], "no recording");
        }
    };
}

events! {
    PreToolUse ["tool_name tool_input tool_use_id mcp_server"]
        PreToolUseAnswer::ask("odd").updated_input(object()).additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"odd","updatedInput":{},"additionalContext":"noon"}}"#
    PostToolUse ["tool_name tool_input tool_response tool_use_id duration_ms mcp_server"]
        PostToolUseAnswer::block("no").additional_context("noon").classifier_context("calm").updated_tool_output(object())
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"noon","classifierContext":"calm","updatedToolOutput":{}}}"#
    PostToolUseFailure ["tool_name tool_input tool_use_id error is_interrupt duration_ms mcp_server"]
        PostToolUseFailureAnswer::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"noon"}}"#
    PostToolBatch ["tool_calls"]
        PostToolBatchAnswer::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"noon"}}"#
    PermissionRequest ["tool_name tool_input permission_suggestions mcp_server"]
        PermissionRequestAnswer::allow().with_input(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{}}}}"#
    PermissionDenied ["tool_name tool_input tool_use_id reason mcp_server"]
        PermissionDeniedAnswer::new().retry(true)
        => r#"{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}"#
    UserPromptSubmit ["prompt source session_title"]
        UserPromptSubmitAnswer::block("no").additional_context("noon").session_title("Tidy").suppress_original_prompt(true)
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"noon","sessionTitle":"Tidy","suppressOriginalPrompt":true}}"#
    UserPromptExpansion ["expansion_type command_name command_args command_source prompt"]
        UserPromptExpansionAnswer::block("no").additional_context("noon").suppress_original_prompt(true)
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"UserPromptExpansion","additionalContext":"noon","suppressOriginalPrompt":true}}"#
    Stop ["stop_hook_active last_assistant_message background_tasks session_crons"]
        StopAnswer::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"noon"}}"#
    StopFailure ["error error_details last_assistant_message"]
        StopFailureAnswer::new().system_message("look")
        => r#"{"systemMessage":"look"}"#
    Notification ["message title notification_type"]
        NotificationAnswer::new().additional_context("noon").terminal_sequence("\u{7}")
        => r#"{"terminalSequence":"\u0007","hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"noon"}}"#
    MessageDisplay ["turn_id message_id index final delta"]
        MessageDisplayAnswer::new().display_content("…")
        => r#"{"hookSpecificOutput":{"hookEventName":"MessageDisplay","displayContent":"…"}}"#
    Elicitation ["mcp_server_name message mode url elicitation_id requested_schema"]
        ElicitationAnswer::accept(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}"#
    ElicitationResult ["mcp_server_name elicitation_id mode action content"]
        ElicitationResultAnswer::accept(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"accept","content":{}}}"#
    SessionStart ["source model session_title seconds_since_last_response context_tokens prompt_cache_likely_expired estimated_cache_write_usd"]
        SessionStartAnswer::new().additional_context("noon").initial_user_message("hello").session_title("Tidy").watch_paths(["a"]).reload_skills(true)
        => r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"noon","initialUserMessage":"hello","sessionTitle":"Tidy","watchPaths":["a"],"reloadSkills":true}}"#
    SessionEnd ["reason"]
        SessionEndAnswer::new().suppress_output()
        => r#"{"suppressOutput":true}"#
    Setup ["trigger"]
        SetupAnswer::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"Setup","additionalContext":"noon"}}"#
    PreCompact ["trigger custom_instructions"]
        PreCompactAnswer::block("no")
        => r#"{"decision":"block","reason":"no"}"#
    PostCompact ["trigger compact_summary"]
        PostCompactAnswer::new()
        => "{}"
    PreModelSwitch ["from_model to_model requested_model source context_tokens prompt_cache_warm cache_ttl estimated_cache_write_usd pricing"]
        PreModelSwitchAnswer::ask("odd").stop("enough")
        => r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#
    PostModelSwitch ["from_model to_model requested_model source context_tokens prompt_cache_warm cache_ttl estimated_cache_write_usd pricing"]
        PostModelSwitchAnswer::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"PostModelSwitch","additionalContext":"noon"}}"#
    SubagentStart [""]
        SubagentStartAnswer::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"noon"}}"#
    SubagentStop ["stop_hook_active agent_transcript_path last_assistant_message background_tasks session_crons"]
        SubagentStopAnswer::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"SubagentStop","additionalContext":"noon"}}"#
    TaskCreated ["task_id task_subject task_description teammate_name team_name"]
        TaskCreatedAnswer::new().stop("enough")
        => r#"{"continue":false,"stopReason":"enough"}"#
    TaskCompleted ["task_id task_subject task_description teammate_name team_name"]
        TaskCompletedAnswer::run_async(Duration::from_secs(1))
        => r#"{"async":true,"asyncTimeout":1000}"#
    TeammateIdle ["teammate_name team_name"]
        TeammateIdleAnswer::new()
        => "{}"
    ConfigChange ["source file_path"]
        ConfigChangeAnswer::block("no")
        => r#"{"decision":"block","reason":"no"}"#
    InstructionsLoaded ["file_path memory_type load_reason globs trigger_file_path parent_file_path"]
        InstructionsLoadedAnswer::new()
        => "{}"
    CwdChanged ["old_cwd new_cwd"]
        CwdChangedAnswer::new().watch_paths(["a", "b"])
        => r#"{"hookSpecificOutput":{"hookEventName":"CwdChanged","watchPaths":["a","b"]}}"#
    FileChanged ["file_path event"]
        FileChangedAnswer::new().watch_paths(Vec::<String>::new())
        => r#"{"hookSpecificOutput":{"hookEventName":"FileChanged","watchPaths":[]}}"#
    DirectoryAdded ["directory source"]
        DirectoryAddedAnswer::new()
        => "{}"
    WorktreeCreate ["name"]
        WorktreeCreateAnswer::new().worktree_path("side")
        => r#"{"hookSpecificOutput":{"hookEventName":"WorktreeCreate","worktreePath":"side"}}"#
    WorktreeRemove ["worktree_path"]
        WorktreeRemoveAnswer::new()
        => "{}"
}

fn object() -> Json {
    Json::from(&Extra::default())
}

#[test]
fn what_else_can_be_said_about_a_model_and_a_question() {
    let own = |answer: Json| answer.text().to_owned();
    let model = |answer: PreModelSwitchAnswer| own(answer.encode("").unwrap().json);
    assert!(model(PreModelSwitchAnswer::allow()).contains(r#""permissionDecision":"allow""#));
    assert_eq!(PreModelSwitchAnswer::block("no"), PreModelSwitchAnswer::deny("no"));
    let asked = |answer: ElicitationAnswer| own(answer.encode("").unwrap().json);
    assert!(asked(ElicitationAnswer::decline()).contains(r#""action":"decline""#));
    assert!(asked(ElicitationAnswer::cancel()).contains(r#""action":"cancel""#));
}
