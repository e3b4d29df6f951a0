//! Problems of options, configuration and tools, and warnings about options.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use claude_wire::content::ContentBlock;
use claude_wire::launch::{Include, Skills, Thinking};
use claude_wire::settings::{McpDelivery, Sandbox, ThinkingDisplay};
use serde_json::json;

use super::Messages;
use crate::hook::{PreToolUse, SessionStart};
use crate::options::prepare::user_problem;
use crate::options::{mcp_delivery, prepare};
use crate::store::{MemoryStore, StoreOptions};
use crate::transport::InMemory;
use crate::{
    AgentDefinition, CliVersion, Conversation, Json, Limits, NoArguments, Options, Permission,
    Prompt, Tool, ToolServer,
};

pub(super) fn add(messages: &mut Messages) {
    messages.section("Problems of options");
    let several = Options::new().max_turns(0).limits(Limits::new().max_line_bytes(0));
    let error = prepare(&several, Some(&Prompt::from("hello"))).err().unwrap();
    messages.error(&error);
    host_options(messages);
    prompts(messages);
    wire_options(messages);
    print_mode(messages);
    servers(messages);
    messages.section("Problems of configuration");
    configuration(messages);
    messages.section("Warnings about options");
    warnings(messages);
}

/// Adds the problems of options with a prompt.
fn problems_with(messages: &mut Messages, options: &Options, prompt: Option<&Prompt>) {
    let error = prepare(options, prompt).err().expect("invalid options");
    for problem in error.problems() {
        messages.line("problem", &problem.to_string());
    }
}

fn problems(messages: &mut Messages, options: &Options) {
    problems_with(messages, options, Some(&Prompt::from("hello")));
}

fn host_options(messages: &mut Messages) {
    let limits = Limits::new();
    for options in vec![
        Options::isolated(""),
        Options::isolated(not_unicode()),
        Options::new().limits(limits.max_line_bytes(1000)),
        Options::new().limits(limits.pending_operations(0)),
        Options::new().limits(limits.running_callbacks(0)),
        Options::new().limits(limits.running_mcp_messages(0)),
        Options::new().limits(limits.backlog_soft_bytes(2).backlog_hard_bytes(1)),
        Options::new().executable(["node", "--a\0b"]),
        Options::new().store(StoreOptions::new("", MemoryStore::new())),
        Options::new()
            .store(StoreOptions::new("tenant", MemoryStore::new()))
            .conversation(Conversation::new().ephemeral()),
        Options::new()
            .store(StoreOptions::new("tenant", MemoryStore::new()))
            .user("nobody")
            .conversation(Conversation::latest()),
        Options::new().on_user_dialog([""; 0], |_, _| async {
            crate::elicitation::DialogResponse::cancelled()
        }),
        Options::new().sandbox(Sandbox::default()).settings(Path::new("/missing.json")),
        Options::new().on(PreToolUse.matching("Bash("), |_, _| async {}),
        Options::new().on(PreToolUse.matching("Bash(git:*)"), |_, _| async {}),
        Options::new().on(SessionStart.fail_closed(), |_, _| async {}),
    ] {
        problems(messages, &options);
    }
    let problem = user_problem(&Options::new().user("agent").host, false).unwrap();
    messages.line("problem", &problem.to_string());
}

fn not_unicode() -> &'static Path {
    Path::new(std::ffi::OsStr::from_bytes(b"/srv/\xff"))
}

fn prompts(messages: &mut Messages) {
    let print = Options::new().print_mode(true);
    problems_with(messages, &Options::new(), Some(&Prompt::from(" ")));
    problems_with(messages, &Options::new(), Some(&Prompt::from("hello").with_id("")));
    problems_with(messages, &print, Some(&Prompt::from(vec![ContentBlock::text("x")])));
    problems_with(messages, &print, Some(&Prompt::from("x".repeat(200_000))));
    problems_with(messages, &print, None);
}

