//! The command line.

use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "\
usage: approval_service [options]
  --simulated            uses a simulated CLI, whose model runs each prompt as a shell command
  --folder <path>        the folder with the database and the files of the agents; default: approval-service
  --port <number>        the port on the loopback interface, 0 for any; default: 8080
  --approver <name>      a user who may decide, each with a token of their own; default: operator
  --park-after <seconds> how long a run waits for a decision before it ends; default: 0";

/// What the command line chose.
pub(crate) struct Arguments {
    pub(crate) is_simulated: bool,
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    pub(crate) approvers: Vec<String>,
    pub(crate) park_after: Duration,
}

impl Arguments {
    /// Reads the command line. Returns `None` if it asks for help, which is printed.
    pub(crate) fn parse(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let mut parsed = Self {
            is_simulated: false,
            folder: PathBuf::from("approval-service"),
            port: 8080,
            approvers: Vec::new(),
            park_after: Duration::ZERO,
        };
        while let Some(name) = arguments.next() {
            match name.as_str() {
                "--simulated" => {
                    parsed.is_simulated = true;
                    continue;
                }
                "--help" => {
                    println!("{USAGE}");
                    return Ok(None);
                }
                _ => {}
            }
            let value = arguments.next();
            let value =
                value.ok_or_else(|| format!("{name:?} is unexpected or has no value\n{USAGE}"))?;
            let invalid = || format!("{name}: {value:?} is not valid\n{USAGE}");
            match name.as_str() {
                "--folder" => parsed.folder = PathBuf::from(&value),
                "--port" => parsed.port = value.parse().map_err(|_| invalid())?,
                "--approver" => parsed.approvers.push(value),
                "--park-after" => {
                    parsed.park_after = Duration::from_secs(value.parse().map_err(|_| invalid())?);
                }
                _ => return Err(format!("{name:?} is unexpected\n{USAGE}")),
            }
        }
        if parsed.approvers.is_empty() {
            parsed.approvers.push("operator".to_owned());
        }
        Ok(Some(parsed))
    }
}
