//! Options of queries and sessions.
//!
//! Setters never fail. All invalid and contradictory options are reported together when a query or a
//! session starts.

mod callbacks;
pub(crate) mod conversation;
mod environment;
mod extensions;
mod host;
mod isolated;
mod layers;
mod limits;
mod mcp_delivery;
mod model;
mod origin;
pub(crate) mod prepare;
mod prompts;
mod servers;
mod settings_file;
mod tools;
mod user;
mod warnings;

use std::fmt;

use claude_wire::launch::Settings;

use crate::copy_on_write::CopyOnWrite;

pub use conversation::Conversation;
pub(crate) use conversation::set_aside;
pub use environment::{ExtraArg, SettingSources};
pub use host::{Background, VersionCheck};
pub use layers::Layers;
pub use limits::{Limits, Timeouts};
pub use origin::{Explanation, Source};
pub use user::OsUser;

pub(crate) use callbacks::extra_disallowed_tools;
pub(crate) use host::{HostOptions, OnStderr, OnWarning};
pub(crate) use mcp_delivery::{MCP_IN_HANDSHAKE, mcp_delivery};
pub(crate) use origin::Origins;
pub(crate) use prepare::{Prepared, prepare};
pub(crate) use settings_file::read as read_settings;

/// The configuration of queries and sessions.
///
/// Options that are not set are determined by the CLI and the user's settings. Setters consume and
/// return the value, and can be called in any order. Calling a setter again replaces the value, unless
/// its documentation states that it adds or appends.
///
/// ```
/// use claude_agent_kit::Options;
///
/// let options = Options::new()
///     .model("sonnet")
///     .system_prompt("You are terse.")
///     .allowed_tools(["Read", "Bash(git log:*)"])
///     .max_turns(3);
/// // The `Debug` output contains no prompts and no values of variables.
/// assert!(!format!("{options:?}").contains("terse"));
/// ```
#[derive(Clone, Default)]
#[must_use = "setters return the changed value"]
pub struct Options {
    /// Options that are sent to the CLI.
    pub(crate) settings: CopyOnWrite<Settings>,
    /// Options that are not sent to the CLI.
    pub(crate) host: CopyOnWrite<HostOptions>,
    /// The source of each value.
    pub(crate) origins: CopyOnWrite<Origins>,
}

impl Options {
    /// Creates options with all defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the value of an option that is sent to the CLI.
    fn change_settings(mut self, option: &'static str, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.set_by_builder(option)
    }

    /// Adds to the value of an option that is sent to the CLI.
    fn add_settings(mut self, option: &'static str, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.origins.add(option, Source::BUILDER);
        self
    }

    /// Replaces the value of an option that is not sent to the CLI.
    fn change_host(self, option: &'static str, change: impl FnOnce(&mut HostOptions)) -> Self {
        self.set_by_builder(option).change(change)
    }

    /// Changes an option without recording a source, because config files cannot set it.
    pub(crate) fn change(mut self, change: impl FnOnce(&mut HostOptions)) -> Self {
        change(&mut self.host);
        self
    }

    /// Records the builder as the only source of an option.
    fn set_by_builder(mut self, option: &'static str) -> Self {
        self.origins.replace(option, Source::BUILDER);
        self
    }
}

impl From<&Options> for Options {
    /// Clones the options, so that one value can be used for many runs.
    fn from(options: &Options) -> Self {
        options.clone()
    }
}

impl fmt::Debug for Options {
    /// Omits prompts, values of variables, headers and values of extra flags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("settings", &*self.settings)
            .field("host", &*self.host)
            .field("origins", &*self.origins)
            .finish()
    }
}

