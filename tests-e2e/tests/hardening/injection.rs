//! Unusual values in every option: each one is passed as exactly one argument, unchanged, or
//! rejected before anything starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use claude_agent_kit::settings::DebugLog;
use claude_agent_kit::transport::{Connecting, Launch, Transport};
use claude_agent_kit::{
    AgentDefinition, Conversation, Error, ErrorKind, Options, Plugin, SystemPrompt, Thinking, query,
};
use serde_json::Value;

use crate::support::{FakeProgram, RESULT, ask, run};

/// Returns values that a program on the way might misinterpret.
fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "--help",
        "-p",
        "-",
        "--",
        "--model=other",
        "",
        " ",
        "a b",
        "a\nb",
        "\n--debug",
        "a\r\nb",
        "\t",
        "\"",
        "'",
        "'; touch made; '",
        "`touch made`",
        "$(touch made)",
        "a; touch made & touch made | touch made > made",
        "$HOME ~ * ? [a] {a,b}",
        "%PATH% ^ !x! \" & echo made",
        "\\",
        "\\\\\" x",
        "=",
        "a=b",
        ",",
        "a,b",
        "Bash(a,b)",
        "Bash(a",
        "\u{7f}\u{1b}[31m",
        "ü\u{202e}\u{feff}",
        "a\0b",
        "\0",
        UUID,
    ]
    .map(str::to_owned)
    .into();
    // Longer than an argument may be on any system.
    values.push("x".repeat(2 * 1024 * 1024));
    values
}

const UUID: &str = "7d9f3c1e-0000-4000-8000-000000000001";

/// The kind of value that an option takes.
#[derive(Clone, Copy, PartialEq)]
enum ValueKind {
    Text,
    /// A text that is not blank.
    Name,
    Uuid,
    Path,
    /// An entry of a comma-separated list.
    Entry,
    /// A text that becomes an environment variable.
    Variable,
}

/// An option, the flag or variable that passes it to the CLI, and the options that it requires.
struct Row {
    kind: ValueKind,
    name: &'static str,
    set: fn(Options, &str) -> Options,
    requires: fn(Options) -> Options,
}

fn row(kind: ValueKind, name: &'static str, set: fn(Options, &str) -> Options) -> Row {
    Row { kind, name, set, requires: |options| options }
}

fn rows() -> Vec<Row> {
    use ValueKind::{Entry, Name, Path, Text, Uuid, Variable};
    let with = |requires: fn(Options) -> Options, row: Row| Row { requires, ..row };
    vec![
        row(Name, "--model", |options, value| options.model(value)),
        row(Name, "--fallback-model", |options, value| options.fallback_model(value)),
        row(Text, "--permission-prompt-tool", |o, value| o.permission_prompt_tool(value)),
        row(Text, "--agent", |options, value| options.agent(value)),
        row(Text, "--permission-mode", |options, value| options.permission_mode(value)),
        row(Text, "--permission-prompts", |options, value| options.permission_prompts(value)),
        row(Text, "--effort", |options, value| options.effort(value)),
        with(
            |options| options.thinking(Thinking::adaptive()),
            row(Text, "--thinking-display", |options, value| {
                options.thinking(Thinking::adaptive().display(value))
            }),
        ),
        row(Text, "--some-flag", |options, value| options.add_arg(("some-flag", value))),
        row(Text, "--some-flag", |options, value| options.add_arg(("--some-flag", value))),
        row(Name, "--resume", |options, value| options.conversation(Conversation::resume(value))),
        row(Uuid, "--session-id", |options, value| {
            options.conversation(Conversation::with_id(value))
        }),
        with(
            |options| options.conversation(Conversation::resume("r")),
            row(Name, "--resume-session-at", |options, value| {
                options.conversation(Conversation::resume("r").at(value))
            }),
        ),
        with(
            |options| options.conversation(Conversation::resume("r").at("m")),
            row(Name, "--resume-drops-turn", |options, value| {
                options.conversation(Conversation::resume("r").at("m").dropping_turn(value))
            }),
        ),
        row(Path, "--add-dir", |options, value| options.add_dir(value)),
        row(Path, "--project-config-root", |options, value| options.project_config_root(value)),
        row(Path, "--debug-file", |options, value| options.debug(DebugLog::file(value))),
        row(Path, "--mcp-config", |options, value| options.mcp_config_files([value])),
        row(Path, "--plugin-dir", |options, value| options.plugins([value])),
        row(Path, "--plugin-dir-no-mcp", |options, value| {
            options.plugins([Plugin::new(value).without_mcp()])
        }),
        row(Path, "--settings", |options, value| options.settings(PathBuf::from(value))),
        row(Path, "--system-prompt-file", |options, value| {
            options.system_prompt(SystemPrompt::file(value))
        }),
        row(Entry, "--allowedTools", |options, value| options.allowed_tools([value])),
        row(Entry, "--disallowedTools", |options, value| options.disallowed_tools([value])),
        row(Entry, "--tools", |options, value| options.tools([value])),
        row(Entry, "--betas", |options, value| options.betas([value])),
        row(Entry, "--setting-sources", |options, value| options.setting_sources([value])),
        row(Variable, "SOME_NAME", |options, value| options.env("SOME_NAME", value)),
        row(Variable, "CLAUDE_AGENT_SDK_CLIENT_APP", |options, value| options.client_app(value)),
        row(Variable, "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", |options, value| {
            options.question_preview(value)
        }),
    ]
}