fn wire_options(messages: &mut Messages) {
    let text = || Json::from("text");
    let long = "x".repeat(200_000);
    for options in vec![
        Options::new().max_turns(0),
        Options::new().max_budget_usd(-1.0),
        Options::new().task_budget(0),
        Options::new().thinking(Thinking::budget(0)),
        Options::new().thinking(Thinking::disabled().display(ThinkingDisplay::from("omitted"))),
        Options::new().env("A=B", "x"),
        Options::new().env("A", "x\0"),
        Options::new().add_arg("a b"),
        Options::new().add_arg(("a", "x\0")),
        Options::new().agents([("", AgentDefinition::new("d", "p"))]),
        Options::new().agents([("a", AgentDefinition::new("", "p"))]),
        Options::new().skills(Skills::Only(vec![" a".into(), "a(".into(), "*".into()])),
        Options::new().skills(Skills::Only(vec!["/a".into(), "a\\".into()])),
        Options::new().tool_aliases([("", "Bash")]),
        Options::new().mcp("a", text()),
        Options::new().mcp("x".repeat(121), Json::from(json!({}))),
        Options::new().mcp("__proto__", Json::from(json!({}))),
        Options::new().output_schema(text()),
        Options::new().settings(text()),
        Options::new().managed_settings(text()),
        Options::new().model("same").fallback_model("same"),
        Options::new().model(""),
        Options::new().model("a\0"),
        Options::new().cwd("/a\0"),
        Options::new().add_dir(""),
        Options::new().add_dir("/a\0"),
        Options::new().add_dir(not_unicode()),
        Options::new().allowed_tools(["", "Read, Write"]),
        Options::new().permission_prompt_tool("mcp__a__b").can_use_tool(allow),
        Options::new().conversation(Conversation::with_id("1")),
        Options::new().conversation(Conversation::resume("")),
        Options::new().conversation(Conversation::resume("r").fork_id("i")),
        Options::new().conversation(Conversation::latest().at("m")),
        Options::new().conversation(Conversation::resume_or_start("r").at("m")),
        Options::new().conversation(Conversation::resume("r").dropping_turn("p")),
        Options::new().add_arg(("name", long.as_str())),
        Options::new()
            .mcp("a", Json::from(json!({"x": long.as_str()})))
            .mcp_delivery(McpDelivery::Arguments),
        Options::new().env("A", long.as_str()),
    ] {
        problems(messages, &options);
    }
}

async fn allow(_: crate::ToolRequest, _: crate::CallbackContext) -> Permission {
    Permission::allow()
}

fn print_mode(messages: &mut Messages) {
    let print = Options::new().print_mode(true);
    problems(messages, &print.clone().can_use_tool(allow));
    problems(messages, &print.clone().verbatim_prompts(true));
    problems(messages, &print.clone().include(Include::AGENT_PROGRESS_SUMMARIES));
}

