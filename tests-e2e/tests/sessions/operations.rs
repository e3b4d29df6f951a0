//! Every operation on the wire: its request, and that its response is typed.

use std::time::Duration;

use claude_agent_kit::{ErrorKind, Options, PermissionMode, Session};
use claude_wire::control::{
    BackgroundTasks, FileSuggestions, GetBinaryVersion, GetContextUsage, GetHooksListing,
    GetSessionCost, GetUsage, HostRequest, ListModels, ListPermissionRules, McpCall, ReadFile,
    RegisterRepoRoot, ReloadOutputStyles, ReloadPlugins, SeedReadState, SetColor,
    SetHasSubscribers, SetMaxThinkingTokens, SettingsFile, UpdateSettings,
};
use serde_json::{Value, json};

use crate::fake_cli::{self, FakeCli};
use crate::support::{in_time, run};

/// Returns an object with these fields, all empty.
fn fields(names: &str) -> Value {
    Value::Object(names.split_whitespace().map(|name| (name.to_owned(), Value::Null)).collect())
}

/// Returns an object with these empty fields and with the fields of `more`.
fn fields_with(names: &str, more: Value) -> Value {
    let mut object = fields(names);
    let Value::Object(more) = more else { panic!("no object") };
    object.as_object_mut().unwrap().extend(more);
    object
}

/// Reads the next request, and responds with `response` and an unknown field.
async fn respond_once(cli: &mut FakeCli, mut response: Value) -> Value {
    response["novel"] = json!(1);
    let line = cli.read_line().await;
    cli.respond(&line, response).await;
    line["request"].clone()
}

/// Returns a session whose CLI has these capabilities.
async fn connect_with_capabilities(capabilities: &[&str]) -> (Session, FakeCli) {
    let (session, mut cli) = fake_cli::open(Options::new().file_checkpointing(true)).await;
    let request = cli.expect_request("initialize").await;
    let response = json!({"capabilities": capabilities, "claude_code_version": "9.9.9",
                        "commands": [{"name": "wave"}], "models": [{"value": "opus"}],
                        "agents": [{"name": "general"}], "account": {"email": "a@b"}});
    cli.respond(&request, response).await;
    in_time(session.ready()).await.unwrap();
    (session, cli)
}

const CAPABILITIES: &[&str] = &[
    "mcp_call_check_permissions_v1",
    "mcp_call_result_not_for_model_v1",
    "reload_plugins_refuse_if_busy_v1",
];

/// Checks one operation per line: the call, its request, and a response with every published field.
/// Only the unknown field may be left untyped; an operation that is only acknowledged returns
/// nothing.
macro_rules! operations {
    ($session:ident, $cli:ident, $sent:ident; $( $method:ident($($argument:expr),*)
        asks { $($request:tt)* } $(gets $response:expr)?; )+) => {$(
        let response = operations!(@response $($response)?);
        let (given, request) =
            tokio::join!($session.$method($($argument),*), respond_once($cli, response));
        let given = format!("{:?}", given.unwrap());
        assert_eq!(request, json!({ $($request)* }), stringify!($method));
        let unnamed = given.matches("Extra(Some(").count();
        let expected = operations!(@unnamed $($response)?);
        assert_eq!(unnamed, expected, "{}: {given}", stringify!($method));
        $sent.push(request["subtype"].as_str().unwrap().to_owned());
    )+};
    (@response) => { json!({}) };
    (@response $response:expr) => { $response };
    (@unnamed) => { 0 };
    (@unnamed $response:expr) => { 1 };
}

fn call() -> McpCall {
    let mut call = McpCall::new("ext", "add").argument("a", 2).timeout(Duration::from_secs(1));
    call.check_permissions = Some(true);
    call.result_not_for_model = Some(true);
    call
}

/// Returns a request with some fields set.
fn request_with<R: Default>(set: impl FnOnce(&mut R)) -> R {
    let mut request = R::default();
    set(&mut request);
    request
}

fn update(file: SettingsFile, settings: Value) -> UpdateSettings {
    request_with(|update: &mut UpdateSettings| {
        (update.source, update.settings) = (Some(file), settings.into());
    })
}

fn reload() -> ReloadPlugins {
    let mut reload = ReloadPlugins::default();
    reload.hold_on_cache_impact = Some(true);
    reload.refuse_if_busy = Some(true);
    reload
}

fn bytes() -> ReadFile {
    let mut file = ReadFile::from("notes.txt");
    file.max_bytes = Some(2_u64.into());
    file.encoding = Some("base64".to_owned());
    file
}

