//! The program `claude-mock-api`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::process::ExitCode;

use super::{MockApi, Script};
use crate::sim::script_file;

const USAGE: &str = "\
Usage: claude-mock-api [--port PORT] [SCRIPT]

Serves a scripted Messages API on 127.0.0.1 until it is interrupted. Prints the environment variables
that make a CLI use it, one `export` per line.

Arguments:
  [SCRIPT]     Script file [default: answer every prompt with \"Hello from the mock API.\"]

Options:
  --port PORT  Port to listen on [default: any free port]
  -h, --help   Print help
";

/// Runs the program.
pub fn run_as_program() -> ExitCode {
    let outcome = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Some(arguments)) => serve(arguments),
        Ok(None) => print(USAGE).map_err(|error| error.to_string()),
        Err(reason) => Err(format!("{reason}\n\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            report_error(&reason);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program reports errors on stderr")]
fn report_error(reason: &str) {
    eprintln!("claude-mock-api: {}", reason.trim_end());
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

#[derive(Debug, Default, PartialEq)]
struct Arguments {
    port: u16,
    script: Option<OsString>,
}

impl Arguments {
    /// Parses the command line; returns `None` if help is requested.
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, String> {
        let mut read = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.to_str() {
                Some("--help" | "-h") => return Ok(None),
                Some("--port") => {
                    let port = arguments.next().ok_or("`--port` requires a value")?;
                    let port = port.to_string_lossy();
                    read.port =
                        port.parse().map_err(|_| format!("`--port`: invalid port {port:?}"))?;
                }
                Some(flag) if flag.starts_with('-') => {
                    return Err(format!("unknown argument {flag:?}"));
                }
                _ if read.script.is_some() => {
                    return Err(format!("unexpected argument \"{}\"", argument.display()));
                }
                _ => read.script = Some(argument),
            }
        }
        Ok(Some(read))
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let script = script(arguments.script)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let api = MockApi::start_on(arguments.port, script);
        let api = api
            .await
            .map_err(|error| format!("cannot listen on port {}: {error}", arguments.port))?;
        // The key is a placeholder; without one, the CLI requires a login.
        let address = api.base_url();
        let variables = format!(
            "export ANTHROPIC_BASE_URL={address}\nexport ANTHROPIC_API_KEY=none\n\
             export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1\n"
        );
        print(&variables).map_err(|error| error.to_string())?;
        tokio::signal::ctrl_c().await.map_err(|error| error.to_string())
    })
}

fn script(path: Option<OsString>) -> Result<Script, String> {
    let Some(path) = path else {
        return Ok(Script::new().otherwise([super::Reply::text("Hello from the mock API.")]));
    };
    let shown = path.display();
    let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    let script = script_file::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
    if !script.faults.is_empty() || script.version.is_some() {
        let help = "help: run the script with `claude-sim`, or remove these sections";
        return Err(format!(
            "{shown}: the mock API does not support `faults` and `version`; {help}"
        ));
    }
    Ok(script.model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Option<Arguments>, String> {
        Arguments::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn the_command_line_is_parsed_or_rejected() {
        let given = Arguments { port: 8080, script: Some("a.sim".into()) };
        assert_eq!(read(&["--port", "8080", "a.sim"]), Ok(Some(given)));
        assert_eq!(read(&[]), Ok(Some(Arguments::default())));
        assert_eq!(read(&["--help"]), Ok(None));
        for (arguments, reason) in [
            (&["--port"][..], "`--port` requires a value"),
            (&["--port", "99999"], "`--port`: invalid port \"99999\""),
            (&["--prot", "1"], "unknown argument \"--prot\""),
            (&["a", "b"], "unexpected argument \"b\""),
        ] {
            assert_eq!(read(arguments), Err(reason.to_owned()));
        }
    }
}
