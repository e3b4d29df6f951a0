//! The config directory of a run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use claude_wire::launch::Settings;
use claude_wire::transcript::{is_project_folder_override, project_folder_name};

use super::errors;
use super::project::canonical;
use crate::error::Result;

/// The variable with the home directory.
pub(crate) const HOME_VARIABLE: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// The variable with the name of the project folder. The CLI uses it only beside `CLAUDE_CONFIG_DIR`.
pub(crate) const FOLDER_VARIABLE: &str = "CLAUDE_CODE_PROJECT_DIR_NAME";

/// The config directory of the CLI.
#[derive(Clone, Debug)]
pub(crate) struct ConfigDir {
    pub(crate) path: PathBuf,
    /// The working directory of the CLI, from which it resolves a relative path; empty for that of this process.
    pub(crate) working_directory: PathBuf,
    /// Whether `CLAUDE_CONFIG_DIR` is set: then the CLI lets the project folder be chosen.
    pub(crate) is_chosen: bool,
    /// The name of the project folder, whatever the working directory.
    pub(crate) folder_override: Option<String>,
}

impl ConfigDir {
    pub(crate) fn at(path: PathBuf) -> Self {
        let working_directory = PathBuf::new();
        Self { path, working_directory, is_chosen: false, folder_override: None }
    }

    /// Returns the directory that a CLI with these settings uses.
    ///
    /// # Errors
    /// If neither `CLAUDE_CONFIG_DIR` nor the home directory is passed to the CLI.
    pub(crate) fn of_run(settings: &Settings) -> Result<Self> {
        let found = Self::resolve(settings, &|name| std::env::var_os(name));
        found.ok_or_else(|| errors::no_config_dir(HOME_VARIABLE))
    }

    /// Returns the directory that a CLI with these settings uses, if this process has these variables.
    pub(crate) fn resolve(settings: &Settings, own: Variables<'_>) -> Option<Self> {
        let variable = |name: &str| variable(settings, own, name).filter(|value| !value.is_empty());
        let chosen = variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let is_chosen = chosen.is_some();
        let in_home = || Some(Path::new(&variable(HOME_VARIABLE)?).join(".claude"));
        let working_directory = settings.cwd.clone().unwrap_or_default();
        let path = working_directory.join(chosen.or_else(in_home)?);
        let name = variable(FOLDER_VARIABLE).filter(|_| is_chosen);
        let name = name.and_then(|name| name.into_string().ok());
        let folder_override = name.filter(|name| is_project_folder_override(name));
        Some(Self { path, working_directory, is_chosen, folder_override })
    }

    pub(crate) fn projects(&self) -> PathBuf {
        self.path.join("projects")
    }

    /// Returns the name of the folder with the sessions of a working directory.
    pub(crate) fn folder_name(&self, directory: &Path) -> String {
        let natural = || project_folder_name(&canonical(directory).to_string_lossy());
        self.folder_override.clone().unwrap_or_else(natural)
    }
}

/// The environment variables of this process.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Returns an environment variable as a CLI with these settings sees it.
pub(crate) fn variable(settings: &Settings, own: Variables<'_>, name: &str) -> Option<OsString> {
    let given = settings.env.get(name).map(|value| OsString::from(value.expose()));
    given.or_else(|| own(name).filter(|_| settings.environment.passes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(cwd: Option<&str>, env: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        settings.cwd = cwd.map(PathBuf::from);
        for (name, value) in env {
            settings.env.insert(*name, (*value).into());
        }
        settings
    }

    fn resolved(settings: &Settings, own: &[(&str, &str)]) -> Option<PathBuf> {
        let own = |name: &str| {
            let found = own.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        ConfigDir::resolve(settings, &own).map(|config| config.path)
    }

    #[test]
    fn config_directory_is_the_one_of_the_cli() {
        let of = |own: &[(&str, &str)]| resolved(&settings(None, &[]), own);
        assert_eq!(of(&[(HOME_VARIABLE, "/h")]), Some("/h/.claude".into()));
        let given = [(HOME_VARIABLE, "/h"), ("CLAUDE_CONFIG_DIR", "/c")];
        assert_eq!(of(&given), Some("/c".into()));
        let empty = [(HOME_VARIABLE, "/h"), ("CLAUDE_CONFIG_DIR", "")];
        assert_eq!(of(&empty), Some("/h/.claude".into()));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[(HOME_VARIABLE, "")]), None);
        let set = settings(None, &[("CLAUDE_CONFIG_DIR", "/o")]);
        assert_eq!(resolved(&set, &given), Some("/o".into()));
    }

    #[test]
    fn a_relative_config_directory_is_below_the_working_directory_of_the_run() {
        let chosen = settings(Some("/srv"), &[("CLAUDE_CONFIG_DIR", "config")]);
        assert_eq!(resolved(&chosen, &[]), Some("/srv/config".into()));
        let home = settings(Some("/srv"), &[(HOME_VARIABLE, "home")]);
        assert_eq!(resolved(&home, &[]), Some("/srv/home/.claude".into()));
    }

    #[test]
    fn a_folder_name_counts_beside_a_chosen_directory_only() {
        let name = |config: &str, folder: &str| {
            let env =
                [(HOME_VARIABLE, "/h"), ("CLAUDE_CONFIG_DIR", config), (FOLDER_VARIABLE, folder)];
            let config = ConfigDir::of_run(&settings(None, &env)).unwrap();
            config.folder_name(Path::new("/srv/none"))
        };
        assert_eq!(name("", "tenant"), "-srv-none");
        assert_eq!(name("/c", "tenant"), "tenant");
        assert_eq!(name("/c", "../x"), "-srv-none");
    }
}
