//! Values that would not arrive as they are: told before anything starts.

use std::path::PathBuf;

use claude_wire::Json;
use claude_wire::control::AgentDefinition;
use claude_wire::launch::{
    Form, Needs, Origin, Plugin, Settings, Thinking, ToolSet, command_line, secrets,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{CliSettings, DebugLog, Sandbox, SettingsSource, ThinkingDisplay};

/// The options of every problem.
fn problems(change: impl FnOnce(&mut Settings)) -> Vec<String> {
    let mut settings = Settings::default();
    change(&mut settings);
    match command_line(&settings, &Form::Session, &Needs::default()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|problem| problem.options.join("+")).collect(),
    }
}

/// As the CLI takes them: seen on 2.1.261 and 2.1.325.
#[test]
fn the_id_of_a_new_session_is_a_uuid_of_any_version() {
    let found = |id: &str| problems(|s| s.start.id = Some(id.into()));
    for id in [
        "7d9f3c1e-0000-4000-8000-000000000001",
        "7D9F3C1E-0000-7000-8000-00000000000A",
        "00000000-0000-0000-0000-000000000000",
    ] {
        assert!(found(id).is_empty(), "{id}");
    }
    for id in [
        "1234",
        "7d9f3c1e00004000800000000000000f",
        "{7d9f3c1e-0000-4000-8000-000000000001}",
        "7d9f3c1e-0000-4000-8000-00000000000g",
        "7d9f3c1e-0000-4000-8000-000000000001-",
        " ",
    ] {
        assert_eq!(found(id), ["conversation"], "{id}");
    }
    // What is resumed may be named in other ways, unless a new session may get its ID.
    let resume = |id: &str, or_new: bool| {
        problems(|s| {
            s.start.origin = Origin::Session(id.into());
            s.start.or_new = or_new;
        })
    };
    assert!(resume("1234", false).is_empty());
    assert_eq!(resume("1234", true), ["conversation"]);
    assert!(resume("7d9f3c1e-0000-4000-8000-000000000001", true).is_empty());
}

#[test]
fn a_model_has_a_name() {
    assert_eq!(problems(|s| s.model = Some(String::new())), ["model"]);
    assert_eq!(problems(|s| s.fallback_model = Some(" ".into())), ["fallback_model"]);
}

#[test]
fn no_text_and_no_path_holds_a_nul() {
    let path = || PathBuf::from("/a\0b");
    let text = || "a\0b".to_owned();
    let found = problems(|s| {
        s.model = Some(text());
        s.fallback_model = Some("b\0c".into());
        s.permission_prompt_tool = Some(text());
        s.agent = Some(text());
        s.client_app = Some(text());
        s.permission_mode = Some("a\0b".into());
        s.permission_prompts = Some("a\0b".into());
        s.effort = Some("a\0b".into());
        s.thinking = Some(Thinking::adaptive().display(ThinkingDisplay::from("a\0b")));
        s.question_preview = Some("a\0b".into());
        s.start.origin = Origin::Session("a\0b".into());
        s.start.at = Some("a\0b".into());
        s.start.dropping_turn = Some("a\0b".into());
        s.system_prompt = Some(SystemPromptBase::File(path()));
        s.settings = Some(SettingsSource::File(path()));
        s.project_config_root = Some(path());
        s.debug = DebugLog::File(path());
        s.add_dirs = vec![path()];
        s.mcp_config_files = vec![path()];
        s.plugins = vec![Plugin::new(path())];
        s.cwd = Some(path());
        s.allowed_tools = vec![text()];
        s.disallowed_tools = vec![text()];
        s.tools = Some(ToolSet::Only(vec![text()]));
        s.setting_sources = Some(vec![text()]);
        s.betas = vec![text()];
    });
    let expected = "conversation conversation conversation model fallback_model \
                    permission_prompt_tool agent client_app permission_mode \
                    permission_prompts effort thinking question_preview system_prompt settings project_config_root debug \
                    add_dirs mcp_config_files plugins cwd allowed_tools disallowed_tools tools \
                    setting_sources betas";
    assert_eq!(found.join(" "), expected.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(problems(|s| s.start.id = Some("a\0b".into())), ["conversation"]);
}

#[test]
fn list_entries_are_neither_split_nor_joined() {
    // As the CLI cuts them: at commas and blanks, but not inside of parentheses, of which it sees
    // only the first that opens and the first that closes.
    for (entry, is_one) in [
        ("Read", true),
        (" Read ", true),
        ("mcp__server__tool", true),
        ("Bash(git log:*)", true),
        ("Bash(a, b)", true),
        ("Read\nWrite", true),
        ("Read,Write", false),
        ("Read Write", false),
        ("Bash(x),Write", false),
        ("Bash(echo (a),Write", false),
        ("Bash(echo (a) b)", false),
        ("Bash(x", false),
        ("", false),
        (" ", false),
    ] {
        let found = problems(|s| {
            s.allowed_tools = vec![entry.to_owned()];
            s.disallowed_tools = vec![entry.to_owned()];
            s.tools = Some(ToolSet::Only(vec![entry.to_owned()]));
            s.setting_sources = Some(vec![entry.to_owned()]);
            s.betas = vec![entry.to_owned()];
        });
        let all = ["allowed_tools", "disallowed_tools", "tools", "setting_sources", "betas"];
        assert_eq!(found, if is_one { &[][..] } else { &all }, "{entry:?}");
    }
}

#[test]
fn empty_ids_and_paths_are_rejected() {
    assert_eq!(problems(|s| s.start.origin = Origin::Session("".into())), ["conversation"]);
    assert_eq!(problems(|s| s.start.id = Some(" ".into())), ["conversation"]);
    assert_eq!(problems(|s| s.add_dirs = vec![PathBuf::new()]), ["add_dirs"]);
    assert_eq!(problems(|s| s.debug = DebugLog::File(PathBuf::new())), ["debug"]);
    assert_eq!(problems(|s| s.plugins = vec![Plugin::new("")]), ["plugins"]);
    // No name is no directory.
    assert_eq!(problems(|s| s.cwd = Some(PathBuf::new())), [""; 0]);
}

#[cfg(unix)]
#[test]
fn path_that_is_not_utf8_is_rejected_where_it_would_change() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let odd = || PathBuf::from(OsStr::from_bytes(b"/a\xffb"));
    assert_eq!(problems(|s| s.add_dirs = vec![odd()]), ["add_dirs"]);
    assert_eq!(problems(|s| s.plugins = vec![Plugin::new(odd())]), ["plugins"]);
    // The system takes it as it is; only the variable cannot say it.
    let mut settings = Settings::default();
    settings.cwd = Some(odd());
    let command = command_line(&settings, &Form::Session, &Needs::default()).unwrap();
    assert!(!command.set.iter().any(|(name, _)| name == "PWD"));
    assert!(command.remove.iter().any(|name| name == "PWD"));
}

