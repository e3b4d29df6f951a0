//! `Debug` output: types that configure or describe a run hide secrets, prompts and payloads;
//! payload types show them.

use std::fmt::Debug;

use claude_agent_kit::control::McpSetServers;
use claude_agent_kit::elicitation::{DialogResponse, ElicitationResponse};
use claude_agent_kit::mcp::{RemoteServer, StdioServer};
use claude_agent_kit::settings::CliSettings;
use claude_agent_kit::transport::Wrapped;
use claude_agent_kit::{
    AgentDefinition, Item, Json, Message, Options, Permission, Prompt, Session, SystemPrompt,
    ToolError, ToolResult,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::launch::{Form, Needs, Secret, Settings, command_line};
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::support::run;

const MARK: &str = "payload-7d1f0c";

/// The name of a type, and the `Debug` output of a value that holds the mark.
type Printed = (&'static str, String);

fn debug_output<T: Debug>(name: &'static str, value: &T) -> Printed {
    (name, format!("{value:?} {value:#?}"))
}

fn options() -> Options {
    Options::new()
        .env("ANY", MARK)
        .add_arg(("any", MARK))
        .system_prompt(MARK)
        .settings(CliSettings::default().api_key_helper(MARK))
        .mcp("mine", StdioServer::new("false").env("X", MARK))
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.env.insert("ANY".to_owned(), Secret::from(MARK));
    settings.system_prompt = Some(MARK.into());
    settings
}

fn configuration() -> Vec<Printed> {
    let form = Form::Print { prompt: MARK.to_owned() };
    let command = command_line(&settings(), &form, &Needs::default()).unwrap();
    assert!(command.arguments.iter().any(|argument| argument.contains(MARK)));
    vec![
        debug_output("Options", &options()),
        debug_output("Settings", &settings()),
        debug_output("CommandLine", &command),
        debug_output("Secret", &Secret::from(MARK)),
        debug_output("SystemPrompt", &SystemPrompt::from(MARK)),
        debug_output("CliSettings", &CliSettings::default().api_key_helper(MARK)),
        debug_output("AgentDefinition", &AgentDefinition::new(MARK, MARK)),
        debug_output("StdioServer", &StdioServer::new("false").env("X", MARK)),
        debug_output("RemoteServer", &RemoteServer::http("http://127.0.0.1:1/").header("X", MARK)),
        debug_output(
            "McpSetServers",
            &McpSetServers::new(Json::from(json!({"a": {"env": {"X": MARK}}}))),
        ),
        debug_output("Wrapped", &Wrapped::command("false", [format!("KEY={MARK}")])),
        debug_output("Prompt", &Prompt::from(MARK)),
        debug_output("ToolResult", &ToolResult::new().text(MARK)),
        debug_output("ToolError", &ToolError::new(MARK)),
        debug_output("ElicitationResponse", &ElicitationResponse::accept(json!({"a": MARK}))),
        debug_output("DialogResponse", &DialogResponse::completed(json!(MARK))),
    ]
}

fn payloads() -> Vec<Printed> {
    let line = format!(r#"{{"type":"user","message":{{"role":"user","content":"{MARK}"}}}}"#);
    let message = Message::decode(line).unwrap();
    let malformed = Message::decode(MARK).unwrap_err();
    vec![
        debug_output("Json", &Json::from(MARK)),
        debug_output("Item", &Item::Message(message.clone())),
        debug_output("Message", &message),
        debug_output("Malformed", &malformed),
        debug_output("Permission", &Permission::allow().with_input(json!({"a": MARK}))),
        debug_output("Permission", &Permission::deny(MARK)),
    ]
}

#[test]
fn debug_output_of_configuration_types_hides_secrets_and_prompts() {
    for (name, printed) in configuration() {
        assert!(!printed.contains(MARK), "{name}: {printed}");
    }
}

#[test]
fn debug_output_of_payload_types_shows_the_payload() {
    for (name, printed) in payloads() {
        assert!(printed.contains(MARK), "{name}: {printed}");
    }
}

#[test]
fn debug_output_of_handles_hides_content_and_of_outcomes_shows_it() {
    run(async {
        let script = Script::new().otherwise([Reply::text(MARK)]);
        let harness = Harness::in_memory(script).await.unwrap();
        let session = Session::start(harness.options()).await.unwrap();
        let messages = session.messages();
        let turn = session.send(MARK).await.unwrap();
        let mut printed = vec![debug_output("Turn", &turn)];
        let outcome = turn.finish().await.unwrap();
        assert!(debug_output("TurnOutcome", &outcome).1.contains(MARK));
        printed.extend([debug_output("Session", &session), debug_output("Messages", &messages)]);
        printed.push(debug_output("Events", &session.events()));
        session.stop().await.unwrap();
        for (name, printed) in printed {
            assert!(!printed.contains(MARK), "{name}: {printed}");
        }
    });
}
