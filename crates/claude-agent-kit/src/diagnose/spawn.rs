//! Why a process could not be started.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// The error for a process that could not be started. The system often says only "not found",
/// whether it is the directory, the program or its interpreter that is missing.
pub(crate) fn spawn_failed(error: &io::Error, program: &Path, cwd: Option<&Path>) -> Error {
    let (happened, help) = match cwd.and_then(|cwd| unusable(error, cwd)) {
        Some(why) => (why, "give a directory that exists, or none to stay in that of the host"),
        None => of_program(error, program),
    };
    Error::new(ErrorKind::SpawnFailed, format!("the CLI could not be started: {happened}"))
        .with_help(help)
}

/// What is wrong with the working directory, if it is to blame.
fn unusable(error: &io::Error, cwd: &Path) -> Option<String> {
    // The system does not fail like this for a directory.
    let kinds =
        [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::PermissionDenied];
    if !kinds.contains(&error.kind()) || cwd.as_os_str().is_empty() {
        return None;
    }
    let shown = cwd.display();
    match cwd.metadata() {
        Ok(found) if !found.is_dir() => {
            Some(format!("the working directory {shown} is not a directory"))
        }
        // To look at it takes the same right as to enter it.
        Ok(_) => match cwd.join(".").metadata() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(format!("the working directory {shown} may not be entered"))
            }
            _ => None,
        },
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            Some(format!("the working directory {shown} does not exist"))
        }
        Err(other) => Some(format!("the working directory {shown} cannot be used ({other})")),
    }
}

fn of_program(error: &io::Error, program: &Path) -> (String, &'static str) {
    let shown = program.display();
    match error.kind() {
        io::ErrorKind::NotFound if !program.exists() => (
            format!("{shown} does not exist (any more)"),
            "see whether it was just updated or removed; install it with `npm install -g \
             @anthropic-ai/claude-code`, or name it with `cli_path`",
        ),
        io::ErrorKind::NotFound => match interpreter(program) {
            Some(interpreter) => (
                format!("{shown} is there, but its interpreter `{interpreter}` is missing"),
                "install the interpreter, or the native CLI",
            ),
            None => (
                format!("{shown} is there, but what loads it is missing: it is for another libc"),
                "install the CLI on this system, so that the build for its libc (glibc or musl) \
                 is chosen",
            ),
        },
        io::ErrorKind::PermissionDenied => (
            format!("{shown} may not be executed ({error})"),
            "make it executable with `chmod +x`, and see that its directories can be entered and \
             its file system is not mounted `noexec`",
        ),
        io::ErrorKind::ArgumentListTooLong => (
            format!("the arguments and variables for {shown} are too long for the system"),
            "shorten prompts and settings, or pass fewer variables on",
        ),
        io::ErrorKind::ExecutableFileBusy => {
            (format!("{shown} is being written"), "wait until its update is finished and try again")
        }
        _ if is_no_executable(error) => (
            format!("{shown} is no program for this machine (exec format error)"),
            "install the CLI for this processor and system; a script needs a `#!` line",
        ),
        _ if is_out_of_processes(error) => (
            format!("the system has no room for another process or file ({error})"),
            "run fewer at a time, or raise the limits (`ulimit -u`, `ulimit -n`, memory)",
        ),
        _ => (format!("{shown}: {error}"), "see that it runs by itself"),
    }
}

/// ENOEXEC; on Windows that the file is not a valid application.
fn is_no_executable(error: &io::Error) -> bool {
    error.raw_os_error() == Some(if cfg!(windows) { 193 } else { 8 })
}

/// EAGAIN, ENOMEM, EMFILE, ENFILE.
fn is_out_of_processes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
        || cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

/// What the first line of a script names.
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

    /// Tries to start the program and tells of the failure.
    fn told(program: &Path, cwd: Option<&Path>) -> String {
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
    fn a_missing_directory_is_named_and_not_the_cli() {
        let folder = tempfile::tempdir().unwrap();
        let good = file(&folder, "good", b"#!/bin/sh\n", 0o755);
        let text = told(&good, Some(&folder.path().join("no-such-directory")));
        assert!(text.contains("no-such-directory does not exist"), "{text}");
        assert!(!text.contains("good"), "{text}");
        let text = told(&good, Some(&good));
        assert!(text.contains("good is not a directory"), "{text}");
        let text = told(&good, Some(&good.join("below")));
        assert!(text.contains("below cannot be used"), "{text}");
    }

    #[test]
    fn what_is_wrong_with_the_program_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let script = file(&folder, "script", b"#!/no/such/interpreter -x\necho\n", 0o755);
        let text_file = file(&folder, "text", b"#!/bin/sh\n", 0o644);
        for (program, part) in [
            (&missing, "missing does not exist"),
            (&script, "its interpreter `/no/such/interpreter -x` is missing"),
            (&text_file, "text may not be executed"),
        ] {
            for cwd in [None, Some(folder.path())] {
                let text = told(program, cwd);
                assert!(text.contains(part), "{text}");
                assert!(!text.contains("working directory"), "{text}");
            }
        }
    }

    #[test]
    fn each_error_of_the_system_has_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let program = file(&folder, "claude", b"\x7fELF", 0o755);
        for (code, part) in [
            (2, "for another libc"),
            (7, "too long for the system"),
            (8, "no program for this machine"),
            (11, "no room for another process"),
            (12, "no room for another process"),
            (13, "may not be executed"),
            (24, "no room for another process"),
            (26, "is being written"),
            (5, "claude: "),
        ] {
            let error = io::Error::from_raw_os_error(code);
            for cwd in [None, Some(folder.path()), Some(Path::new(""))] {
                let text = spawn_failed(&error, &program, cwd).to_string();
                assert!(text.contains(part), "{code}: {text}");
            }
        }
        // A directory that is missing is not to blame for too many arguments.
        let error = io::Error::from_raw_os_error(7);
        let text = spawn_failed(&error, &program, Some(Path::new("/no/such"))).to_string();
        assert!(text.contains("too long"), "{text}");
    }
}