fn strings(entries: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    entries.into_iter().map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use claude_wire::Json;
    use claude_wire::control::{AgentDefinition, PermissionMode};
    use claude_wire::launch::{Effort, Include, Plugin, Secret, Skills, Thinking, ToolSet};
    use claude_wire::settings::SystemPromptBase;
    use claude_wire::settings::{
        CliSettings, DebugLog, EnvironmentPolicy, McpDelivery, PermissionPrompts, PluginDelivery,
        PreviewFormat, Sandbox, SettingsSource,
    };

    use super::*;

    fn check(options: Options, change: impl FnOnce(&mut Settings)) {
        let mut expected = Settings::default();
        change(&mut expected);
        let Options { settings, .. } = options;
        assert_eq!(*settings, expected);
    }

    fn object() -> Json {
        Json::from_text("{}").unwrap()
    }

    #[test]
    fn every_setter_about_the_model_and_its_tools_sets_its_field() {
        let new = Options::new;
        check(new().model("m"), |s| s.model = Some("m".into()));
        check(new().fallback_model(String::from("f")), |s| s.fallback_model = Some("f".into()));
        check(new().max_turns(2), |s| s.max_turns = Some(2));
        check(new().max_budget_usd(1.5), |s| s.max_budget_usd = Some(1.5));
        check(new().system_prompt("p"), |s| {
            s.system_prompt = Some(SystemPromptBase::Text("p".into()));
        });
        check(new().system_prompt(crate::SystemPrompt::default().append("a")), |s| {
            s.append_system_prompt = Some("a".into());
        });
        check(new().betas(["b"]), |s| s.betas = vec!["b".into()]);
        check(new().include(Include::PARTIAL_MESSAGES), |s| s.include = Include::PARTIAL_MESSAGES);
        check(new().output_schema(object()), |s| s.output_schema = Some(object()));
        check(new().tools(["Read"]), |s| s.tools = Some(ToolSet::Only(vec!["Read".into()])));
        check(new().allowed_tools(["A"]), |s| s.allowed_tools = vec!["A".into()]);
        check(new().disallowed_tools(vec!["C"]), |s| s.disallowed_tools = vec!["C".into()]);
        check(new().mcp("a", object()).mcp("b", object()), |s| {
            s.mcp_servers.set("a", object());
            s.mcp_servers.set("b", object());
        });
        check(new().mcp_config_files(["a"]).mcp_config_files(["b"]), |s| {
            s.mcp_config_files = vec!["b".into()];
        });
        check(new().mcp_delivery(McpDelivery::Handshake), |s| {
            s.mcp_delivery = McpDelivery::Handshake;
        });
        check(new().mcp_strict(true), |s| s.strict_mcp_config = true);
        check(new().permission_mode("plan"), |s| s.permission_mode = Some(PermissionMode::Plan));
        check(new().allow_dangerously_skip_permissions(true), |s| {
            s.allow_dangerously_skip_permissions = true;
        });
        check(new().permission_prompt_tool("p"), |s| s.permission_prompt_tool = Some("p".into()));
        check(new().file_checkpointing(true), |s| s.file_checkpointing = true);
    }

    #[test]
    fn every_setter_about_the_conversation_and_its_surroundings_sets_its_field() {
        let new = Options::new;
        check(new().conversation(Conversation::with_id("id").title("t")), |s| {
            s.start.id = Some("id".into());
            s.title = Some("t".into());
        });
        check(new().cwd("/w"), |s| s.cwd = Some("/w".into()));
        check(new().add_dir("/x").add_dir("/y").add_dir("/x"), |s| {
            s.add_dirs = vec!["/x".into(), "/y".into(), "/x".into()];
        });
        check(new().environment(EnvironmentPolicy::Clean), |s| {
            s.environment = EnvironmentPolicy::Clean;
        });
        check(new().env("K", "v").env("L", "w").env("K", "x"), |s| {
            s.env = [("K", "x".into()), ("L", "w".into())].into();
        });
        check(new().add_arg("one").add_arg(("two", "2")), |s| {
            s.extra_args = vec![("one".into(), None), ("two".into(), Some("2".into()))];
        });
        check(new().settings(Path::new("s.json")), |s| {
            s.settings = Some(SettingsSource::File("s.json".into()));
        });
        check(new().settings(object()), |s| s.settings = Some(SettingsSource::Value(object())));
        check(new().setting_sources(["user"]), |s| s.setting_sources = Some(vec!["user".into()]));
    }

    #[test]
    fn every_setter_about_thinking_and_prompts_sets_its_field() {
        let new = Options::new;
        check(new().task_budget(9), |s| s.task_budget = Some(9));
        check(new().thinking(Thinking::adaptive()), |s| s.thinking = Some(Thinking::adaptive()));
        check(new().effort("max"), |s| s.effort = Some(Effort::Max));
        check(
            new().system_prompt(crate::SystemPrompt::default().exclude_dynamic_sections(true)),
            |s| s.exclude_dynamic_sections = Some(true),
        );
        check(new().system_prompt(crate::SystemPrompt::default().snapshot(false)), |s| {
            s.system_prompt_snapshot = Some(false);
        });
        check(new().plan_mode_instructions("p"), |s| {
            s.plan_mode_instructions = Some("p".into());
        });
        check(new().verbatim_prompts(true), |s| s.verbatim_prompts = true);
    }

    #[test]
    fn every_setter_of_what_is_added_to_the_cli_sets_its_field() {
        let new = Options::new;
        let agent = || AgentDefinition::new("d", "p");
        check(new().agent("a"), |s| s.agent = Some("a".into()));
        check(new().agents([("x", agent())]).agents([("a", agent())]), |s| {
            s.agents.set("a", agent());
        });
        check(new().per_task_stop_affordance(true), |s| s.per_task_stop_affordance = Some(true));
        check(new().skills(Skills::All), |s| s.skills = Some(Skills::All));
        check(new().skills(["k"]), |s| s.skills = Some(Skills::Only(vec!["k".into()])));
        check(new().plugins(["/p"]).plugins([Plugin::new("/q").without_mcp()]), |s| {
            s.plugins = vec![Plugin::new("/q").without_mcp()];
        });
        check(new().plugin_delivery(PluginDelivery::Handshake), |s| {
            s.plugin_delivery = PluginDelivery::Handshake;
        });
        check(new().tool_aliases([("Run", "Bash")]), |s| {
            s.tool_aliases = [("Run", "Bash".into())].into();
        });
        check(new().question_preview("html"), |s| s.question_preview = Some(PreviewFormat::Html));
        check(new().permission_prompts("none"), |s| {
            s.permission_prompts = Some(PermissionPrompts::None);
        });
    }

    #[test]
    fn every_setter_about_settings_and_logs_sets_its_field() {
        let new = Options::new;
        check(new().project_config_root("/r"), |s| s.project_config_root = Some("/r".into()));
        check(new().settings(CliSettings::default()), |s| s.settings = Some(object().into()));
        check(new().sandbox(Sandbox::default()), |s| s.sandbox = Some(Sandbox::default().into()));
        check(new().managed_settings(CliSettings::default()), |s| {
            s.managed_settings = Some(object().into());
        });
        check(new().client_app("c"), |s| s.client_app = Some("c".into()));
        check(new().debug(DebugLog::Default), |s| s.debug = DebugLog::Default);
        check(new().debug(DebugLog::file("f")), |s| s.debug = DebugLog::File("f".into()));
    }

    #[test]
    fn every_setter_of_what_stays_here_sets_its_field() {
        let second = Duration::from_secs(1);
        let options = Options::new()
            .cli_path("c")
            .executable(["bun", "--smol"])
            .print_mode(true)
            .version_check(VersionCheck::Permissive)
            .version_check(VersionCheck::Skip)
            .limits(Limits::new().max_line_bytes(1))
            .timeouts(
                Timeouts::new()
                    .initialize(second)
                    .idle(second)
                    .exit_grace(second)
                    .background_ceiling(second),
            )
            .wait_for_background(Background::All)
            .strict_exit_status(true)
            .die_with_parent(false)
            .on_warning(|_| {})
            .on_stderr(|_| {})
            .limits(
                Limits::new().max_unwritten_bytes(2).waiting_operations(5).pending_operations(6),
            )
            .timeouts(Timeouts::new().operation(second))
            .limits(
                Limits::new()
                    .running_callbacks(7)
                    .waiting_callbacks(8)
                    .backlog_soft_bytes(3)
                    .backlog_hard_bytes(4),
            );
        let host = &options.host;
        assert_eq!(host.cli_path, Some(PathBuf::from("c")));
        assert_eq!(host.runtime.executable, Some(PathBuf::from("bun")));
        assert_eq!(host.runtime.arguments, [Secret::from("--smol")]);
        assert!(host.print_mode && host.version_check == VersionCheck::Skip);
        assert_eq!((host.max_line_bytes, host.max_unwritten_bytes), (1, 2));
        assert_eq!((host.waiting_operations, host.pending_operations), (5, 6));
        assert_eq!((host.running_callbacks, host.waiting_callbacks), (7, 8));
        assert_eq!(host.operation_timeout, Some(second));
        assert_eq!((host.backlog.soft, host.backlog.hard), (3, 4));
        assert_eq!((host.initialize_timeout, host.idle_timeout), (Some(second), Some(second)));
        assert_eq!((host.exit_grace, host.background_ceiling), (second, Some(second)));
        assert_eq!(host.background, Background::All);
        assert!(host.strict_exit_status && !host.die_with_parent);
        assert!(host.on_warning.is_some() && host.on_stderr.is_some());
        assert_eq!(options.timeouts(Timeouts::new().idle(None)).host.idle_timeout, None);
    }

    #[cfg(unix)]
    #[test]
    fn a_user_is_a_name_or_two_numbers() {
        let named = Options::new().user("somebody");
        assert_eq!(named.host.user, Some(OsUser::from("somebody")));
        let ids = OsUser::ids(1, 2);
        assert_eq!(Options::new().user(ids.clone()).host.user, Some(ids));
    }

    #[test]
    fn what_is_not_asked_for_has_the_defaults_of_the_specification() {
        const MIB: usize = 1024 * 1024;
        let Options { settings, host, .. } = Options::new();
        assert_eq!(*settings, Settings::default());
        assert_eq!(host.max_line_bytes, 64 * MIB);
        assert_eq!(host.max_unwritten_bytes, 16 * MIB);
        assert_eq!((host.backlog.soft, host.backlog.hard), (16 * MIB, 256 * MIB));
        assert_eq!(host.exit_grace, Duration::from_secs(5));
        assert_eq!((host.idle_timeout, host.background), (None, Background::Agents));
        assert!(host.die_with_parent && !host.strict_exit_status && !host.print_mode);
    }

    #[test]
    fn an_empty_directory_is_none_and_an_empty_list_is_not() {
        let options = Options::new().cwd("/a").cwd("");
        assert_eq!(options.settings.cwd, None);
        let none = Options::new().tools(ToolSet::none()).setting_sources(SettingSources::none());
        assert_eq!(none.settings.tools, Some(ToolSet::Only(vec![])));
        assert_eq!(none.settings.setting_sources, Some(vec![]));
    }

    #[test]
    fn one_value_serves_many_runs() {
        let options = Options::new().model("m");
        let copy = Options::from(&options).model("n");
        assert_eq!(options.settings.model.as_deref(), Some("m"));
        assert_eq!(copy.settings.model.as_deref(), Some("n"));
    }

    #[test]
    fn printing_options_shows_names_and_no_values() {
        const MARK: &str = "s3cr3t";
        let json = || Json::from_text(format!(r#"{{"headers":{{"a":"{MARK}"}}}}"#)).unwrap();
        let options = Options::new()
            .system_prompt(MARK)
            .system_prompt(crate::SystemPrompt::default().append(MARK))
            .env("NAME", MARK)
            .add_arg(("flag", MARK))
            .mcp("server", json())
            .settings(json());
        let text = format!("{options:?} {options:#?}");
        assert!(!text.contains(MARK), "{text}");
        for name in ["NAME", "flag", "server"] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn options_can_be_sent_and_shared() {
        fn check<T: Clone + Send + Sync + 'static>() {}
        check::<Options>();
    }
}
