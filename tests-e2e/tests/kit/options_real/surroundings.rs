//! Options about settings, logs and the process.

use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::{
    CliSettings, Collected, DebugLog, ErrorKind, Include, OsUser, Permission, PermissionMode,
    PermissionPrompts, PermissionSettings, Sandbox, SettingSources, ToolServer,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde::Deserialize;
use serde_json::json;

use super::{Row, lists, play, write};
use crate::support::{Fake, HANDSHAKE, RESULT, ask, run};

fn bash() -> Script {
    let input = json!({"command": "touch made", "description": "Makes it"});
    Script::new().otherwise([Reply::tool("Bash", input), Reply::text("Done.")])
}

/// What the result says.
fn answer(collected: &Collected) -> Option<&str> {
    collected.result().and_then(|result| result.result.as_deref())
}

fn ran(seen: &super::Seen) -> bool {
    seen.stage.project().join("made").exists()
}

#[test]
fn settings_of_the_clis_own_kind_are_obeyed() {
    play([
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
                seen.went_well();
                assert_eq!(seen.init()["output_style"], "Explanatory");
                assert!(seen.body().contains("# Output Style: Explanatory"), "the model is told");
            },
        ),
        Row::new(
            "settings: a file, setting_sources",
            |stage, options| {
                write(stage.root(), "s.json", r#"{"outputStyle":"Explanatory"}"#);
                options
                    .settings(stage.root().join("s.json"))
                    .setting_sources(SettingSources::none())
            },
            |seen| {
                seen.went_well();
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
                seen.went_well();
                assert!(ran(seen));
            },
        )
        .script(bash),
    ]);
}

/// What the CLI asks a tool that decides about others.
#[derive(Deserialize, JsonSchema)]
struct Asked {}

