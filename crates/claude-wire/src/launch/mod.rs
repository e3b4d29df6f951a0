//! The settings of the host as plain data, and their encoding as command line, environment and
//! handshake.
//!
//! Pure functions: [`command_line`] turns [`Settings`] into a [`CommandLine`] or all [`Problems`], and
//! [`initialize()`] creates the handshake. Nothing is started here.

mod argv;
mod check;
mod cli_settings;
mod contradictions;
mod environment;
mod extensions;
mod include;
mod initialize;
mod limits;
mod merge;
mod print_mode;
mod sandbox;
mod secrets;
mod settings;
mod start;
mod thinking;
mod values;

pub use check::{Problem, Problems};
pub use cli_settings::{CliSettings, PermissionSettings};
pub use environment::{ENTRYPOINT, EnvironmentPolicy, NEVER_INHERITED};
pub use extensions::{Agents, Plugin, PluginDelivery, Skills};
pub use include::{DebugLog, Include};
pub use initialize::initialize;
pub use limits::Limits;
pub use merge::merge;
pub use sandbox::{
    CredentialMode, Sandbox, SandboxCredential, SandboxCredentials, SandboxFilesystem,
    SandboxNetwork, SandboxRipgrep, SandboxTls,
};
pub use secrets::{secrets, secrets_in};
pub use settings::{
    ManagedSettings, McpServers, PermissionPrompts, PreviewFormat, SYSTEM_PROMPT_BOUNDARY, Secret,
    Settings, SettingsSource, SystemPrompt, ToolSet,
};
pub use start::{Origin, Start};
pub use thinking::{Effort, Thinking, ThinkingDisplay};

/// The mode in which the CLI runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Streaming JSON in both directions, with the control protocol.
    #[default]
    Session,
    /// One prompt on the command line and answers on stdout, for old CLIs.
    Print {
        /// The prompt.
        prompt: String,
    },
}

/// The callbacks and in-process servers of the host, which affect the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// Whether a permission callback is registered.
    pub permission_callback: bool,
    /// Whether hooks are registered.
    pub hooks: bool,
    /// Whether a callback for elicitations or dialogs is registered.
    pub user_callback: bool,
    /// The names of the in-process MCP servers.
    pub servers: Vec<String>,
}

/// The arguments and the environment of the CLI.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLine {
    /// The arguments, without the program.
    pub arguments: Vec<String>,
    /// The variables to set.
    pub set: Vec<(String, Secret)>,
    /// The variables to remove from the inherited environment.
    pub remove: Vec<String>,
    /// The policy for inherited variables.
    pub inherit: EnvironmentPolicy,
    /// The ignored settings, each with the one that takes precedence.
    pub ignored: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for CommandLine {
    /// Formats without the values, which contain prompts and secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The prompt follows `--`.
        let flags = self.arguments.iter().take_while(|argument| *argument != "--");
        let flags = flags.map(|argument| argument.split('=').next());
        f.debug_struct("CommandLine")
            .field("flags", &flags.collect::<Vec<_>>())
            .field("set", &self.set.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("remove", &self.remove)
            .field("inherit", &self.inherit)
            .finish_non_exhaustive()
    }
}

/// Encodes `settings` as a command line.
///
/// # Errors
/// All contradictions and all invalid values at once.
pub fn command_line(
    settings: &Settings,
    form: &Form,
    needs: &Needs,
) -> Result<CommandLine, Problems> {
    check::check(settings, form, needs)?;
    let command = CommandLine {
        arguments: argv::arguments(settings, form, needs),
        set: environment::set(settings),
        remove: environment::removed(settings),
        inherit: settings.environment.clone(),
        ignored: contradictions::ignored(settings),
    };
    Ok(command)
}
