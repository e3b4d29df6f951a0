//! Settings to arguments and environment.

use std::path::PathBuf;

use claude_wire::control::PermissionMode;
use claude_wire::id::SessionId;
use claude_wire::launch::{
    CommandLine, Form, Include, Limits, Needs, Origin, Secret, Settings, Start, ToolSet,
    command_line, initialize,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{EnvironmentPolicy, McpDelivery, SettingsSource};
use claude_wire::{Json, Map};
use expect_test::{Expect, expect};

pub(crate) fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

pub(crate) fn session(settings: &Settings) -> CommandLine {
    command_line(settings, &Form::Session, &Needs::default()).unwrap()
}

pub(crate) fn print(settings: &Settings) -> CommandLine {
    command_line(settings, &Form::Print { prompt: "p".to_owned() }, &Needs::default()).unwrap()
}

pub(crate) fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}

/// The arguments that a change of the settings adds to a plain session.
fn check(change: impl FnOnce(&mut Settings), expected: &Expect) {
    let plain = session(&Settings::default()).arguments;
    let arguments = session(&settings(change)).arguments;
    assert_eq!(arguments[..plain.len()], plain);
    expected.assert_eq(&arguments[plain.len()..].join("\n"));
}

/// What a change of the settings adds to the handshake of a session, and to the arguments of print
/// mode. A session has nothing of it in its arguments.
fn check_told(change: impl FnOnce(&mut Settings), handshake: &Expect, printed: &Expect) {
    let settings = settings(change);
    assert_eq!(session(&settings).arguments, session(&Settings::default()).arguments);
    handshake
        .assert_eq(Json::from_serialize(&initialize(&settings, &Needs::default())).unwrap().text());
    let arguments = print(&settings).arguments;
    printed.assert_eq(&arguments[4..arguments.len() - 2].join("\n"));
}

#[test]
fn a_plain_session_has_the_session_form_and_no_prompt() {
    let command = session(&Settings::default());
    expect!["--output-format stream-json --input-format stream-json --verbose --await-initialize"]
        .assert_eq(&command.arguments.join(" "));
}