#[test]
fn who_decides_about_tools_can_be_chosen() {
    play([
        Row::new(
            "permission_mode, allow_dangerously_skip_permissions",
            |_, options| {
                options
                    .allow_dangerously_skip_permissions(true)
                    .permission_mode(PermissionMode::BypassPermissions)
                    // Without it the CLI refuses this mode to the user root.
                    .env("IS_SANDBOX", "1")
            },
            |seen| {
                seen.went_well();
                assert!(ran(seen), "nobody is asked: {}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "permission_prompt_tool",
            |_, options| {
                let decide = |_: Asked| async {
                    let input = json!({"command": "touch made", "description": "Makes it"});
                    Ok(json!({"behavior": "allow", "updatedInput": input}).to_string())
                };
                options
                    .mcp("guard", ToolServer::new().tool("decide", "Decides", decide))
                    .permission_prompt_tool("mcp__guard__decide")
            },
            |seen| {
                seen.went_well();
                assert!(ran(seen), "the tool decides: {}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "mcp_config_files",
            |stage, options| {
                let servers = r#"{"mcpServers":{"filed":{"command":"/nowhere/server"}}}"#;
                write(stage.root(), "servers.json", servers);
                options.mcp_config_files([stage.root().join("servers.json")])
            },
            |seen| {
                seen.went_well();
                assert!(lists(&seen.init()["mcp_servers"], "filed"), "{}", seen.init());
            },
        ),
    ]);
}

#[test]
fn managed_settings_and_another_root_are_obeyed() {
    play([
        Row::new(
            "managed_settings",
            |_, options| {
                let permissions = PermissionSettings::default().deny(["Bash"]);
                let managed = CliSettings::default().permissions(permissions);
                options.managed_settings(managed).allowed_tools(["Bash"])
            },
            |seen| {
                seen.went_well();
                assert_eq!(answer(&seen.collected), Some("Done."), "the run itself goes on");
                assert!(!ran(seen), "{:?}", seen.messages());
            },
        )
        .script(bash),
        Row::new(
            "project_config_root",
            |stage, options| {
                let agent = "---\nname: rooted\ndescription: From elsewhere\n---\nBe there.\n";
                write(stage.root(), "trusted/.claude/agents/rooted.md", agent);
                options.project_config_root(stage.root().join("trusted"))
            },
            |seen| {
                seen.went_well();
                assert!(lists(&seen.init()["agents"], "rooted"), "{}", seen.init());
            },
        ),
    ]);
}

#[test]
fn a_sandbox_that_is_not_to_be_had_keeps_the_cli_from_starting() {
    play([
        Row::new(
            "sandbox",
            |_, options| options.sandbox(Sandbox::default().enabled(true).bwrap_path("/missing")),
            |seen| {
                let told = format!("{:?} {:?}", seen.collected.error, seen.collected.result());
                assert!(told.to_lowercase().contains("sandbox"), "{told}");
                assert!(seen.stage.api().requests().is_empty(), "no prompt was sent");
            },
        ),
        Row::new(
            "sandbox that need not be there, on top of a file",
            |stage, options| {
                write(stage.root(), "s.json", r#"{"outputStyle":"Explanatory"}"#);
                let sandbox = Sandbox::default().enabled(true).fail_if_unavailable(false);
                options.settings(stage.root().join("s.json")).sandbox(sandbox)
            },
            |seen| {
                seen.went_well();
                assert_eq!(seen.init()["output_style"], "Explanatory");
            },
        ),
    ]);
}

#[test]
fn logs_names_and_hooks_show_where_they_should() {
    play([
        Row::new(
            "debug: a file, client_app",
            |stage, options| {
                options.debug(DebugLog::file(stage.root().join("log"))).client_app("marked/1.0")
            },
            |seen| {
                seen.went_well();
                assert!(seen.stage.root().join("log").metadata().unwrap().len() > 0);
                let request = seen.request();
                let agent = request.headers.get("user-agent").unwrap();
                assert!(agent.contains("marked/1.0"), "{agent}");
            },
        ),
        Row::new(
            "debug, add_dir, add_arg",
            |stage, options| {
                options
                    .debug(DebugLog::Default)
                    .add_dir(stage.root())
                    .add_arg("disable-slash-commands")
            },
            |seen| {
                seen.went_well();
                let logs = seen.stage.root().join("home/.claude/debug");
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
                seen.went_well();
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
                assert!(!ran(seen), "nobody may be asked");
                assert_eq!(seen.collected.text(), "Done.");
            },
        )
        .script(bash),
    ]);
}

#[test]
fn a_script_is_run_by_the_program_that_was_named() {
    run(async {
        let fake = Fake::new(&format!("{HANDSHAKE}{RESULT}"));
        let script = fake.beside("cli.js");
        // Not executable, and with arguments of its own for the program that runs it.
        let text = std::fs::read_to_string(fake.path()).unwrap();
        std::fs::write(&script, format!("echo \"$0\" > {}\n{text}", fake.beside("ran").display()))
            .unwrap();
        let options = fake.options().cli_path(&script).executable("sh").executable_args(["-e"]);
        let collected = ask("hello", options.clone()).await;
        assert_eq!(answer(&collected), Some("Done."), "{:?}", collected.error);
        let ran = std::fs::read_to_string(fake.beside("ran")).unwrap();
        assert_eq!(ran.trim(), script.to_string_lossy());
        let missing = options.executable("no-such-program");
        let error = crate::support::refused("hello", missing).await;
        assert_eq!(error.kind(), ErrorKind::CliNotFound, "{error}");
    });
}

#[test]
fn the_cli_runs_as_the_user_that_was_named() {
    run(async {
        let fake = Fake::new(&format!("{HANDSHAKE}echo \"$(id -u) $(id -g)\" >&2\n{RESULT}"));
        let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        // Only root can become somebody else.
        let (user, group) = if own.0 == 0 { (65_534, 65_533) } else { own };
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fake.path().parent().unwrap(), open).unwrap();
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let told = lines.clone();
        let options = fake
            .options()
            .user(OsUser::Ids { user, group })
            .on_stderr(move |line| told.lock().unwrap().push(line.to_owned()));
        let collected = ask("hello", options).await;
        assert_eq!(answer(&collected), Some("Done."), "{:?}", collected.error);
        assert_eq!(*lines.lock().unwrap(), [format!("{user} {group}")]);

        let nobody = fake.options().user("no-such-user-here");
        let error = crate::support::refused("hello", nobody).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        if own.0 != 0 {
            let root = fake.options().user(OsUser::Ids { user: 0, group: 0 });
            let error = crate::support::refused("hello", root).await;
            assert_eq!(error.kind(), ErrorKind::SpawnFailed, "{error}");
        }
    });
}
