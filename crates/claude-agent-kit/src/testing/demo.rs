//! Options of example programs.

use std::env;
use std::ffi::OsString;

use claude_agent_testkit::sim::Sim;

use crate::Options;

/// Returns options for an example program: with the CLI of the command-line argument `--cli PATH`, or
/// with a simulated CLI if there is none.
///
/// `--cli claude` selects the installed CLI. See [`Options::simulated`] for `sim`.
pub fn demo_options(sim: impl Into<Sim>) -> Options {
    from_arguments(sim.into(), env::args_os())
}

fn from_arguments(sim: Sim, arguments: impl Iterator<Item = OsString>) -> Options {
    match arguments.skip_while(|argument| argument != "--cli").nth(1) {
        Some(name) if name == "claude" => Options::new(),
        Some(path) => Options::new().cli_path(path),
        None => Options::new().simulated(sim),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        from_arguments(Sim::new(), arguments.iter().map(OsString::from))
    }

    #[test]
    fn the_command_line_names_the_cli() {
        let simulated = options(&["demo", "other"]);
        assert!(simulated.host.transport.is_some() && simulated.host.cli_path.is_none());
        let installed = options(&["demo", "--cli", "claude"]);
        assert!(installed.host.transport.is_none() && installed.host.cli_path.is_none());
        let named = options(&["demo", "--cli", "/opt/claude"]);
        assert_eq!(named.host.cli_path.as_deref(), Some("/opt/claude".as_ref()));
        assert!(named.host.transport.is_none());
    }
}
