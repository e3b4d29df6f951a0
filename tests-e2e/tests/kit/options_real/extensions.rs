//! Options that extend the CLI: agents, skills, plugins and tools.

use std::path::PathBuf;

use claude_agent_kit::settings::{PluginDelivery, PreviewFormat};
use claude_agent_kit::{
    AgentDefinition, Answers, ErrorKind, Include, Options, Plugin, Session, Skills,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use super::{Row, RunOutput, contains_name, run_rows, write};
use crate::support::{FakeProgram, hello, in_time, real, run};

fn reviewer() -> AgentDefinition {
    AgentDefinition::new("Finds the marked mistakes", "You are the marked reviewer.")
        .tools(["Read"])
        .model("claude-haiku-4-5")
}

fn skill(directory: &std::path::Path, name: &str) {
    let text = format!("---\nname: {name}\ndescription: The {name} of tests\n---\nDo it.\n");
    write(directory, &format!("skills/{name}/SKILL.md"), &text);
}

/// Creates a plugin with a skill.
fn plugin(harness: &Harness, name: &str) -> PathBuf {
    let directory = harness.root().join(name);
    let manifest = json!({"name": name, "version": "1.0.0", "description": "For tests"});
    write(&directory, ".claude-plugin/plugin.json", &manifest.to_string());
    skill(&directory, "plugged");
    directory
}

#[test]
fn agents_are_offered_and_use_their_own_prompt() {
    run_rows([
        Row::new(
            "agents",
            |_, options| options.agents([("reviewer", reviewer())]),
            |output| {
                output.assert_success();
                assert!(contains_name(&output.init()["agents"], "reviewer"), "{}", output.init());
                assert!(output.body().contains("Finds the marked mistakes"), "not offered");
            },
        ),
        Row::new(
            "agents in print mode",
            |_, options| options.agents([("reviewer", reviewer())]).print_mode(true),
            |output| {
                output.assert_success();
                assert!(contains_name(&output.init()["agents"], "reviewer"), "{}", output.init());
            },
        ),
        Row::new(
            "agent",
            |_, options| options.agents([("reviewer", reviewer())]).agent("reviewer"),
            |output| {
                output.assert_success();
                let system = output.request().system_text();
                assert!(system.contains("You are the marked reviewer."), "{system}");
            },
        ),
        Row::new(
            "include: agents, per_task_stop_affordance",
            |_, options| {
                options
                    .agents([("reviewer", reviewer())])
                    .include(Include::SUBAGENT_TEXT | Include::AGENT_PROGRESS_SUMMARIES)
                    .per_task_stop_affordance(true)
            },
            |output| {
                output.assert_success();
                // The answer is also in the tool result, so only the agent's own message counts.
                let own = output.messages().lines().any(|line| {
                    let message: Value = serde_json::from_str(line).unwrap();
                    message["type"] == "assistant"
                        && message["parent_tool_use_id"].is_string()
                        && line.contains("The words of the agent.")
                });
                assert!(own, "{}", output.messages());
            },
        )
        .script(|| {
            let task = json!({
                "subagent_type": "reviewer",
                "description": "Look",
                "prompt": "look at it",
                "run_in_background": false,
            });
            Script::new()
                .when("look at it", [Reply::text("The words of the agent.")])
                .otherwise([Reply::tool("Agent", task), Reply::text("Done.")])
        }),
    ]);
}

#[test]
fn only_named_skills_are_offered_and_allowed() {
    fn both(harness: &Harness) {
        let project = harness.project().join(".claude");
        skill(&project, "wanted");
        skill(&project, "unwanted");
    }
    run_rows([
        Row::new(
            "skills by name",
            |harness, options| {
                both(harness);
                options.skills(["wanted"])
            },
            |output| {
                output.assert_success();
                // The `init` message lists all skills; the model is offered one.
                assert!(contains_name(&output.init()["skills"], "unwanted"), "{}", output.init());
                assert!(output.body().contains("The wanted of tests"));
                assert!(!output.body().contains("The unwanted of tests"));
            },
        ),
        Row::new(
            "all skills",
            |harness, options| {
                both(harness);
                options.skills(Skills::All)
            },
            |output| {
                output.assert_success();
                assert!(contains_name(&output.init()["skills"], "unwanted"), "{}", output.init());
                // The skill runs; a harmless one such as this would run without the option too.
                let results = output.harness.api().requests().last().unwrap().tool_results();
                assert!(results[0]["is_error"] != true, "{results:?}");
            },
        )
        .script(|| {
            let use_it = Reply::tool("Skill", json!({"skill": "wanted"}));
            // The CLI sends the text of the skill as a separate prompt.
            Script::new()
                .when("hello", [use_it])
                .when("Base directory for this skill", [Reply::text("Done.")])
        }),
    ]);
}

#[test]
fn plugins_load_from_the_command_line_and_the_handshake() {
    fn is_loaded(output: &RunOutput) {
        output.assert_success();
        assert!(contains_name(&output.init()["plugins"], "marked"), "{}", output.init());
        assert!(contains_name(&output.init()["skills"], "marked:plugged"), "{}", output.init());
    }
    run_rows([
        Row::new(
            "plugins",
            |harness, options| options.plugins([plugin(harness, "marked")]),
            is_loaded,
        ),
        Row::new(
            "plugins without MCP",
            |harness, options| {
                options.plugins([Plugin::new(plugin(harness, "marked")).without_mcp()])
            },
            is_loaded,
        ),
        Row::new(
            "plugin_delivery",
            |harness, options| {
                options
                    .plugins([plugin(harness, "marked")])
                    .plugin_delivery(PluginDelivery::Handshake)
            },
            is_loaded,
        ),
    ]);
}

#[test]
fn handshake_reports_agents_and_plugins() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let options: Options = harness
            .options()
            .agents([("reviewer", reviewer())])
            .plugins([plugin(&harness, "marked")])
            .plugin_delivery(PluginDelivery::Handshake);
        let session = Session::start(options).await.unwrap();
        let info = session.server_info().unwrap();
        assert!(info.agents.iter().any(|agent| agent.name.as_deref() == Some("reviewer")));
        assert_eq!(info.plugins_applied, Some(true));
        session.stop().await.unwrap();
    });
}

