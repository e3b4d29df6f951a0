//! Any settings result in a valid command line with one argument per flag, or in problems, and in a handshake that is
//! valid JSON.

use claude_wire::Json;
use claude_wire::control::AgentDefinition;
use claude_wire::launch::{
    CommandLine, Form, Limits, Needs, Origin, Plugin, Secret, Settings, Skills, Thinking, ToolSet,
    command_line, initialize, secrets,
};
use claude_wire::settings::SystemPromptBase;
use claude_wire::settings::{
    DebugLog, EnvironmentPolicy, McpDelivery, PluginDelivery, SettingsSource,
};
use serde_json::Value;

use super::input::Input;

pub(super) fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let form = if input.one_in(3) { Form::Print { prompt: input.text() } } else { Form::Session };
    let mut needs = Needs::default();
    needs.permission_callback = input.one_in(4);
    needs.hooks = input.one_in(4);
    needs.servers = input.texts();
    let settings = settings(&mut input);
    drop(format!("{settings:?}"));
    drop(secrets(&settings));
    let handshake = Json::from_serialize(&initialize(&settings, &needs))
        .expect("the handshake is serializable");
    assert!(handshake.deserialize::<Value>().is_ok_and(|value| value.is_object()));
    match command_line(&settings, &form, &needs) {
        Ok(command) => check(&command, &form),
        Err(problems) => assert!(problems.iter().all(|problem| !problem.options.is_empty())),
    }
}

fn check(command: &CommandLine, form: &Form) {
    drop(format!("{command:?}"));
    drop(Limits::WINDOWS.check(command, 0));
    assert!(command.arguments.iter().all(|argument| !argument.contains('\0')));
    for (name, value) in &command.set {
        assert!(!name.is_empty() && !name.contains(['=', '\0']), "{name:?}");
        assert!(!value.expose().contains('\0'), "{name}");
    }
    let (head, flags) = match form {
        Form::Print { prompt } => {
            let (flags, end) = command.arguments.split_at(command.arguments.len() - 2);
            assert_eq!(end, ["--", prompt.as_str()]);
            flags.split_at(4)
        }
        _ => command.arguments.split_at(5),
    };
    assert!(head.iter().any(|word| word == "--verbose"));
    for flag in flags {
        let name = flag.strip_prefix("--").unwrap_or_else(|| panic!("{flag:?} is not a flag"));
        assert!(!name.is_empty() && !name.starts_with(['-', '=']), "{flag:?}");
    }
}

/// Returns JSON from the input, or a JSON string if the input is not JSON.
fn json(input: &mut Input<'_>) -> Json {
    let text = input.text();
    Json::from_text(&*text).unwrap_or_else(|_| Json::from(&*text))
}

fn settings(input: &mut Input<'_>) -> Settings {
    let mut settings = Settings::default();
    model(input, &mut settings);
    prompts(input, &mut settings);
    extensions(input, &mut settings);
    conversation(input, &mut settings);
    surroundings(input, &mut settings);
    if input.one_in(2) {
        settings.mcp_delivery = McpDelivery::Arguments;
    }
    settings
}

fn model(input: &mut Input<'_>, settings: &mut Settings) {
    settings.model = input.option();
    settings.fallback_model = input.option();
    settings.max_turns = input.one_in(3).then(|| u32::from(input.byte()));
    let dollars = input.bytes(8).try_into().map(f64::from_le_bytes);
    settings.max_budget_usd = dollars.ok().filter(|_| input.one_in(3));
    settings.thinking = match input.byte() % 5 {
        1 => Some(Thinking::adaptive().display(input.text())),
        2 => Some(Thinking::budget(input.byte().into())),
        3 => Some(Thinking::disabled()),
        _ => None,
    };
    settings.effort = input.option::<String>().map(Into::into);
    settings.betas = input.texts();
}

fn prompts(input: &mut Input<'_>, settings: &mut Settings) {
    settings.system_prompt = match input.byte() % 5 {
        1 => Some(SystemPromptBase::Text(input.text())),
        2 => Some(SystemPromptBase::File(input.text().into())),
        3 => Some(SystemPromptBase::Parts(input.texts())),
        4 => Some(SystemPromptBase::ClaudeCode),
        _ => None,
    };
    settings.append_system_prompt = input.option();
    settings.plan_mode_instructions = input.option();
    settings.title = input.option();
    settings.output_schema = input.one_in(3).then(|| json(input));
}

fn extensions(input: &mut Input<'_>, settings: &mut Settings) {
    settings.agent = input.option();
    if input.one_in(3) {
        settings.agents.set(input.text(), AgentDefinition::new(input.text(), input.text()));
    }
    settings.skills = match input.byte() % 4 {
        1 => Some(Skills::All),
        2 => Some(Skills::Only(input.texts())),
        _ => None,
    };
    settings.plugins = input.texts().into_iter().map(Plugin::new).collect();
    if input.one_in(2) {
        settings.plugin_delivery = PluginDelivery::Handshake;
    }
    settings.allowed_tools = input.texts();
    settings.disallowed_tools = input.texts();
    settings.tools = input.one_in(3).then(|| ToolSet::Only(input.texts()));
    settings.tool_aliases = input.texts().into_iter().map(|name| (name, input.text())).collect();
    for name in input.texts() {
        settings.mcp_servers.set(name, json(input));
    }
    settings.mcp_config_files = input.texts().into_iter().map(Into::into).collect();
    settings.permission_mode = input.option::<String>().map(Into::into);
    settings.permission_prompt_tool = input.option();
    settings.permission_prompts = input.option::<String>().map(Into::into);
    settings.question_preview = input.option::<String>().map(Into::into);
}

fn conversation(input: &mut Input<'_>, settings: &mut Settings) {
    let start = &mut settings.start;
    start.origin = match input.option::<String>() {
        Some(id) => Origin::Session(id.into()),
        None if input.one_in(4) => Origin::Latest,
        None => Origin::New,
    };
    start.at = input.option::<String>().map(Into::into);
    start.dropping_turn = input.option::<String>().map(Into::into);
    start.id = input.option::<String>().map(Into::into);
    start.or_new = input.one_in(4);
    start.fork = input.one_in(4);
}

fn surroundings(input: &mut Input<'_>, settings: &mut Settings) {
    settings.cwd = input.option::<String>().map(Into::into);
    settings.project_config_root = input.option::<String>().map(Into::into);
    settings.add_dirs = input.texts().into_iter().map(Into::into).collect();
    settings.debug = input.option::<String>().map(DebugLog::file).unwrap_or_default();
    settings.client_app = input.option();
    settings.setting_sources = input.one_in(3).then(|| input.texts());
    settings.environment = match input.byte() % 4 {
        1 => EnvironmentPolicy::Clean,
        2 => EnvironmentPolicy::Only(input.texts()),
        _ => EnvironmentPolicy::Inherit,
    };
    settings.env =
        input.texts().into_iter().map(|name| (name, Secret::from(input.text()))).collect();
    let flags = input.texts().into_iter();
    settings.extra_args =
        flags.map(|name| (name, input.option::<String>().map(Secret::from))).collect();
    settings.settings = match input.byte() % 4 {
        1 => Some(SettingsSource::Value(json(input))),
        2 => Some(SettingsSource::File(input.text().into())),
        _ => None,
    };
    settings.managed_settings = input.one_in(3).then(|| json(input).into());
}
