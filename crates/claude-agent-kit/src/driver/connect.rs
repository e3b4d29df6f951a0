//! Finds the CLI of a run, and starts it.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::{self, CheckedCli, CliVersion, Program};
use crate::diagnose;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::transport::{Connection, Launch, Local, Transport};

/// The CLI of a run before it is started.
pub(super) struct FoundCli {
    starter: Starter,
    /// `None` if it is unknown.
    pub(super) version: Option<CliVersion>,
    warnings: Vec<crate::Warning>,
}

/// What starts the CLI.
enum Starter {
    Program(Program),
    Transport(Arc<dyn Transport>),
}

impl FoundCli {
    /// Finds the executable and checks its version, unless a custom transport starts the CLI.
    pub(super) async fn of(options: &Options, launch: &Launch) -> Result<Self> {
        if let Some(transport) = &options.host.transport {
            let version = transport.cli_version();
            if let Some(version) = version {
                options.host.version_policy().check_known(version)?;
            }
            let starter = Starter::Transport(Arc::clone(transport));
            return Ok(Self { starter, version, warnings: Vec::new() });
        }
        let program = cli::find_program(options)?;
        let policy = options.host.version_policy();
        let CheckedCli { program, version, warnings } = policy.check(program, launch).await?;
        Ok(Self { starter: Starter::Program(program), version, warnings })
    }
}

/// A started CLI, and the facts found while starting it.
pub(super) struct Connected {
    pub(super) connection: Connection,
    pub(super) version: Option<CliVersion>,
    pub(super) path: Option<PathBuf>,
    /// The command, as errors show it.
    pub(super) command: Option<String>,
    pub(super) warnings: Vec<crate::Warning>,
}

/// Starts the CLI, and records the run if the options say so.
pub(super) async fn connect(options: &Options, launch: Launch, cli: FoundCli) -> Result<Connected> {
    #[cfg(feature = "testing")]
    if let Some(recorder) = &options.host.recorder {
        let arguments = launch.args().to_vec();
        let mut connected = connect_cli(options, launch, cli).await?;
        let version = connected.version.as_ref().map(ToString::to_string);
        let recorded = recorder.record(connected.connection, arguments, version);
        connected.connection = recorded.map_err(recording_failed)?;
        return Ok(connected);
    }
    connect_cli(options, launch, cli).await
}

#[cfg(feature = "testing")]
fn recording_failed(error: std::io::Error) -> Error {
    let message = format!("cannot record the run: {error}");
    Error::new(ErrorKind::SpawnFailed, message).caused_by_io(error)
}

async fn connect_cli(options: &Options, launch: Launch, cli: FoundCli) -> Result<Connected> {
    let FoundCli { starter, version, warnings } = cli;
    let directory = options.settings.cwd.as_deref();
    let (connection, path, command) = match starter {
        Starter::Transport(transport) => {
            let failed = |error| match directory {
                // The transport starts the CLI with files of this machine.
                Some(cwd) if transport.is_local() => diagnose::unusable_directory(&error, cwd)
                    .unwrap_or_else(|| transport_failed(error)),
                _ => transport_failed(error),
            };
            (transport.connect(launch).await.map_err(failed)?, None, None)
        }
        Starter::Program(program) => {
            let path = program.path().to_owned();
            let command = diagnose::shown_command(&program, launch.args());
            let connection = Local::new(program).connect(launch).await.map_err(|error| {
                diagnose::spawn_failed(&error, &path, directory).caused_by(error)
            })?;
            (connection, Some(path), Some(command))
        }
    };
    Ok(Connected { connection, version, path, command, warnings })
}

pub(crate) fn transport_failed(error: std::io::Error) -> Error {
    let message = format!("the transport failed to start the CLI: {error}");
    Error::new(ErrorKind::SpawnFailed, message).caused_by(error)
}
