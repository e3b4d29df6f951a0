//! Settings that exclude or beat each other.

use super::Needs;
use super::check::Found;
use super::extensions::Skills;
use super::settings::{PermissionPrompts, Settings, SettingsSource, SystemPrompt, ToolSet};

/// Settings that another one beats; the option and the winner.
pub(super) fn ignored(settings: &Settings) -> Vec<(&'static str, &'static str)> {
    let both_resume = settings.resume.is_some() && settings.continue_latest;
    let both_think = settings.thinking.is_some() && settings.max_thinking_tokens.is_some();
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
        (both_resume, "continue_latest", "resume"),
        (both_think, "max_thinking_tokens", "thinking"),
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
    conversation(found, settings);
    models(found, settings);
    let own_prompt = match &settings.system_prompt {
        Some(SystemPrompt::ClaudeCode) | None => false,
        Some(SystemPrompt::Text(_) | SystemPrompt::File(_) | SystemPrompt::Parts(_)) => true,
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

fn conversation(found: &mut Found, settings: &Settings) {
    let resumes = settings.resume.is_some() || settings.continue_latest;
    if settings.fork_session && !resumes {
        found
            .add(&["fork_session"], "there is nothing to fork; give `resume` or `continue_latest`");
    }
    if settings.session_id.is_some() && resumes && !settings.fork_session {
        let other = if settings.resume.is_some() { "resume" } else { "continue_latest" };
        found.add(
            &["session_id", other],
            "a session that goes on keeps its id; fork it, or leave `session_id` out",
        );
    }
    if settings.resume_at.is_some() && settings.resume.is_none() {
        found.add(&["resume_at"], "a message belongs to a session; give `resume` too");
    }
    if settings.resume_drops_turn.is_some() && settings.resume_at.is_none() {
        found.add(
            &["resume_drops_turn", "resume_at"],
            "a turn is dropped by going on from an earlier message; give `resume_at` too",
        );
    }
}

fn models(found: &mut Found, settings: &Settings) {
    let (Some(model), Some(fallback)) = (&settings.model, &settings.fallback_model) else { return };
    if fallback.split(',').any(|other| other.trim() == model.trim()) {
        found.add(&["model", "fallback_model"], "falling back to the same model changes nothing");
    }
}
