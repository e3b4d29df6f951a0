//! The settings in the handshake.

use super::extensions::{Plugin, PluginDelivery, Skills};
use super::include::Include;
use super::settings::{Secret, Settings, SystemPromptBase};
use super::{Form, Needs, mcp_servers};
use crate::control::Initialize;
use crate::json::{Json, List};

/// Creates the handshake of a session with these settings. The host adds hooks.
///
/// Prompts, schemas and MCP servers are in the handshake and not on the command line, because they can be
/// large and command lines are public on the machine. The path of a system prompt file is on the command
/// line.
pub fn initialize(settings: &Settings, needs: &Needs) -> Initialize {
    let sends_servers = mcp_servers::are_in_handshake(settings, &Form::Session);
    let text = |secret: &Option<Secret>| secret.as_ref().map(|text| text.expose().to_owned());
    let included = |messages| settings.include.contains(messages).then_some(true);
    let aliases = &settings.tool_aliases;
    Initialize {
        system_prompt: system_prompt(settings),
        append_system_prompt: text(&settings.append_system_prompt),
        exclude_dynamic_sections: settings.exclude_dynamic_sections,
        system_prompt_snapshot: settings.system_prompt_snapshot,
        plan_mode_instructions: text(&settings.plan_mode_instructions),
        json_schema: settings.output_schema.clone(),
        title: text(&settings.title),
        agents: settings.agents.by_name(),
        forward_subagent_text: included(Include::SUBAGENT_TEXT),
        agent_progress_summaries: included(Include::AGENT_PROGRESS_SUMMARIES),
        per_task_stop_affordance: settings.per_task_stop_affordance,
        prompt_suggestions: included(Include::PROMPT_SUGGESTIONS),
        tool_aliases: (!aliases.is_empty()).then(|| aliases.clone()),
        skills: skills(settings),
        plugins: plugins(settings),
        mcp_servers: if sends_servers { mcp_servers::by_name(settings, needs) } else { None },
        ..Initialize::default()
    }
}

fn system_prompt(settings: &Settings) -> List<String> {
    match &settings.system_prompt {
        Some(SystemPromptBase::Text(text)) => vec![text.clone()].into(),
        Some(SystemPromptBase::Parts(parts)) => parts.clone().into(),
        Some(SystemPromptBase::File(_) | SystemPromptBase::ClaudeCode) | None => List::absent(),
    }
}

fn skills(settings: &Settings) -> List<String> {
    match &settings.skills {
        Some(Skills::Only(names)) => names.clone().into(),
        Some(Skills::All) | None => List::absent(),
    }
}

fn plugins(settings: &Settings) -> List<Json> {
    match settings.plugin_delivery {
        PluginDelivery::Handshake if !settings.plugins.is_empty() => {
            settings.plugins.iter().map(Plugin::json).collect()
        }
        PluginDelivery::Handshake | PluginDelivery::Arguments => List::absent(),
    }
}
