//! Checks texts and paths that would not reach the CLI unchanged: NUL characters, paths that are not
//! UTF-8, and list entries that the CLI would split.

use std::path::Path;

use super::check::Found;
use super::include::DebugLog;
use super::settings::{Settings, SettingsSource, SystemPromptBase, ToolSet};

pub(super) fn check(found: &mut Found, settings: &Settings) {
    for (option, text) in texts(settings) {
        found.text(option, text);
    }
    // The CLI would use the empty name, and every request would fail.
    let models = [("model", &settings.model), ("fallback_model", &settings.fallback_model)];
    for (option, model) in models {
        if model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            found.add(&[option], "the name of the model is empty; help: remove the option");
        }
    }
    for (option, path) in paths(settings) {
        check_path(found, option, path);
    }
    // The working directory is not an argument, so it need not be UTF-8.
    if settings.cwd.as_ref().is_some_and(|cwd| holds_nul(cwd)) {
        found.add(&["cwd"], "the path contains a NUL character");
    }
    lists(found, settings);
}

/// Reports an invalid ID.
pub(super) fn check_id(found: &mut Found, option: &'static str, id: &str) {
    found.text(option, id);
    if id.trim().is_empty() {
        found.add(&[option], "an ID is empty; help: leave it out");
    }
}

/// Returns the texts that are arguments or variables.
fn texts(settings: &Settings) -> impl Iterator<Item = (&'static str, &str)> {
    let display = settings.thinking.as_ref().and_then(|thinking| thinking.display.as_ref());
    [
        ("model", settings.model.as_deref()),
        ("fallback_model", settings.fallback_model.as_deref()),
        ("permission_prompt_tool", settings.permission_prompt_tool.as_deref()),
        ("agent", settings.agent.as_deref()),
        ("client_app", settings.client_app.as_deref()),
        ("permission_mode", settings.permission_mode.as_ref().map(AsRef::as_ref)),
        ("permission_prompts", settings.permission_prompts.as_ref().map(AsRef::as_ref)),
        ("effort", settings.effort.as_ref().map(AsRef::as_ref)),
        ("thinking", display.map(AsRef::as_ref)),
        ("question_preview", settings.question_preview.as_ref().map(AsRef::as_ref)),
    ]
    .into_iter()
    .filter_map(|(option, text)| text.map(|text| (option, text)))
}

/// Returns the paths in arguments or in the handshake.
fn paths(settings: &Settings) -> Vec<(&'static str, &Path)> {
    let prompt = match &settings.system_prompt {
        Some(SystemPromptBase::File(path)) => Some(path),
        _ => None,
    };
    let file = match &settings.settings {
        Some(SettingsSource::File(path)) => Some(path),
        _ => None,
    };
    let log = match &settings.debug {
        DebugLog::File(path) => Some(path),
        DebugLog::Off | DebugLog::Default => None,
    };
    let one = [
        ("system_prompt", prompt),
        ("settings", file),
        ("project_config_root", settings.project_config_root.as_ref()),
        ("debug", log),
    ];
    let mut paths: Vec<(&str, &Path)> = Vec::new();
    for (option, path) in one {
        if let Some(path) = path {
            paths.push((option, path));
        }
    }
    for path in &settings.add_dirs {
        paths.push(("add_dirs", path));
    }
    for path in &settings.mcp_config_files {
        paths.push(("mcp_config_files", path));
    }
    for plugin in &settings.plugins {
        paths.push(("plugins", &plugin.path));
    }
    paths
}

fn check_path(found: &mut Found, option: &'static str, path: &Path) {
    if path.as_os_str().is_empty() {
        found.add(&[option], "a path is empty");
    } else if holds_nul(path) {
        found.add(&[option], "the path contains a NUL character");
    } else if path.to_str().is_none() {
        // The conversion would replace characters and yield another path.
        let shown = path.display();
        found
            .add(&[option], format!("the path {shown} is not valid UTF-8, which the CLI requires"));
    }
}

fn holds_nul(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&0)
}

fn lists(found: &mut Found, settings: &Settings) {
    let tools = match &settings.tools {
        Some(ToolSet::Only(names)) => names.as_slice(),
        Some(ToolSet::ClaudeCode) | None => &[],
    };
    let sources = settings.setting_sources.as_deref().unwrap_or_default();
    for (option, entries) in [
        ("allowed_tools", settings.allowed_tools.as_slice()),
        ("disallowed_tools", &settings.disallowed_tools),
        ("tools", tools),
        ("setting_sources", sources),
        ("betas", &settings.betas),
    ] {
        for entry in entries {
            found.text(option, entry);
            if entry.trim().is_empty() {
                found.add(&[option], "an entry is empty");
            } else if is_several(entry) {
                let reason = format!(
                    "the CLI would split {entry:?} into several entries: a comma or a blank outside of \
                     parentheses ends an entry"
                );
                found.add(&[option], reason);
            }
        }
    }
}

/// Returns whether the CLI would split an entry, or join it with the next one. The CLI does not count
/// nested parentheses: the first closing one ends the group.
fn is_several(entry: &str) -> bool {
    let mut inside = false;
    for character in entry.trim_matches(' ').chars() {
        match character {
            '(' => inside = true,
            ')' => inside = false,
            ',' | ' ' if !inside => return true,
            _ => {}
        }
    }
    inside
}
