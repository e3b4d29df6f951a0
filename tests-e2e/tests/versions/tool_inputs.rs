//! The types of tool inputs, compared with the schemas that each CLI sends to the API.

use std::collections::BTreeSet;

use claude_agent_kit::{Answers, Json, Permission, ToolInput};
use claude_agent_testkit::mock_api::ApiRequest;
use serde_json::{Map, Value, json};

use crate::helpers::one_turn;
use crate::on_each;
use crate::support::hello;

/// Tools without a type, with the reason.
const WITHOUT_TYPE: &[(&str, &str)] = &[
    ("CronDelete", "only removes what CronCreate scheduled in the session"),
    ("CronList", "has no input"),
    ("EnterPlanMode", "has no input"),
    ("ListAgents", "only reads; its input is not in use"),
    ("ReportFindings", "only shows findings to the user"),
    ("ScheduleWakeup", "only sends the session a prompt that it already has"),
    ("TaskCreate", "only changes the list of tasks of the session"),
    ("TaskGet", "only reads the list of tasks"),
    ("TaskList", "has no input"),
    ("TaskUpdate", "only changes the list of tasks of the session"),
];

/// Required properties that are optional in the types, with the reason.
const LENIENT: &[(&str, &str, &str)] = &[
    ("TaskOutput", "block", "the CLI has a default"),
    ("TaskOutput", "timeout", "the CLI has a default"),
];

#[test]
fn tool_input_types_match_the_schemas_of_the_cli() {
    on_each(hello, async |harness| {
        let options = harness
            .options()
            .env("ENABLE_TOOL_SEARCH", "false")
            .can_use_tool(|_, _| async { Permission::deny("nothing runs here") })
            .ask_user(|_, _| async { Answers::new() });
        one_turn(options.clone()).await;
        // Some tools are offered only if they are named.
        one_turn(options.tools(ToolInput::KNOWN.to_vec())).await;
        let requests = harness.api().requests();
        let tools = requests.iter().flat_map(|request| list(&request.body["tools"]));
        let problems: BTreeSet<_> = tools.flat_map(problems_of).collect();
        assert!(problems.is_empty(), "{problems:#?}");
        let names: Vec<_> = requests.iter().flat_map(ApiRequest::tool_names).collect();
        for name in ["Bash", "Read", "Write", "Edit", "Glob", "Grep", "WebFetch", "AskUserQuestion"]
        {
            assert!(names.iter().any(|offered| offered == name), "{name}: {names:?}");
        }
    });
}

/// Returns the differences between the schema of a tool and its type.
fn problems_of(tool: &Value) -> Vec<String> {
    let name = tool["name"].as_str().unwrap_or_default();
    // A tool that runs on the API side has no schema.
    let Some(properties) = tool["input_schema"]["properties"].as_object() else { return vec![] };
    if WITHOUT_TYPE.iter().any(|(tool, _)| *tool == name) {
        return vec![];
    }
    let required: Vec<&str> =
        list(&tool["input_schema"]["required"]).iter().filter_map(Value::as_str).collect();
    let full: Map<String, Value> =
        properties.iter().map(|(name, schema)| (name.clone(), sample(schema))).collect();
    let mut problems = Vec::new();
    match read(name, &full) {
        ToolInput::Other { .. } => {
            return vec![format!("{name}: no type for {}", tool["input_schema"])];
        }
        ToolInput::Undecodable { reason, .. } => {
            return vec![format!("{name}: {reason}: {}", json!(full))];
        }
        // Fields of nested objects count too.
        input if format!("{input:?}").contains("Extra(Some") => {
            problems.push(format!("{name}: unknown fields: {input:?}"));
        }
        _ => {}
    }
    for property in properties.keys() {
        let mut without = full.clone();
        without.remove(property);
        let decodes = !matches!(read(name, &without), ToolInput::Undecodable { .. });
        let is_required = required.contains(&property.as_str());
        let is_listed =
            LENIENT.iter().any(|(tool, field, _)| (*tool, *field) == (name, property.as_str()));
        if decodes == (is_required && !is_listed) {
            problems.push(format!("{name}.{property}: required is {is_required} in the schema"));
        }
    }
    problems
}

fn read(name: &str, input: &Map<String, Value>) -> ToolInput {
    ToolInput::new(name, &Json::from(Value::Object(input.clone())))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a value that matches a schema.
fn sample(schema: &Value) -> Value {
    if let Some(value) = schema.get("const").or_else(|| list(&schema["enum"]).first()) {
        return value.clone();
    }
    if let Some(first) = list(&schema["anyOf"]).first().or_else(|| list(&schema["oneOf"]).first()) {
        return sample(first);
    }
    let kind = schema["type"].as_str().or_else(|| list(&schema["type"]).first()?.as_str());
    match kind {
        Some("string") => json!("text"),
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, schema)| (name.clone(), sample(schema))).collect()
        }
        _ => json!({}),
    }
}
