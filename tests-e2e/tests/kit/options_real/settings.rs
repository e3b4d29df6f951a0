//! Options for settings, permissions, logs and the process.

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::settings::{
    CliSettings, DebugLog, PermissionPrompts, PermissionSettings, Sandbox,
};
use claude_agent_kit::{
    Collected, ErrorKind, Include, OsUser, Permission, PermissionMode, SettingSources, ToolServer,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde::Deserialize;
use serde_json::json;

use super::{Row, contains_name, run_rows, write};
use crate::support::{FakeProgram, HANDSHAKE, RESULT, ask, run};

fn bash() -> Script {
    let input = json!({"command": "touch made", "description": "Makes it"});
    Script::new().otherwise([Reply::tool("Bash", input), Reply::text("Done.")])
}

/// Returns the text of the result.
fn answer(collected: &Collected) -> Option<&str> {
    collected.result().and_then(|result| result.result.as_deref())
}

fn ran(seen: &super::RunOutput) -> bool {
    seen.harness.project().join("made").exists()
}

#[test]
fn cli_settings_take_effect() {
    run_rows([
        Row::new(
            "settings: output style",
            |_, options| {
                let env = [("MARK".to_owned(), "set".to_owned())];
                let settings = CliSettings::default()
                    .output_style("Explanatory")
                    .env(std::collections::BTreeMap::from(env))
                    .set("spinnerTipsEnabled", json!(false));
                options.settings(settings)
            },
            |seen| {
                seen.assert_success();
                assert_eq!(seen.init()["output_style"], "Explanatory");
                assert!(
                    seen.body().contains("# Output Style: Explanatory"),
                    "the system prompt contains the style"
                );
            },
        ),
        Row::new(
            "settings: a file, setting_sources",
            |harness, options| {
                write(harness.root(), "s.json", r#"{"outputStyle":"Explanatory"}"#);
                options
                    .settings(harness.root().join("s.json"))
                    .setting_sources(SettingSources::none())
            },
            |seen| {
                seen.assert_success();
                assert_eq!(seen.init()["output_style"], "Explanatory");
            },
        ),
        Row::new(
            "settings: permissions",
            |_, options| {
                let permissions = PermissionSettings::default().allow(["Bash(touch:*)"]);
                options.settings(CliSettings::default().permissions(permissions))
            },
            |seen| {
                seen.assert_success();
                assert!(ran(seen));
            },
        )
        .script(bash),
    ]);
}

/// The input of a permission prompt tool.
#[derive(Deserialize, JsonSchema)]
struct PromptInput {}

#[test]
fn permission_mode_and_prompt_tool_take_effect() {
    run_rows([
        Row::new(
            "permission_mode, allow_dangerously_skip_permissions",
            |_, options| {
                options
                    .allow_dangerously_skip_permissions(true)
                    .permission_mode(PermissionMode::BypassPermissions)
                    // Without this variable the CLI rejects the mode for root.
                    .env("IS_SANDBOX", "1")
            },
            |seen| {
                seen.assert_success();
                assert!(ran(seen), "no permission is requested: {}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "permission_prompt_tool",
            |_, options| {
                let decide = |_: PromptInput| async {
                    let input = json!({"command": "touch made", "description": "Makes it"});
                    Ok(json!({"behavior": "allow", "updatedInput": input}).to_string())
                };
                options
                    .mcp("guard", ToolServer::new().tool("decide", "Decides", decide))
                    .permission_prompt_tool("mcp__guard__decide")
            },
            |seen| {
                seen.assert_success();
                assert!(ran(seen), "the tool decides: {}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "mcp_config_files",
            |harness, options| {
                let servers = r#"{"mcpServers":{"filed":{"command":"/nowhere/server"}}}"#;
                write(harness.root(), "servers.json", servers);
                options.mcp_config_files([harness.root().join("servers.json")])
            },
            |seen| {
                seen.assert_success();
                assert!(contains_name(&seen.init()["mcp_servers"], "filed"), "{}", seen.init());
            },
        ),
    ]);
}

#[test]
fn managed_settings_and_config_root_take_effect() {
    run_rows([
        Row::new(
            "managed_settings",
            |_, options| {
                let permissions = PermissionSettings::default().deny(["Bash"]);
                let managed = CliSettings::default().permissions(permissions);
                options.managed_settings(managed).allowed_tools(["Bash"])
            },
            |seen| {
                seen.assert_success();
                assert_eq!(answer(&seen.collected), Some("Done."), "the run itself continues");
                assert!(!ran(seen), "{:?}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "project_config_root",
            |harness, options| {
                let agent = "---\nname: rooted\ndescription: From elsewhere\n---\nBe there.\n";
                write(harness.root(), "trusted/.claude/agents/rooted.md", agent);
                options.project_config_root(harness.root().join("trusted"))
            },
            |seen| {
                seen.assert_success();
                assert!(contains_name(&seen.init()["agents"], "rooted"), "{}", seen.init());
            },
        ),
    ]);
}

#[test]
fn unavailable_sandbox_prevents_startup() {
    run_rows([
        Row::new(
            "sandbox",
            |_, options| options.sandbox(Sandbox::default().enabled(true).bwrap_path("/missing")),
            |seen| {
                let output = format!("{:?} {:?}", seen.collected.error, seen.collected.result());
                assert!(output.to_lowercase().contains("sandbox"), "{output}");
                assert!(seen.harness.api().requests().is_empty(), "no prompt was sent");
            },
        ),
        Row::new(
            "sandbox that need not be there, on top of a file",
            |harness, options| {
                write(harness.root(), "s.json", r#"{"outputStyle":"Explanatory"}"#);
                let sandbox = Sandbox::default().enabled(true).fail_if_unavailable(false);
                options.settings(harness.root().join("s.json")).sandbox(sandbox)
            },
            |seen| {
                seen.assert_success();
                assert_eq!(seen.init()["output_style"], "Explanatory");
            },
        ),
    ]);
}

#[test]
fn log_client_app_and_hook_event_options_take_effect() {
    run_rows([
        Row::new(
            "debug: a file, client_app",
            |harness, options| {
                options.debug(DebugLog::file(harness.root().join("log"))).client_app("marked/1.0")
            },
            |seen| {
                seen.assert_success();
                assert!(seen.harness.root().join("log").metadata().unwrap().len() > 0);
                let request = seen.request();
                let agent = request.headers.get("user-agent").unwrap();
                assert!(agent.contains("marked/1.0"), "{agent}");
            },
        ),
        Row::new(
            "debug, add_dir, add_arg",
            |harness, options| {
                options
                    .debug(DebugLog::Default)
                    .add_dir(harness.root())
                    .add_arg("disable-slash-commands")
            },
            |seen| {
                seen.assert_success();
                let logs = seen.harness.root().join("home/.claude/debug");
                assert!(logs.read_dir().unwrap().next().is_some());
            },
        ),
        Row::new(
            "include: hook events",
            |_, options| {
                let hook = json!({"UserPromptSubmit": [
                    {"hooks": [{"type": "command", "command": "true"}]}
                ]});
                options.settings(CliSettings::default().hooks(hook)).include(Include::HOOK_EVENTS)
            },
            |seen| {
                seen.assert_success();
                assert!(seen.messages().contains("\"hook_response\""), "{}", seen.messages());
            },
        ),
        Row::new(
            "permission_prompts",
            |_, options| {
                options
                    .permission_prompts(PermissionPrompts::None)
                    .can_use_tool(|_, _| async { Permission::allow() })
            },
            |seen| {
                assert!(!ran(seen), "no permission may be requested");
                assert_eq!(seen.collected.text(), "Done.");
            },
        )
        .script(bash),
    ]);
}

#[test]
fn script_is_run_by_the_named_executable() {
    run(async {
        let fake = FakeProgram::new(&format!("{HANDSHAKE}{RESULT}"));
        let script = fake.sibling("cli.js");
        // Not executable, and run with arguments for its interpreter.
        let text = std::fs::read_to_string(fake.path()).unwrap();
        std::fs::write(&script, format!("echo \"$0\" > {}\n{text}", fake.sibling("ran").display()))
            .unwrap();
        let options = fake.options().cli_path(&script).executable(["sh", "-e"]);
        let collected = ask("hello", options.clone()).await;
        assert_eq!(answer(&collected), Some("Done."), "{:?}", collected.error);
        let ran = std::fs::read_to_string(fake.sibling("ran")).unwrap();
        assert_eq!(ran.trim(), script.to_string_lossy());
        let missing = options.executable(["no-such-program"]);
        let error = crate::support::start_error("hello", missing).await;
        assert_eq!(error.kind(), ErrorKind::CliNotFound, "{error}");
    });
}

#[test]
fn cli_runs_as_the_named_user() {
    run(async {
        let fake =
            FakeProgram::new(&format!("{HANDSHAKE}echo \"$(id -u) $(id -g)\" >&2\n{RESULT}"));
        let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        // Only root can change its user.
        let (user, group) = if own.0 == 0 { (65_534, 65_533) } else { own };
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fake.path().parent().unwrap(), open).unwrap();
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = lines.clone();
        let options = fake
            .options()
            .user(OsUser::Ids { user, group })
            .on_stderr(move |line| sink.lock().unwrap().push(line.to_owned()));
        let collected = ask("hello", options).await;
        assert_eq!(answer(&collected), Some("Done."), "{:?}", collected.error);
        assert_eq!(*lines.lock().unwrap(), [format!("{user} {group}")]);

        let unknown_user = fake.options().user("no-such-user-here");
        let error = crate::support::start_error("hello", unknown_user).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        if own.0 != 0 {
            let root = fake.options().user(OsUser::Ids { user: 0, group: 0 });
            let error = crate::support::start_error("hello", root).await;
            assert_eq!(error.kind(), ErrorKind::SpawnFailed, "{error}");
        }
    });
}
