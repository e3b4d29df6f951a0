//! Settings files, as far as they affect the protocol.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::Value;

use super::arguments::{Launch, MODES};
use super::hooks::CommandHook;
use super::json::text;
use super::permission_rule::PermissionRule;

#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) default_mode: Option<String>,
    pub(super) allow: Vec<PermissionRule>,
    pub(super) deny: Vec<PermissionRule>,
    pub(super) hooks: Vec<CommandHook>,
    /// The settings files, whether or not they exist.
    pub(super) files: Vec<SettingsFile>,
}

#[derive(Debug, Clone)]
pub(super) struct SettingsFile {
    pub(super) source: &'static str,
    pub(super) path: PathBuf,
}

impl Settings {
    /// Loads all settings; later files take precedence. A file that is not JSON counts as empty.
    pub(super) fn load(launch: &Launch) -> Self {
        let wanted = |source: &str| {
            launch
                .setting_sources
                .as_ref()
                .is_none_or(|sources| sources.iter().any(|wanted| wanted == source))
        };
        let own = launch.cwd.join(".claude");
        let user = launch
            .var("CLAUDE_CONFIG_DIR")
            .map(|directory| launch.cwd.join(directory).join("settings.json"));
        let mut files = Vec::new();
        if let Some(path) = user.filter(|_| wanted("user")) {
            files.push(SettingsFile { source: "user_settings", path });
        }
        if wanted("project") {
            files
                .push(SettingsFile { source: "project_settings", path: own.join("settings.json") });
        }
        if wanted("local") {
            let path = own.join("settings.local.json");
            files.push(SettingsFile { source: "local_settings", path });
        }
        let mut settings = Self { files, ..Self::default() };
        let texts = settings.files.iter().filter_map(|file| fs::read_to_string(&file.path).ok());
        let mut texts: Vec<String> = texts.collect();
        texts.extend(launch.settings.as_ref().map(|given| match given.trim_start() {
            json if json.starts_with('{') => json.to_owned(),
            path => fs::read_to_string(launch.cwd.join(path)).unwrap_or_default(),
        }));
        for text in texts {
            settings.add(&serde_json::from_str(&text).unwrap_or_default());
        }
        settings
    }

    fn add(&mut self, file: &Value) {
        let permissions = &file["permissions"];
        let mode = permissions["defaultMode"].as_str().filter(|mode| MODES.contains(mode));
        self.default_mode = mode.map(str::to_owned).or(self.default_mode.take());
        let rules = |list: &Value| -> Vec<PermissionRule> {
            list.as_array()
                .into_iter()
                .flatten()
                .map(|rule| PermissionRule::parse(text(rule)))
                .collect()
        };
        self.allow.extend(rules(&permissions["allow"]));
        self.deny.extend(rules(&permissions["deny"]));
        for (event, matchers) in file["hooks"].as_object().into_iter().flatten() {
            for matcher in matchers.as_array().into_iter().flatten() {
                for hook in matcher["hooks"].as_array().into_iter().flatten() {
                    let Some(command) = hook["command"].as_str() else { continue };
                    self.hooks.push(CommandHook {
                        event: event.clone(),
                        pattern: matcher["matcher"].as_str().map(str::to_owned),
                        command: command.to_owned(),
                    });
                }
            }
        }
    }
}

/// Returns the modification time and the size of a file.
pub(super) fn stamp(path: &std::path::Path) -> Option<(SystemTime, u64)> {
    let data = fs::metadata(path).ok()?;
    Some((data.modified().ok()?, data.len()))
}
