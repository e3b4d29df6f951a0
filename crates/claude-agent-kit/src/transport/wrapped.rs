//! Runs the CLI through another command, such as `ssh` or `docker exec`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::local::Local;
use super::{Connecting, Launch, Transport};
#[cfg(unix)]
use crate::cli::find_on_path;

/// Starts the CLI through another command, which passes stdin, stdout and stderr through.
///
/// The CLI gets its arguments, its working directory and the variables that the options set. The
/// environment policy of the options applies to the command, which decides what it passes on.
/// Variables are visible on the command line to other users of the machine, so keep keys at the remote
/// end. Stopping ends the command; the remote CLI then reads EOF on stdin.
///
/// The run does not search for an executable and does not check its version.
///
/// ```
/// use claude_agent_kit::Options;
/// use claude_agent_kit::transport::Wrapped;
///
/// let container = Options::new()
///     .transport(Wrapped::command("docker", ["exec", "-i", "workbench"]))
///     .cwd("/srv/project");
/// let machine = Options::new().transport(Wrapped::remote_shell("ssh", ["build.example"]));
/// # drop((container, machine));
/// ```
#[derive(Clone)]
pub struct Wrapped {
    program: PathBuf,
    arguments: Vec<String>,
    cli: String,
    /// Whether the command passes its last argument to a shell.
    is_shell: bool,
}

impl Wrapped {
    /// Uses a command that runs the program named by its remaining arguments, such as `docker exec`.
    pub fn command(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, cli: "claude".to_owned(), is_shell: false }
    }

    /// Uses a command that passes its last argument to a remote shell, such as `ssh`.
    pub fn remote_shell(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self { is_shell: true, ..Self::command(program, arguments) }
    }

    /// Sets the path of the CLI at the remote end. Default: `claude`.
    #[must_use]
    pub fn cli(mut self, path: impl Into<String>) -> Self {
        self.cli = path.into();
        self
    }

    fn wrap(&self, launch: &Launch) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        if !self.is_shell {
            arguments.push("sh".to_owned());
            arguments.push("-c".to_owned());
        }
        arguments.push(self.remote_command(launch));
        arguments
    }

    /// Returns the command line for the remote shell.
    fn remote_command(&self, launch: &Launch) -> String {
        let mut words = Vec::new();
        // Nothing after `--` is parsed as an option.
        if let Some(directory) = launch.cwd() {
            words.push(format!("cd -- {} &&", quoted(&directory.to_string_lossy())));
        }
        words.push("exec env --".to_owned());
        for (name, value) in launch.envs().iter().filter(|(name, _)| name != "PWD") {
            words.push(quoted(&format!("{name}={}", value.expose())));
        }
        words.push(quoted(&self.cli));
        for argument in launch.args() {
            words.push(quoted(argument));
        }
        words.join(" ")
    }
}

impl fmt::Debug for Wrapped {
    /// Omits the arguments, which may contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wrapped")
            .field("program", &self.program)
            .field("arguments", &self.arguments.len())
            .field("cli", &self.cli)
            .finish_non_exhaustive()
    }
}

impl Transport for Wrapped {
    fn connect(&self, launch: Launch) -> Connecting<'_> {
        // The command itself may need the host's environment: agents, contexts, configuration.
        let (arguments, variables) = (self.wrap(&launch), launch.variables());
        let path = variables.iter().find(|(name, _)| name.as_os_str() == OsStr::new("PATH"));
        let program = match resolve(&self.program, path.map(|(_, path)| path)) {
            Ok(program) => program,
            Err(error) => return Box::pin(async { Err(error) }),
        };
        if launch.cwd().is_some_and(|directory| directory.to_str().is_none()) {
            // A lossy conversion would name another directory.
            let error = io::Error::other(
                "`cwd` is not valid UTF-8 and cannot be passed to the remote command",
            );
            return Box::pin(async { Err(error) });
        }
        // The directory is at the remote end.
        let launch = Launch { directory: None, ..launch };
        Box::pin(async move { Local::new(program).start(launch, arguments).await })
    }
}

