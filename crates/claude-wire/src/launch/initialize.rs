//! What the handshake carries of the settings.

use super::extensions::{Plugin, PluginDelivery, Skills};
use super::settings::{Secret, Settings, SystemPrompt};
use crate::control::Initialize;
use crate::json::List;

/// The handshake of a session with these settings. Hooks and whatever else lives in the host's
/// process are for the host to add.
///
/// Prompts and schemas stand here and not on the command line: they can be large, and everybody on
/// the machine can read the command line. A file with a system prompt is named there.
pub fn initialize(settings: &Settings) -> Initialize {
    let text = |secret: &Option<Secret>| secret.as_ref().map(|text| text.expose().to_owned());
    let mut initialize = Initialize::default();
    initialize.system_prompt = match &settings.system_prompt {
        Some(SystemPrompt::Text(text)) => vec![text.clone()].into(),
        Some(SystemPrompt::Parts(parts)) => parts.clone().into(),
        Some(SystemPrompt::File(_) | SystemPrompt::ClaudeCode) | None => List::absent(),
    };
    initialize.append_system_prompt = text(&settings.append_system_prompt);
    initialize.exclude_dynamic_sections = settings.exclude_dynamic_sections;
    initialize.system_prompt_snapshot = settings.system_prompt_snapshot;
    initialize.plan_mode_instructions = text(&settings.plan_mode_instructions);
    initialize.json_schema.clone_from(&settings.output_schema);
    initialize.title = text(&settings.title);
    initialize.agents = settings.agents.told();
    initialize.forward_subagent_text = settings.forward_subagent_text;
    initialize.agent_progress_summaries = settings.agent_progress_summaries;
    initialize.per_task_stop_affordance = settings.per_task_stop_affordance;
    initialize.prompt_suggestions = settings.prompt_suggestions;
    let aliases = &settings.tool_aliases;
    initialize.tool_aliases = (!aliases.is_empty()).then(|| aliases.clone());
    if let Some(Skills::Only(names)) = &settings.skills {
        initialize.skills = names.clone().into();
    }
    if settings.plugin_delivery == PluginDelivery::Handshake && !settings.plugins.is_empty() {
        initialize.plugins = settings.plugins.iter().map(Plugin::json).collect();
    }
    initialize
}
