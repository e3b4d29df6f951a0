//! Every operation on the real CLI: which of them it does, and which it refuses.

use std::fmt::Write as _;

use claude_agent_kit::{Error, ErrorKind, PermissionMode, Session};
use claude_wire::control::{McpCall, ReloadPlugins, SettingsFile};
use serde_json::json;
use tests_e2e::stage::Stage;

use crate::play::{start, turn};
use crate::support::{LIMIT, hello, in_time, real, run};

/// A server of its own process with a tool and a page, in the words of a shell.
const SERVER: &str = r#"
reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*)
      reply "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"ext","version":"1.0.0"}}' ;;
    *'"method":"tools/list"'*)
      reply "$id" '{"tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object","properties":{}}}]}' ;;
    *'"method":"tools/call"'*)
      reply "$id" '{"content":[{"type":"text","text":"five"}]}' ;;
    *'"method":"resources/list"'*)
      reply "$id" '{"resources":[{"uri":"ui://page","name":"page"}]}' ;;
    *'"method":"resources/read"'*)
      reply "$id" '{"contents":[{"uri":"ui://page","mimeType":"text/html","text":"<p>"}]}' ;;
    *'"id":'*)
      reply "$id" '{}' ;;
  esac
done
"#;

/// What became of the operations, in order.
#[derive(Default)]
struct Outcomes {
    done: Vec<&'static str>,
    refused: Vec<(&'static str, ErrorKind)>,
    told: String,
}

impl Outcomes {
    fn note<A: std::fmt::Debug>(&mut self, name: &'static str, outcome: Result<A, Error>) {
        match outcome {
            Ok(answer) => {
                let unnamed = format!("{answer:?}").matches("Extra(Some(").count();
                writeln!(self.told, "{name}: done, {unnamed} objects with unnamed fields").unwrap();
                self.done.push(name);
            }
            Err(error) => {
                assert!(error.operation().is_some(), "{name}: {error}");
                let hint = error.hint().unwrap_or_default();
                writeln!(self.told, "{name}: refused, {error} ({hint})").unwrap();
                self.refused.push((name, error.kind()));
            }
        }
    }

    /// All of the first so many were done, all after them refused.
    fn check(&self, done: usize) {
        assert_eq!(self.done.len(), done, "{}", self.told);
        let refused: Vec<_> = self.refused.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            refused,
            [
                "mcp_reconnect",
                "mcp_read_resource",
                "mcp_call",
                "read_file",
                "register_repo_root",
                "get_task_output",
                "update_settings",
                "set_color"
            ],
            "{}",
            self.told
        );
        for (name, kind) in &self.refused {
            let unknown = if *name == "set_color" {
                ErrorKind::Unsupported
            } else {
                ErrorKind::ControlRejected
            };
            assert_eq!(*kind, unknown, "{name}");
        }
        assert!(self.told.contains("version"), "which CLI does not know it is told");
    }
}

/// Asks for each of these, in time.
macro_rules! ask {
    ($outcomes:ident, $session:ident: $( $method:ident($($argument:expr),*) )+) => {$(
        $outcomes.note(stringify!($method), in_time($session.$method($($argument),*)).await);
    )+};
}

fn call() -> McpCall {
    let mut call = McpCall::new("ext", "add");
    call.arguments = Some(json!({}).into());
    call
}