/// Resolves the name of a command through the child's `PATH`, ignoring relative entries: these would name
/// another program in another working directory.
#[cfg(unix)]
fn resolve(program: &Path, path: Option<&OsString>) -> io::Result<PathBuf> {
    /// The default search path without a `PATH`.
    const DEFAULT: &str = "/bin:/usr/bin";
    if program.components().count() > 1 {
        return Ok(program.to_owned());
    }
    let path = path.map_or(OsStr::new(DEFAULT), OsString::as_os_str);
    find_on_path(program, path).ok_or_else(|| {
        let message = format!("no executable `{}` on PATH", program.display());
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// Returns the name unchanged: the standard library does not search the working directory.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "on Unix there may be none")]
fn resolve(program: &Path, _path: Option<&OsString>) -> io::Result<PathBuf> {
    Ok(program.to_owned())
}

/// Quotes a word for a POSIX shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use claude_agent_core::session::GracePeriods;
    use claude_wire::launch::{Form, Needs, Settings, command_line};

    use super::*;

    fn launch(change: impl FnOnce(&mut Settings)) -> Launch {
        let mut settings = Settings::default();
        change(&mut settings);
        let command = command_line(&settings, &Form::Session, &Needs::default()).unwrap();
        Launch::new(command, settings.cwd, false, GracePeriods::default())
    }

    #[test]
    fn a_command_is_given_a_shell_unless_it_has_a_remote_one() {
        let launch = launch(|settings| settings.model = Some("it's $(me)".into()));
        let container = Wrapped::command("docker", ["exec", "-i", "box"]).wrap(&launch);
        assert_eq!(container[..5], ["exec", "-i", "box", "sh", "-c"]);
        let machine = Wrapped::remote_shell("ssh", ["host"]).cli("/opt/claude").wrap(&launch);
        assert_eq!(machine.len(), 2);
        assert!(machine[1].starts_with("exec env -- "), "{}", machine[1]);
        assert!(machine[1].contains(" '/opt/claude' '--output-format' "), "{}", machine[1]);
        assert!(machine[1].ends_with(r" '--model=it'\''s $(me)'"), "{}", machine[1]);
    }

    #[test]
    fn directory_and_variables_reach_the_remote_end() {
        let launch = launch(|settings| {
            settings.cwd = Some("/a b".into());
            settings.env.insert("KEY".to_owned(), "v'w".into());
        });
        let remote = Wrapped::remote_shell("ssh", ["host"]).remote_command(&launch);
        assert!(remote.starts_with("cd -- '/a b' && exec env -- "), "{remote}");
        assert!(remote.contains(r"'KEY=v'\''w'"), "{remote}");
        assert!(!remote.contains("PWD="), "the shell at the far end sets it: {remote}");
    }

    #[cfg(unix)]
    #[test]
    fn special_characters_are_quoted_for_the_remote_shell() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("-P $(touch made)\n'\"");
        std::fs::create_dir(&odd).unwrap();
        let launch = launch(|settings| {
            settings.cwd = Some(odd.file_name().unwrap().into());
            settings.env.insert("-u".to_owned(), "PATH".into());
            settings.env.insert("A;B".to_owned(), "`touch made` \n$HOME".into());
        });
        let remote = Wrapped::remote_shell("sh", ["-c"]).cli("sh").remote_command(&launch);
        // A script in place of the CLI's arguments prints what it received.
        let arguments: Vec<String> = launch.args().iter().map(|word| quoted(word)).collect();
        let (start, _) = remote.split_once(&arguments.join(" ")).unwrap();
        let command = format!("{start} -c 'pwd; tr \\\\0 \\\\n < /proc/self/environ'");
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{command}: {output:?}");
        assert!(text.starts_with(odd.to_str().unwrap()), "{text}");
        assert!(text.contains("-u=PATH\n") && text.contains("A;B=`touch made` \n$HOME"), "{text}");
        assert!(!folder.path().join("made").exists() && !odd.join("made").exists());
    }

    #[cfg(unix)]
    #[test]
    fn relative_entries_of_path_are_not_searched() {
        let found = |program: &str, path: Option<&str>| {
            resolve(Path::new(program), path.map(OsString::from).as_ref()).ok()
        };
        assert_eq!(found("sh", Some(".:/bin")), Some("/bin/sh".into()));
        assert_eq!(found("sh", None), Some("/bin/sh".into()));
        // Relative to wherever the tests run, these name `/bin`.
        let up = "../".repeat(std::env::current_dir().unwrap().components().count());
        let relative = format!("{up}bin");
        assert!(Path::new(&relative).join("sh").exists());
        for path in [".", "", &relative] {
            assert_eq!(found("sh", Some(path)), None, "{path:?}");
        }
        assert_eq!(found("./sh", Some("/bin")), Some("./sh".into()));
    }

    #[test]
    fn debug_omits_arguments() {
        let wrapped = Wrapped::command("docker", ["exec", "-e", "KEY=hush", "box"]);
        assert_eq!(
            format!("{wrapped:?}"),
            r#"Wrapped { program: "docker", arguments: 4, cli: "claude", .. }"#
        );
    }
}
