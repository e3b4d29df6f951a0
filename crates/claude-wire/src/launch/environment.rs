//! What the CLI sees of the world.

use super::settings::{Secret, Settings};

/// The name by which the CLI knows this SDK, unless the host gives another.
pub const ENTRYPOINT: &str = "sdk-rust";

/// Variables that belong to one session of a CLI and must not reach another one that is started
/// from inside it.
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

/// What of the host's environment the CLI inherits. Variables given by the settings come on top.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EnvironmentPolicy {
    /// Everything but [`NEVER_INHERITED`].
    #[default]
    Inherit,
    /// Everything but those and these.
    InheritExcept(Vec<String>),
    /// Only these.
    Only(Vec<String>),
    /// Nothing.
    Clean,
}

impl EnvironmentPolicy {
    /// Returns whether the CLI inherits a variable of the host. Names are compared without case on
    /// Windows, where `Path` and `PATH` are one variable.
    pub fn passes(&self, name: &str) -> bool {
        self.passes_in(name, cfg!(windows))
    }

    /// Returns whether the CLI inherits a variable, in an environment whose names have a case or
    /// not.
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

/// Variables that the CLI gets besides what it inherits.
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
    variables.extend(settings.env.iter().map(|(name, value)| (name.clone(), value.clone())));
    variables
}

/// Variables that are taken away from what is inherited, unless the settings give them.
pub(super) fn removed(settings: &Settings) -> Vec<String> {
    let elsewhere = settings.cwd.as_ref().is_some_and(|cwd| !cwd.as_os_str().is_empty())
        && pwd(settings).is_none();
    // The host's own would be wrong there, and what is right only the new process knows.
    let stale = elsewhere.then_some("PWD");
    let names = NEVER_INHERITED.iter().copied().chain(stale);
    names.filter(|name| !settings.env.contains_key(*name)).map(str::to_owned).collect()
}

/// What the variable `PWD` can say of the working directory: its whole path, if that is text.
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
