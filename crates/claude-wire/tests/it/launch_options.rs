//! Every option, and what becomes of it: arguments, variables, the handshake.

use claude_wire::Json;
use claude_wire::control::{AgentDefinition, AgentMemory, PermissionMode};
use claude_wire::launch::{
    Effort, Form, Include, Needs, Origin, Plugin, Problems, Settings, Skills, Thinking,
    command_line, initialize, secrets,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{
    DebugLog, McpDelivery, PermissionPrompts, PluginDelivery, PreviewFormat,
    SYSTEM_PROMPT_BOUNDARY, Sandbox, SettingsSource, ThinkingDisplay,
};
use expect_test::{Expect, expect};

pub(crate) fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

pub(crate) fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}

/// What a change of the settings adds to the arguments, the variables and the handshake of a
/// session, one to a line.
pub(crate) fn check(change: impl FnOnce(&mut Settings), expected: &Expect) {
    let plain = command_line(&Settings::default(), &Form::Session, &Needs::default()).unwrap();
    let settings = settings(change);
    let command = command_line(&settings, &Form::Session, &Needs::default()).unwrap();
    let mut told = command.arguments[plain.arguments.len()..].to_vec();
    let variables = command.set.iter().filter(|variable| !plain.set.contains(variable));
    told.extend(variables.map(|(name, value)| format!("{name}={}", value.expose())));
    let handshake = Json::from_serialize(&initialize(&settings, &Needs::default())).unwrap();
    if handshake.text() != r#"{"subtype":"initialize"}"# {
        told.push(handshake.text().replacen(r#""subtype":"initialize","#, "", 1));
    }
    expected.assert_eq(&told.join("\n"));
}

/// What a change of the settings adds to the arguments of print mode.
pub(crate) fn check_printed(change: impl FnOnce(&mut Settings), expected: &Expect) {
    let form = Form::Print { prompt: "p".to_owned() };
    let command = command_line(&settings(change), &form, &Needs::default()).unwrap();
    expected.assert_eq(&command.arguments[4..command.arguments.len() - 2].join("\n"));
}

pub(crate) fn problems(change: impl FnOnce(&mut Settings), form: &Form) -> Problems {
    command_line(&settings(change), form, &Needs::default()).unwrap_err()
}

/// The options of every problem, each problem's joined.
pub(crate) fn named(problems: &Problems) -> Vec<String> {
    problems.iter().map(|problem| problem.options.join("+")).collect()
}

#[test]
fn thinking_has_its_flags() {
    check(|s| s.thinking = Some(Thinking::adaptive()), &expect!["--thinking=adaptive"]);
    check(|s| s.thinking = Some(Thinking::disabled()), &expect!["--thinking=disabled"]);
    check(
        |s| s.thinking = Some(Thinking::budget(2048).display(ThinkingDisplay::Omitted)),
        &expect![[r"
            --max-thinking-tokens=2048
            --thinking-display=omitted"]],
    );
}

#[test]
fn max_thinking_tokens_has_its_flag_and_zero_disables() {}

#[test]
fn effort_has_its_flag() {
    check(|s| s.effort = Some(Effort::ExtraHigh), &expect!["--effort=xhigh"]);
}

#[test]
fn task_budget_has_its_flag() {
    check(|s| s.task_budget = Some(60_000), &expect!["--task-budget=60000"]);
}

#[test]
fn multipart_system_prompt_is_in_the_handshake() {
    check(
        |s| s.system_prompt = Some(SystemPromptBase::cached("same", "changing")),
        &expect![[r#"{"systemPrompt":["same","__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__","changing"]}"#]],
    );
}

#[test]
fn exclude_dynamic_sections_and_the_snapshot_are_in_the_handshake() {
    check(
        |s| s.exclude_dynamic_sections = Some(true),
        &expect![[r#"{"excludeDynamicSections":true}"#]],
    );
    check(
        |s| s.system_prompt_snapshot = Some(false),
        &expect![[r#"{"systemPromptSnapshot":false}"#]],
    );
    check_printed(
        |s| {
            s.exclude_dynamic_sections = Some(true);
            s.system_prompt_snapshot = Some(false);
        },
        &expect![[r"
            --exclude-dynamic-system-prompt-sections
            --system-prompt-snapshot=off"]],
    );
}

#[test]
fn plan_mode_instructions_are_in_the_handshake() {
    check(
        |s| s.plan_mode_instructions = Some("Plan.".into()),
        &expect![[r#"{"planModeInstructions":"Plan."}"#]],
    );
}

#[test]
fn prompt_suggestions_are_in_the_handshake() {
    check(
        |s| s.include |= Include::PROMPT_SUGGESTIONS,
        &expect![[r#"{"promptSuggestions":true}"#]],
    );
    check_printed(|s| s.include |= Include::HOOK_EVENTS, &expect!["--include-hook-events"]);
}

#[test]
fn verbatim_prompts_do_not_affect_the_arguments() {
    check(|s| s.verbatim_prompts = true, &expect![""]);
}

#[test]
fn the_agent_has_its_flag() {
    check(|s| s.agent = Some("reviewer".into()), &expect!["--agent=reviewer"]);
}

/// An agent of which everything is said.
fn whole_agent() -> AgentDefinition {
    let mut agent = AgentDefinition::new("Reviews", "You review.")
        .tools(["Read"])
        .disallowed_tools(["Bash"])
        .model("haiku")
        .session_mcp_server("shared")
        .mcp_server("own", json(r#"{"command":"x"}"#))
        .critical_system_reminder("Be kind.")
        .skills(["style"])
        .initial_prompt("Begin.")
        .max_turns(3_u32)
        .auto_compact_window(100_000_u64)
        .background(true)
        .omit_claude_md(true)
        .memory(AgentMemory::Project)
        .effort(Effort::High)
        .permission_mode(PermissionMode::Plan)
        .observer("watcher")
        .observer_message("Watch.");
    agent.extra.set("later", "field");
    agent
}

#[test]
fn agents_are_in_the_handshake_with_every_field() {
    check(
        |s| s.agents.set("reviewer", whole_agent()),
        &expect![[
            r#"{"agents":{"reviewer":{"description":"Reviews","prompt":"You review.","tools":["Read"],"disallowedTools":["Bash"],"model":"haiku","mcpServers":["shared",{"own":{"command":"x"}}],"criticalSystemReminder_EXPERIMENTAL":"Be kind.","skills":["style"],"initialPrompt":"Begin.","maxTurns":3,"autoCompactWindow":100000,"background":true,"omitClaudeMd":true,"memory":"project","effort":"high","permissionMode":"plan","observer":"watcher","observerMessage":"Watch.","later":"field"}}}"#
        ]],
    );
    let text = Json::from_serialize(&whole_agent()).unwrap();
    assert_eq!(text.deserialize::<AgentDefinition>().unwrap(), whole_agent());
    let agent = AgentDefinition::new("d", "p").effort_number(7);
    check_printed(
        |s| s.agents.set("a", agent),
        &expect![[r#"--agents={"a":{"description":"d","prompt":"p","effort":7}}"#]],
    );
}

#[test]
fn agent_options_are_in_the_handshake() {
    check(|s| s.include |= Include::SUBAGENT_TEXT, &expect![[r#"{"forwardSubagentText":true}"#]]);
    check_printed(|s| s.include |= Include::SUBAGENT_TEXT, &expect!["--forward-subagent-text"]);
    check(
        |s| s.include |= Include::AGENT_PROGRESS_SUMMARIES,
        &expect![[r#"{"agentProgressSummaries":true}"#]],
    );
    check(
        |s| s.per_task_stop_affordance = Some(true),
        &expect![[r#"{"perTaskStopAffordance":true}"#]],
    );
}

#[test]
fn skills_are_rules_and_a_list_in_the_handshake() {
    check(|s| s.skills = Some(Skills::All), &expect!["--allowedTools=Skill"]);
    check(
        |s| {
            s.allowed_tools = vec!["Read".into()];
            s.skills = Some(["pdf", "team:docs"].into());
        },
        &expect![[r#"
            --allowedTools=Read,Skill(pdf),Skill(team:docs)
            {"skills":["pdf","team:docs"]}"#]],
    );
    // None at all.
    check(|s| s.skills = Some(Skills::Only(vec![])), &expect![[r#"{"skills":[]}"#]]);
}

#[test]
fn skill_names_that_would_be_other_rules_are_rejected() {
    for name in
        ["", " a", "a ", "a(b", "a)", "a,b", "a\nb", "*", "a:*", "a *", "/a", r"a\\b", r"a\"]
    {
        let problems =
            problems(|s| s.skills = Some(Skills::Only(vec![name.into()])), &Form::Session);
        assert_eq!(named(&problems), ["skills"], "{name:?}");
    }
    for name in ["a", "a b", "plugin:skill", "a*b", r"a\b", "ä"] {
        let settings = settings(|s| s.skills = Some(Skills::Only(vec![name.into()])));
        assert!(command_line(&settings, &Form::Session, &Needs::default()).is_ok(), "{name:?}");
    }
}

#[test]
fn plugins_are_on_the_command_line_or_in_the_handshake() {
    let plugins = || vec![Plugin::new("/p/one"), Plugin::new("/p/two").without_mcp()];
    check(
        |s| s.plugins = plugins(),
        &expect![[r"
            --plugin-dir=/p/one
            --plugin-dir-no-mcp=/p/two"]],
    );
    check(
        |s| {
            s.plugins = plugins();
            s.plugin_delivery = PluginDelivery::Handshake;
        },
        &expect![[r#"
            {"plugins":[{"path":"/p/one","type":"local"},{"path":"/p/two","skipMcpDiscovery":true,"type":"local"}]}"#]],
    );
    // Nothing to wait for.
    check(|s| s.plugin_delivery = PluginDelivery::Handshake, &expect![""]);
}

#[test]
fn tool_aliases_are_in_the_handshake() {
    check(
        |s| s.tool_aliases = [("Run", "Bash".into())].into(),
        &expect![[r#"{"toolAliases":{"Run":"Bash"}}"#]],
    );
}

#[test]
fn the_preview_of_questions_and_the_application_have_their_variables() {
    check(
        |s| s.question_preview = Some(PreviewFormat::Html),
        &expect!["CLAUDE_CODE_QUESTION_PREVIEW_FORMAT=html"],
    );
    check(
        |s| s.client_app = Some("my-app/1.0".into()),
        &expect!["CLAUDE_AGENT_SDK_CLIENT_APP=my-app/1.0"],
    );
}

#[test]
fn permission_prompts_have_their_flag() {
    check(
        |s| s.permission_prompts = Some(PermissionPrompts::None),
        &expect!["--permission-prompts=none"],
    );
}

#[test]
fn conversation_options_have_a_flag_or_a_field() {
    check(
        |s| {
            s.start.origin = Origin::Session("id".into());
            s.start.at = Some("m".into());
            s.start.dropping_turn = Some("u".into());
        },
        &expect![[r"
            --resume=id
            --resume-session-at=m
            --resume-drops-turn=u"]],
    );
    check(|s| s.title = Some("Mine".into()), &expect![[r#"{"title":"Mine"}"#]]);
    check(|s| s.persist_session = Some(false), &expect!["--no-session-persistence"]);
    check(|s| s.persist_session = Some(true), &expect![""]);
}

#[test]
fn the_project_config_root_has_its_flag() {
    check(
        |s| s.project_config_root = Some("/trusted".into()),
        &expect!["--project-config-root=/trusted"],
    );
}

#[test]
fn logs_and_hook_events_have_their_flags() {
    check(|s| s.include |= Include::HOOK_EVENTS, &expect!["--include-hook-events"]);
    check(|s| s.debug = DebugLog::Default, &expect!["--debug"]);
    check(
        |s| {
            s.debug = DebugLog::file("/tmp/log");
        },
        &expect!["--debug-file=/tmp/log"],
    );
}

#[test]
fn contradictions_of_newer_options_name_both_options() {
    let problems = problems(
        |s| {
            s.model = Some("m".into());
            s.fallback_model = Some("n, m".into());
            s.start.origin = Origin::Session("id".into());
            s.start.dropping_turn = Some("u".into());
            s.system_prompt = Some("mine".into());
            s.exclude_dynamic_sections = Some(true);
            s.sandbox = Some(Sandbox::default().into());
            s.settings = Some(SettingsSource::File("s.json".into()));
        },
        &Form::Session,
    );
    assert_eq!(
        named(&problems),
        [
            "conversation",
            "model+fallback_model",
            "exclude_dynamic_sections+system_prompt",
            "sandbox+settings",
        ]
    );
}

#[test]
fn meaningless_values_are_reported_together() {
    let parts = ["a", SYSTEM_PROMPT_BOUNDARY, "b", SYSTEM_PROMPT_BOUNDARY];
    let problems = problems(
        |s| {
            s.task_budget = Some(0);
            s.thinking = Some(Thinking::disabled().display("summarized"));
            s.agent = Some("a\0b".into());
            s.agents.set("empty", AgentDefinition::new(" ", ""));
            s.plugins = vec![Plugin::new("")];
            s.tool_aliases = [(String::new(), "Bash".into())].into();
            s.system_prompt = Some(SystemPromptBase::Parts(parts.map(str::to_owned).to_vec()));
            s.managed_settings = Some(json("[]").into());
        },
        &Form::Session,
    );
    assert_eq!(
        named(&problems),
        [
            "task_budget",
            "thinking",
            "agent",
            "plugins",
            "agents",
            "agents",
            "tool_aliases",
            "system_prompt",
            "managed_settings",
        ]
    );
    let zero = self::problems(|s| s.thinking = Some(Thinking::budget(0)), &Form::Session);
    assert_eq!(named(&zero), ["thinking"]);
}

#[test]
fn print_mode_rejects_options_of_the_handshake() {
    let problems = problems(
        |s| {
            s.system_prompt = Some(SystemPromptBase::cached("a", "b"));
            s.plan_mode_instructions = Some("p".into());
            s.verbatim_prompts = true;
            s.title = Some("t".into());
            s.include |= Include::AGENT_PROGRESS_SUMMARIES;
            s.per_task_stop_affordance = Some(true);
            s.tool_aliases = [("Run", "Bash".into())].into();
            s.skills = Some(["pdf"].into());
            s.plugins = vec![Plugin::new("/p")];
            s.plugin_delivery = PluginDelivery::Handshake;
            s.mcp_servers.set("ext", json("{}"));
            s.mcp_delivery = McpDelivery::Handshake;
        },
        &Form::Print { prompt: "p".to_owned() },
    );
    assert_eq!(problems.iter().count(), 10);
    assert!(problems.iter().all(|problem| problem.options[0] == "print_mode"), "{problems}");
}

#[test]
fn ignored_options_are_reported() {
    let settings = settings(|s| {
        s.permission_prompts = Some(PermissionPrompts::None);
        s.permission_prompt_tool = Some("mcp__a__b".into());
        s.skills = Some(Skills::All);
        s.tools = Some(["Read"].into());
    });
    let command = command_line(&settings, &Form::Session, &Needs::default()).unwrap();
    assert_eq!(
        command.ignored,
        [("permission_prompt_tool", "permission_prompts"), ("skills", "tools"),]
    );
}

#[test]
fn private_values_of_newer_options_are_masked_and_not_printed() {
    const MARK: &str = "s3cr3t";
    let server = json(&format!(r#"{{"headers":{{"a":"{MARK}-a"}}}}"#));
    let settings = settings(|s| {
        s.agents.set("reviewer", AgentDefinition::new(MARK, MARK).mcp_server("own", server));
        s.managed_settings = Some(json(&format!(r#"{{"env":{{"K":"{MARK}-b"}}}}"#)).into());
        s.plan_mode_instructions = Some(MARK.into());
        s.title = Some(MARK.into());
        s.system_prompt = Some(SystemPromptBase::cached(MARK, MARK));
    });
    let text = format!("{settings:?} {settings:#?}");
    assert!(!text.contains(MARK), "{text}");
    assert!(text.contains("reviewer"), "{text}");
    let mut found = secrets(&settings);
    found.sort_unstable();
    assert_eq!(found, ["s3cr3t-a", "s3cr3t-b"]);
}
