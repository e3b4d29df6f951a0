//! What is looked at besides the options and the CLI itself.

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
use crate::options::Options;
use crate::small_file;

/// Variables by which the CLI can log in.
const CREDENTIALS: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];

/// Where a run would be.
pub(super) struct Place<'a> {
    pub(super) options: &'a Options,
    /// The environment of this process.
    pub(super) variables: Variables,
}

impl Place<'_> {
    /// A variable as the CLI would see it.
    fn variable(&self, name: &str) -> Option<OsString> {
        let settings = &self.options.settings;
        let given = settings.env.get(name).map(|value| OsString::from(value.expose()));
        given.or_else(|| {
            let is_same = |other: &OsString| {
                if cfg!(windows) { other.eq_ignore_ascii_case(name) } else { other == name }
            };
            let own = self.variables.iter().find(|(other, _)| is_same(other));
            own.filter(|_| settings.environment.passes(name)).map(|(_, value)| value.clone())
        })
    }

    /// Whether the CLI runs on another machine, or as somebody else: what is true here need not be
    /// there.
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
                    let what = format!("that of this process is gone ({error})");
                    return Some(Finding::problem(CHECK, what, "name one with `cwd`"));
                }
            },
        };
        let shown = directory.display();
        if !directory.is_dir() {
            let what = format!("{shown} is no directory");
            return Some(Finding::problem(CHECK, what, "make it, or name another with `cwd`"));
        }
        Some(match try_to_write(&directory) {
            Ok(()) => Finding::good(CHECK, format!("{shown} can be written")),
            Err(error) => {
                let what = format!("{shown} cannot be written ({error})");
                Finding::warning(CHECK, what, "name another with `cwd` if tools are to write there")
            }
        })
    }

    pub(super) fn config_directory(&self) -> Option<Finding> {
        const CHECK: Check = Check::ConfigDirectory;
        if self.is_elsewhere() {
            return None;
        }
        let help = "name another with the variable CLAUDE_CONFIG_DIR";
        let named = self.variable("CLAUDE_CONFIG_DIR").filter(|path| !path.is_empty());
        let home = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        let default = || Some(PathBuf::from(self.variable(home)?).join(".claude"));
        let Some(directory) = named.map(PathBuf::from).or_else(default) else {
            let what = format!("the CLI is given neither CLAUDE_CONFIG_DIR nor {home}");
            return Some(Finding::warning(CHECK, what, help));
        };
        let shown = directory.display();
        // The CLI makes what is missing.
        let Some(present) = directory.ancestors().find(|ancestor| ancestor.exists()) else {
            return Some(Finding::problem(CHECK, format!("{shown} cannot be made"), help));
        };
        Some(if !present.is_dir() {
            let what = format!("{shown} cannot be made, because {} is a file", present.display());
            Finding::problem(CHECK, what, help)
        } else if let Err(error) = try_to_write(present) {
            let what = format!("{shown} cannot be written, so no session can be kept ({error})");
            Finding::warning(CHECK, what, help)
        } else {
            Finding::good(CHECK, format!("{shown} can be written"))
        })
    }

    pub(super) fn credentials(&self) -> Option<Finding> {
        const CHECK: Check = Check::Credentials;
        let filled = |name: &&str| self.variable(name).is_some_and(|value| !value.is_empty());
        let given: Vec<&str> = CREDENTIALS.into_iter().filter(filled).collect();
        if !given.is_empty() {
            return Some(Finding::good(CHECK, format!("the CLI is given {}", given.join(", "))));
        }
        if self.has_key_helper() {
            return Some(Finding::good(CHECK, "`settings` name an apiKeyHelper"));
        }
        if self.is_elsewhere() {
            return None;
        }
        let what = format!(
            "none of {} reaches the CLI; it works only if `claude` was logged in by hand",
            CREDENTIALS.join(", ")
        );
        Some(Finding::warning(CHECK, what, "set ANTHROPIC_API_KEY, or run `claude` and log in"))
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
        let files = here.iter().map(|path| self.seen_by_cli(path));
        let findings = files.map(|path| match servers_in(&path) {
            Ok(1) => Finding::good(Check::McpConfig, format!("{} has a server", path.display())),
            Ok(count) => {
                Finding::good(Check::McpConfig, format!("{} has {count} servers", path.display()))
            }
            Err(why) => {
                let what = format!("{} cannot be used ({why})", path.display());
                let help = "it has to be a JSON object with an object `mcpServers`";
                Finding::problem(Check::McpConfig, what, help)
            }
        });
        findings.collect()
    }

    /// A path as the CLI understands it, from its working directory.
    fn seen_by_cli(&self, path: &Path) -> PathBuf {
        self.options.settings.cwd.as_ref().map_or_else(|| path.to_owned(), |cwd| cwd.join(path))
    }

    pub(super) fn files(&self) -> Vec<Finding> {
        if self.is_elsewhere() {
            return Vec::new();
        }
        let named = named_files(&self.options.settings).into_iter();
        let findings = named.map(|(option, path, kind)| {
            let path = self.seen_by_cli(path);
            let shown = format!("`{option}`: {}", path.display());
            let (fits, what) = match kind {
                Kind::File => (path.is_file(), "is no file"),
                Kind::Directory => (path.is_dir(), "is no directory"),
                Kind::Any => (path.exists(), "is not there"),
            };
            if fits {
                return Finding::good(Check::Files, format!("{shown} is there"));
            }
            let help = format!("make it, or name another with `{option}`");
            Finding::problem(Check::Files, format!("{shown} {what}"), &help)
        });
        findings.collect()
    }

    pub(super) fn permissions(&self) -> Option<Finding> {
        let mode = &self.options.settings.permission_mode;
        let bypass = *mode == Some(PermissionMode::BypassPermissions);
        let sandboxed = self.variable("IS_SANDBOX").is_some_and(|value| value == "1");
        (bypass && !sandboxed && !self.is_elsewhere() && is_root()).then(|| {
            let help = "run as another user (`user`), choose another `permission_mode`, or set \
                          IS_SANDBOX=1 if this really is a sandbox";
            Finding::problem(Check::Permissions, "the CLI does not let root bypass them", help)
        })
    }
}

