//! Every option that is plain data, with its variable and how several sources are merged. Merging, the
//! guide and the tests are based on this table.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;

use claude_wire::Map;
use claude_wire::launch::{Secret, merge};
use claude_wire::settings::SettingsSource;
use serde_json::Value as JsonValue;

use super::node::Node;
use super::take::{Take, Taken};
use crate::options::{Options, settings_file};

/// How the values of several sources are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The value of the highest source replaces the others.
    Highest,
    /// Values are merged key by key, at every depth; for each key, the highest source takes precedence.
    ByKey,
    /// Values are appended, those of the lowest source first, with duplicates.
    Append,
}

/// An option.
pub(crate) struct Row {
    /// The setter, and the key of a config file; `group.member` where the setter takes a group of
    /// values, which form a table of their own.
    pub(crate) name: &'static str,
    /// The environment variable, if there is one.
    pub(crate) variable: Option<&'static str>,
    pub(crate) rule: Rule,
    field: fn(&Options) -> &dyn Field,
    field_mut: fn(&mut Options) -> &mut dyn Field,
    /// Merges the value of a higher source; `None` if it replaces the value.
    merge: Option<Merge>,
}

type Merge = fn(&mut Options, &Options) -> Result<(), String>;

impl Row {
    /// The group and the name in it, if this is a member of one.
    pub(super) fn member(&self) -> Option<(&'static str, &'static str)> {
        self.name.split_once('.')
    }

    /// A description of the value in a config file, for the guide.
    #[cfg(test)]
    pub(super) fn expected(&self) -> &'static str {
        (self.field)(&Options::new()).expected()
    }

    /// Reads the value from a config file.
    pub(super) fn take(&self, node: &Node, options: &mut Options) -> Taken<()> {
        (self.field_mut)(options).take(node)
    }

    /// Reads the value from the text of the variable.
    pub(super) fn take_variable(&self, text: &str, options: &mut Options) -> Taken<()> {
        let field = (self.field_mut)(options);
        field.take(&field.variable_parser()(text))
    }

    /// Merges the value of a higher source, by the rule.
    pub(super) fn put(&self, base: &mut Options, over: &Options) -> Result<(), String> {
        if let Some(merge) = self.merge {
            return merge(base, over);
        }
        self.replace(base, over);
        Ok(())
    }

    pub(super) fn replace(&self, base: &mut Options, over: &Options) {
        (self.field_mut)(base).replace((self.field)(over));
    }

    /// The value without its secrets.
    pub(crate) fn show(&self, options: &Options) -> String {
        let text = format!("{:?}", (self.field)(options));
        match text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')) {
            Some(inner) => inner.to_owned(),
            None => text,
        }
    }
}

/// A field of the options. The rows share the code of fields of the same type.
trait Field: Any + Debug {
    #[cfg(test)]
    fn expected(&self) -> &'static str;

    /// Returns the parser of the text of a variable.
    fn variable_parser(&self) -> fn(&str) -> Node;

    fn take(&mut self, node: &Node) -> Taken<()>;

    /// Replaces the value with that of a field of the same type.
    fn replace(&mut self, other: &dyn Field);
}

impl<T: Take + Debug + Clone + 'static> Field for T {
    #[cfg(test)]
    fn expected(&self) -> &'static str {
        T::EXPECTED
    }

    fn variable_parser(&self) -> fn(&str) -> Node {
        T::FROM_VARIABLE
    }

    fn take(&mut self, node: &Node) -> Taken<()> {
        *self = <T as Take>::take(node)?;
        Ok(())
    }

    fn replace(&mut self, other: &dyn Field) {
        let other: &dyn Any = other;
        if let Some(other) = other.downcast_ref::<Self>() {
            // Not `clone_from`, which would be compiled in addition to the `clone` of the options.
            *self = other.clone();
        }
    }
}

/// Rows: rule, option, field, variable.
///
/// Functions, because each closure that becomes a function pointer is compiled twice.
macro_rules! table {
    ($( $rule:ident $name:ident $(.$member:ident)? = $($field:ident).+ $(, $variable:literal)?; )+) => {
        &[$( {
            fn field(options: &Options) -> &dyn Field {
                &options.$($field).+
            }
            fn field_mut(options: &mut Options) -> &mut dyn Field {
                &mut options.$($field).+
            }
            Row {
                name: concat!(stringify!($name) $(, ".", stringify!($member))?),
                variable: variable!($($variable)?),
                rule: Rule::$rule,
                field,
                field_mut,
                merge: merge!($rule $($field).+),
            }
        } ),+]
    };
}