async fn staged() -> (Stage, Session) {
    let stage = Stage::real(hello(), real()).await.unwrap();
    let script = stage.root().join("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    std::fs::write(stage.project().join("notes.txt"), "one\n").unwrap();
    std::fs::create_dir(stage.project().join("library")).unwrap();
    let server = json!({"command": "sh", "args": [script]});
    let session = start(stage.options().mcp("ext", server).file_checkpointing(true)).await;
    (stage, session)
}

#[test]
fn every_operation_is_answered_or_refused_by_the_real_cli() {
    run(async {
        let (stage, session) = staged().await;
        in_time(session.wait_for_mcp(LIMIT)).await.unwrap();
        let message = session.send("hello").await.unwrap();
        let id = message.message_id().clone();
        in_time(message.finish()).await.unwrap();
        let library = stage.project().join("library").to_string_lossy().into_owned();
        let mut outcomes = Outcomes::default();
        ask! { outcomes, session:
            interrupt() interrupt_all() set_permission_mode(PermissionMode::AcceptEdits)
            set_model("haiku") reset_model() set_max_thinking_tokens(Some(2000))
            set_thinking(None, "summarized") cancel_message("00000000-0000-4000-8000-000000000000")
            stop_task("nothing") background_tasks() background_task("toolu_none")
            set_has_subscribers(Some(true))
            mcp_status() mcp_set_servers(json!({}))
            set_mcp_permission_mode_override("ext", Some(PermissionMode::Auto))
            set_mcp_permission_mode_override("ext", None)
            mcp_read_resource("ext", "ui://page") mcp_call(call())
            rewind_files(id, true) read_file("notes.txt") file_suggestions("notes")
            seed_read_state(stage.project().join("notes.txt").to_string_lossy(), 1)
            register_repo_root(library)
            apply_flag_settings(json!({"effortLevel": "low"}))
            update_settings(SettingsFile::Local, json!({"outputStyle": "Concise"}))
            get_settings() get_hooks_listing() list_permission_rules()
            reload_plugins(ReloadPlugins::default()) reload_skills() reload_output_styles()
            reinitialize() get_context_usage() get_context_usage_in("full") get_usage(true)
            get_session_cost() list_models() get_binary_version() rename_session("Tidy")
            mcp_reconnect("ext") mcp_toggle("ext", true)
        }
        let done = outcomes.done.len();
        let mut checked = call();
        checked.check_permissions = Some(true);
        ask! { outcomes, session:
            mcp_reconnect("nobody") mcp_read_resource("ext", "file://x") mcp_call(checked)
            read_file("nothing.txt") register_repo_root("/nowhere") get_task_output("nothing")
            update_settings(SettingsFile::User, json!({"model": "x"})) set_color("blue")
        }
        println!("{}", outcomes.told);
        outcomes.check(done);
        // It still works.
        assert_eq!(turn(&session, "hello again").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn answers_of_the_real_cli_say_what_was_asked() {
    run(async {
        let (stage, session) = staged().await;
        in_time(session.wait_for_mcp(LIMIT)).await.unwrap();
        assert!(session.capabilities().iter().any(|name| name == "mcp_call_check_permissions_v1"));
        assert!(!session.supported_models().is_empty() && !session.supported_commands().is_empty());
        assert!(!session.supported_agents().is_empty() && session.account_info().is_some());
        let file = session.read_file("notes.txt").await.unwrap();
        assert_eq!(file.contents.as_deref(), Some("one\n"));
        let five = session.mcp_call(call()).await.unwrap().content.unwrap();
        assert!(five.text().contains("five"), "{five}");
        let page = session.mcp_read_resource("ext", "ui://page").await.unwrap();
        assert_eq!(page.contents[0].text.as_deref(), Some("<p>"));
        session
            .update_settings(SettingsFile::Local, json!({"outputStyle": "Concise"}))
            .await
            .unwrap();
        let settings = session.get_settings().await.unwrap();
        assert!(settings.effective.unwrap().text().contains("Concise"));
        assert_eq!(settings.sources[0].source.as_deref(), Some("localSettings"));
        let version = session.get_binary_version().await.unwrap().version;
        assert_eq!(version, session.server_info().unwrap().claude_code_version);
        assert!(session.get_hooks_listing().await.unwrap().event_catalog.len() > 20);
        assert!(session.list_permission_rules().await.unwrap().state.is_some());
        turn(&session, "hello").await;
        let used = session.get_usage(true).await.unwrap().session.unwrap();
        assert!(used.total_cost_usd.unwrap().as_f64() > 0.0);
        drop(stage);
        session.stop().await.unwrap();
    });
}