fn servers(messages: &mut Messages) {
    let nothing = |_: NoArguments| async { Ok(()) };
    let list = |_: Vec<i64>| async { Ok(()) };
    let output = Tool::new("t", "", nothing).returns::<Vec<i64>>();
    let options = Options::new()
        .mcp("has space", ToolServer::new())
        .mcp("twice", ToolServer::new().tool("a", "", nothing).tool("a", "", nothing))
        .mcp("list", ToolServer::new().tool("l", "", list))
        .mcp("output", ToolServer::new().add(output))
        .mcp("tool", ToolServer::new().tool("has space", "", nothing))
        .mcp("y".repeat(64), ToolServer::new().tool("z".repeat(58), "", nothing))
        .mcp("__proto__", ToolServer::new())
        .mcp("ide", ToolServer::new().tool("lint", "", nothing))
        .mcp("a", ToolServer::new().tool("b__c", "", nothing))
        .mcp("a__b", ToolServer::new().tool("c", "", nothing));
    problems(messages, &options);
    let folder = tempfile::tempdir().unwrap();
    messages.replace(folder.path(), "/srv");
    let file = folder.path().join("servers.json");
    std::fs::write(&file, r#"{"mcpServers": {"same": {"command": "c"}}}"#).unwrap();
    let options = Options::new().mcp("same", ToolServer::new()).mcp_config_files([&file]);
    let error = mcp_delivery(&options, Some(CliVersion::new(2, 1, 326))).unwrap_err();
    messages.error(&error);
    let layers = Options::layered().file_text("a.json", r#"{"mcp": {"same": {}}}"#);
    let error = layers.under(Options::new().mcp("same", ToolServer::new())).unwrap_err();
    messages.error(&error);
    let (_server, tools) = ToolServer::new().tool("a", "", nothing).changeable();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(tools.add(Tool::new("a", "", nothing))).unwrap_err();
    messages.error(&error);
}

fn configuration(messages: &mut Messages) {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for (path, text) in [
        ("agent.yaml", ""),
        ("agent.json", "{"),
        ("agent.json", "[]"),
        ("agent.json", &deep),
        ("agent.json", r#"{"model": "a", "model": "b"}"#),
        ("agent.json", r#"{"modle": "a"}"#),
        ("agent.json", r#"{"nonsense": 1}"#),
        ("agent.json", r#"{"limits": 1}"#),
        ("agent.json", r#"{"limits": {"max_line_byte": 1}}"#),
        ("agent.json", r#"{"model": 1}"#),
        ("agent.json", r#"{"max_turns": -1}"#),
        ("agent.json", r#"{"max_turns": true}"#),
        ("agent.json", r#"{"timeouts": {"idle": "1 day"}}"#),
        ("agent.json", r#"{"version_check": "maybe"}"#),
        ("agent.json", r#"{"user": {"user": 1}}"#),
        ("agent.json", r#"{"conversation": {"resume": "r", "latest": true}}"#),
        ("agent.json", r#"{"agents": {"a": {"description": 1, "prompt": "p"}}}"#),
        ("agent.json", r#"{"agents": {"reviewer": {"description": "Reviews changes"}}}"#),
        ("agent.json", r#"{"max_turns": 0, "model": "m", "fallback_model": "m"}"#),
        ("agent.toml", "model = \n"),
        ("agent.toml", "a = 99999999999999999999999999999999999999999999"),
        ("agent.toml", "[settings]\na = nan\n"),
        ("agent.toml", "[settings]\na = 30000000000000000000\n"),
    ] {
        layer(messages, Options::layered().file_text(path, text));
    }
    types(messages);
    let folder = tempfile::tempdir().unwrap();
    messages.replace(folder.path(), "/etc/agents");
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    layer(messages, Options::layered().file("/missing/agent.json"));
    std::fs::create_dir(folder.path().join("folder.json")).unwrap();
    layer(messages, Options::layered().file(folder.path().join("folder.json")));
    layer(messages, Options::layered().file(file("bytes.json", b"{\n\"a\xff\"}")));
    layer(messages, Options::layered().file(file("large.json", &vec![b' '; 2 * 1024 * 1024])));
    let list = Options::new().sandbox(Sandbox::default()).settings(file("list.json", b"[]"));
    problems(messages, &list);
    let merged = Options::layered().file_text("agent.json", r#"{"settings": "/missing.json"}"#);
    let error = merged.under(Options::new().settings(Json::from(json!({})))).unwrap_err();
    messages.error(&error);
    let bytes = std::ffi::OsString::from_vec(vec![0xff]);
    layer(messages, Options::layered().variables([("CLAUDE_MODEL", bytes)]));
    for (name, value) in
        [("CLAUDE_MAX_TURNS", "many"), ("CLAUDE_PERMISSION_MODE", "bypassPermissions")]
    {
        layer(messages, Options::layered().variables([(name, value)]));
    }
}

/// Adds the problem of a wrong type for each type.
fn types(messages: &mut Messages) {
    for option in [
        "system_prompt",
        "thinking",
        "tools",
        "agents",
        "plugins",
        "plugin_delivery",
        "wait_for_background",
        "version_check",
        "include",
        "debug",
        "mcp",
        "mcp_delivery",
        "environment",
        "extra_args",
        "settings",
        "user",
        "permission_mode",
        "permission_prompts",
        "question_preview",
        "allowed_tools",
        "add_dirs",
        "env",
    ] {
        let text = format!("{{\"{option}\": null}}");
        layer(messages, Options::layered().file_text("agent.json", text));
    }
    layer(messages, Options::layered().file_text("agent.json", r#"{"plugins": [null]}"#));
}

fn layer(messages: &mut Messages, layers: crate::options::Layers) {
    messages.error(&layers.load().expect_err("an invalid layer"));
}

fn warnings(messages: &mut Messages) {
    let transport = InMemory::new(|_| async { Err(std::io::Error::other("none")) });
    let server = ToolServer::new();
    let asking = || Options::new().can_use_tool(allow);
    for options in [
        Options::new().cli_path("/opt/claude").transport(transport),
        Options::new().permission_prompts("none").permission_prompt_tool("p"),
        asking().permission_mode("bypassPermissions"),
        asking().permission_prompts("none"),
        asking().allowed_tools(["Read", "Bash(*)"]),
        Options::new().mcp("a__b", server).allowed_tools(["mcp__a__b"]),
        Options::new().env("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "1 minute"),
        Options::new()
            .store(StoreOptions::new("tenant", MemoryStore::new()))
            .file_checkpointing(true),
    ] {
        let prepared = prepare(&options, None).map_err(|error| error.to_string()).unwrap();
        prepared.warnings.iter().for_each(|warning| messages.warning(warning));
    }
}
