//! Options of example programs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use claude_agent_testkit::sim::Sim;

use crate::Options;

/// Returns options for an example program: with the CLI of the command-line argument `--cli PATH`, or
/// with a simulated CLI if there is none.
///
/// `--cli claude` selects the installed CLI. See [`Options::simulated`] for `sim`.
///
/// A program with a command line of its own calls [`demo_options_for`].
pub fn demo_options(sim: impl Into<Sim>) -> Options {
    demo_options_for(cli_argument(env::args_os()), sim)
}

/// Returns options with this CLI, or with a simulated CLI if it is `None`. `claude` selects the installed CLI.
///
/// ```
/// use claude_agent_kit::testing::{Reply, Script, demo_options_for};
///
/// let script = Script::new().otherwise([Reply::text("Hello.")]);
/// let cli = std::env::var_os("MY_PROGRAM_CLI");
/// let options = demo_options_for(cli, script);
/// ```
pub fn demo_options_for(cli: Option<impl Into<PathBuf>>, sim: impl Into<Sim>) -> Options {
    match cli.map(Into::into) {
        Some(name) if name == Path::new("claude") => Options::new(),
        Some(path) => Options::new().cli_path(path),
        None => Options::new().simulated(sim),
    }
}

fn cli_argument(arguments: impl Iterator<Item = OsString>) -> Option<OsString> {
    arguments.skip_while(|argument| argument != "--cli").nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        demo_options_for(cli_argument(arguments.iter().map(OsString::from)), Sim::new())
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
