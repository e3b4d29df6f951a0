//! Every operation on the real CLI: which ones it performs and which ones it rejects.

use std::fmt::Write as _;
use std::path::Path;

use claude_agent_kit::{Error, ErrorKind, PermissionMode, Session};
use claude_wire::control::{
    BackgroundTasks, FileSuggestions, GetBinaryVersion, GetContextUsage, GetHooksListing,
    GetSessionCost, GetUsage, ListModels, ListPermissionRules, McpCall, RegisterRepoRoot,
    ReloadOutputStyles, ReloadPlugins, SeedReadState, SetColor, SetHasSubscribers,
    SetMaxThinkingTokens, SettingsFile, UpdateSettings,
};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::helpers::{start, turn};
use crate::support::{LIMIT, hello, in_time, real, run};

/// An external MCP server with one tool and one resource, as a shell script.
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

/// The outcomes of the operations, in order.
#[derive(Default)]
struct Outcomes {
    done: Vec<&'static str>,
    refused: Vec<(String, ErrorKind)>,
    report: String,
}

impl Outcomes {
    fn record<A: std::fmt::Debug>(&mut self, name: &'static str, outcome: Result<A, Error>) {
        match outcome {
            Ok(answer) => {
                let unnamed = format!("{answer:?}").matches("Extra(Some(").count();
                writeln!(self.report, "{name}: done, {unnamed} objects with unnamed fields")
                    .unwrap();
                self.done.push(name);
            }
            Err(error) => {
                let operation = error.operation().unwrap_or_else(|| panic!("{name}: {error}"));
                let hint = error.hint().unwrap_or_default();
                writeln!(self.report, "{name}: refused, {error} ({hint})").unwrap();
                self.refused.push((operation.to_owned(), error.kind()));
            }
        }
    }

    /// Asserts that the first `done` operations succeeded and that all others were rejected.
    fn check(&self, done: usize) {
        assert_eq!(self.done.len(), done, "{}", self.report);
        let refused: Vec<_> = self.refused.iter().map(|(name, _)| name.as_str()).collect();
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
            self.report
        );
        for (name, kind) in &self.refused {
            let unknown = if name == "set_color" {
                ErrorKind::Unsupported
            } else {
                ErrorKind::ControlRejected
            };
            assert_eq!(*kind, unknown, "{name}");
        }
        assert!(self.report.contains("version"), "the error names the version of the CLI");
    }
}

/// Runs each of these operations with a time limit.
macro_rules! run_operations {
    ($outcomes:ident: $( $target:ident.$method:ident($($argument:expr),*) )+) => {$(
        let result = in_time($target.$method($($argument),*)).await;
        $outcomes.record(stringify!($target.$method($($argument),*)), result);
    )+};
}

fn call() -> McpCall {
    let mut call = McpCall::new("ext", "add");
    call.arguments = Some(json!({}).into());
    call
}

fn thinking() -> SetMaxThinkingTokens {
    let mut thinking = SetMaxThinkingTokens::default();
    thinking.thinking_display = Some("summarized".to_owned());
    thinking
}

fn background() -> BackgroundTasks {
    let mut one = BackgroundTasks::default();
    one.tool_use_id = Some("toolu_none".into());
    one
}

fn seed(path: &Path) -> SeedReadState {
    let mut seed = SeedReadState::default();
    (seed.path, seed.mtime) = (path.to_string_lossy().into_owned(), Some(1_u64.into()));
    seed
}

fn update(file: SettingsFile, settings: Value) -> UpdateSettings {
    let mut update = UpdateSettings::default();
    (update.source, update.settings) = (Some(file), settings.into());
    update
}

fn full_context() -> GetContextUsage {
    let mut usage = GetContextUsage::default();
    usage.detail = Some("full".to_owned());
    usage
}

fn usage() -> GetUsage {
    let mut usage = GetUsage::default();
    usage.skip_behaviors = Some(true);
    usage
}

async fn start_session() -> (Harness, Session) {
    let harness = Harness::real(hello(), real()).await.unwrap();
    let script = harness.root().join("server.sh");
    std::fs::write(&script, SERVER).unwrap();
    std::fs::write(harness.project().join("notes.txt"), "one\n").unwrap();
    std::fs::create_dir(harness.project().join("library")).unwrap();
    let server = json!({"command": "sh", "args": [script]});
    let session = start(harness.options().mcp("ext", server).file_checkpointing(true)).await;
    (harness, session)
}

