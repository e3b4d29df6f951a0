//! Checks of the environment in which the CLI would run.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use claude_wire::control::PermissionMode;
use claude_wire::launch::Settings;
use claude_wire::settings::SettingsSource;
use claude_wire::settings::SystemPromptBase;
use serde_json::Value;

use super::Variables;
use super::report::{Check, Finding};
use crate::list;
use crate::options::Options;
use crate::session_files::config::{self, ConfigDir, HOME_VARIABLE};
use crate::small_file;

/// Environment variables with credentials of the CLI.
const CREDENTIALS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// The options and the environment of a run.
pub(super) struct CheckContext<'a> {
    pub(super) options: &'a Options,
    /// The environment of this process.
    pub(super) variables: Variables,
}

impl CheckContext<'_> {
    /// Returns an environment variable of this process.
    fn own_variable(&self, name: &str) -> Option<OsString> {
        let is_same = |other: &OsString| {
            if cfg!(windows) { other.eq_ignore_ascii_case(name) } else { other == name }
        };
        let own = self.variables.iter().find(|(other, _)| is_same(other));
        own.map(|(_, value)| value.clone())
    }

    /// Returns an environment variable as the CLI would see it.
    fn variable(&self, name: &str) -> Option<OsString> {
        config::variable(&self.options.settings, &|name| self.own_variable(name), name)
    }

    /// Returns whether the CLI runs on another machine or as another user, where the results of these
    /// checks may differ.
    fn is_elsewhere(&self) -> bool {
        self.options.host.transport.is_some() || self.options.host.user.is_some()
    }

    pub(super) fn working_directory(&self) -> Option<Finding> {
        const CHECK: Check = Check::WorkingDirectory;
        if self.is_elsewhere() {
            return None;
        }
        let directory = match &self.options.settings.cwd {
            Some(directory) => directory.clone(),
            None => match std::env::current_dir() {
                Ok(directory) => directory,
                Err(error) => {
                    let what =
                        format!("the working directory of this process no longer exists: {error}");
                    return Some(Finding::problem(CHECK, what, "set `cwd`"));
                }
            },
        };
        let shown = directory.display();
        if !directory.is_dir() {
            let what = format!("`{shown}` is not a directory");
            return Some(Finding::problem(
                CHECK,
                what,
                "create it, or set `cwd` to another directory",
            ));
        }
        Some(match try_to_write(&directory) {
            Ok(()) => Finding::good(CHECK, format!("`{shown}` is writable")),
            Err(error) => {
                let what = format!("`{shown}` is not writable: {error}");
                Finding::warning(CHECK, what, "set `cwd` to another directory if tools write files")
            }
        })
    }

    pub(super) fn config_directory(&self) -> Option<Finding> {
        const CHECK: Check = Check::ConfigDirectory;
        if self.is_elsewhere() {
            return None;
        }
        let help = "set the environment variable CLAUDE_CONFIG_DIR to a writable directory";
        let own = |name: &str| self.own_variable(name);
        let Some(config) = ConfigDir::resolve(&self.options.settings, &own) else {
            let what =
                format!("neither CLAUDE_CONFIG_DIR nor {HOME_VARIABLE} is passed to the CLI");
            return Some(Finding::warning(CHECK, what, help));
        };
        let directory = config.path;
        let shown = directory.display();
        // The CLI creates missing directories.
        let Some(present) = directory.ancestors().find(|ancestor| ancestor.exists()) else {
            return Some(Finding::problem(CHECK, format!("`{shown}` cannot be created"), help));
        };
        Some(if !present.is_dir() {
            let what = if present == directory {
                format!("`{shown}` is a file")
            } else {
                format!("`{shown}` cannot be created: `{}` is a file", present.display())
            };
            Finding::problem(CHECK, what, help)
        } else if let Err(error) = try_to_write(present) {
            let what = format!("`{shown}` is not writable, so sessions cannot be saved: {error}");
            Finding::warning(CHECK, what, help)
        } else {
            Finding::good(CHECK, format!("`{shown}` is writable"))
        })
    }

    pub(super) fn credentials(&self) -> Option<Finding> {
        const CHECK: Check = Check::Credentials;
        let mut given = Vec::new();
        for name in CREDENTIALS {
            if self.variable(name).is_some_and(|value| !value.is_empty()) {
                given.push(name.to_owned());
            }
        }
        if !given.is_empty() {
            return Some(Finding::good(
                CHECK,
                format!("{} is passed to the CLI", given.join(" and ")),
            ));
        }
        if self.has_key_helper() {
            return Some(Finding::good(CHECK, "`settings` contains an `apiKeyHelper`"));
        }
        if self.is_elsewhere() {
            return None;
        }
        let what = format!(
            "none of {} is passed to the CLI; requests fail unless `claude` was logged in before",
            list::map(&CREDENTIALS, &ToString::to_string).join(", ")
        );
        Some(Finding::warning(
            CHECK,
            what,
            "set ANTHROPIC_API_KEY, or run `claude` in a terminal and log in",
        ))
    }

    fn has_key_helper(&self) -> bool {
        let Some(SettingsSource::Value(settings)) = &self.options.settings.settings else {
            return false;
        };
        settings.deserialize::<Value>().is_ok_and(|settings| settings["apiKeyHelper"].is_string())
    }

    pub(super) fn mcp_config(&self) -> Vec<Finding> {
        let settings = &self.options.settings;
        let here = if self.is_elsewhere() { &[] } else { settings.mcp_config_files.as_slice() };
        list::map(here, &|path| mcp_config_finding(&self.resolved(path)))
    }

    /// Resolves a path as the CLI does, from its working directory.
    fn resolved(&self, path: &Path) -> PathBuf {
        self.options.settings.cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path))
    }

    pub(super) fn files(&self) -> Vec<Finding> {
        if self.is_elsewhere() {
            return Vec::new();
        }
        list::map(&named_files(&self.options.settings), &|(option, path, kind)| {
            let path = self.resolved(path);
            let shown = format!("`{option}`: `{}`", path.display());
            let (fits, what) = match kind {
                PathKind::File => (path.is_file(), "is not a file"),
                PathKind::Directory => (path.is_dir(), "is not a directory"),
                PathKind::Any => (path.exists(), "does not exist"),
            };
            if fits {
                return Finding::good(Check::Files, format!("{shown} exists"));
            }
            let help = format!("create it, or change `{option}`");
            Finding::problem(Check::Files, format!("{shown} {what}"), &help)
        })
    }

    pub(super) fn permissions(&self) -> Option<Finding> {
        let mode = &self.options.settings.permission_mode;
        let bypass = *mode == Some(PermissionMode::BypassPermissions);
        let sandboxed = self.variable("IS_SANDBOX").is_some_and(|value| value == "1");
        (bypass && !sandboxed && !self.is_elsewhere() && is_root()).then(root_finding)
    }
}

