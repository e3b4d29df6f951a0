//! Errors of starting a process.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::driver::incomplete_runtime;
use crate::error::{Error, ErrorKind};
use crate::transport::NoIo;

/// Returns the error for a process that could not be started. The system often reports only "not found",
/// whether the directory, the program or its interpreter is missing.
pub(crate) fn spawn_failed(error: &io::Error, program: &Path, cwd: Option<&Path>) -> Error {
    let inner = error.get_ref();
    if inner.and_then(|inner| inner.downcast_ref::<NoIo>()).is_some() {
        return incomplete_runtime("I/O");
    }
    if let Some(error) = cwd.and_then(|cwd| unusable_directory(error, cwd)) {
        return error;
    }
    let (cause, help) = program_error(error, program);
    not_started(&cause, help).with(|facts| facts.is_permanent = !is_temporary(error, program))
}

/// Returns the error for a process that could not be started in its working directory, if that is the cause.
pub(crate) fn unusable_directory(error: &io::Error, cwd: &Path) -> Option<Error> {
    let cause = unusable_cwd(error, cwd)?;
    let help = "set `cwd` to an existing directory, or omit it to use that of the host";
    Some(not_started(&cause, help).with(|facts| facts.is_permanent = true))
}

fn not_started(cause: &str, help: &str) -> Error {
    Error::new(ErrorKind::SpawnFailed, format!("failed to start the CLI: {cause}")).with_help(help)
}

/// Returns whether the same program may start later: an update replaces it at this moment, or the system has no
/// resources left.
fn is_temporary(error: &io::Error, program: &Path) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound => !program.exists(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ArgumentListTooLong => false,
        _ => !is_exec_format_error(error),
    }
}

/// Returns the problem with the working directory, if it is the cause.
fn unusable_cwd(error: &io::Error, cwd: &Path) -> Option<String> {
    // Other errors are not caused by a directory.
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::PermissionDenied];
    if !kinds.contains(&error.kind()) || cwd.as_os_str().is_empty() {
        return None;
    }
    let shown = cwd.display();
    match cwd.metadata() {
        Ok(found) if !found.is_dir() => {
            Some(format!("the working directory `{shown}` is not a directory"))
        }
        // Reading the metadata of `.` needs the same permission as entering the directory.
        Ok(_) => match cwd.join(".").metadata() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(format!("access to the working directory `{shown}` is denied"))
            }
            _ => None,
        },
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            Some(format!("the working directory `{shown}` does not exist"))
        }
        Err(other) => Some(format!("the working directory `{shown}` is not accessible: {other}")),
    }
}

fn program_error(error: &io::Error, program: &Path) -> (String, &'static str) {
    let shown = program.display();
    match error.kind() {
        io::ErrorKind::NotFound if !program.exists() => (
            format!("`{shown}` does not exist"),
            "check whether the CLI was just updated or removed; install it with `npm install -g \
             @anthropic-ai/claude-code`, or set `cli_path`",
        ),
        io::ErrorKind::NotFound => match interpreter(program) {
            Some(interpreter) => (
                format!("the interpreter `{interpreter}` of `{shown}` was not found"),
                "install the interpreter, or install the native CLI",
            ),
            None => (
                format!(
                    "the loader of `{shown}` was not found: the CLI was built for a different C \
                     library"
                ),
                "reinstall the CLI on this machine so that the installer selects the build for its C \
                 library (glibc or musl)",
            ),
        },
        io::ErrorKind::PermissionDenied => (
            format!("`{shown}` cannot be executed: {error}"),
            "make it executable with `chmod +x`, and check that its directories are accessible and \
             its file system is not mounted with `noexec`",
        ),
        io::ErrorKind::ArgumentListTooLong => (
            format!("the arguments and environment of `{shown}` exceed the limit of the system"),
            "shorten prompts and settings, or pass fewer environment variables",
        ),
        io::ErrorKind::ExecutableFileBusy => (
            format!("another process is writing to `{shown}`"),
            "wait until the update of the CLI has finished, and try again",
        ),
        _ if is_exec_format_error(error) => (
            format!("`{shown}` is not an executable for this platform: {error}"),
            "install the CLI for this CPU and operating system; a script needs a `#!` line",
        ),
        _ if is_resource_limit(error) => (
            format!("the system limit for processes, files or memory was reached: {error}"),
            "run fewer sessions at a time, or raise the limits (`ulimit -u`, `ulimit -n`, memory)",
        ),
        _ => (format!("`{shown}`: {error}"), "check that it runs in a terminal"),
    }
}