#[test]
fn print_mode_has_the_prompt_last_as_one_argument() {
    let form = Form::Print { prompt: "--help me\nplease".to_owned() };
    let settings = settings(|settings| settings.model = Some("m".to_owned()));
    let command = command_line(&settings, &form, &Needs::default()).unwrap();
    expect![[r"
        --print
        --output-format
        stream-json
        --verbose
        --model=m
        --
        --help me\nplease"]]
    .assert_eq(
        &command
            .arguments
            .iter()
            .map(|one| one.replace('\n', "\\n"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
}

#[test]
fn every_option_of_model_prompt_and_tools_has_its_flag() {
    check(|s| s.model = Some("opus".into()), &expect!["--model=opus"]);
    check(|s| s.fallback_model = Some("a,b".into()), &expect!["--fallback-model=a,b"]);
    check(|s| s.max_turns = Some(3), &expect!["--max-turns=3"]);
    check(|s| s.max_budget_usd = Some(0.5), &expect!["--max-budget-usd=0.5"]);
    check(
        |s| s.system_prompt = Some(SystemPromptBase::File("p.md".into())),
        &expect!["--system-prompt-file=p.md"],
    );
    check(|s| s.system_prompt = Some(SystemPromptBase::ClaudeCode), &expect![""]);
    check(
        |s| s.allowed_tools = vec!["Bash(git *)".into(), "Read".into()],
        &expect!["--allowedTools=Bash(git *),Read"],
    );
    check(|s| s.disallowed_tools = vec!["Write".into()], &expect!["--disallowedTools=Write"]);
    check(|s| s.tools = Some(ToolSet::Only(vec![])), &expect!["--tools="]);
    check(|s| s.tools = Some(ToolSet::Only(vec!["Bash".into()])), &expect!["--tools=Bash"]);
    check(|s| s.tools = Some(ToolSet::ClaudeCode), &expect!["--tools=default"]);
    check(
        |s| s.mcp_config_files = vec!["m.json".into(), "n.json".into()],
        &expect![[r"
            --mcp-config=m.json
            --mcp-config=n.json"]],
    );
    check(|s| s.strict_mcp_config = true, &expect!["--strict-mcp-config"]);
    check(
        |s| s.allow_dangerously_skip_permissions = true,
        &expect!["--allow-dangerously-skip-permissions"],
    );
}

#[test]
fn every_option_of_permissions_and_surroundings_has_its_flag() {
    check(
        |s| s.permission_prompt_tool = Some("mcp__a__b".into()),
        &expect!["--permission-prompt-tool=mcp__a__b"],
    );
    check(|s| s.start.origin = Origin::Session("id".into()), &expect!["--resume=id"]);
    check(|s| s.start.origin = Origin::Latest, &expect!["--continue"]);
    let id = "7d9f3c1e-0000-4000-8000-000000000001";
    check(
        |s| s.start = Start::with_id(id.into()),
        &expect!["--session-id=7d9f3c1e-0000-4000-8000-000000000001"],
    );
    check(
        |s| s.add_dirs = vec!["/a".into(), "-b".into()],
        &expect![[r"
            --add-dir=/a
            --add-dir=-b"]],
    );
    check(
        |s| s.settings = Some(SettingsSource::Value(Json::from_text(r#"{"a":1}"#).unwrap())),
        &expect![[r#"--settings={"a":1}"#]],
    );
    check(
        |s| s.settings = Some(SettingsSource::File("s.json".into())),
        &expect!["--settings=s.json"],
    );
    check(|s| s.setting_sources = Some(vec![]), &expect!["--setting-sources="]);
    check(
        |s| s.setting_sources = Some(vec!["user".into(), "local".into()]),
        &expect!["--setting-sources=user,local"],
    );
    check(|s| s.betas = vec!["x".into()], &expect!["--betas=x"]);
    check(|s| s.include |= Include::PARTIAL_MESSAGES, &expect!["--include-partial-messages"]);
}

#[test]
fn prompts_and_schemas_are_in_the_handshake_or_in_arguments_of_print_mode() {
    check_told(|_| {}, &expect![[r#"{"subtype":"initialize"}"#]], &expect![""]);
    check_told(
        |s| s.system_prompt = Some("-be\nbrief".into()),
        &expect![[r#"{"subtype":"initialize","systemPrompt":["-be\nbrief"]}"#]],
        &expect![["--system-prompt=-be\nbrief"]],
    );
    // No prompt at all is something else than the CLI's own.
    check_told(
        |s| s.system_prompt = Some("".into()),
        &expect![[r#"{"subtype":"initialize","systemPrompt":[""]}"#]],
        &expect!["--system-prompt="],
    );
    check_told(
        |s| s.system_prompt = Some(SystemPromptBase::ClaudeCode),
        &expect![[r#"{"subtype":"initialize"}"#]],
        &expect![""],
    );
    check_told(
        |s| s.output_schema = Some(json(r#"{"type":"object"}"#)),
        &expect![[r#"{"subtype":"initialize","jsonSchema":{"type":"object"}}"#]],
        &expect![[r#"--json-schema={"type":"object"}"#]],
    );
}

#[test]
fn both_system_prompts_and_both_lists_of_tools_are_sent() {
    check_told(
        |s| {
            s.system_prompt = Some("A".into());
            s.append_system_prompt = Some("B".into());
        },
        &expect![[r#"{"subtype":"initialize","systemPrompt":["A"],"appendSystemPrompt":"B"}"#]],
        &expect![[r"
            --system-prompt=A
            --append-system-prompt=B"]],
    );
    check(
        |s| {
            s.allowed_tools = vec!["Bash".into()];
            s.disallowed_tools = vec!["Bash(rm *)".into()];
        },
        &expect![[r"
            --allowedTools=Bash
            --disallowedTools=Bash(rm *)"]],
    );
}

#[test]
fn prompts_of_any_size_and_with_any_character_fit_into_a_session() {
    let long = format!("{}\0", "x".repeat(8 * 1024 * 1024));
    let settings = settings(|s| {
        s.system_prompt = Some(long.as_str().into());
        s.append_system_prompt = Some(long.as_str().into());
        s.output_schema = Some(json(&format!(r#"{{"title":"{}"}}"#, "x".repeat(1024 * 1024))));
    });
    let command = session(&settings);
    assert!(Limits::LINUX.check(&command, 0).is_ok());
    let handshake = initialize(&settings, &Needs::default());
    assert_eq!(handshake.system_prompt.as_slice(), [long.as_str()]);
    assert_eq!(handshake.append_system_prompt.as_deref(), Some(long.as_str()));
    // An argument ends at a NUL, so print mode refuses it.
    let form = Form::Print { prompt: "a\0b".to_owned() };
    let problems = command_line(&settings, &form, &Needs::default()).unwrap_err();
    let options: Vec<&str> = problems.iter().map(|problem| problem.options[0]).collect();
    assert_eq!(options, ["prompt", "system_prompt", "append_system_prompt"]);
}

#[test]
fn every_permission_mode_that_was_set_is_sent() {
    for mode in PermissionMode::KNOWN.iter().chain(&["made_up"]) {
        let command = session(&settings(|s| s.permission_mode = Some(PermissionMode::from(*mode))));
        assert_eq!(command.arguments.last().unwrap(), &format!("--permission-mode={mode}"));
    }
}

#[test]
fn resuming_takes_its_flags_together() {
    check(
        |s| {
            s.start.origin = Origin::Session("old".into());
            s.start.at = Some("message".into());
            s.start.fork = true;
            s.start.id = Some("7d9f3c1e-0000-4000-8000-000000000001".into());
        },
        &expect![[r"
            --resume=old
            --resume-session-at=message
            --fork-session
            --session-id=7d9f3c1e-0000-4000-8000-000000000001"]],
    );
}

#[test]
fn a_session_to_resume_or_start_is_resumed_first() {
    let id = "7d9f3c1e-0000-4000-8000-000000000001";
    let mut start = Start::from_origin(Origin::Session(id.into()));
    start.or_new = true;
    assert_eq!(start.fallback(), Some(Start::with_id(id.into())));
    assert_eq!(start.session_id().unwrap().as_str(), id);
    check(|s| s.start = start.clone(), &expect!["--resume=7d9f3c1e-0000-4000-8000-000000000001"]);
    check(
        |s| s.start = start.fallback().unwrap(),
        &expect!["--session-id=7d9f3c1e-0000-4000-8000-000000000001"],
    );
    start.or_new = false;
    assert_eq!(start.fallback(), None);
}

#[test]
fn the_session_id_is_known_unless_the_cli_makes_it() {
    let id = || SessionId::from("i");
    let known = |start: &Start| start.session_id().map(SessionId::to_string);
    assert_eq!(known(&Start::default()), None);
    assert_eq!(known(&Start::with_id(id())), Some("i".to_owned()));
    assert_eq!(known(&Start::from_origin(Origin::Latest)), None);
    let mut start = Start::from_origin(Origin::Session("o".into()));
    assert_eq!(known(&start), Some("o".to_owned()));
    start.fork = true;
    assert_eq!(known(&start), None);
    start.id = Some(id());
    assert_eq!(known(&start), Some("i".to_owned()));
}

#[test]
fn extra_arguments_come_last_with_their_values_bound() {
    check(
        |s| {
            s.extra_args = vec![
                ("debug".into(), None),
                ("--effort".into(), Some(Secret::from("-high"))),
                ("empty".into(), Some(Secret::from(""))),
            ];
        },
        &expect![[r"
            --debug
            --effort=-high
            --empty="]],
    );
}

#[test]
fn in_process_servers_are_listed_beside_external_ones() {
    let settings = settings(|s| {
        s.mcp_servers.set("ext", json(r#"{"command":"x"}"#));
        s.mcp_config_files = vec!["more.json".into()];
    });
    let mut needs = Needs::default();
    needs.servers = vec!["calc".to_owned()];
    needs.permission_callback = true;
    let command = command_line(&settings, &Form::Session, &needs).unwrap();
    expect![[r"
        --await-initialize
        --permission-prompt-tool=stdio
        --mcp-config=more.json"]]
    .assert_eq(&command.arguments[5..].join("\n"));
    expect![[r#"{"subtype":"initialize","mcpServers":{"ext":{"command":"x"},"calc":{"type":"sdk","name":"calc"}}}"#]]
    .assert_eq(Json::from_serialize(&initialize(&settings, &needs)).unwrap().text());
}

#[test]
fn servers_are_in_the_handshake_or_on_the_command_line() {
    let mut needs = Needs::default();
    needs.servers = vec!["calc".to_owned()];
    for (delivery, form, is_in_handshake) in [
        (McpDelivery::Automatic, Form::Session, true),
        (McpDelivery::Handshake, Form::Session, true),
        (McpDelivery::Arguments, Form::Session, false),
    ] {
        let settings = settings(|s| {
            s.mcp_servers.set("ext", json(r#"{"command":"x","env":{"KEY":"s3cr3t"}}"#));
            s.mcp_delivery = delivery;
        });
        let arguments = command_line(&settings, &form, &needs).unwrap().arguments.join(" ");
        let handshake = Json::from_serialize(&initialize(&settings, &needs)).unwrap();
        let has = |text: &str| text.contains("s3cr3t") && text.contains(r#""calc":{"type":"sdk""#);
        assert_eq!(has(handshake.text()), is_in_handshake, "{delivery:?}: {}", handshake.text());
        assert_eq!(has(&arguments), !is_in_handshake, "{delivery:?}: {arguments}");
        assert_eq!(
            arguments.contains("--mcp-config"),
            !is_in_handshake,
            "{delivery:?}: {arguments}"
        );
    }
}

#[test]
fn print_mode_has_servers_on_the_command_line() {
    let servers = |delivery| {
        settings(|s| {
            s.mcp_servers.set("ext", json(r#"{"command":"x"}"#));
            s.mcp_delivery = delivery;
        })
    };
    for delivery in [McpDelivery::Automatic, McpDelivery::Arguments] {
        let arguments = print(&servers(delivery)).arguments.join(" ");
        let expected = r#"--mcp-config={"mcpServers":{"ext":{"command":"x"}}}"#;
        assert!(arguments.contains(expected), "{delivery:?}: {arguments}");
    }
}

#[test]
fn handshake_without_servers_does_not_name_any() {
    for delivery in [McpDelivery::Automatic, McpDelivery::Handshake] {
        let handshake = initialize(&settings(|s| s.mcp_delivery = delivery), &Needs::default());
        assert_eq!(handshake.mcp_servers, None, "nothing would be confirmed");
    }
}

#[test]
fn the_environment_names_the_sdk_and_never_an_outer_session() {
    let command = session(&settings(|s| {
        s.cwd = Some(PathBuf::from("/project"));
        s.file_checkpointing = true;
        s.env = Map::from([("KEY".to_owned(), Secret::from("value"))]);
    }));
    let names: Vec<&str> = command.set.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_AGENT_SDK_VERSION",
            "CLAUDE_CODE_SDK_READS_SESSION_STATE",
            "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING",
            "PWD",
            "KEY",
        ]
    );
    assert_eq!(command.set[0].1.expose(), "sdk-rust");
    assert!(command.remove.contains(&"CLAUDECODE".to_owned()));
    for policy in
        [EnvironmentPolicy::Inherit, EnvironmentPolicy::Only(vec!["CLAUDECODE".to_owned()])]
    {
        assert!(!policy.passes("CLAUDECODE"), "{policy:?}");
    }
}

#[test]
fn pwd_follows_the_working_directory() {
    for (cwd, set, removed) in [
        (None, None, false),
        (Some(""), None, false),
        (Some("/a"), Some("/a"), false),
        (Some("a"), None, true),
    ] {
        let command = session(&settings(|s| s.cwd = cwd.map(PathBuf::from)));
        let given = command.set.iter().find(|(name, _)| name == "PWD");
        assert_eq!(given.map(|(_, value)| value.expose()), set, "{cwd:?}");
        assert_eq!(command.remove.contains(&"PWD".to_owned()), removed, "{cwd:?}");
    }
}

#[test]
fn variables_of_the_host_are_not_overridden() {
    let command = session(&settings(|s| {
        s.env = Map::from([
            ("CLAUDE_CODE_ENTRYPOINT".to_owned(), Secret::from("mine")),
            ("CLAUDECODE".to_owned(), Secret::from("1")),
        ]);
    }));
    let given: Vec<_> =
        command.set.iter().filter(|(name, _)| name == "CLAUDE_CODE_ENTRYPOINT").collect();
    assert_eq!(given.len(), 1);
    assert_eq!(given[0].1.expose(), "mine");
    assert!(!command.remove.contains(&"CLAUDECODE".to_owned()));
}

#[test]
fn each_environment_policy_passes_its_variables() {
    let except = EnvironmentPolicy::InheritExcept(vec!["A".to_owned()]);
    let only = EnvironmentPolicy::Only(vec!["A".to_owned()]);
    assert_eq!((except.passes("A"), except.passes("B")), (false, true));
    assert_eq!((only.passes("A"), only.passes("B")), (true, false));
    assert!(!EnvironmentPolicy::Clean.passes("A"));
}

#[test]
fn all_contradictions_are_reported_with_both_options() {
    let settings = settings(|s| {
        s.start.origin = Origin::Session("id".into());
        s.start.id = Some("7d9f3c1e-0000-4000-8000-000000000001".into());
        s.model = Some("m".into());
        s.max_turns = Some(0);
        s.max_budget_usd = Some(f64::NAN);
        s.fallback_model = Some("m".into());
        s.permission_prompt_tool = Some("a\0b".into());
        s.env = Map::from([("A=B".to_owned(), Secret::from("x"))]);
        s.extra_args = vec![("--".into(), None)];
        s.allowed_tools = vec![" ".into()];
    });
    let mut needs = Needs::default();
    needs.permission_callback = true;
    let problems = command_line(&settings, &Form::Session, &needs).unwrap_err();
    let options: Vec<String> = problems.iter().map(|problem| problem.options.join("+")).collect();
    assert_eq!(
        options,
        [
            "can_use_tool+permission_prompt_tool",
            "conversation",
            "model+fallback_model",
            "max_budget_usd",
            "max_turns",
            "env",
            "extra_args",
            "permission_prompt_tool",
            "allowed_tools",
        ]
    );
}

#[test]
fn print_mode_rejects_options_of_the_control_protocol() {
    let mut needs = Needs::default();
    needs.permission_callback = true;
    needs.hooks = true;
    needs.servers = vec!["calc".to_owned()];
    let form = Form::Print { prompt: "x".to_owned() };
    let problems = command_line(&Settings::default(), &form, &needs).unwrap_err();
    assert_eq!(problems.iter().count(), 3);
    assert!(problems.iter().all(|problem| problem.options[0] == "print_mode"));
}

#[test]
fn forks_and_messages_need_a_session() {
    for change in [
        (|s: &mut Settings| s.start.fork = true) as fn(&mut Settings),
        |s| s.start.at = Some("m".into()),
        |s| {
            s.start.origin = Origin::Latest;
            s.start.at = Some("m".into());
        },
        |s| {
            s.start.origin = Origin::Session("7d9f3c1e-0000-4000-8000-000000000001".into());
            s.start.or_new = true;
            s.start.at = Some("m".into());
        },
    ] {
        assert!(command_line(&settings(change), &Form::Session, &Needs::default()).is_err());
    }
}

#[test]
fn oversized_argument_is_reported_before_the_start() {
    let with = |betas| session(&settings(|s| s.betas = vec![betas]));
    let problem = Limits::LINUX.check(&with("x".repeat(Limits::LINUX.one)), 0).unwrap_err();
    assert!(problem.to_string().contains("--betas has 131"), "{problem}");
    let command = with("x".repeat(Limits::LINUX.one - 1 - "--betas=".len()));
    assert!(Limits::LINUX.check(&command, 0).is_ok());
    let problem = Limits::LINUX.check(&command, Limits::LINUX.all).unwrap_err().to_string();
    assert!(problem.contains("the largest part, argument --betas"), "{problem}");
    assert!(Limits::WINDOWS.check(&command, 0).is_err());
}

#[test]
fn oversized_argument_error_names_an_alternative_and_not_the_value() {
    let long = "x".repeat(Limits::LINUX.one);
    let told = |command: &CommandLine| Limits::LINUX.check(command, 0).unwrap_err().to_string();
    let object = json(&format!(r#"{{"a":"{long}"}}"#));
    let command = session(&settings(|s| {
        s.mcp_servers.set("ext", object.clone());
        s.mcp_delivery = McpDelivery::Arguments;
    }));
    assert!(told(&command).contains("`mcp_config_files`"));
    // Nothing limits its size in the handshake.
    let command = session(&settings(|s| s.mcp_servers.set("ext", object.clone())));
    assert!(Limits::LINUX.check(&command, 0).is_ok());
    let command = session(&settings(|s| s.settings = Some(object.into())));
    assert!(told(&command).contains("a file"));
    let form = Form::Print { prompt: format!("--key {long}") };
    let command = command_line(&Settings::default(), &form, &Needs::default()).unwrap();
    let problem = told(&command);
    assert!(problem.contains("the prompt") && problem.contains("`print_mode`"), "{problem}");
    assert!(!problem.contains("--key"), "{problem}");
}

#[test]
fn text_instead_of_an_object_is_rejected() {
    let settings = settings(|s| {
        s.mcp_servers.set("ext", r#"{"command":"x"}"#);
        s.output_schema = Some(Json::from("{}"));
        s.settings = Some(json("[]").into());
    });
    let problems = command_line(&settings, &Form::Session, &Needs::default()).unwrap_err();
    let options: Vec<&str> = problems.iter().map(|problem| problem.options[0]).collect();
    assert_eq!(options, ["mcp", "output_schema", "settings"]);
}