fn mcp_config_finding(path: &Path) -> Finding {
    let shown = path.display();
    match servers_in(path) {
        Ok(1) => Finding::good(Check::McpConfig, format!("`{shown}` contains 1 server")),
        Ok(count) => Finding::good(Check::McpConfig, format!("`{shown}` contains {count} servers")),
        Err(why) => {
            let help = "pass a file with a JSON object that contains an object `mcpServers`";
            Finding::problem(Check::McpConfig, format!("`{shown}` is not valid: {why}"), help)
        }
    }
}

pub(super) fn root_finding() -> Finding {
    let what = "the CLI does not allow root to bypass permissions";
    let help = "run the CLI as another user (`user`), choose another `permission_mode`, or set \
                IS_SANDBOX=1 if it runs in a sandbox";
    Finding::problem(Check::Permissions, what, help)
}

/// The required kind of a path.
enum PathKind {
    File,
    Directory,
    Any,
}

/// Returns the files and directories that the CLI reads at its start, by option.
fn named_files(settings: &Settings) -> Vec<(&'static str, &Path, PathKind)> {
    let mut named = Vec::new();
    if let Some(SettingsSource::File(path)) = &settings.settings {
        named.push(("settings", path.as_path(), PathKind::File));
    }
    if let Some(SystemPromptBase::File(path)) = &settings.system_prompt {
        named.push(("system_prompt", path.as_path(), PathKind::File));
    }
    // A plugin may be an archive.
    for plugin in &settings.plugins {
        named.push(("plugins", plugin.path.as_path(), PathKind::Any));
    }
    if let Some(path) = &settings.project_config_root {
        named.push(("project_config_root", path.as_path(), PathKind::Directory));
    }
    for path in &settings.add_dirs {
        named.push(("add_dirs", path.as_path(), PathKind::Directory));
    }
    named
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Creates a file and removes it: permissions alone are not conclusive for root or on a full disk.
fn try_to_write(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".claude-agent-kit-{}", crate::random::uuid()));
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(path)
}

/// Returns the number of servers in a file. The reason of a failure contains no values.
fn servers_in(path: &Path) -> Result<usize, String> {
    let config = small_file::read_json(path).map_err(|error| error.to_string())?;
    let servers = config.get("mcpServers").and_then(Value::as_object);
    servers.map(serde_json::Map::len).ok_or_else(|| "the object `mcpServers` is missing".to_owned())
}
