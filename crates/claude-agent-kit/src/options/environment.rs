//! Options about directories, environment variables and settings.

use std::path::PathBuf;

use claude_wire::launch::Secret;
use claude_wire::settings::{
    DebugLog, EnvironmentPolicy, ManagedSettings, Sandbox, SettingsSource,
};

use super::{Options, strings};

impl Options {
    /// Sets the working directory of the CLI and its tools. The directory is not checked before the
    /// start; an empty path restores the default. Sent as the working directory and `PWD` of the
    /// process. Default: the working directory of this process.
    pub fn cwd(self, directory: impl Into<PathBuf>) -> Self {
        let directory = Some(directory.into()).filter(|path| !path.as_os_str().is_empty());
        self.change_settings("cwd", |settings| settings.cwd = directory)
    }

    /// Sets the directory from which project settings, MCP servers and agents are loaded, for example a
    /// trusted checkout when the working directory is not trusted. Sent as `--project-config-root`.
    /// Default: the working directory.
    pub fn project_config_root(self, directory: impl Into<PathBuf>) -> Self {
        self.change_settings("project_config_root", |settings| {
            settings.project_config_root = Some(directory.into());
        })
    }

    /// Adds a directory that tools may access in addition to the working directory. Sent as
    /// `--add-dir`. Default: none.
    pub fn add_dir(self, directory: impl Into<PathBuf>) -> Self {
        self.add_settings("add_dirs", |settings| settings.add_dirs.push(directory.into()))
    }

    /// Sets which environment variables of this process the CLI inherits. Sent as the environment of
    /// the process. Default: all except the variables of an outer CLI session.
    pub fn environment(self, policy: EnvironmentPolicy) -> Self {
        self.change_settings("environment", |settings| settings.environment = policy)
    }

    /// Sets an environment variable of the CLI, in addition to the inherited ones. Replaces an earlier
    /// value of the same variable. Values are masked in `Debug` output. Sent as the environment of the
    /// process. Default: only the variables that identify the SDK.
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.add_settings("env", |settings| {
            settings.env.insert(name.into(), Secret::from(value));
        })
    }

    /// Appends a CLI flag that has no setter: its name, or a pair of name and value. The dashes before
    /// the name are optional. Sent as the flag itself. Default: none.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    ///
    /// let options = Options::new().add_arg(("autocompact", "200k")).add_arg("--brief");
    /// ```
    pub fn add_arg(self, flag: impl Into<ExtraArg>) -> Self {
        let ExtraArg(flag) = flag.into();
        self.add_settings("extra_args", |settings| settings.extra_args.push(flag))
    }

    /// Sets additional CLI settings, as [`CliSettings`](crate::settings::CliSettings), as JSON or as the
    /// path of a file. They take precedence over the user's settings. Replaces an earlier value. Sent as
    /// `--settings`. Default: none.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::settings::CliSettings;
    ///
    /// let options = Options::new().settings(CliSettings::default().output_style("Explanatory"));
    /// ```
    pub fn settings(self, settings: impl Into<SettingsSource>) -> Self {
        self.change_settings("settings", |all| all.settings = Some(settings.into()))
    }

    /// Sets the sandbox in which commands run. It is merged with the sandbox in
    /// [`settings`](Self::settings) key by key and takes precedence; lists of denied items are
    /// concatenated. If the sandbox is enabled but not available, the CLI does not start, unless
    /// `failIfUnavailable` is false. If `settings` is a file, it is read at the start and passed by
    /// value. Sent as `sandbox` in `--settings`. Default: the sandbox of the user's settings.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::settings::{Sandbox, SandboxNetwork};
    ///
    /// let network = SandboxNetwork::default().allowed_domains(["example.com"]);
    /// let options = Options::new().sandbox(Sandbox::default().enabled(true).network(network));
    /// ```
    pub fn sandbox(self, sandbox: Sandbox) -> Self {
        self.change_settings("sandbox", |settings| settings.sandbox = Some(Box::new(sandbox)))
    }

    /// Sets settings that restrict the user's settings, as [`CliSettings`](crate::settings::CliSettings)
    /// or JSON. The CLI uses only their restrictions; policies of the machine take precedence. Replaces
    /// an earlier value. Sent as `--managed-settings`. Default: none.
    pub fn managed_settings(self, settings: impl Into<ManagedSettings>) -> Self {
        self.change_settings("managed_settings", |all| all.managed_settings = Some(settings.into()))
    }

    /// Sets the name of the application, which the CLI adds to its user agent. Sent as the variable
    /// `CLAUDE_AGENT_SDK_CLIENT_APP`. Default: none.
    pub fn client_app(self, name: impl Into<String>) -> Self {
        self.change_settings("client_app", |settings| settings.client_app = Some(name.into()))
    }

    /// Sets where the CLI writes a debug log. Sent as `--debug`, or `--debug-file` for a file.
    /// Default: no debug log.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    /// use claude_agent_kit::settings::DebugLog;
    ///
    /// let options = Options::new().debug(DebugLog::file("/var/log/agent.log"));
    /// ```
    pub fn debug(self, log: DebugLog) -> Self {
        self.change_settings("debug", |settings| settings.debug = log)
    }

    /// Sets which settings files the CLI reads: any of `user`, `project` and `local`, or
    /// [`SettingSources::none`]. Replaces an earlier value. Sent as `--setting-sources`. Default:
    /// all.
    pub fn setting_sources(self, sources: impl Into<SettingSources>) -> Self {
        self.change_settings("setting_sources", |settings| {
            settings.setting_sources = Some(sources.into().0);
        })
    }
}

/// The settings files that the CLI reads.
///
/// ```
/// use claude_agent_kit::{Options, SettingSources};
///
/// let project = Options::new().setting_sources(["project", "local"]);
/// let nothing = Options::new().setting_sources(SettingSources::none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingSources(Vec<String>);

impl SettingSources {
    /// Reads no settings file.
    pub fn none() -> Self {
        Self(Vec::new())
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for SettingSources {
    fn from(names: [T; N]) -> Self {
        Self(strings(names))
    }
}

impl<T: Into<String>> From<Vec<T>> for SettingSources {
    fn from(names: Vec<T>) -> Self {
        Self(strings(names))
    }
}

/// A flag of the CLI with an optional value, created from a name or from a pair of name and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraArg((String, Option<Secret>));

impl From<&str> for ExtraArg {
    fn from(flag: &str) -> Self {
        Self((flag.to_owned(), None))
    }
}

impl From<String> for ExtraArg {
    fn from(flag: String) -> Self {
        Self((flag, None))
    }
}

impl<N: Into<String>, V: Into<String>> From<(N, V)> for ExtraArg {
    fn from((flag, value): (N, V)) -> Self {
        Self((flag.into(), Some(Secret::from(value))))
    }
}