/// Returns the servers of a session whose plugin has an MCP server.
async fn servers_with(without_mcp: bool) -> Vec<String> {
    let harness = Harness::real(hello(), real()).await.unwrap();
    let directory = plugin(&harness, "marked");
    let servers = json!({"mcpServers": {"out": {"command": "/does/not/exist"}}});
    write(&directory, ".mcp.json", &servers.to_string());
    let plugin = Plugin::new(directory);
    let plugin = if without_mcp { plugin.without_mcp() } else { plugin };
    // A server that is always there; when it is listed, the CLI has loaded its servers.
    let other = json!({"command": "/does/not/exist/either"});
    let options = harness.options().plugins([plugin]).mcp("other", other);
    let session = in_time(Session::start(options)).await.unwrap();
    let sent = session.send("hello").await.unwrap();
    in_time(sent.finish()).await.unwrap();
    let names = async || {
        let servers = in_time(session.mcp().status()).await.unwrap().mcp_servers;
        servers.into_iter().filter_map(|server| server.name).collect::<Vec<_>>()
    };
    let mut known = names().await;
    let expected = if without_mcp { 1 } else { 2 };
    in_time(async {
        while known.len() < expected {
            tokio::task::yield_now().await;
            known = names().await;
        }
    })
    .await;
    session.stop().await.unwrap();
    known.retain(|name| name != "other");
    known
}

#[test]
fn plugin_servers_can_be_excluded() {
    run(async {
        assert_eq!(servers_with(false).await, ["plugin:marked:out"]);
        assert!(servers_with(true).await.is_empty());
    });
}

#[test]
fn plugins_that_fail_to_load_are_reported_at_startup() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        // A CLI that does not wait for the handshake before it loads its plugins.
        let hasty = FakeProgram::bare(&format!(
            "#!/bin/sh\nfor argument do\nshift\n[ \"$argument\" = --await-initialize ] || \
             set -- \"$@\" \"$argument\"\ndone\nexec '{}' \"$@\"\n",
            real().path.display()
        ));
        let options =
            harness.options().cli_path(hasty.path()).plugins([plugin(&harness, "marked")]);
        let session = in_time(Session::start(options.clone())).await.unwrap();
        session.stop().await.unwrap();
        let options = options.plugin_delivery(PluginDelivery::Handshake);
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected);
        assert!(error.to_string().contains("did not load the plugins"), "{error}");
    });
}

#[test]
fn tool_aliases_and_question_previews_take_effect() {
    run_rows([
        Row::new(
            "tool_aliases",
            |_, options| options.tool_aliases([("Run", "Bash")]).allowed_tools(["Bash"]),
            |output| {
                output.assert_success();
                assert!(output.harness.project().join("made").exists());
            },
        )
        .script(|| {
            let input = json!({"command": "touch made", "description": "Makes it"});
            Script::new().otherwise([Reply::tool("Run", input), Reply::text("Done.")])
        }),
        Row::new(
            "question_preview",
            |_, options| {
                options
                    .question_preview(PreviewFormat::Html)
                    .env("ENABLE_TOOL_SEARCH", "false")
                    .ask_user(|_, _| async { Answers::new() })
            },
            |output| {
                output.assert_success();
                let tools = output.request().body["tools"].clone();
                let tools = tools.as_array().unwrap();
                let question = tools.iter().find(|tool| tool["name"] == "AskUserQuestion");
                assert!(question.unwrap().to_string().contains("HTML"), "{question:?}");
            },
        ),
        Row::new(
            "tools, allowed_tools, disallowed_tools, mcp_strict",
            |_, options| {
                options
                    .tools(["Read", "Bash"])
                    .allowed_tools(["Read"])
                    .disallowed_tools(["Bash"])
                    .mcp_strict(true)
            },
            |output| {
                output.assert_success();
                let tools = output.request().tool_names();
                assert!(tools.contains(&"Read".to_owned()), "{tools:?}");
                assert!(!tools.contains(&"Bash".to_owned()), "{tools:?}");
                assert!(!tools.contains(&"Write".to_owned()), "{tools:?}");
            },
        ),
    ]);
}