#[test]
fn real_cli_performs_or_rejects_every_operation() {
    run(async {
        let (harness, session) = start_session().await;
        in_time(session.mcp().wait(LIMIT)).await.unwrap();
        let message = session.send("hello").await.unwrap();
        let id = message.message_id().clone();
        in_time(message.finish()).await.unwrap();
        let library = harness.project().join("library").to_string_lossy().into_owned();
        let mut outcomes = Outcomes::default();
        let mcp = session.mcp();
        run_operations! { outcomes:
            session.interrupt() session.interrupt_all()
            session.set_permission_mode(PermissionMode::AcceptEdits)
            session.set_model("haiku") session.reset_model() session.set_max_thinking_tokens(2000)
            session.request(thinking()) session.cancel_message("00000000-0000-4000-8000-000000000000")
            session.stop_task("nothing") session.background_tasks() session.request(background())
            session.request(SetHasSubscribers::default())
            mcp.status() mcp.set_servers(json!({}))
            mcp.set_permission_mode("ext", PermissionMode::Auto) mcp.reset_permission_mode("ext")
            mcp.read_resource("ext", "ui://page") mcp.call(call())
            session.preview_rewind(id) session.read_file("notes.txt")
            session.request(FileSuggestions::from("notes"))
            session.request(seed(&harness.project().join("notes.txt")))
            session.request(RegisterRepoRoot::from(library))
            session.apply_flag_settings(json!({"effortLevel": "low"}))
            session.request(update(SettingsFile::Local, json!({"outputStyle": "Concise"})))
            session.settings() session.request(GetHooksListing::default())
            session.request(ListPermissionRules::default())
            session.reload_plugins(ReloadPlugins::default()) session.reload_skills()
            session.request(ReloadOutputStyles::default())
            session.reinitialize() session.context_usage()
            session.request(full_context()) session.request(usage())
            session.request(GetSessionCost::default()) session.request(ListModels::default())
            session.request(GetBinaryVersion::default()) session.rename("Tidy")
            mcp.reconnect("ext") mcp.disable("ext") mcp.enable("ext")
        }
        let done = outcomes.done.len();
        let mut checked = call();
        checked.check_permissions = Some(true);
        run_operations! { outcomes:
            mcp.reconnect("missing") mcp.read_resource("ext", "file://x") mcp.call(checked)
            session.read_file("nothing.txt") session.request(RegisterRepoRoot::from("/nowhere"))
            session.task_output("nothing")
            session.request(update(SettingsFile::User, json!({"model": "x"})))
            session.request(SetColor::from("blue"))
        }
        println!("{}", outcomes.report);
        outcomes.check(done);
        // The session still works.
        assert_eq!(turn(&session, "hello again").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn responses_of_the_real_cli_have_the_expected_content() {
    run(async {
        let (harness, session) = start_session().await;
        in_time(session.mcp().wait(LIMIT)).await.unwrap();
        let info = session.server_info().unwrap();
        assert!(info.capabilities.iter().any(|name| name == "mcp_call_check_permissions_v1"));
        assert!(!info.models.is_empty() && !info.commands.is_empty());
        assert!(!info.agents.is_empty() && info.account.is_some());
        let file = session.read_file("notes.txt").await.unwrap();
        assert_eq!(file.contents.as_deref(), Some("one\n"));
        let five = session.mcp().call(call()).await.unwrap().content.unwrap();
        assert!(five.text().contains("five"), "{five}");
        let page = session.mcp().read_resource("ext", "ui://page").await.unwrap();
        assert_eq!(page.contents[0].text.as_deref(), Some("<p>"));
        let concise = update(SettingsFile::Local, json!({"outputStyle": "Concise"}));
        session.request(concise).await.unwrap();
        let settings = session.settings().await.unwrap();
        assert!(settings.effective.unwrap().text().contains("Concise"));
        assert_eq!(settings.sources[0].source.as_deref(), Some("localSettings"));
        let version = session.request(GetBinaryVersion::default()).await.unwrap().version;
        assert_eq!(version, info.claude_code_version);
        assert!(
            session.request(GetHooksListing::default()).await.unwrap().event_catalog.len() > 20
        );
        assert!(session.request(ListPermissionRules::default()).await.unwrap().state.is_some());
        turn(&session, "hello").await;
        let used = session.request(usage()).await.unwrap().session.unwrap();
        assert!(used.total_cost_usd.unwrap().as_f64() > 0.0);
        drop(harness);
        session.stop().await.unwrap();
    });
}
