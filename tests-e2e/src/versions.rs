//! The facts about a version of the CLI, to compare versions with each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use claude_agent_testkit::recording::{EntryKind, Recording};
use serde_json::{Value, json};

use crate::parity::flags;
use crate::real_cli::InstalledCli;
use crate::scenario::flow::{self, FLOWS};
use crate::scenario::{Backend, Failure, RealCli, probe};

/// Operations that not every supported version has.
pub const LATER_OPERATIONS: [(&str, &str); 5] = [
    ("get_hooks_listing", "{}"),
    ("get_task_output", r#"{"task_id":"nothing"}"#),
    ("list_permission_rules", "{}"),
    ("mcp_read_resource", r#"{"serverName":"nobody","uri":"ui://nothing"}"#),
    ("set_has_subscribers", r#"{"has_subscribers":true}"#),
];

/// The facts about a version: names and values.
pub type Facts = BTreeMap<String, String>;

/// Collects the facts about a released CLI, including its flags.
///
/// # Errors
///
/// Returns a failure when the CLI does not support what a flow exercises.
///
/// # Cancel safety
///
/// Dropping the future ends the running CLI.
pub async fn facts_of(cli: &InstalledCli) -> Result<Facts, Failure> {
    let mut facts = facts(Arc::new(RealCli::new(cli.clone()))).await?;
    let flags = flags::of(cli).map_err(|error| Failure::new("its help text", error.to_string()))?;
    facts.extend(flags.into_iter().map(|flag| (flag, "yes".to_owned())));
    Ok(facts)
}

/// Runs every flow and sends every newer operation, and collects the facts.
///
/// # Errors
///
/// Returns a failure when the CLI does not support what a flow exercises.
///
/// # Cancel safety
///
/// Dropping the future ends the running CLI.
pub async fn facts(backend: Arc<dyn Backend>) -> Result<Facts, Failure> {
    let mut facts = Facts::new();
    for flow in FLOWS {
        let recording = flow.record(backend.clone()).await?;
        facts.insert(format!("flow {}", flow.name), format!("`{}`", flow::reduced(&recording)));
        for name in names(&recording) {
            facts.insert(name, "yes".to_owned());
        }
        if flow.name == "resumed" && totals_are_restored(&recording) {
            facts.insert("totals restored on resume".to_owned(), "yes".to_owned());
        }
        if let Some(mode) = permission_mode(&recording) {
            facts.insert("default permission mode".to_owned(), format!("`{mode}`"));
        }
    }
    if probe::takes_mcp_servers(backend.clone()).await? {
        facts.insert("MCP servers in the handshake".to_owned(), "yes".to_owned());
    }
    for (operation, fields) in LATER_OPERATIONS {
        let fields = serde_json::from_str(fields).unwrap_or_else(|_| json!({}));
        if probe::knows_operation(backend.clone(), operation, fields).await? {
            facts.insert(format!("operation `{operation}`"), "yes".to_owned());
        }
    }
    Ok(facts)
}

/// Returns the permission mode that applies by default.
fn permission_mode(recording: &Recording) -> Option<String> {
    let init = received(recording).find(|message| message["subtype"] == "init")?;
    init["permissionMode"].as_str().map(str::to_owned)
}

/// Whether the total cost of a resumed session includes earlier turns: the first of two equal turns costs more.
fn totals_are_restored(recording: &Recording) -> bool {
    let totals: Vec<f64> =
        received(recording).filter_map(|line| line["total_cost_usd"].as_f64()).collect();
    matches!(totals[..], [first, second] if first > 1.5 * (second - first))
}

fn received(recording: &Recording) -> impl Iterator<Item = Value> {
    recording.entries.iter().filter_map(|entry| match &entry.kind {
        EntryKind::Received(line) => serde_json::from_slice(line).ok(),
        _ => None,
    })
}

/// Returns the kinds of messages, and the fields of the most important ones.
fn names(recording: &Recording) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for message in received(recording) {
        let kind = message["type"].as_str().unwrap_or("?");
        match (kind, message["subtype"].as_str()) {
            ("control_response", _) => {
                let answer = &message["response"]["response"];
                // Only the response to the handshake has commands.
                if answer["commands"].is_array() {
                    names.extend(fields("handshake", answer));
                    names.extend(fields("handshake capability", &answer["capabilities"]));
                }
            }
            ("result", _) => names.extend(fields("result", &message)),
            ("system", Some("init")) => {
                names.extend(fields("init", &message));
                names.extend(fields("init capability", &message["capabilities"]));
            }
            ("control_request", _) | ("system", None) => {}
            (kind, Some(subtype)) => {
                names.insert(format!("message `{kind}/{subtype}`"));
            }
            (kind, None) => {
                names.insert(format!("message `{kind}`"));
            }
        }
    }
    names
}

/// Returns the keys of an object, or the texts of a list.
fn fields(of: &str, value: &Value) -> Vec<String> {
    let names: Vec<&str> = match value {
        Value::Object(fields) => fields.keys().map(String::as_str).collect(),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    names.into_iter().map(|name| format!("{of} `{name}`")).collect()
}
