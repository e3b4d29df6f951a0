//! Precedence and merging of configuration sources, checked on the arguments and the environment of
//! the CLI.

use std::collections::BTreeMap;

use claude_agent_kit::{AgentDefinition, Json, Options, Session};
use serde_json::{Value, json};

use crate::support::{FakeProgram, in_time, run};

/// A CLI that records its arguments, its environment and the handshake.
const RECORDING_SCRIPT: &str = r#"d=$(dirname "$0")
printf '%s\n' "$@" > "$d/arguments"
env > "$d/variables"
read -r line
printf '%s\n' "$line" > "$d/handshake"
id=${line#*\"request_id\":\"}; id=${id%%\"*}
echo "{\"type\":\"control_response\",\"response\":{\"subtype\":\"success\",\"request_id\":\"$id\",\"response\":{}}}"
cat > /dev/null"#;

/// What a CLI was started with.
struct RecordedLaunch {
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    handshake: Value,
}

impl RecordedLaunch {
    /// Returns the values of a flag, in order.
    fn flag(&self, name: &str) -> Vec<&str> {
        let start = format!("--{name}=");
        self.arguments.iter().filter_map(|argument| argument.strip_prefix(&start)).collect()
    }

    fn has(&self, flag: &str) -> bool {
        self.arguments.iter().any(|argument| argument == flag)
    }

    fn settings(&self) -> Value {
        let given = self.flag("settings");
        assert_eq!(given.len(), 1, "{:?}", self.arguments);
        serde_json::from_str(given[0]).unwrap()
    }
}

async fn start(fake: &FakeProgram, options: Options) -> RecordedLaunch {
    let session = in_time(Session::start(options)).await.unwrap();
    in_time(session.stop()).await.unwrap();
    let read = |name: &str| std::fs::read_to_string(fake.sibling(name)).unwrap();
    let variables = read("variables");
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    RecordedLaunch {
        arguments: read("arguments").lines().map(str::to_owned).collect(),
        variables: variables.map(|(name, value)| (name.into(), value.into())).collect(),
        handshake: serde_json::from_str(&read("handshake")).unwrap(),
    }
}

const FILE: &str = r#"
model = "file"
fallback_model = "file"
permission_mode = "plan"
mcp_strict = true
max_turns = 1
betas = ["file-1", "file-2"]
add_dirs = ["/file", "/both"]
extra_args = [["from-file", "1"], "both"]
allowed_tools = ["Read"]

[env]
FROM_FILE = "file"
IN_BOTH = "file"

[settings]
language = "file"
[settings.permissions]
allow = ["file"]
deny = ["file"]

[agents.file]
description = "d"
prompt = "p"
"#;

const VARIABLES: [(&str, &str); 7] = [
    ("CLAUDE_MODEL", "variable"),
    ("CLAUDE_FALLBACK_MODEL", "variable-2"),
    ("CLAUDE_MAX_TURNS", "2"),
    ("CLAUDE_BETAS", "variable"),
    ("CLAUDE_ADD_DIRS", "/variable:/both"),
    ("CLAUDE_SETTINGS", r#"{"permissions": {"allow": ["variable"]}, "outputStyle": "variable"}"#),
    ("CLAUDE_ALLOWED_TOOLS", "Bash(git log, a:*),Grep"),
];

#[test]
fn builder_overrides_environment_and_environment_overrides_file() {
    run(async {
        let fake = FakeProgram::new(RECORDING_SCRIPT);
        let builder = fake.options().model("builder").mcp_strict(false);
        let layers = Options::layered().file_text("agent.toml", FILE).variables(VARIABLES);
        let seen = start(&fake, layers.under(builder).unwrap()).await;
        assert_eq!(seen.flag("model"), ["builder"]);
        assert_eq!(seen.flag("fallback-model"), ["variable-2"]);
        assert_eq!(seen.flag("max-turns"), ["2"]);
        assert_eq!(seen.flag("permission-mode"), ["plan"]);
        // The builder overrides the file, although it sets the default value.
        assert!(!seen.has("--strict-mcp-config"), "{:?}", seen.arguments);
        assert_eq!(seen.flag("betas"), ["variable"], "replaced completely");
        assert_eq!(seen.flag("allowedTools"), ["Bash(git log, a:*),Grep"], "replaced completely");
    });
}

#[test]
fn maps_merge_lists_append_and_agents_are_replaced() {
    run(async {
        let fake = FakeProgram::new(RECORDING_SCRIPT);
        let builder = fake
            .options()
            .env("IN_BOTH", "builder")
            .settings(Json::from(
                json!({"language": "builder", "permissions": {"ask": ["builder"]}}),
            ))
            .add_dir("/builder")
            .add_dir("/both")
            .add_arg("both")
            .agents([("builder", AgentDefinition::new("d", "p"))]);
        let layers = Options::layered().file_text("agent.toml", FILE).variables(VARIABLES);
        let seen = start(&fake, layers.under(builder).unwrap()).await;
        assert_eq!(seen.variables["FROM_FILE"], "file");
        assert_eq!(seen.variables["IN_BOTH"], "builder");
        assert_eq!(
            seen.settings(),
            json!({
                "language": "builder",
                "outputStyle": "variable",
                "permissions": {"allow": ["variable"], "deny": ["file"], "ask": ["builder"]},
            })
        );
        let dirs = ["/file", "/both", "/variable", "/both", "/builder", "/both"];
        assert_eq!(seen.flag("add-dir"), dirs, "in order and not de-duplicated");
        assert_eq!(seen.flag("from-file"), ["1"]);
        assert_eq!(seen.arguments.iter().filter(|argument| *argument == "--both").count(), 2);
        let agents = seen.handshake["request"]["agents"].as_object().unwrap();
        assert_eq!(agents.keys().collect::<Vec<_>>(), ["builder"]);
    });
}

#[test]
fn cli_path_variable_is_used_and_unnamed_files_are_not() {
    run(async {
        let fake = FakeProgram::new(RECORDING_SCRIPT);
        // Config files in the working directory are not read unless the host names them.
        for name in ["agent.toml", "claude.toml", ".claude.toml", "config.json"] {
            std::fs::write(fake.sibling(name), "model = \"unasked\"").unwrap();
        }
        let surroundings = Options::new()
            .cwd(fake.sibling(""))
            .environment(claude_agent_kit::settings::EnvironmentPolicy::Clean)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin");
        let path = fake.path().to_string_lossy().into_owned();
        let layers = Options::layered().variables([("CLAUDE_CLI_PATH", path)]);
        let seen = start(&fake, layers.under(surroundings).unwrap()).await;
        assert!(seen.flag("model").is_empty(), "{:?}", seen.arguments);
    });
}
