//! Every published event: its fields are named, recorded inputs are read whole, and a response can
//! have every published field.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use claude_wire::control::HookSpecificOutput;
use claude_wire::hook_input::HookInput;
use claude_wire::{Extra, Json};

use super::event::sealed::Event as _;
use super::input::*;
use super::response::sealed::Encode as _;
use super::*;

/// What every input has.
const BASE: &str =
    "session_id transcript_path cwd prompt_id permission_mode agent_id agent_type effort";

/// What a callback of each event was first asked, in all recordings.
fn recorded() -> BTreeMap<String, Json> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../claude-wire/tests/corpus/2.1.326");
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

/// Returns the fields of an object that are not null, by name.
fn entries(object: &Json) -> BTreeMap<String, serde_json::Value> {
    let fields: Extra = object.deserialize().unwrap();
    let fields = fields.iter().map(|(name, value)| (name.to_owned(), value.deserialize().unwrap()));
    fields.filter(|(_, value): &(_, serde_json::Value)| !value.is_null()).collect()
}

/// Returns the names of the fields that only responses to this event have.
fn specific_fields(response: &Json) -> Vec<String> {
    let response: Extra = response.deserialize().unwrap();
    let own = response.get("hookSpecificOutput").map(|own| own.deserialize::<Extra>().unwrap());
    let own = own.unwrap_or_default();
    own.iter().map(|(name, _)| name.to_owned()).filter(|name| name != "hookEventName").collect()
}

/// Checks one event per line: the published fields of its input, a response with every field, and
/// its encoding.
macro_rules! events {
    ($( $event:ident($input:ident) [$fields:literal] $response:expr => $sent:literal )+) => {
        #[test]
        fn every_event_is_decoded_completely_and_encoded_in_its_format() {
            let recorded = recorded();
            let mut unseen = Vec::new();
            $(
                let name = $input::NAME;
                assert_eq!($event.into_target().event, name);
                let input = $input::read(published(name, $fields)).unwrap();
                assert!(input.extra.is_empty(), "{name}: {:?}", input.extra);
                if let Some(json) = recorded.get(name) {
                    let input = $input::read(json.clone()).unwrap();
                    assert!(input.extra.is_empty(), "{name}: {:?}", input.extra);
                    assert_eq!(entries(&Json::from_serialize(&input).unwrap()), entries(json), "{name}");
                } else {
                    unseen.push(name);
                }
                let response: HookResponse<$input> = $response;
                let encoded = response.encode(name).unwrap();
                assert_eq!(encoded.json.text(), $sent, "{name}");
                let mut fields = HookSpecificOutput::fields_of(name).to_vec();
                // Both fields replace the output, each of a different kind of tool.
                fields.retain(|field| *field != "updatedMCPToolOutput");
                assert_eq!(specific_fields(&encoded.json), fields, "{name}");
            )+
            let names = [$( stringify!($event) ),+];
            assert_eq!(names, HookInput::KNOWN, "the published events");
            assert_eq!(unseen, ["Setup", "TeammateIdle", "CwdChanged"], "no recording");
        }
    };
}