#[test]
fn settings_agents_and_sandboxes_show_names_alone() {
    let environment = std::collections::BTreeMap::from([("K".to_owned(), "hush".to_owned())]);
    let settings = CliSettings::default()
        .env(environment)
        .api_key_helper("echo hush")
        .set("new", Json::from("hush"));
    assert_eq!(format!("{settings:?}"), r#"CliSettings {"apiKeyHelper", "env", "new"}"#);
    let sandbox = Sandbox::default().enabled(true).set("new", Json::from("hush"));
    assert_eq!(format!("{sandbox:?}"), r#"Sandbox {"enabled", "new"}"#);
    let agent = AgentDefinition::new("hush", "hush");
    assert_eq!(format!("{agent:?}"), r#"AgentDefinition {"description", "prompt"}"#);
    let mut settings = Settings::default();
    settings.append_system_prompt = Some("hush".into());
    settings.agents.set("a", agent);
    let handshake = claude_wire::launch::initialize(&settings, &Needs::default());
    assert_eq!(
        format!("{handshake:?}"),
        r#"Initialize {"agents", "appendSystemPrompt", "subtype"}"#
    );
}

#[test]
fn credentials_in_addresses_and_arguments_of_servers_are_masked() {
    let mut settings = Settings::default();
    let json = |text: &str| Json::from_text(text).unwrap();
    let remote = r#"{"type":"http","url":"https://me:pass-word@host:1/p?a=first&b=second#end"}"#;
    settings.mcp_servers.set("remote", json(remote));
    let local = r#"{"command":"x","args":["--api-key","third-one","--token=fourth","PASSWORD=fifth","--port","80","a@b"]}"#;
    settings.mcp_servers.set("stdio", json(local));
    let mut found = secrets(&settings);
    found.sort();
    assert_eq!(found, ["fifth", "first", "fourth", "me", "pass-word", "second", "third-one"]);
}

#[test]
fn server_whose_tools_would_be_hidden_is_rejected() {
    let found = |name: &str| problems(|s| s.mcp_servers.set(name, Json::from_text("{}").unwrap()));
    for name in ["calc", "a__b", "a b.c/d", "é", "", "constructor", &"x".repeat(120)] {
        assert_eq!(found(name), Vec::<String>::new(), "{name:?}");
    }
    // The CLI counts as JavaScript does.
    for name in ["__proto__", &"x".repeat(121), &"😀".repeat(61)] {
        assert_eq!(found(name), ["mcp"], "{name:?}");
    }
    assert_eq!(found(&"é".repeat(120)), Vec::<String>::new());
}