macro_rules! variable {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! merge {
    (Highest $($field:ident).+) => {
        None
    };
    (ByKey $($field:ident).+) => {
        Some(|base, over| {
            let cwd = base.settings.cwd.clone();
            base.$($field).+.put_on(&over.$($field).+, cwd.as_deref())
        })
    };
    (Append $($field:ident).+) => {
        Some(|base, over| {
            base.$($field).+.extend_from_slice(&over.$($field).+);
            Ok(())
        })
    };
}

pub(crate) const TABLE: &[Row] = table! {
    Highest model = settings.model, "CLAUDE_MODEL";
    Highest fallback_model = settings.fallback_model, "CLAUDE_FALLBACK_MODEL";
    Highest thinking = settings.thinking;
    // The CLI sets a variable CLAUDE_EFFORT for what its tools run.
    Highest effort = settings.effort;
    Highest betas = settings.betas, "CLAUDE_BETAS";
    Highest max_turns = settings.max_turns, "CLAUDE_MAX_TURNS";
    Highest max_budget_usd = settings.max_budget_usd, "CLAUDE_MAX_BUDGET_USD";
    Highest task_budget = settings.task_budget, "CLAUDE_TASK_BUDGET";
    Highest system_prompt = settings.system_prompt, "CLAUDE_SYSTEM_PROMPT";
    Highest append_system_prompt = settings.append_system_prompt, "CLAUDE_APPEND_SYSTEM_PROMPT";
    Highest exclude_dynamic_sections = settings.exclude_dynamic_sections;
    Highest system_prompt_snapshot = settings.system_prompt_snapshot;
    Highest plan_mode_instructions = settings.plan_mode_instructions;
    Highest verbatim_prompts = settings.verbatim_prompts, "CLAUDE_VERBATIM_PROMPTS";
    Highest output_schema = settings.output_schema;
    Highest include = settings.include, "CLAUDE_INCLUDE";
    Highest agents = settings.agents;
    // The CLI has a variable CLAUDE_AGENT of its own.
    Highest agent = settings.agent;
    Highest per_task_stop_affordance = settings.per_task_stop_affordance;
    Highest skills = settings.skills, "CLAUDE_SKILLS";
    Highest plugins = settings.plugins;
    Highest plugin_delivery = settings.plugin_delivery;
    Highest tools = settings.tools, "CLAUDE_TOOLS";
    Highest allowed_tools = settings.allowed_tools, "CLAUDE_ALLOWED_TOOLS";
    Highest disallowed_tools = settings.disallowed_tools, "CLAUDE_DISALLOWED_TOOLS";
    Highest tool_aliases = settings.tool_aliases;
    Highest question_preview = settings.question_preview;
    Highest permission_mode = settings.permission_mode, "CLAUDE_PERMISSION_MODE";
    // Not settable by a variable, which the host may not control.
    Highest allow_dangerously_skip_permissions = settings.allow_dangerously_skip_permissions;
    Highest permission_prompt_tool = settings.permission_prompt_tool,
        "CLAUDE_PERMISSION_PROMPT_TOOL";
    Highest permission_prompts = settings.permission_prompts, "CLAUDE_PERMISSION_PROMPTS";
    Highest timeouts.permission = host.callbacks.permission_timeout, "CLAUDE_TIMEOUTS_PERMISSION";
    Highest timeouts.hook = host.callbacks.hook_timeout, "CLAUDE_TIMEOUTS_HOOK";
    Highest hooks_fail_closed = host.callbacks.hooks_fail_closed;
    Highest timeouts.cancel_grace = host.callbacks.cancel_grace;
    Highest limits.running_callbacks = host.running_callbacks;
    Highest limits.waiting_callbacks = host.waiting_callbacks;
    Highest mcp = settings.mcp_servers;
    // Not settable by a variable, which could make secrets readable.
    Highest mcp_delivery = settings.mcp_delivery;
    Highest mcp_config_files = settings.mcp_config_files, "CLAUDE_MCP_CONFIG_FILES";
    Highest mcp_strict = settings.strict_mcp_config, "CLAUDE_MCP_STRICT";
    Highest limits.running_mcp_messages = host.callbacks.running_mcp;
    Highest file_checkpointing = settings.file_checkpointing, "CLAUDE_FILE_CHECKPOINTING";
    Highest conversation = settings.start;
    Highest conversation.title = settings.title;
    Highest conversation.persist = settings.persist_session, "CLAUDE_CONVERSATION_PERSIST";
    Highest print_mode = host.print_mode, "CLAUDE_PRINT_MODE";
    // Before `settings`, whose files are looked for there.
    Highest cwd = settings.cwd, "CLAUDE_CWD";
    ByKey settings = settings.settings, "CLAUDE_SETTINGS";
    Highest setting_sources = settings.setting_sources, "CLAUDE_SETTING_SOURCES";
    Highest managed_settings = settings.managed_settings;
    Highest sandbox = settings.sandbox;
    Highest project_config_root = settings.project_config_root, "CLAUDE_PROJECT_CONFIG_ROOT";
    Append add_dirs = settings.add_dirs, "CLAUDE_ADD_DIRS";
    Highest environment = settings.environment;
    ByKey env = settings.env;
    Highest client_app = settings.client_app, "CLAUDE_CLIENT_APP";
    // The CLI has a variable CLAUDE_DEBUG of its own.
    Highest debug = settings.debug;
    Append extra_args = settings.extra_args;
    Highest cli_path = host.cli_path, "CLAUDE_CLI_PATH";
    Highest executable = host.runtime.executable, "CLAUDE_EXECUTABLE";
    Highest executable_args = host.runtime.arguments;
    Highest user = host.user;
    Highest version_check = host.version_check, "CLAUDE_VERSION_CHECK";
    Highest die_with_parent = host.die_with_parent, "CLAUDE_DIE_WITH_PARENT";
    Highest strict_exit_status = host.strict_exit_status, "CLAUDE_STRICT_EXIT_STATUS";
    Highest wait_for_background = host.background, "CLAUDE_WAIT_FOR_BACKGROUND";
    Highest timeouts.background_ceiling = host.background_ceiling,
        "CLAUDE_TIMEOUTS_BACKGROUND_CEILING";
    Highest timeouts.initialize = host.initialize_timeout, "CLAUDE_TIMEOUTS_INITIALIZE";
    Highest timeouts.idle = host.idle_timeout, "CLAUDE_TIMEOUTS_IDLE";
    Highest timeouts.operation = host.operation_timeout, "CLAUDE_TIMEOUTS_OPERATION";
    Highest timeouts.exit_grace = host.exit_grace, "CLAUDE_TIMEOUTS_EXIT_GRACE";
    Highest limits.max_line_bytes = host.max_line_bytes, "CLAUDE_LIMITS_MAX_LINE_BYTES";
    Highest limits.max_unwritten_bytes = host.max_unwritten_bytes,
        "CLAUDE_LIMITS_MAX_UNWRITTEN_BYTES";
    Highest limits.backlog_soft_bytes = host.backlog.soft;
    Highest limits.backlog_hard_bytes = host.backlog.hard;
    Highest limits.waiting_operations = host.waiting_operations;
    Highest limits.pending_operations = host.pending_operations;
};

/// What is merged key by key.
trait ByKey {
    /// Puts `over` on top. Files are looked for in the working directory.
    fn put_on(&mut self, over: &Self, cwd: Option<&Path>) -> Result<(), String>;
}

impl ByKey for Map<Secret> {
    fn put_on(&mut self, over: &Self, _: Option<&Path>) -> Result<(), String> {
        self.extend(over.iter().map(|(name, value)| (name, value.clone())));
        Ok(())
    }
}

impl ByKey for Option<SettingsSource> {
    fn put_on(&mut self, over: &Self, cwd: Option<&Path>) -> Result<(), String> {
        let Some(over) = over else { return Ok(()) };
        let Some(base) = self else {
            *self = Some(over.clone());
            return Ok(());
        };
        let mut merged = settings_value(base, cwd)?;
        merge(&mut merged, settings_value(over, cwd)?);
        *self = Some(SettingsSource::Value(merged.into()));
        Ok(())
    }
}

/// Returns settings as a value, read from the file if there is one.
fn settings_value(settings: &SettingsSource, cwd: Option<&Path>) -> Result<JsonValue, String> {
    let json = match settings {
        SettingsSource::Value(value) => value.clone(),
        SettingsSource::File(path) => {
            let path = cwd.map_or_else(|| path.clone(), |cwd| cwd.join(path));
            settings_file::read(&path).map_err(|error| {
                format!("failed to read `{}` to merge it: {error}", path.display())
            })?
        }
        _ => return Err("only values and files can be merged".to_owned()),
    };
    json.deserialize().map_err(|_| "the value is not valid JSON".to_owned())
}
