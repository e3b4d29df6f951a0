//! Where the CLI of a run keeps its transcripts.

use std::path::{Path, PathBuf};

use claude_wire::Json;
use claude_wire::settings::SettingsSource;

use crate::error::Result;
use crate::id::SessionId;
use crate::options::{Options, read_settings};
use crate::session_files::config::{ConfigDir, FOLDER_VARIABLE};
use crate::session_files::members::SessionFiles;
use crate::session_files::own_files::OwnFiles;
use crate::session_files::project::{canonical, main_worktree};

/// The setting with the folder of the project memory.
const MEMORY_SETTING: &str = "autoMemoryDirectory";

/// The config directory of a run, and its project folder.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) config: ConfigDir,
    /// The working directory.
    pub(super) directory: PathBuf,
    /// The name of the project folder.
    pub(super) folder: String,
    /// The folder of the project memory, which all worktrees of a repository share.
    memory: PathBuf,
}

impl Place {
    /// Returns the place that a CLI with these options uses.
    pub(super) fn of(options: &Options) -> Result<Self> {
        let settings = &options.settings;
        let config = ConfigDir::of_run(settings)?;
        let directory = canonical(settings.cwd.as_deref().unwrap_or(Path::new(".")));
        let folder = config.folder_name(&directory);
        let root = main_worktree(&directory);
        let memory = root.map_or_else(|| folder.clone(), |root| config.folder_name(&root));
        let memory = config.projects().join(memory).join("memory");
        // The CLI ignores a relative path in the setting.
        let memory = std::path::absolute(&memory).unwrap_or(memory);
        Ok(Self { config, directory, folder, memory })
    }

    /// Returns the files of a run with these options.
    pub(super) async fn files(&self, options: &Options) -> Result<OwnFiles> {
        let user = match (&options.host.user, &options.host.transport) {
            (Some(user), None) => Some(user.resolve().await?.user),
            // A custom transport chooses the user itself.
            _ => None,
        };
        Ok(OwnFiles::of_run(&self.config, user))
    }

    pub(super) fn project_folder(&self) -> PathBuf {
        self.config.projects().join(&self.folder)
    }

    /// Returns the path of a transcript in the project folder.
    pub(super) fn transcript(&self, session: &SessionId) -> PathBuf {
        SessionFiles::in_folder(&self.project_folder(), session.clone()).path
    }

    /// Lets the CLI use another project folder with the memory of this one.
    pub(super) fn use_folder(&self, options: Options, folder: &str) -> Options {
        let mut options = options.env(FOLDER_VARIABLE, folder);
        let settings = &mut options.settings;
        let current = match &settings.settings {
            None => Json::from_text("{}").ok(),
            Some(SettingsSource::Value(value)) => Some(value.clone()),
            Some(SettingsSource::File(path)) => {
                let path = settings.cwd.as_ref().map_or_else(|| path.clone(), |cwd| cwd.join(path));
                // The CLI reports a file that cannot be read.
                read_settings(&path).ok()
            }
            Some(_) => None,
        };
        let of_user = || read_settings(&self.config.path.join("settings.json")).ok();
        let is_set = |json: &Json| json.get(MEMORY_SETTING).is_some();
        let merged = current
            .filter(|json| !is_set(json) && !of_user().is_some_and(|json| is_set(&json)))
            .and_then(|json| with_member(&json, MEMORY_SETTING, self.memory.to_str()?));
        if let Some(merged) = merged {
            settings.settings = Some(SettingsSource::Value(merged));
        }
        options
    }
}

/// Adds a member to an object.
fn with_member(object: &Json, name: &str, value: &str) -> Option<Json> {
    let rest = object.text().trim().strip_prefix('{')?;
    let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
    let value = serde_json::to_string(value).ok()?;
    Json::from_text(format!("{{\"{name}\":{value}{comma}{rest}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::from_text(text).unwrap()
    }

    fn memory_of(options: &Options) -> Option<String> {
        let Some(SettingsSource::Value(value)) = &options.settings.settings else { return None };
        value.get(MEMORY_SETTING)?.as_str().map(String::from)
    }

    fn options(config: &Path) -> Options {
        Options::new().env("CLAUDE_CONFIG_DIR", config.to_str().unwrap()).cwd("/nonexistent/dir")
    }

    #[test]
    fn a_member_is_added_to_any_object() {
        for (before, after) in [
            ("{}", r#"{"m":"v\"\\"}"#),
            (" { } ", r#"{"m":"v\"\\" }"#),
            (r#"{"a":1}"#, r#"{"m":"v\"\\","a":1}"#),
        ] {
            assert_eq!(with_member(&json(before), "m", "v\"\\").unwrap().text(), after);
        }
        assert!(with_member(&json("[]"), "m", "v").is_none());
    }

    #[test]
    fn the_memory_stays_where_it_is() {
        let config = tempfile::tempdir().unwrap();
        let options = options(config.path());
        let place = Place::of(&options).unwrap();
        assert!(place.config.is_chosen);
        let relative = Place::of(&options.clone().env("CLAUDE_CONFIG_DIR", "config")).unwrap();
        assert_eq!(relative.config.path, Path::new("/nonexistent/dir/config"));
        let relative = Place::of(&Options::new().env("CLAUDE_CONFIG_DIR", "config")).unwrap();
        assert!(relative.memory.is_absolute());
        assert_eq!(place.folder, "-nonexistent-dir");
        let memory = config.path().join("projects/-nonexistent-dir/memory");
        let memory = memory.to_str().map(str::to_owned);
        let changed = place.use_folder(options.clone(), "other");
        assert_eq!(memory_of(&changed), memory);
        assert_eq!(changed.settings.env[FOLDER_VARIABLE].expose(), "other");
        let changed = place.use_folder(options.settings(json(r#"{"model":"m"}"#)), "other");
        assert_eq!(memory_of(&changed), memory);
    }
}
