//! What the host wants, as plain data, and how it is said to the CLI: command line, environment,
//! handshake.
//!
//! Pure functions: [`Settings`] in, [`CommandLine`] or all [`Problems`] out ([`command_line`]), and
//! what the handshake carries ([`initialize()`]). Nothing is looked up and nothing started here.

mod argv;
mod check;
pub(crate) mod cli_settings;
mod contradictions;
pub(crate) mod environment;
pub(crate) mod extensions;
pub(crate) mod include;
mod initialize;
mod limits;
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
pub(crate) use extensions::PluginDelivery;
pub use extensions::{Agents, Plugin, Skills};
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
