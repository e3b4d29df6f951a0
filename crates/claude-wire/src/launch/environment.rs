//! The environment of the CLI.

use super::settings::{Secret, Settings};

/// The default entry point name of this SDK.
pub const ENTRYPOINT: &str = "sdk-rust";

/// Variables of a running CLI session, which a CLI that is started inside it must not inherit.
pub const NEVER_INHERITED: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_HOST_SESSION_ID",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_RESUME_REASON",
    "CLAUDE_EFFORT",
    "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT",
];

/// The policy for inherited variables. Variables in the settings take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvironmentPolicy {
    /// Inherits everything except [`NEVER_INHERITED`].
    #[default]
    Inherit,
    /// Inherits everything except [`NEVER_INHERITED`] and these.
    InheritExcept(Vec<String>),
    /// Inherits only these.
    Only(Vec<String>),
    /// Inherits nothing.
    Clean,
}

impl EnvironmentPolicy {
    /// Returns whether the CLI inherits a variable of the host. Names are compared without case on
    /// Windows, where `Path` and `PATH` are one variable.
    pub fn passes(&self, name: &str) -> bool {
        self.passes_in(name, cfg!(windows))
    }

    /// Returns whether the CLI inherits a variable; names are compared without case if `ignores_case`.
    fn passes_in(&self, name: &str, ignores_case: bool) -> bool {
        let is_same = |other: &str| {
            if ignores_case { other.eq_ignore_ascii_case(name) } else { other == name }
        };
        !NEVER_INHERITED.iter().any(|other| is_same(other))
            && match self {
                Self::Inherit => true,
                Self::InheritExcept(names) => !names.iter().any(|other| is_same(other)),
                Self::Only(names) => names.iter().any(|other| is_same(other)),
                Self::Clean => false,
            }
    }
}

/// Returns the variables to set.
pub(super) fn set(settings: &Settings) -> Vec<(String, Secret)> {
    let mut variables: Vec<(String, Secret)> = Vec::new();
    let mut unless_given = |name: &str, value: &str| {
        if !settings.env.contains_key(name) {
            variables.push((name.to_owned(), Secret::from(value)));
        }
    };
    unless_given("CLAUDE_CODE_ENTRYPOINT", ENTRYPOINT);
    unless_given("CLAUDE_AGENT_SDK_VERSION", env!("CARGO_PKG_VERSION"));
    unless_given("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    if settings.file_checkpointing {
        unless_given("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    }
    if let Some(format) = &settings.question_preview {
        unless_given("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", format.as_str());
    }
    if let Some(app) = &settings.client_app {
        unless_given("CLAUDE_AGENT_SDK_CLIENT_APP", app);
    }
    if let Some(cwd) = pwd(settings) {
        unless_given("PWD", cwd);
    }
    variables.extend(settings.env.iter().map(|(name, value)| (name.to_owned(), value.clone())));
    variables
}

/// Returns the inherited variables to remove, unless the settings contain them.
pub(super) fn removed(settings: &Settings) -> Vec<String> {
    let elsewhere = settings.cwd.as_ref().is_some_and(|cwd| !cwd.as_os_str().is_empty())
        && pwd(settings).is_none();
    // The value of the host would be wrong, and only the new process knows the right one.
    let stale: &[&str] = if elsewhere { &["PWD"] } else { &[] };
    let mut removed = Vec::new();
    for name in [NEVER_INHERITED, stale].into_iter().flatten() {
        if !settings.env.contains_key(name) {
            removed.push((*name).to_owned());
        }
    }
    removed
}

/// Returns the value of `PWD`: the absolute path of the working directory, if it is UTF-8.
fn pwd(settings: &Settings) -> Option<&str> {
    settings.cwd.as_ref().filter(|cwd| cwd.is_absolute())?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_case_match_every_spelling() {
        let names = || vec!["PATH".to_owned()];
        let only = EnvironmentPolicy::Only(names());
        let except = EnvironmentPolicy::InheritExcept(names());
        for (ignores_case, is_same) in [(true, true), (false, false)] {
            assert_eq!(only.passes_in("Path", ignores_case), is_same);
            assert_eq!(except.passes_in("Path", ignores_case), !is_same);
            let inherit = EnvironmentPolicy::Inherit;
            assert_eq!(inherit.passes_in("ClaudeCode", ignores_case), !is_same);
        }
        assert!(only.passes_in("PATH", false) && only.passes_in("PATH", true));
        assert!(!only.passes_in("PATHS", true));
    }
}
