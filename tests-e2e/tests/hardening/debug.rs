//! `Debug` output: types that configure or describe a run hide secrets, prompts and payloads;
//! payload types show them.

use std::fmt::Debug;

use claude_agent_kit::control::McpSetServers;
use claude_agent_kit::elicitation::{DialogAnswer, ElicitationAnswer};
use claude_agent_kit::mcp::{RemoteServer, StdioServer};
use claude_agent_kit::transport::Wrapped;
use claude_agent_kit::{
    AgentDefinition, CliSettings, Item, Json, Message, Options, Permission, Prompt, Session,
    SystemPrompt, ToolError, ToolResult,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::launch::{Form, Needs, Secret, Settings, command_line};
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::support::run;

const MARK: &str = "payload-7d1f0c";

/// The name of a type, and the `Debug` output of a value that holds the mark.
type Printed = (&'static str, String);

fn of<T: Debug>(name: &'static str, value: &T) -> Printed {
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
    settings.system_prompt = Some(SystemPrompt::from(MARK));
    settings
}

fn configuration() -> Vec<Printed> {
    let form = Form::Print { prompt: MARK.to_owned() };
    let command = command_line(&settings(), &form, &Needs::default()).unwrap();
    assert!(command.arguments.iter().any(|argument| argument.contains(MARK)));
    vec![
        of("Options", &options()),
        of("Settings", &settings()),
        of("CommandLine", &command),
        of("Secret", &Secret::from(MARK)),
        of("SystemPrompt", &SystemPrompt::from(MARK)),
        of("CliSettings", &CliSettings::default().api_key_helper(MARK)),
        of("AgentDefinition", &AgentDefinition::new(MARK, MARK)),
        of("StdioServer", &StdioServer::new("false").env("X", MARK)),
        of("RemoteServer", &RemoteServer::http("http://127.0.0.1:1/").header("X", MARK)),
        of("McpSetServers", &McpSetServers::new(Json::from(json!({"a": {"env": {"X": MARK}}})))),
        of("Wrapped", &Wrapped::command("false", [format!("KEY={MARK}")])),
        of("Prompt", &Prompt::from(MARK)),
        of("ToolResult", &ToolResult::new().text(MARK)),
        of("ToolError", &ToolError::new(MARK)),
        of("ElicitationAnswer", &ElicitationAnswer::accept(json!({"a": MARK}))),
        of("DialogAnswer", &DialogAnswer::completed(json!(MARK))),
    ]
}

fn payloads() -> Vec<Printed> {
    let line = format!(r#"{{"type":"user","message":{{"role":"user","content":"{MARK}"}}}}"#);
    let message = Message::decode(line).unwrap();
    let malformed = Message::decode(MARK).unwrap_err();
    vec![
        of("Json", &Json::from(MARK)),
        of("Item", &Item::Message(message.clone())),
        of("Message", &message),
        of("Malformed", &malformed),
        of("Permission", &Permission::allow().with_input(json!({"a": MARK}))),
        of("Permission", &Permission::deny(MARK)),
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
        let mut printed = vec![of("Turn", &turn)];
        let outcome = turn.finish().await.unwrap();
        assert!(of("TurnOutcome", &outcome).1.contains(MARK));
        printed.extend([of("Session", &session), of("Messages", &messages)]);
        printed.push(of("Events", &session.events()));
        session.stop().await.unwrap();
        for (name, printed) in printed {
            assert!(!printed.contains(MARK), "{name}: {printed}");
        }
    });
}
