//! Options that print mode does not support.

use super::Needs;
use super::check::Found;
use super::extensions::{McpDelivery, PluginDelivery, Skills};
use super::include::Include;
use super::settings::{Settings, SystemPromptBase};

const ONE_WAY: &str =
    "print mode has no control protocol, so the CLI cannot call the host; help: remove one";
const NO_HANDSHAKE: &str =
    "print mode has no handshake, which carries this option; help: remove one";

pub(super) fn check(found: &mut Found, settings: &Settings, needs: &Needs, prompt: &str) {
    for (option, given) in [
        ("can_use_tool", needs.permission_callback),
        ("hooks", needs.hooks),
        ("on_elicitation or on_user_dialog", needs.user_callback),
        ("mcp", !needs.servers.is_empty()),
        ("file_checkpointing", settings.file_checkpointing),
        ("per_task_stop_affordance", settings.per_task_stop_affordance == Some(true)),
    ] {
        if given {
            found.add(&["print_mode", option], ONE_WAY);
        }
    }
    let parts = matches!(settings.system_prompt, Some(SystemPromptBase::Parts(_)));
    let sends_servers = settings.mcp_delivery == McpDelivery::Handshake;
    let by_handshake = settings.plugin_delivery == PluginDelivery::Handshake;
    for (option, given) in [
        ("system_prompt", parts),
        ("plan_mode_instructions", settings.plan_mode_instructions.is_some()),
        ("verbatim_prompts", settings.verbatim_prompts),
        ("conversation.title", settings.title.is_some()),
        ("include", settings.include.contains(Include::AGENT_PROGRESS_SUMMARIES)),
        ("tool_aliases", !settings.tool_aliases.is_empty()),
        ("skills", matches!(settings.skills, Some(Skills::Only(_)))),
        ("mcp_delivery", sends_servers && !settings.mcp_servers.is_empty()),
        ("plugin_delivery", by_handshake && !settings.plugins.is_empty()),
    ] {
        if given {
            found.add(&["print_mode", option], NO_HANDSHAKE);
        }
    }
    in_arguments(found, settings, prompt);
}

/// Options that are arguments in print mode and fields of the handshake otherwise.
fn in_arguments(found: &mut Found, settings: &Settings, prompt: &str) {
    found.text("prompt", prompt);
    if let Some(SystemPromptBase::Text(text)) = &settings.system_prompt {
        found.text("system_prompt", text);
    }
    if let Some(text) = &settings.append_system_prompt {
        found.text("append_system_prompt", text.expose());
    }
}