/// What something that an option names has to be.
enum Kind {
    File,
    Directory,
    Any,
}

/// What the CLI reads at its start, by option.
fn named_files(settings: &Settings) -> Vec<(&'static str, &Path, Kind)> {
    let mut named = Vec::new();
    if let Some(SettingsSource::File(path)) = &settings.settings {
        named.push(("settings", path.as_path(), Kind::File));
    }
    if let Some(SystemPromptBase::File(path)) = &settings.system_prompt {
        named.push(("system_prompt", path.as_path(), Kind::File));
    }
    // An archive will do.
    named.extend(settings.plugins.iter().map(|it| ("plugins", it.path.as_path(), Kind::Any)));
    let root = settings.project_config_root.iter();
    named.extend(root.map(|path| ("project_config_root", path.as_path(), Kind::Directory)));
    let added = settings.add_dirs.iter();
    named.extend(added.map(|path| ("add_dirs", path.as_path(), Kind::Directory)));
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

/// Writes a file and takes it away: rights alone do not tell, for root or on a disk that is full.
fn try_to_write(directory: &Path) -> io::Result<()> {
    let path = directory.join(format!(".claude-agent-kit-{}", crate::random::uuid()));
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::remove_file(path)
}

/// How many servers a file configures. What is said of a failure shows no values.
fn servers_in(path: &Path) -> Result<usize, String> {
    let text = small_file::read(path).map_err(|error| error.to_string())?;
    let config: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let servers = config.get("mcpServers").and_then(Value::as_object);
    servers.map(serde_json::Map::len).ok_or_else(|| "there are no `mcpServers`".to_owned())
}
