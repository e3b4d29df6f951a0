//! The flags in the help text of the CLI.

use std::process::{Command, Stdio};

use super::Names;
use crate::real_cli::{InstallError, InstalledCli, SandboxDir};

/// Returns the flags in the help text of a CLI.
///
/// # Errors
///
/// Returns an error when the CLI does not print its help text.
pub fn of(cli: &InstalledCli) -> Result<Names, InstallError> {
    let unusable = |error| InstallError::Cache(cli.path.clone(), error);
    let sandbox = SandboxDir::new().map_err(unusable)?;
    let output = Command::new(&cli.path)
        .arg("--help")
        .env_clear()
        // The help text needs no API.
        .envs(sandbox.variables("http://127.0.0.1:9"))
        .current_dir(sandbox.project())
        .stdin(Stdio::null())
        .output()
        .map_err(unusable)?;
    names(&String::from_utf8_lossy(&output.stdout)).map_err(InstallError::Unusable)
}

/// Parses a help text and returns the long names of the flags; the first, if there are several.
///
/// # Errors
///
/// Returns an error when no flag is found.
pub fn names(help: &str) -> Result<Names, String> {
    let flags = help.lines().filter_map(|line| line.strip_prefix("  "));
    let flags = flags.filter(|line| line.starts_with('-')).filter_map(|line| {
        line.split([' ', ','])
            .find(|word| word.starts_with("--"))
            .map(|flag| format!("flag {flag}"))
    });
    let names: Names = flags.collect();
    if names.is_empty() { Err("no flag found in the help text".to_owned()) } else { Ok(names) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_by_their_long_names() {
        let help = "Options:\n  --add-dir <directories...>   More\n  \
                    \u{20}   --no-flag in a text\n  -c, --continue   Goes on\n  \
                    --allowedTools, --allowed-tools <tools...>\n\nCommands:\n  mcp   Servers\n";
        let found: Vec<String> = names(help).unwrap().into_iter().collect();
        assert_eq!(found, ["flag --add-dir", "flag --allowedTools", "flag --continue"]);
        assert!(names("Usage: claude\n").is_err());
    }
}