events! {
    PreToolUse(PreToolUseInput) ["tool_name tool_input tool_use_id mcp_server"]
        HookResponse::ask("odd").updated_input(object()).additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"odd","updatedInput":{},"additionalContext":"noon"}}"#
    PostToolUse(PostToolUseInput) ["tool_name tool_input tool_response tool_use_id duration_ms mcp_server"]
        HookResponse::block("no").additional_context("noon").classifier_context("calm").updated_tool_output(object())
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"noon","classifierContext":"calm","updatedToolOutput":{}}}"#
    PostToolUseFailure(PostToolUseFailureInput) ["tool_name tool_input tool_use_id error is_interrupt duration_ms mcp_server"]
        HookResponse::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"noon"}}"#
    PostToolBatch(PostToolBatchInput) ["tool_calls"]
        HookResponse::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"noon"}}"#
    PermissionRequest(PermissionRequestInput) ["tool_name tool_input permission_suggestions mcp_server"]
        HookResponse::allow().updated_input(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{}}}}"#
    PermissionDenied(PermissionDeniedInput) ["tool_name tool_input tool_use_id reason mcp_server"]
        HookResponse::new().retry()
        => r#"{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}"#
    UserPromptSubmit(UserPromptSubmitInput) ["prompt source session_title"]
        HookResponse::block("no").additional_context("noon").session_title("Tidy").suppress_original_prompt()
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"noon","sessionTitle":"Tidy","suppressOriginalPrompt":true}}"#
    UserPromptExpansion(UserPromptExpansionInput) ["expansion_type command_name command_args command_source prompt"]
        HookResponse::block("no").additional_context("noon").suppress_original_prompt()
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"UserPromptExpansion","additionalContext":"noon","suppressOriginalPrompt":true}}"#
    Stop(StopInput) ["stop_hook_active last_assistant_message background_tasks session_crons"]
        HookResponse::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"noon"}}"#
    StopFailure(StopFailureInput) ["error error_details last_assistant_message"]
        HookResponse::new().system_message("look")
        => r#"{"systemMessage":"look"}"#
    Notification(NotificationInput) ["message title notification_type"]
        HookResponse::new().additional_context("noon").terminal_sequence("\u{7}")
        => r#"{"terminalSequence":"\u0007","hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"noon"}}"#
    MessageDisplay(MessageDisplayInput) ["turn_id message_id index final delta"]
        HookResponse::new().display_content("…")
        => r#"{"hookSpecificOutput":{"hookEventName":"MessageDisplay","displayContent":"…"}}"#
    Elicitation(ElicitationInput) ["mcp_server_name message mode url elicitation_id requested_schema"]
        HookResponse::accept(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{}}}"#
    ElicitationResult(ElicitationResultInput) ["mcp_server_name elicitation_id mode action content"]
        HookResponse::accept(object())
        => r#"{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"accept","content":{}}}"#
    SessionStart(SessionStartInput) ["source model session_title seconds_since_last_response context_tokens prompt_cache_likely_expired estimated_cache_write_usd"]
        HookResponse::new().additional_context("noon").initial_user_message("hello").session_title("Tidy").watch_paths(["a"]).reload_skills()
        => r#"{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"noon","initialUserMessage":"hello","sessionTitle":"Tidy","watchPaths":["a"],"reloadSkills":true}}"#
    SessionEnd(SessionEndInput) ["reason"]
        HookResponse::new().suppress_output()
        => r#"{"suppressOutput":true}"#
    Setup(SetupInput) ["trigger"]
        HookResponse::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"Setup","additionalContext":"noon"}}"#
    PreCompact(PreCompactInput) ["trigger custom_instructions"]
        HookResponse::block("no")
        => r#"{"decision":"block","reason":"no"}"#
    PostCompact(PostCompactInput) ["trigger compact_summary"]
        HookResponse::new()
        => "{}"
    PreModelSwitch(PreModelSwitchInput) ["from_model to_model requested_model source context_tokens prompt_cache_warm cache_ttl estimated_cache_write_usd pricing"]
        HookResponse::ask("odd").stop("enough")
        => r#"{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"enough"}}"#
    PostModelSwitch(PostModelSwitchInput) ["from_model to_model requested_model source context_tokens prompt_cache_warm cache_ttl estimated_cache_write_usd pricing"]
        HookResponse::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"PostModelSwitch","additionalContext":"noon"}}"#
    SubagentStart(SubagentStartInput) [""]
        HookResponse::new().additional_context("noon")
        => r#"{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"noon"}}"#
    SubagentStop(SubagentStopInput) ["stop_hook_active agent_transcript_path last_assistant_message background_tasks session_crons"]
        HookResponse::block("no").additional_context("noon")
        => r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"SubagentStop","additionalContext":"noon"}}"#
    TaskCreated(TaskCreatedInput) ["task_id task_subject task_description teammate_name team_name"]
        HookResponse::new().stop("enough")
        => r#"{"continue":false,"stopReason":"enough"}"#
    TaskCompleted(TaskCompletedInput) ["task_id task_subject task_description teammate_name team_name"]
        HookResponse::run_async(Duration::from_secs(1))
        => r#"{"async":true,"asyncTimeout":1000}"#
    TeammateIdle(TeammateIdleInput) ["teammate_name team_name"]
        HookResponse::new()
        => "{}"
    ConfigChange(ConfigChangeInput) ["source file_path"]
        HookResponse::block("no")
        => r#"{"decision":"block","reason":"no"}"#
    InstructionsLoaded(InstructionsLoadedInput) ["file_path memory_type load_reason globs trigger_file_path parent_file_path"]
        HookResponse::new()
        => "{}"
    CwdChanged(CwdChangedInput) ["old_cwd new_cwd"]
        HookResponse::new().watch_paths(["a", "b"])
        => r#"{"hookSpecificOutput":{"hookEventName":"CwdChanged","watchPaths":["a","b"]}}"#
    FileChanged(FileChangedInput) ["file_path event"]
        HookResponse::new().watch_paths(Vec::<String>::new())
        => r#"{"hookSpecificOutput":{"hookEventName":"FileChanged","watchPaths":[]}}"#
    DirectoryAdded(DirectoryAddedInput) ["directory source"]
        HookResponse::new()
        => "{}"
    WorktreeCreate(WorktreeCreateInput) ["name"]
        HookResponse::new().worktree_path("side")
        => r#"{"hookSpecificOutput":{"hookEventName":"WorktreeCreate","worktreePath":"side"}}"#
    WorktreeRemove(WorktreeRemoveInput) ["worktree_path"]
        HookResponse::new()
        => "{}"
}

fn object() -> Json {
    Json::from(&Extra::default())
}

#[test]
fn what_else_can_be_said_about_a_model_and_a_question() {
    let model = |response: HookResponse<PreModelSwitchInput>| text(response);
    assert!(model(HookResponse::allow()).contains(r#""permissionDecision":"allow""#));
    let question = |response: HookResponse<ElicitationInput>| text(response);
    assert!(question(HookResponse::decline()).contains(r#""action":"decline""#));
    assert!(question(HookResponse::cancel()).contains(r#""action":"cancel""#));
}

fn text<E: HookEvent>(response: HookResponse<E>) -> String {
    response.encode(E::NAME).unwrap().json.text().to_owned()
}