#[test]
fn every_operation_has_a_request_and_a_typed_response() {
    run(async {
        let (session, mut cli) = connect_with_capabilities(CAPABILITIES).await;
        let mut sent = vec!["initialize".to_owned(), "mcp_message".to_owned()];
        steering(&session, &mut cli, &mut sent).await;
        servers(&session, &mut cli, &mut sent).await;
        files_and_settings(&session, &mut cli, &mut sent).await;
        information(&session, &mut cli, &mut sent).await;
        for subtype in HostRequest::KNOWN {
            assert!(sent.iter().any(|other| other == subtype), "no operation sends `{subtype}`");
        }
        session.stop().await.unwrap();
    });
}

async fn steering(session: &Session, cli: &mut FakeCli, sent: &mut Vec<String>) {
    operations! { session, cli, sent;
        interrupt() asks {"subtype": "interrupt"} gets fields("still_queued cancelled");
        interrupt_all() asks {"subtype": "interrupt", "cancel_queued": true}
            gets json!({"still_queued": ["a"], "cancelled": ["b"]});
        set_permission_mode(PermissionMode::Plan)
            asks {"subtype": "set_permission_mode", "mode": "plan"} gets json!({"mode": "plan"});
        set_model("opus") asks {"subtype": "set_model", "model": "opus"}
            gets json!({"model": "claude-opus"});
        reset_model() asks {"subtype": "set_model", "model": null} gets json!({});
        set_max_thinking_tokens(Some(2000))
            asks {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 2000};
        set_max_thinking_tokens(None)
            asks {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null};
        request(request_with(|thinking: &mut SetMaxThinkingTokens| {
            thinking.thinking_display = Some("omitted".to_owned());
        }))
            asks {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": null,
                  "thinking_display": "omitted"};
        cancel_message("u-1") asks {"subtype": "cancel_async_message", "message_uuid": "u-1"}
            gets json!({"cancelled": true});
        stop_task("t-1") asks {"subtype": "stop_task", "task_id": "t-1"};
        background_tasks() asks {"subtype": "background_tasks"} gets json!({});
        request(request_with(|one: &mut BackgroundTasks| one.tool_use_id = Some("toolu_1".into())))
            asks {"subtype": "background_tasks", "tool_use_id": "toolu_1"}
            gets json!({"backgrounded": false});
        task_output("t-1") asks {"subtype": "get_task_output", "task_id": "t-1"}
            gets json!({"output": "hi", "total_bytes": 2, "truncated": false});
        request(SetHasSubscribers::default())
            asks {"subtype": "set_has_subscribers", "has_subscribers": null};
    }
}

async fn servers(session: &Session, cli: &mut FakeCli, sent: &mut Vec<String>) {
    let tool = json!({"name": "add", "description": "Adds", "_meta": {},
                      "annotations": fields("readOnly destructive openWorld")});
    let server = fields_with(
        "serverInfo error config transport scope source",
        json!({"name": "ext", "status": "connected", "tools": [tool]}),
    );
    let mcp = session.mcp();
    operations! { mcp, cli, sent;
        status() asks {"subtype": "mcp_status"} gets json!({"mcpServers": [server]});
        reconnect("ext") asks {"subtype": "mcp_reconnect", "serverName": "ext"};
        enable("ext") asks {"subtype": "mcp_toggle", "serverName": "ext", "enabled": true};
        disable("ext")
            asks {"subtype": "mcp_toggle", "serverName": "ext", "enabled": false};
        set_servers(json!({"a": {"command": "b"}}))
            asks {"subtype": "mcp_set_servers", "servers": {"a": {"command": "b"}}}
            gets json!({"added": ["a"], "removed": [], "errors": {"b": "no"}});
        set_permission_mode("ext", PermissionMode::Auto)
            asks {"subtype": "set_mcp_permission_mode_override", "serverName": "ext",
                  "mode": "auto"}
            gets json!({"warning": "odd"});
        reset_permission_mode("ext")
            asks {"subtype": "set_mcp_permission_mode_override", "serverName": "ext",
                  "mode": null}
            gets json!({});
        read_resource("ext", "ui://page")
            asks {"subtype": "mcp_read_resource", "serverName": "ext", "uri": "ui://page"}
            gets json!({"contents": [fields("uri mimeType text blob _meta")]});
        call(call())
            asks {"subtype": "mcp_call", "tool": "mcp__ext__add", "arguments": {"a": 2},
                  "timeout_ms": 1000, "result_not_for_model": true, "check_permissions": true}
            gets json!({"content": "5", "structuredContent": {}, "_meta": {}, "staging": {}});
    }
}

