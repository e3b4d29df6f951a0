//! The settings of the host as plain data, and their encoding as command line, environment and
//! handshake.
//!
//! Pure functions: [`command_line`] turns [`Settings`] into a [`CommandLine`] or all [`Problems`], and
//! [`initialize()`] creates the handshake. Nothing is started here.

mod argv;
mod check;
pub(crate) mod cli_settings;
mod contradictions;
pub(crate) mod environment;
pub(crate) mod extensions;
pub(crate) mod include;
mod initialize;
mod limits;
mod mcp_servers;
mod merge;
mod print_mode;
pub(crate) mod sandbox;
mod secrets;
pub(crate) mod settings;
mod start;
pub(crate) mod thinking;
mod values;

pub use check::{Problem, Problems};
pub(crate) use cli_settings::CliSettings;
pub(crate) use environment::EnvironmentPolicy;
pub use environment::{ENTRYPOINT, NEVER_INHERITED};
pub use extensions::{Agents, Plugin, Skills};
pub(crate) use extensions::{McpDelivery, PluginDelivery};
pub(crate) use include::DebugLog;
pub use include::Include;
pub use initialize::initialize;
pub use limits::Limits;
pub use merge::merge;
pub(crate) use sandbox::Sandbox;
pub use secrets::{secrets, secrets_in};
pub use settings::{McpServers, Secret, Settings, SystemPrompt, ToolSet};
pub use start::{Origin, Start};
pub use thinking::{Effort, Thinking};

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

/// The callbacks, in-process servers and the store of the host, which affect the command line.
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
    /// Whether the entries of transcripts are mirrored to a store.
    pub session_mirror: bool,
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