impl ValueKind {
    /// Returns whether a value of this kind must be rejected.
    fn rejects(self, value: &str) -> bool {
        let impossible = value.contains('\0') || value.len() > 128 * 1024;
        let nothing = value.trim().is_empty();
        impossible
            || match self {
                Self::Text | Self::Variable => false,
                Self::Name => nothing,
                Self::Uuid => value != UUID,
                Self::Path => value.is_empty(),
                // The CLI splits at them, but not inside parentheses.
                Self::Entry => {
                    let whole = ["Bash(a,b)", "$(touch made)"].contains(&value);
                    let cut = value.trim_matches(' ').contains([',', ' ']) && !whole;
                    nothing || cut || value == "Bash(a"
                }
            }
    }
}

/// The arguments and variables that a CLI would be started with.
type CapturedLaunch = (Vec<String>, Vec<(String, String)>);

/// A transport that records the launch and starts nothing.
#[derive(Clone, Default)]
struct CapturingTransport(Arc<Mutex<Option<CapturedLaunch>>>);

impl Transport for CapturingTransport {
    fn connect(&self, launch: Launch) -> Connecting<'_> {
        let variables = launch.envs().iter();
        let variables = variables.map(|(name, value)| (name.clone(), value.expose().to_owned()));
        *self.0.lock().unwrap() = Some((launch.args().to_vec(), variables.collect()));
        Box::pin(async { Err(io::Error::other("nothing is started")) })
    }
}

/// Returns the launch for these options, or the error.
async fn capture_launch(options: Options) -> Result<CapturedLaunch, Error> {
    let catch = CapturingTransport::default();
    let error = query("hello", options.transport(catch.clone())).await.unwrap_err();
    catch.0.lock().unwrap().take().ok_or(error)
}

#[test]
fn value_becomes_exactly_one_argument_or_is_rejected() {
    run(async {
        for row in rows() {
            let plain = capture_launch((row.requires)(Options::new())).await.unwrap();
            for value in values() {
                let shown: String = value.chars().take(60).collect();
                let options = (row.set)((row.requires)(Options::new()), &value);
                match capture_launch(options).await {
                    Ok(launch) => {
                        assert!(!row.kind.rejects(&value), "{} took {shown:?}", row.name);
                        check_added(&row, &value, &plain, launch);
                    }
                    Err(error) => {
                        assert!(row.kind.rejects(&value), "{} {shown:?}: {error}", row.name);
                        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
                    }
                }
            }
        }
    });
}

/// Asserts that exactly one argument or variable was added, and that it is `value`.
fn check_added(row: &Row, value: &str, plain: &CapturedLaunch, launch: CapturedLaunch) {
    let (mut arguments, mut variables) = launch;
    if row.kind == ValueKind::Variable {
        variables.retain(|variable| *variable != (row.name.to_owned(), value.to_owned()));
    } else {
        let argument = format!("{}={value}", row.name);
        let place = arguments.iter().position(|other| *other == argument);
        arguments.remove(place.unwrap_or_else(|| panic!("{argument:?} is not in {arguments:?}")));
    }
    // The session ID differs between runs.
    let mut others = plain.0.clone();
    for words in [&mut arguments, &mut others] {
        words.retain(|word| !word.starts_with("--session-id="));
    }
    assert_eq!((&arguments, &variables), (&others, &plain.1), "{}", row.name);
}

