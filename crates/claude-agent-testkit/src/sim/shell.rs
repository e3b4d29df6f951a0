//! Shells: real processes, each in its own session as in the real CLI.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::engine::Engine;
use super::json::{Object, text};
use super::scope::{Scope, ToolCall};
use super::state::CancelToken;
use super::tools::ToolOutput;

/// The maximum number of bytes that are kept of an output stream.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// The timeout for the rest of the output after the shell has exited: an orphan process may keep
/// the pipe open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// A shell and all its descendants. Dropping it kills them.
pub(super) struct Shell {
    child: Child,
}

impl Shell {
    pub(super) fn start(engine: &Engine, command: &str, output: &ShellOutput) -> io::Result<Self> {
        let mut with_session = Command::new("setsid");
        with_session.args(["sh", "-c", command]);
        let started = Self::spawn(engine, with_session, output);
        if !matches!(&started, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            return started;
        }
        // Without `setsid`, the shell gets its own process group.
        let mut shell = Command::new("sh");
        shell.args(["-c", command]);
        #[cfg(unix)]
        shell.process_group(0);
        Self::spawn(engine, shell, output)
    }

    fn spawn(engine: &Engine, mut command: Command, output: &ShellOutput) -> io::Result<Self> {
        let directory = engine.working_directory(&engine.state());
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").envs(&engine.launch.env);
        command.current_dir(directory).stdin(Stdio::null()).kill_on_drop(true);
        let (stdout, stderr) = match output {
            ShellOutput::Captured => (Stdio::piped(), Stdio::piped()),
            ShellOutput::File(file) => (file.try_clone()?.into(), file.try_clone()?.into()),
            ShellOutput::None => (Stdio::null(), Stdio::null()),
        };
        Ok(Self { child: command.stdout(stdout).stderr(stderr).spawn()? })
    }

    /// Waits until the shell exits; returns `None` if the turn is interrupted first.
    pub(super) async fn wait(&mut self, cancel: &CancelToken) -> Option<i32> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            status = self.child.wait() => Some(status.ok().and_then(|status| status.code()).unwrap_or(-1)),
        }
    }

    /// Reads the output until the shell exits.
    async fn output(&mut self, cancel: &CancelToken) -> Option<(i32, String, String)> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = {
            let mut reading = Box::pin(async {
                tokio::join!(read(stdout, &mut out), read(stderr, &mut err));
            });
            tokio::select! {
                code = self.wait(cancel) => {
                    let code = code?;
                    // The pipes may still contain the last output.
                    drop(timeout(DRAIN_TIMEOUT, reading).await);
                    code
                }
                () = &mut reading => self.wait(cancel).await?,
            }
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        Some((code, text(&out), text(&err)))
    }

    #[cfg(unix)]
    fn kill_group(&self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails if the group has ended or does not exist yet; then only the child is left,
            // which is killed on drop.
            kill_process_group(pid, Signal::KILL).ok();
        }
    }

    #[cfg(not(unix))]
    fn kill_group(&self) {}
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The destination of the output of a shell.
pub(super) enum ShellOutput {
    Captured,
    File(File),
    None,
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    // After a read error, the rest of the output is missing.
    if (&mut pipe).take(MAX_OUTPUT).read_to_end(kept).await.is_ok() {
        drop(tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await);
    }
}

impl Engine {
    pub(super) async fn bash(
        self: &Arc<Self>,
        scope: &Scope,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let command = text(&call.input["command"]);
        if call.input["run_in_background"] == true {
            return Some(self.start_background_shell(call, command).await);
        }
        let directory = DirectoryNote::new(self, scope, command);
        let noted = directory.as_ref().map(|note| note.command(command));
        let started = noted.as_deref().unwrap_or(command);
        let mut shell = match Shell::start(self, started, &ShellOutput::Captured) {
            Ok(shell) => shell,
            Err(error) => {
                return Some(ToolOutput::error(&format!("The shell cannot start: {error}")));
            }
        };
        let limit = call.input["timeout"].as_u64().map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let Ok(ended) = timeout(limit, shell.output(&scope.cancel)).await else {
            return Some(ToolOutput::error(&format!("The command took longer than {limit:?}.")));
        };
        let (code, stdout, stderr) = ended?;
        if let Some(note) = directory {
            self.change_directory(&note.0);
        }
        let both = [stdout.as_str(), stderr.as_str()];
        let both: Vec<&str> = both.into_iter().filter(|text| !text.is_empty()).collect();
        let both = both.join("\n");
        if code != 0 {
            let text = if both.is_empty() { String::new() } else { format!("\n{both}") };
            return Some(ToolOutput::error(&format!("Exit code {code}{text}")));
        }
        let result = Object::new()
            .str("stdout", &stdout)
            .str("stderr", &stderr)
            .plain("interrupted", false)
            .plain("isImage", false)
            .plain("noOutputExpected", is_silent(command));
        let text = if both.is_empty() { "(no output)" } else { &both };
        Some(ToolOutput { reports_success: true, ..ToolOutput::text(text, result.done()) })
    }
}

/// A file in which a command that may change its directory notes the last one.
struct DirectoryNote(PathBuf);

impl DirectoryNote {
    /// Returns `None` for a command that stays where it is. The shell of an agent keeps no directory.
    fn new(engine: &Engine, scope: &Scope, command: &str) -> Option<Self> {
        let changes = command.split(|c: char| !c.is_alphanumeric()).any(|word| word == "cd");
        if !changes || scope.is_agent() {
            return None;
        }
        let folder = engine.temporary_directory();
        // Without the folder, the directory is not kept.
        fs::create_dir_all(&folder).ok()?;
        Some(Self(folder.join(format!("{}.cwd", engine.ids.uuid()))))
    }

    /// Returns the command with the note at its end. A command that exits by itself leaves none.
    fn command(&self, command: &str) -> String {
        let file = self.0.to_string_lossy().replace('\'', r"'\''");
        format!("{command}\ncode=$?\npwd -P > '{file}'\nexit $code")
    }
}

impl Engine {
    /// Moves the shell to the noted directory, or back if that is outside of the directories of the session.
    fn change_directory(&self, note: &Path) {
        // Without a note, the command has exited by itself, and the shell stays where it is.
        let Ok(text) = fs::read_to_string(note) else { return };
        let directory = PathBuf::from(text.trim_end_matches('\n'));
        let mut state = self.state();
        let mut roots = vec![self.launch.cwd.clone()];
        roots.extend(state.directories.iter().map(PathBuf::from));
        roots.extend(state.worktree.iter().map(PathBuf::from));
        let is_inside = |root: &PathBuf| {
            directory.starts_with(root.canonicalize().unwrap_or_else(|_| root.clone()))
        };
        let is_kept = roots.iter().any(is_inside);
        state.shell_directory = is_kept.then(|| directory.to_string_lossy().into_owned());
    }
}

/// Returns whether the command prints nothing on success.
fn is_silent(command: &str) -> bool {
    let first = command.split_whitespace().next().unwrap_or_default();
    let silent = ["touch", "mkdir", "rm", "mv", "cp", "cd", "chmod", "ln", "true"];
    silent.contains(&first) && !command.contains(['|', '&', ';', '>', '\n'])
}
