//! What the host wants, as plain data, and how it is said to the CLI: command line, environment,
//! handshake.
//!
//! Pure functions: [`Settings`] in, [`CommandLine`] or all [`Problems`] out ([`command_line`]), and
//! what the handshake carries ([`initialize()`]). Nothing is looked up and nothing started here.

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

/// How the CLI is spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Lines of JSON in both directions, with the control protocol.
    #[default]
    Session,
    /// One prompt on the command line, answers on stdout, for old CLIs.
    Print {
        /// The prompt.
        prompt: String,
    },
}

/// What the host has besides settings: things that live in its process and change what the CLI is
/// told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Needs {
    /// A permission callback is registered.
    pub permission_callback: bool,
    /// Hooks are registered.
    pub hooks: bool,
    /// A callback for questions of servers or dialogs is registered.
    pub user_callback: bool,
    /// The names of servers inside the host.
    pub servers: Vec<String>,
}

/// What to start the CLI with.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommandLine {
    /// The arguments, without the program.
    pub arguments: Vec<String>,
    /// Variables to set.
    pub set: Vec<(String, Secret)>,
    /// Variables to remove from what is inherited.
    pub remove: Vec<String>,
    /// What is inherited.
    pub inherit: EnvironmentPolicy,
    /// Settings that were not obeyed because another one beats them; the option and the winner.
    pub ignored: Vec<(&'static str, &'static str)>,
}

impl std::fmt::Debug for CommandLine {
    /// Without the values: prompts and keys stand in them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What follows `--` is the prompt.
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

/// The command line that says `settings` to the CLI.
///
/// # Errors
/// Every contradiction and every value that cannot be passed on, all at once.
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