#[test]
fn invalid_flag_and_variable_names_are_rejected() {
    run(async {
        for value in values() {
            let shown: String = value.chars().take(60).collect();
            let name = value.trim_start_matches('-');
            let is_separator =
                |letter: char| letter == '=' || letter.is_whitespace() || letter.is_control();
            let is_flag = !name.is_empty() && !name.contains(is_separator);
            match capture_launch(Options::new().add_arg(&*value)).await {
                Ok((arguments, _)) => {
                    assert!(is_flag, "{shown:?}");
                    assert_eq!(arguments.last(), Some(&format!("--{name}")));
                }
                Err(error) => {
                    assert!(!is_flag || value.len() > 1000, "{shown:?}: {error}");
                    assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
                }
            }
            let is_variable = !value.is_empty() && !value.contains(['=', '\0']);
            match capture_launch(Options::new().env(&*value, "v")).await {
                Ok((_, variables)) => {
                    assert!(is_variable && variables.contains(&(value, "v".to_owned())));
                }
                Err(error) => {
                    assert!(!is_variable || value.len() > 1000, "{shown:?}: {error}");
                    assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
                }
            }
        }
    });
}

/// Returns a CLI that records its arguments, variables and input, and responds.
fn recording_program() -> FakeProgram {
    let notes = r#"printf '%s\0' "$@" > "$0.argv"; cat /proc/self/environ > "$0.environ"
"#;
    // The shell's own `read` is slow for long lines. `head` may read ahead, but the host waits for
    // the response before it writes more, so that nothing is lost.
    let lines = r#"head -n 1 > "$0.line"
id=$(head -c 400 "$0.line"); id=${id#*\"request_id\":\"}; id=${id%%\"*}
echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}"
head -n 1 > "$0.prompt"
"#;
    FakeProgram::new(&format!("{notes}{lines}{RESULT}"))
}

/// Returns what the CLI recorded, split at NUL.
fn recorded(fake: &FakeProgram, what: &str) -> Vec<String> {
    let text = fs::read(fake.path().with_extension(what)).unwrap();
    let parts = text.split(|byte| *byte == 0);
    parts.map(|part| String::from_utf8(part.to_vec()).unwrap()).collect()
}

#[test]
fn process_receives_values_unchanged() {
    run(async {
        for value in values() {
            if ValueKind::Path.rejects(&value) {
                continue;
            }
            let fake = recording_program();
            let options = fake
                .options()
                .agent(&*value)
                .add_arg(("some-flag", &value))
                .add_dir(&*value)
                .env("SOME_NAME", &*value);
            let collected = ask("hello", options).await;
            assert!(collected.error.is_none(), "{value:?}: {:?}", collected.error);
            let argv = recorded(&fake, "argv");
            for flag in ["--agent", "--some-flag", "--add-dir"] {
                let argument = format!("{flag}={value}");
                assert_eq!(argv.iter().filter(|other| **other == argument).count(), 1, "{argv:?}");
            }
            // The mode, the session ID, these three, and the end.
            assert_eq!(argv.len(), 11, "{argv:?}");
            assert!(
                recorded(&fake, "environ").contains(&format!("SOME_NAME={value}")),
                "{value:?}"
            );
            assert!(!fake.sibling("made").exists(), "{value:?} was run");
        }
    });
}

#[test]
fn handshake_and_prompt_carry_any_text() {
    run(async {
        for value in values() {
            let text = if value.trim().is_empty() { "." } else { &*value };
            let fake = recording_program();
            let options = fake
                .options()
                .system_prompt(&*value)
                .system_prompt(SystemPrompt::default().append(&*value))
                .plan_mode_instructions(&*value)
                .conversation(Conversation::new().title(&*value))
                .tool_aliases([(text, "Bash")])
                .agents([(text, AgentDefinition::new(text, text))]);
            let collected = ask(text, options).await;
            assert!(collected.error.is_none(), "{:?}", collected.error);
            let read = |what| recorded(&fake, what).concat();
            let line: Value = serde_json::from_str(&read("line")).unwrap();
            let request = &line["request"];
            for name in ["appendSystemPrompt", "planModeInstructions", "title"] {
                assert_eq!(request[name], *value, "{name}");
            }
            assert_eq!(request["systemPrompt"][0], *value);
            assert_eq!(request["toolAliases"][text], "Bash");
            assert_eq!(request["agents"][text]["prompt"], text);
            let prompt: Value = serde_json::from_str(&read("prompt")).unwrap();
            assert_eq!(prompt["message"]["content"], text);
            assert_eq!(recorded(&fake, "argv").len(), 8, "nothing is passed as an argument");
            assert!(!Path::new(&fake.sibling("made")).exists(), "{value:?} was run");
        }
    });
}
