//! Precedence and merging according to the table, problems with their positions, and arbitrary
//! files.

mod problems;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use claude_wire::launch::{Skills, ToolSet};
use claude_wire::settings::SettingsSource;
use claude_wire::settings::SystemPromptBase;
use proptest::prelude::*;
use serde_json::json;

use super::table::Row;
use super::*;
use crate::{AgentDefinition, Background, Json, OsUser};

/// Values for a config file, in JSON. Rows of a plain kind need no entry; see [`value_of`].
const VALUES: &[(&str, &str)] = &[
    ("thinking", r#"{"budget": 9, "display": "omitted"}"#),
    ("effort", r#""max""#),
    ("max_budget_usd", "1.5"),
    ("system_prompt", r#"{"file": "p.md"}"#),
    ("include", r#"["hook_events"]"#),
    ("debug", r#""/log""#),
    ("version_check", r#""skip""#),
    ("output_schema", r#"{"type": "object"}"#),
    ("agents", r#"{"a": {"description": "d", "prompt": "p", "maxTurns": 3}}"#),
    ("skills", r#"["k"]"#),
    ("plugins", r#"["/p", {"path": "/q", "skip_mcp_discovery": true}]"#),
    ("plugin_delivery", r#""handshake""#),
    ("tools", r#"["Read"]"#),
    ("tool_aliases", r#"{"Run": "Bash"}"#),
    ("question_preview", r#""html""#),
    ("permission_mode", r#""plan""#),
    ("permission_prompts", r#""none""#),
    ("mcp", r#"{"s": {"command": "c"}}"#),
    ("mcp_delivery", r#""arguments""#),
    ("limits.running_mcp_messages", "5"),
    ("conversation", r#"{"fork": "r", "fork_id": "i", "at": "m", "dropping_turn": "p"}"#),
    ("settings", r#"{"model": "m"}"#),
    ("setting_sources", "[]"),
    ("managed_settings", r#"{"model": "m"}"#),
    ("sandbox", r#"{"enabled": true, "network": {"allowedDomains": ["a.b"]}}"#),
    ("environment", r#"{"only": ["A"]}"#),
    ("env", r#"{"K": "v"}"#),
    ("extra_args", r#"["one", ["two", "2"]]"#),
    ("user", r#"{"user": 1, "group": 2}"#),
    ("wait_for_background", r#""all""#),
    ("timeouts.idle", r#""6min""#),
    ("limits.waiting_operations", "3"),
];

/// Loads one layer without checking for contradictions.
fn layer(path: &str, text: &str) -> Options {
    let file = ConfigFile { path: path.into(), content: Content::Given(Secret::from(text)) };
    let mut problems = Vec::new();
    let layer = file.layer(&mut problems);
    assert_eq!(problems, []);
    layer.unwrap()
}

fn row(name: &str) -> &'static Row {
    TABLE.iter().find(|row| row.name == name).unwrap()
}

/// Returns the problems of a config file, as they are displayed.
fn problems_of(path: &str, text: &str) -> Vec<String> {
    match Options::layered().file_text(path, text).load() {
        Ok(options) => panic!("no problems: {options:?}"),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            error.problems().iter().map(ToString::to_string).collect()
        }
    }
}

/// Returns a config file with this value. A member of a group is in the table of the group.
fn json_file(name: &str, value: &str) -> String {
    match name.split_once('.') {
        Some((group, name)) => format!("{{\"{group}\": {{\"{name}\": {value}}}}}"),
        None => format!("{{\"{name}\": {value}}}"),
    }
}

/// Returns a config file with all of these values.
fn json_files<'a>(values: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut all = json!({});
    for (name, value) in values {
        claude_wire::launch::merge(
            &mut all,
            serde_json::from_str(&json_file(name, &value)).unwrap(),
        );
    }
    all.to_string()
}

#[test]
fn every_option_can_be_set_in_a_file_and_has_a_source() {
    for (name, _) in VALUES {
        assert_eq!(row(name).name, *name, "the table has a row for each value");
    }
    let unset = Options::new();
    for row @ Row { name, .. } in TABLE {
        let options = layer("x.json", &json_file(name, &value_of(name)));
        assert_ne!(row.show(&options), row.show(&unset), "{name} does not change anything");
        let column = name.find('.').map_or(2, |at| at + "{'': {".len() + 1);
        let place = Source::file(Path::new("x.json"), 1, column);
        assert_eq!(options.sources(name), [place]);
        // No other option is set.
        for other in TABLE.iter().filter(|other| other.name != *name) {
            assert_eq!(other.show(&options), other.show(&unset), "{name} and {}", other.name);
            assert_eq!(options.sources(other.name), []);
        }
    }
}

#[test]
fn toml_and_json_are_equivalent() {
    let toml = r#"
        model = "m"
        max_turns = 2
        max_budget_usd = 1
        tools = "all"
        system_prompt = ["a", "b"]
        thinking = "adaptive"
        timeouts.exit_grace = "2s"
        extra_args = ["one", ["two", "2"]]
        [env]
        K = "v"
        [settings.permissions]
        deny = ["Read(./.env)"]
        [agents.reviewer]
        description = "d"
        prompt = "p"
    "#;
    let json = json!({
        "model": "m", "max_turns": 2, "max_budget_usd": 1, "tools": "all",
        "system_prompt": ["a", "b"], "thinking": "adaptive", "timeouts": {"exit_grace": "2s"},
        "extra_args": ["one", ["two", "2"]], "env": {"K": "v"},
        "settings": {"permissions": {"deny": ["Read(./.env)"]}},
        "agents": {"reviewer": {"description": "d", "prompt": "p"}},
    });
    let (toml, json) = (layer("x.toml", toml), layer("x.json", &json.to_string()));
    assert_eq!(toml.settings, json.settings);
    assert_eq!(toml.host.exit_grace, json.host.exit_grace);
    assert_eq!(toml.settings.tools, Some(ToolSet::ClaudeCode));
}

#[test]
fn values_in_files_are_parsed_correctly() {
    let all = json_files(VALUES.iter().map(|(name, value)| (*name, (*value).to_owned())));
    let Options { settings, host, .. } = layer("x.json", &all);
    let mut agent = AgentDefinition::new("d", "p");
    agent.max_turns = Some(3);
    assert_eq!(settings.agents.iter().collect::<Vec<_>>(), [("a", &agent)]);
    assert_eq!(settings.system_prompt, Some(SystemPromptBase::File("p.md".into())));
    assert_eq!(settings.skills, Some(Skills::Only(vec!["k".into()])));
    assert!(settings.plugins[1].skip_mcp_discovery && !settings.plugins[0].skip_mcp_discovery);
    assert_eq!(settings.extra_args, [("one".into(), None), ("two".into(), Some("2".into()))]);
    assert_eq!(settings.setting_sources, Some(vec![]));
    assert_eq!(host.user, Some(OsUser::ids(1, 2)));
    assert_eq!((host.background, host.waiting_operations), (Background::All, 3));
    assert_eq!(host.idle_timeout, Some(Duration::from_secs(360)));
    assert_eq!(host.callbacks.running_mcp, Some(5));
}

/// Values of variables that a row accepts, and the equivalent value in a file.
const SPELLED: &[(&str, &str, &str)] = &[
    ("model", "m", r#""m""#),
    ("max_turns", " 3 ", "3"),
    ("max_budget_usd", "2", "2"),
    ("betas", "a, b", r#"["a", "b"]"#),
    ("include", "hook_events, partial_messages", r#"["partial_messages", "hook_events"]"#),
    ("version_check", "permissive", r#""permissive""#),
    ("allowed_tools", "Read,Bash(a, b)", r#"["Read", "Bash(a, b)"]"#),
    ("tools", "all", r#""all""#),
    ("tools", "Read", r#"["Read"]"#),
    ("mcp_strict", "yes", "true"),
    ("conversation.persist", "0", "false"),
    ("settings", "s.json", r#""s.json""#),
    ("settings", r#" {"a": 1}"#, r#"{"a": 1}"#),
    ("timeouts.idle", "30s", r#""30s""#),
    ("wait_for_background", "all", r#""all""#),
    ("permission_mode", "plan", r#""plan""#),
    ("cli_path", "/c", r#""/c""#),
    ("setting_sources", "user,project", r#"["user", "project"]"#),
];

#[test]
fn variables_and_files_are_equivalent() {
    for (name, text, value) in SPELLED {
        let variable = row(name).variable.unwrap();
        let options = Options::layered().variables([(variable, *text)]).load().unwrap();
        assert_eq!(options.sources(name), [Source::variable(variable)]);
        let file = layer("x.json", &json_file(name, value));
        assert_eq!(row(name).show(&options), row(name).show(&file), "{name}");
    }
    let paths = std::env::join_paths(["/a", "/b"]).unwrap();
    let options = Options::layered().variables([("CLAUDE_ADD_DIRS", paths)]).load().unwrap();
    assert_eq!(options.settings.add_dirs, [Path::new("/a"), Path::new("/b")]);
}

#[test]
fn variables_are_named_after_options_and_empty_ones_are_unset() {
    let mut names = BTreeSet::new();
    for row in TABLE {
        let Some(variable) = row.variable else { continue };
        assert_eq!(variable, format!("CLAUDE_{}", row.name.to_uppercase().replace('.', "_")));
        assert!(names.insert(variable));
        assert!(!claude_wire::launch::NEVER_INHERITED.contains(&variable));
        let empty = Options::layered().variables([(variable, "x"), (variable, "")]);
        assert_eq!(empty.load().unwrap().sources(row.name), []);
    }
    let other = Options::layered().variables([("CLAUDE_CODE_WHATEVER", "x")]).load().unwrap();
    assert_eq!(other.explain().to_string(), "");
}

#[test]
fn merge_rules_apply_when_all_sources_set_an_option() {
    for row in TABLE {
        let (name, show) = (row.name, |options: &Options| row.show(options));
        // Three layers set the option; the builder and the middle layer set the default.
        let low = layer("low.json", &json_file(name, &value_of(name)));
        let mut middle = Options::new();
        middle.origins.replace(name, Source::variable("X"));
        let mut builder = Options::new();
        builder.origins.replace(name, Source::BUILDER);
        let all = merged(&[low.clone(), middle.clone()], builder, &mut Vec::new());
        let file = low.sources(name)[0].clone();
        match row.rule {
            Rule::Highest => {
                assert_eq!(show(&all), show(&Options::new()), "{name}: the builder wins");
                assert_eq!(all.sources(name), [Source::BUILDER], "{name}");
            }
            Rule::ByKey | Rule::Append => {
                assert_eq!(show(&all), show(&low), "{name}: what is not replaced stays");
                let sources = [file, Source::variable("X"), Source::BUILDER];
                assert_eq!(all.sources(name), sources, "{name}");
            }
        }
        // In the reverse order, the value of the builder is used, whatever the rule.
        let mut high = Options::new();
        row.replace(&mut high, &low);
        high.origins.replace(name, Source::BUILDER);
        let all = merged(&[middle], high, &mut Vec::new());
        assert_eq!(show(&all), show(&low), "{name}");
    }
}

/// Returns a value for a config file that is not the default: a listed one, or one of the kind of
/// the row.
fn value_of(name: &str) -> String {
    if let Some((_, value)) = VALUES.iter().find(|(other, _)| *other == name) {
        return (*value).to_owned();
    }
    let row = row(name);
    let value = match row.expected() {
        "a string" | "a path" | "an ID" => r#""x""#,
        "an integer" => "11",
        "a Boolean" if row.show(&Options::new()) == "true" => "false",
        "a Boolean" => "true",
        "a list of strings" | "a list of paths" => r#"["x"]"#,
        expected if expected.starts_with("a duration") => r#""11s""#,
        expected => panic!("`VALUES` has no value for `{name}`, which is {expected}"),
    };
    value.to_owned()
}

#[test]
fn unset_options_keep_defaults_and_callbacks_are_kept() {
    let builder = Options::new().can_use_tool(|_, _| async { crate::Permission::allow() });
    let options =
        Options::layered().file_text("x.json", r#"{"model": "m"}"#).under(builder).unwrap();
    assert!(options.host.callbacks.has_can_use_tool() && options.host.needs.permission_callback);
    let unset = Options::new();
    for row in TABLE.iter().filter(|row| row.name != "model") {
        assert_eq!(row.show(&options), row.show(&unset), "{}", row.name);
    }
}

#[test]
fn merging_follows_the_specification() {
    let low = r#"{
        "env": {"A": "file", "B": "file"},
        "settings": {"permissions": {"allow": ["file"], "deny": ["file"]}, "model": "file"},
        "add_dirs": ["/a", "/b"], "extra_args": ["x"],
        "betas": ["file"], "agents": {"file": {"description": "d", "prompt": "p"}}
    }"#;
    let settings = r#"{"permissions": {"allow": ["variable"]}, "language": "variable"}"#;
    let options = Options::layered()
        .file_text("x.json", low)
        .variables([("CLAUDE_SETTINGS", settings), ("CLAUDE_ADD_DIRS", "/b")])
        .variables([("CLAUDE_BETAS", "variable")])
        .under(
            Options::new()
                .env("B", "builder")
                .settings(Json::from(json!({"model": "builder"})))
                .add_dir("/a")
                .add_arg("x")
                .agents([("builder", AgentDefinition::new("d", "p"))]),
        )
        .unwrap();
    let settings = &options.settings;
    let Some(SettingsSource::Value(value)) = &settings.settings else { panic!() };
    assert_eq!(
        value.deserialize::<serde_json::Value>().unwrap(),
        json!({
            "permissions": {"allow": ["variable"], "deny": ["file"]},
            "model": "builder", "language": "variable",
        })
    );
    let env: Vec<_> = settings.env.iter().map(|(name, value)| (name, value.expose())).collect();
    assert_eq!(env, [("A", "file"), ("B", "builder")]);
    assert_eq!(settings.add_dirs, ["/a", "/b", "/b", "/a"].map(PathBuf::from));
    assert_eq!(settings.extra_args.len(), 2);
    assert_eq!(settings.betas, ["variable"]);
    assert_eq!(settings.agents.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["builder"]);
}

#[test]
fn settings_file_is_merged_by_value_unless_it_is_the_only_source() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.json"), r#"{"a": 1, "b": 1}"#).unwrap();
    let layers = || Options::layered().file_text("x.json", r#"{"settings": "s.json"}"#);
    let alone = layers().load().unwrap().settings.settings.clone();
    assert_eq!(alone, Some(SettingsSource::File("s.json".into())));
    let over = Json::from(json!({"b": 2}));
    let options = layers().under(Options::new().cwd(folder.path()).settings(over.clone())).unwrap();
    let Some(SettingsSource::Value(value)) = &options.settings.settings else { panic!() };
    assert_eq!(value.deserialize::<serde_json::Value>().unwrap(), json!({"a": 1, "b": 2}));
    let error = layers().under(Options::new().cwd("/missing").settings(over)).unwrap_err();
    assert!(error.to_string().contains("settings: failed to read `/missing/s.json`"), "{error}");
}

#[test]
fn environment_overrides_files_and_later_files_override_earlier_ones() {
    let options = Options::layered()
        .variables([("CLAUDE_MODEL", "v")])
        .file_text("a.json", r#"{"model": "a", "max_turns": 1, "client_app": "a"}"#)
        .file_text("b.json", r#"{"model": "b", "max_turns": 2}"#)
        .load()
        .unwrap();
    assert_eq!(
        options.explain().to_string(),
        "client_app = \"a\" (a.json:1:32)\nmax_turns = 2 (b.json:1:16)\nmodel = \"v\" (variable CLAUDE_MODEL)\n"
    );
    // A setter that is called later takes precedence again.
    let changed = options.max_turns(3).add_dir("/x");
    assert_eq!(changed.sources("max_turns"), [Source::BUILDER]);
    assert_eq!(changed.sources("add_dirs"), [Source::BUILDER]);
}

#[test]
fn in_process_server_does_not_override_the_mcp_message_limit() {
    let server = crate::mcp::RawServer::new(|message, _| async { Ok(message) });
    let layers =
        Options::layered().file_text("a.json", r#"{"limits": {"running_mcp_messages": 5}}"#);
    let options = layers.under(Options::new().mcp("s", server)).unwrap();
    assert_eq!(options.host.callbacks.running_mcp, Some(5));
    assert_eq!(options.host.needs.servers, ["s"]);
    assert_eq!(options.explain().to_string(), "limits.running_mcp_messages = 5 (a.json:1:13)\n");
}

#[test]
fn debug_output_of_layers_hides_secrets() {
    let layers = Options::layered()
        .file_text(
            "x.json",
            r#"{"env": {"K": "s3cr3t-value"}, "extra_args": [["f", "s3cr3t-value"]]}"#,
        )
        .variables([("CLAUDE_SYSTEM_PROMPT", "s3cr3t-value")])
        .variables([("CLAUDE_SETTINGS", r#"{"apiKey": "s3cr3t-value"}"#)]);
    assert!(!format!("{layers:?}").contains("s3cr3t"), "{layers:?}");
    let servers = r#"{"mcp": {"s": {"args": ["--token", "s3cr3t-other"]}}}"#;
    let layers = layers.file_text("y.json", servers);
    let builder = Options::new()
        .debug(crate::settings::DebugLog::file("/s3cr3t-value/log"))
        .executable(["node", "--key=s3cr3t", "s3cr3t"])
        .project_config_root("/s3cr3t-other");
    let options = layers.under(builder).unwrap();
    assert!(!format!("{:?}", options.host).contains("s3cr3t"));
    assert!(options.explain().to_string().contains("executable_args = [***, ***] (builder)"));
    let text = format!("{} {options:?}", options.explain());
    assert!(!options.explain().to_string().contains("s3cr3t"), "{text}");
    assert!(text.contains("env = {\"K\": ***} (x.json:1:2)"), "{text}");
}

/// Returns the rows of the guide that describe each source.
fn guide_rows() -> String {
    let mut table = String::from(
        "| option and key | a file gives | variable | of several sources |\n|---|---|---|---|\n",
    );
    for row in TABLE {
        let variable = row.variable.map(|name| format!("`{name}`")).unwrap_or_default();
        let rule = match row.rule {
            Rule::Highest => "the highest",
            Rule::ByKey => "merged by key",
            Rule::Append => "one after the other",
        };
        writeln!(table, "| `{}` | {} | {variable} | {rule} |", row.name, row.expected()).unwrap();
    }
    table
}

#[test]
fn guide_contains_the_layer_table() {
    const MARKER: &str = "<!-- table: sources of options -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guide/options.md");
    let guide = std::fs::read_to_string(&path).unwrap();
    let (before, after) = guide.split_once(MARKER).unwrap();
    let rows = after.split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let stored: String = rows.collect();
    let derived = guide_rows();
    if std::env::var_os("UPDATE_TABLES").is_some() {
        let rest = &after[stored.len()..];
        std::fs::write(&path, format!("{before}{MARKER}{derived}{rest}")).unwrap();
    } else {
        assert_eq!(stored, derived, "options.md is stale; help: run `cargo xtask tables`");
    }
}

/// Returns a config file with every option, which the tests then corrupt.
fn whole_file(toml: bool) -> String {
    let values = TABLE.iter().map(|row| (row.name, value_of(row.name)));
    let values = values.filter(|(_, value)| !toml || !value.starts_with('{'));
    if toml {
        let lines: Vec<String> = values.map(|(name, value)| format!("{name} = {value}")).collect();
        lines.join("\n")
    } else {
        json_files(values)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC*", toml in any::<bool>()) {
        let name = if toml { "x.toml" } else { "x.json" };
        drop(Options::layered().file_text(name, text.clone()).load());
        drop(Options::layered().variables(TABLE.iter().filter_map(|row| Some((row.variable?, &text)))).load());
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), toml in any::<bool>()) {
        let name = if toml { "x.toml" } else { "x.json" };
        drop(Options::layered().file_text(name, String::from_utf8_lossy(&bytes)).load());
    }

    #[test]
    fn corrupted_files_do_not_panic(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[\\[\\]{}\",:=.0-9a-z\n\u{fc}]{0,3}"), 1..6),
        toml in any::<bool>(),
    ) {
        let mut letters: Vec<char> = whole_file(toml).chars().collect();
        for (index, put) in cuts {
            let at = index.index(letters.len());
            letters.splice(at..=at, put.chars());
        }
        let name = if toml { "x.toml" } else { "x.json" };
        let text: String = letters.into_iter().collect();
        if let Err(error) = Options::layered().file_text(name, text).load() {
            prop_assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            prop_assert!(!error.problems().is_empty());
        }
    }
}

#[test]
fn variable_cannot_disable_permission_checks() {
    let mode =
        |value: &str| Options::layered().variables([("CLAUDE_PERMISSION_MODE", value)]).load();
    let error = mode("bypassPermissions").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOptions);
    assert!(error.to_string().contains("CLAUDE_PERMISSION_MODE"), "{error}");
    assert!(mode("acceptEdits").is_ok());
    // The builder, and a file that the host names, may do so.
    let file = Options::layered().file_text("a.json", r#"{"permission_mode":"bypassPermissions"}"#);
    assert!(file.load().is_ok());
}