async fn files_and_settings(session: &Session, cli: &mut FakeCli, sent: &mut Vec<String>) {
    let hook = fields(
        "event matcher source sourceLabel pluginName type displayText commandText contentLabel \
         condition timeout statusMessage runsOnce runsInBackground disabled editable",
    );
    let policy = fields(
        "disabledByPolicy managedOnly pluginOnly allDisabled policyHookCount policyUnreadable",
    );
    let event = fields("name summary supportsMatcher hookCount");
    let rule = fields("behavior source rule description editability notInEffect");
    operations! { session, cli, sent;
        rewind_files("u-1") asks {"subtype": "rewind_files", "user_message_id": "u-1"}
            gets json!({"canRewind": true});
        preview_rewind("u-1")
            asks {"subtype": "rewind_files", "user_message_id": "u-1", "dry_run": true}
            gets fields("canRewind error filesChanged insertions deletions skippedLinks");
        read_file("notes.txt") asks {"subtype": "read_file", "path": "notes.txt"}
            gets fields("contents absPath truncated encoding lossy requested_path");
        read_file(bytes())
            asks {"subtype": "read_file", "path": "notes.txt", "max_bytes": 2,
                  "encoding": "base64"}
            gets json!({"contents": "b24="});
        request(FileSuggestions::from("no")) asks {"subtype": "file_suggestions", "query": "no"}
            gets json!({"suggestions": [{"path": "notes.txt", "score": 0.5}], "cwd": "/"});
        request(seed()) asks {"subtype": "seed_read_state", "path": "notes.txt", "mtime": 1};
        request(RegisterRepoRoot::from("/library"))
            asks {"subtype": "register_repo_root", "directory": "/library"}
            gets json!({"directory": "/library"});
        apply_flag_settings(json!({"effortLevel": null}))
            asks {"subtype": "apply_flag_settings", "settings": {"effortLevel": null}};
        request(update(SettingsFile::Local, json!({"outputStyle": "x"})))
            asks {"subtype": "update_settings", "source": "localSettings",
                  "settings": {"outputStyle": "x"}};
        settings() asks {"subtype": "get_settings"}
            gets json!({"effective": {}, "sources": [fields("source settings")],
                        "applied": fields("model effort advisor ultracode"),
                        "errors": [], "withheld": null});
        request(GetHooksListing::default()) asks {"subtype": "get_hooks_listing"}
            gets json!({"events": [event], "hooks": [hook], "eventCatalog": [event],
                        "policy": policy, "safeMode": {}, "bareMode": {}, "errors": []});
        request(ListPermissionRules::default()) asks {"subtype": "list_permission_rules"}
            gets json!({"state": fields_with("originalCwd managedOnly errors withheld",
                json!({"rules": [rule], "workspaceDirectories": [fields("path source")]}))});
        reload_plugins(reload())
            asks {"subtype": "reload_plugins", "hold_on_cache_impact": true,
                  "refuse_if_busy": true}
            gets json!({"commands": [], "agents": [], "mcpServers": [], "error_count": 0,
                "plugins": [fields("name path source version")], "held": true,
                "cache_impact": fields("mcp_servers_added mcp_servers_removed lsp_tool_change")});
        reload_skills() asks {"subtype": "reload_skills"} gets json!({"skills": []});
        request(ReloadOutputStyles::default()) asks {"subtype": "reload_output_styles"}
            gets json!({"available_output_styles": ["default"]});
    }
    let user = update(SettingsFile::User, json!({}));
    let (given, request) = tokio::join!(session.request(user), respond_once(cli, json!({})));
    given.unwrap();
    assert_eq!(request["source"], "userSettings");
}

fn seed() -> SeedReadState {
    let mut seed = SeedReadState::default();
    seed.path = "notes.txt".into();
    seed.mtime = Some(1_u64.into());
    seed
}