/// Returns whether the error is ENOEXEC, or `ERROR_BAD_EXE_FORMAT` on Windows.
fn is_exec_format_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(if cfg!(windows) { 193 } else { 8 })
}

/// Returns whether the error is EAGAIN, ENOMEM, EMFILE or ENFILE.
fn is_resource_limit(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
        || cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// Returns the interpreter of a script, from its first line.
fn interpreter(program: &Path) -> Option<String> {
    let mut start = Vec::new();
    File::open(program).ok()?.take(256).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use super::*;

    /// Fails to start the program and returns the text of the error.
    fn spawn_error(program: &Path, cwd: Option<&Path>) -> String {
        let mut command = Command::new(program);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        let error = spawn_failed(&command.spawn().unwrap_err(), program, cwd);
        assert_eq!(error.kind(), ErrorKind::SpawnFailed);
        assert!(error.help().is_some(), "{error}");
        error.to_string()
    }

    fn file(
        folder: &tempfile::TempDir,
        name: &str,
        content: &[u8],
        mode: u32,
    ) -> std::path::PathBuf {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_missing_working_directory_is_named_in_place_of_the_cli() {
        let folder = tempfile::tempdir().unwrap();
        let good = file(&folder, "good", b"#!/bin/sh\n", 0o755);
        let missing = folder.path().join("no-such-directory");
        let text = spawn_error(&good, Some(&missing));
        assert!(text.contains("no-such-directory` does not exist"), "{text}");
        assert!(!text.contains("good"), "{text}");
        let text = spawn_error(&good, Some(&good));
        assert!(text.contains("good` is not a directory"), "{text}");
        let text = spawn_error(&good, Some(&good.join("below")));
        assert!(text.contains("below` is not accessible"), "{text}");
    }

    #[test]
    fn the_problem_with_the_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let script = file(&folder, "script", b"#!/no/such/interpreter -x\necho\n", 0o755);
        let text_file = file(&folder, "text", b"#!/bin/sh\n", 0o644);
        for (program, part) in [
            (&missing, "missing` does not exist"),
            (&script, "the interpreter `/no/such/interpreter -x` of"),
            (&text_file, "text` cannot be executed"),
        ] {
            for cwd in [None, Some(folder.path())] {
                let text = spawn_error(program, cwd);
                assert!(text.contains(part), "{text}");
                assert!(!text.contains("working directory"), "{text}");
            }
        }
    }

    #[test]
    fn each_system_error_has_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let program = file(&folder, "claude", b"\x7fELF", 0o755);
        for (code, part) in [
            (2, "different C library"),
            (7, "exceed the limit"),
            (8, "not an executable for this platform"),
            (11, "system limit"),
            (12, "system limit"),
            (13, "cannot be executed"),
            (24, "system limit"),
            (26, "is writing to"),
            (5, "claude`: "),
        ] {
            let error = io::Error::from_raw_os_error(code);
            for cwd in [None, Some(folder.path()), Some(Path::new(""))] {
                let text = spawn_failed(&error, &program, cwd).to_string();
                assert!(text.contains(part), "{code}: {text}");
            }
        }
        for (code, is_retryable) in
            [(7, false), (8, false), (11, true), (13, false), (24, true), (26, true)]
        {
            let error = spawn_failed(&io::Error::from_raw_os_error(code), &program, None);
            assert_eq!(error.is_retryable(), is_retryable, "{error}");
        }
        let missing =
            spawn_failed(&io::Error::from_raw_os_error(2), &program, Some(Path::new("/no/such")));
        assert!(!missing.is_retryable(), "{missing}");
        // A missing directory does not cause a too long argument list.
        let error = io::Error::from_raw_os_error(7);
        let text = spawn_failed(&error, &program, Some(Path::new("/no/such"))).to_string();
        assert!(text.contains("exceed the limit"), "{text}");
    }
}
