//! Options about what the CLI sees of the machine.

use std::path::PathBuf;

use claude_wire::launch::{EnvironmentPolicy, ManagedSettings, Sandbox, Secret, SettingsSource};

use super::{Options, strings};

impl Options {
    /// Sets the working directory of the CLI and its tools. The directory is not checked before the
    /// start; an empty path counts as none. Sent as the working directory and `PWD` of the process.
    /// Default: that of this process.
    pub fn cwd(self, directory: impl Into<PathBuf>) -> Self {
        let directory = Some(directory.into()).filter(|path| !path.as_os_str().is_empty());
        self.change_settings("cwd", |settings| settings.cwd = directory)
    }

    /// Sets the directory whose project settings, MCP servers and agents are used in place of the
    /// working directory's: a checkout that is trusted where the other is not. Sent as
    /// `--project-config-root`. Default: the working directory.
    pub fn project_config_root(self, directory: impl Into<PathBuf>) -> Self {
        self.change_settings("project_config_root", |settings| {
            settings.project_config_root = Some(directory.into());
        })
    }

    /// Adds a directory, beside the working directory, that tools may use. Sent as `--add-dir`.
    /// Default: none.
    pub fn add_dir(self, directory: impl Into<PathBuf>) -> Self {
        self.add_dirs([directory])
    }

    /// Adds directories, as [`add_dir`](Self::add_dir) does.
    pub fn add_dirs(self, directories: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        self.add_settings("add_dirs", |settings| {
            settings.add_dirs.extend(directories.into_iter().map(Into::into));
        })
    }

    /// Sets what the CLI inherits of this process's environment. Sent as the environment of the
    /// process. Default: everything but the variables of an outer CLI's session.
    pub fn environment(self, policy: EnvironmentPolicy) -> Self {
        self.change_settings("environment", |settings| settings.environment = policy)
    }

    /// Sets a variable for the CLI, beside what it inherits. Its value is never printed. Sent as
    /// the environment of the process. Default: those that name this SDK to the CLI.
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.envs([(name, value)])
    }

    /// Sets variables, as [`env`](Self::env) does.
    pub fn envs(
        self,
        variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        self.add_settings("env", |settings| {
            let variables = variables.into_iter();
            settings.env.extend(variables.map(|(name, value)| (name.into(), Secret::from(value))));
        })
    }

    /// Adds a flag of the CLI that these options do not know, with its value if it takes one. With
    /// or without the dashes. Sent as the flag itself. Default: none.
    ///
    /// ```
    /// use claude_agent_kit::Options;
    ///
    /// let options = Options::new().extra_arg("autocompact", Some("200k")).extra_arg("brief", None);
    /// ```
    pub fn extra_arg(self, flag: impl Into<String>, value: Option<&str>) -> Self {
        self.extra_args([(flag, value)])
    }

    /// Adds flags, as [`extra_arg`](Self::extra_arg) does.
    pub fn extra_args<'a>(
        self,
        flags: impl IntoIterator<Item = (impl Into<String>, Option<&'a str>)>,
    ) -> Self {
        self.add_settings("extra_args", |settings| {
            let flags = flags.into_iter();
            settings
                .extra_args
                .extend(flags.map(|(flag, value)| (flag.into(), value.map(Secret::from))));
        })
    }

    /// Adds settings of the CLI's own kind, as [`CliSettings`](crate::CliSettings), as JSON or as
    /// the path of a file. They take precedence over those of the user. Sent as `--settings`.
    /// Default: none.
    ///
    /// ```
    /// use claude_agent_kit::{CliSettings, Options};
    ///
    /// let options = Options::new().settings(CliSettings::default().output_style("Explanatory"));
    /// ```
    pub fn settings(self, settings: impl Into<SettingsSource>) -> Self {
        self.change_settings("settings", |all| all.settings = Some(settings.into()))
    }

    /// Sets the sandbox in which commands run. It is merged over the one in
    /// [`settings`](Self::settings), key by key; what is denied adds up. A sandbox that is enabled
    /// and not available keeps the CLI from starting, unless it is told otherwise. Where `settings`
    /// is a file, the file is read at the start and travels by value. Sent as `sandbox` in
    /// `--settings`. Default: what the user's settings say.
    ///
    /// ```
    /// use claude_agent_kit::{Options, Sandbox, SandboxNetwork};
    ///
    /// let network = SandboxNetwork::default().allowed_domains(["example.com"]);
    /// let options = Options::new().sandbox(Sandbox::default().enabled(true).network(network));
    /// ```
    pub fn sandbox(self, sandbox: Sandbox) -> Self {
        self.change_settings("sandbox", |settings| settings.sandbox = Some(Box::new(sandbox)))
    }

    /// Adds settings that restrict whatever the user's say, as [`CliSettings`](crate::CliSettings)
    /// or JSON. The CLI takes from them only what restricts; policies of the machine take
    /// precedence. Sent as `--managed-settings`. Default: none.
    pub fn managed_settings(self, settings: impl Into<ManagedSettings>) -> Self {
        self.change_settings("managed_settings", |all| all.managed_settings = Some(settings.into()))
    }

    /// Sets the name of the application, which the CLI adds to its user agent. Sent as the variable
    /// `CLAUDE_AGENT_SDK_CLIENT_APP`. Default: none.
    pub fn client_app(self, name: impl Into<String>) -> Self {
        self.change_settings("client_app", |settings| settings.client_app = Some(name.into()))
    }

    /// Has the CLI write a debug log, where it keeps its own files. Sent as `--debug`. Default: no.
    pub fn debug(self, debug: bool) -> Self {
        self.change_settings("debug", |settings| settings.debug = debug)
    }

    /// Sets the file of the debug log; [`debug`](Self::debug) need not be set then. Sent as
    /// `--debug-file`. Default: none.
    pub fn debug_file(self, file: impl Into<PathBuf>) -> Self {
        self.change_settings("debug_file", |settings| settings.debug_file = Some(file.into()))
    }

    /// Sets which settings files the CLI reads: `user`, `project`, `local`; an empty list
    /// disables all of them. Sent as `--setting-sources`. Default: all.
    pub fn setting_sources(self, sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.change_settings("setting_sources", |settings| {
            settings.setting_sources = Some(strings(sources));
        })
    }
}