async fn information(session: &Session, cli: &mut FakeCli, sent: &mut Vec<String>) {
    let window = fields("utilization resets_at");
    let limits = json!({"five_hour": window, "seven_day": window, "seven_day_oauth_apps": window,
        "seven_day_opus": window, "seven_day_sonnet": window,
        "model_scoped": [fields("display_name utilization resets_at")],
        "extra_usage": fields("is_enabled monthly_limit used_credits utilization currency")});
    let period = fields_with(
        "request_count session_count recommendations fix agents skills plugins \
         mcp_servers",
        json!({"behaviors": [fields("key pct count")]}),
    );
    let session_usage = fields(
        "total_cost_usd total_api_duration_ms total_duration_ms \
         total_lines_added total_lines_removed model_usage",
    );
    operations! { session, cli, sent;
        reinitialize() asks {"subtype": "initialize"} gets fields("commands capabilities");
        context_usage() asks {"subtype": "get_context_usage"} gets context();
        request(request_with(|usage: &mut GetContextUsage| usage.detail = Some("full".to_owned())))
            asks {"subtype": "get_context_usage", "detail": "full"}
            gets json!({});
        request(request_with(|usage: &mut GetUsage| usage.skip_behaviors = Some(true)))
            asks {"subtype": "get_usage", "skip_behaviors": true}
            gets json!({"session": session_usage, "subscription_type": null,
                "rate_limits_available": true, "rate_limits": limits,
                "behaviors": {"day": period, "week": period}});
        request(GetSessionCost::default()) asks {"subtype": "get_session_cost"} gets json!({"text": "little"});
        request(ListModels::default()) asks {"subtype": "list_models"} gets json!({"models": []});
        request(GetBinaryVersion::default()) asks {"subtype": "get_binary_version"}
            gets json!({"version": "1", "buildTime": "x"});
        rename("Tidy") asks {"subtype": "rename_session", "title": "Tidy"};
        request(SetColor::from("blue")) asks {"subtype": "set_color", "color": "blue"};
    }
}

/// Returns a context usage with every published field.
fn context() -> Value {
    let tool = fields("name serverName tokens isLoaded");
    let skill = fields("name source pluginName pluginId path tokens");
    let messages = fields(
        "toolCallTokens toolResultTokens attachmentTokens assistantMessageTokens userMessageTokens \
         redirectedContextTokens unattributedTokens toolCallsByType attachmentsByType",
    );
    fields_with(
        "totalTokens maxTokens rawMaxTokens percentage gridRows model autoCompactThreshold \
          isAutoCompactEnabled systemPromptSections systemTools autocompactSource",
        json!({
            "categories": [fields("id name tokens color isDeferred kind")],
            "memoryFiles": [fields("path type tokens")],
            "mcpTools": [tool], "mcpInstructions": [tool], "deferredBuiltinTools": [tool],
            "agents": [fields("agentType source pluginId path tokens")],
            "slashCommands": fields("totalCommands includedCommands tokens"),
            "skills": {"totalSkills": 1, "includedSkills": 1, "tokens": 1,
                       "skillFrontmatter": [skill]},
            "messageBreakdown": messages,
            "apiUsage": fields("input_tokens output_tokens cache_creation_input_tokens \
                                cache_read_input_tokens"),
        }),
    )
}

#[test]
fn server_info_contains_the_handshake_response() {
    run(async {
        let (session, _cli) = connect_with_capabilities(&["one_v1"]).await;
        let info = session.server_info().unwrap();
        assert_eq!(info.capabilities[..], ["one_v1"]);
        assert_eq!(info.commands[0].name.as_deref(), Some("wave"));
        assert_eq!(info.models[0].value.as_deref(), Some("opus"));
        assert_eq!(info.agents[0].name.as_deref(), Some("general"));
        assert_eq!(info.account.unwrap().email.as_deref(), Some("a@b"));
        let (early, _cli) = fake_cli::open(Options::new()).await;
        assert!(early.server_info().is_none());
    });
}

/// A CLI that does not know the fields would call the tool without checking permissions.
#[test]
fn operation_that_needs_a_missing_capability_is_not_sent() {
    run(async {
        let (session, mut cli) = connect_with_capabilities(&[]).await;
        let error = session.mcp().call(call()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.operation(), Some("mcp_call"));
        assert!(error.to_string().contains("mcp_call_check_permissions_v1"), "{error}");
        assert!(error.hint().unwrap().contains("9.9.9"), "{error}");
        let error = session.reload_plugins(reload()).await.unwrap_err();
        assert!(error.to_string().contains("reload_plugins_refuse_if_busy_v1"), "{error}");
        // Nothing was written.
        let (given, request) = tokio::join!(
            session.reload_plugins(ReloadPlugins::default()),
            respond_once(&mut cli, json!({}))
        );
        given.unwrap();
        assert_eq!(request, json!({"subtype": "reload_plugins"}));
    });
}
