//! Settings that exclude or beat each other.

use super::Needs;
use super::check::Found;
use super::extensions::Skills;
use super::settings::{PermissionPrompts, Settings, SettingsSource, SystemPromptBase, ToolSet};

/// Settings that another one beats; the option and the winner.
pub(super) fn ignored(settings: &Settings) -> Vec<(&'static str, &'static str)> {
    let nobody = settings.permission_prompts == Some(PermissionPrompts::Nobody);
    let wants_skills = match &settings.skills {
        Some(Skills::Only(names)) => !names.is_empty(),
        Some(Skills::All) => true,
        None => false,
    };
    let has_skill_tool = match &settings.tools {
        Some(ToolSet::Only(names)) => names.iter().any(|name| name == "Skill"),
        Some(ToolSet::ClaudeCode) | None => true,
    };
    [
        (
            nobody && settings.permission_prompt_tool.is_some(),
            "permission_prompt_tool",
            "permission_prompts",
        ),
        (wants_skills && !has_skill_tool, "skills", "tools"),
    ]
    .into_iter()
    .filter_map(|(so, beaten, winner)| so.then_some((beaten, winner)))
    .collect()
}

pub(super) fn check(found: &mut Found, settings: &Settings, needs: &Needs) {
    if needs.permission_callback && settings.permission_prompt_tool.is_some() {
        found.add(
            &["can_use_tool", "permission_prompt_tool"],
            "only one of them can answer permission requests; leave one out",
        );
    }
    settings.start.check(found);
    models(found, settings);
    let own_prompt = match &settings.system_prompt {
        Some(SystemPromptBase::ClaudeCode) | None => false,
        Some(
            SystemPromptBase::Text(_) | SystemPromptBase::File(_) | SystemPromptBase::Parts(_),
        ) => true,
    };
    if own_prompt && settings.exclude_dynamic_sections == Some(true) {
        found.add(
            &["exclude_dynamic_sections", "system_prompt"],
            "only the CLI's own prompt has such sections; leave one out",
        );
    }
    if settings.sandbox.is_some() && matches!(settings.settings, Some(SettingsSource::File(_))) {
        found.add(
            &["sandbox", "settings"],
            "a sandbox cannot go on top of a file; give the settings as a value, or put the \
             sandbox into the file",
        );
    }
}

fn models(found: &mut Found, settings: &Settings) {
    let (Some(model), Some(fallback)) = (&settings.model, &settings.fallback_model) else { return };
    if fallback.split(',').any(|other| other.trim() == model.trim()) {
        found.add(&["model", "fallback_model"], "falling back to the same model changes nothing");
    }
}
