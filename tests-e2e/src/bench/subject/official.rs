//! Installs the official SDKs and their dependencies.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{Program, Subject};
use crate::parity::{Source, official};
use crate::real_cli::npm::{self, Pin};
use crate::real_cli::{InstallError, cache};
use crate::workspace::root;

/// The schema library that tools of the TypeScript SDK need.
const ZOD: Pin = Pin {
    name: "zod",
    package: Cow::Borrowed(include_str!("../../../../benches/typescript/package.json")),
    lock: Some(include_str!("../../../../benches/typescript/package-lock.json")),
    folder: "bench-zod",
    arguments: &[],
};

/// The dependencies of the Python SDK.
const REQUIREMENTS: &str = include_str!("../../../../benches/python/requirements.txt");

pub(super) fn typescript() -> Subject {
    let title = format!("TypeScript SDK {}", official::version(Source::TypeScript));
    Subject { name: "typescript", title, program: availability(typescript_program()) }
}

/// The TypeScript SDK with a script that needs no other package.
pub(super) fn typescript_script(script: &str) -> Subject {
    let program = || {
        let sdk = official::typescript_package()?.join("sdk.mjs");
        let node = interpreter("node", &["-p", "process.execPath"])?;
        let command = vec![node, root().join("benches/typescript").join(script)];
        Ok(Program { command, variables: vec![("BENCH_SDK", sdk)] })
    };
    let title = format!("TypeScript SDK {}", official::version(Source::TypeScript));
    Subject { name: "typescript", title, program: availability(program()) }
}

fn typescript_program() -> Result<Program, InstallError> {
    let sdk = official::typescript_package()?.join("sdk.mjs");
    let zod = ZOD.install()?.join("node_modules/zod/index.js");
    let node = interpreter("node", &["-p", "process.execPath"])?;
    let command = vec![
        node,
        // Lets the subject collect garbage before it measures memory.
        PathBuf::from("--expose-gc"),
        root().join("benches/typescript/subject.mjs"),
    ];
    Ok(Program { command, variables: vec![("BENCH_SDK", sdk), ("BENCH_ZOD", zod)] })
}

pub(super) fn python() -> Subject {
    let title = format!("Python SDK {}", official::version(Source::Python));
    Subject { name: "python", title, program: availability(python_program("subject.py")) }
}

/// The Python SDK with another script.
pub(super) fn python_script(script: &str) -> Subject {
    let title = format!("Python SDK {}", official::version(Source::Python));
    Subject { name: "python", title, program: availability(python_program(script)) }
}

fn python_program(script: &str) -> Result<Program, InstallError> {
    let sources = official::python_sources()?;
    let mut path = sources.join("src").into_os_string();
    let python = interpreter("python3", &["-c", "import sys; print(sys.executable)"])?;
    let abi = stdout_of("python3", &["-c", "import sys; print(sys.implementation.cache_tag)"])?;
    let mut hasher = DefaultHasher::new();
    REQUIREMENTS.hash(&mut hasher);
    // Compiled packages fit one version of Python.
    let folder = format!("bench-python-{abi}-{:016x}", hasher.finish());
    let needs = cache::once(&folder, |staging| {
        let failed = |error| InstallError::Cache(staging.to_owned(), error);
        fs::write(staging.join("requirements.txt"), REQUIREMENTS).map_err(failed)?;
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--no-deps", "--quiet", "--disable-pip-version-check"])
            .args(["--target", "packages", "-r", "requirements.txt"]);
        npm::run(pip.current_dir(staging), "python3 with pip", "what the SDK for Python runs on")
    })?;
    path.push(":");
    path.push(needs.join("packages"));
    // Examples that users copy, so they are not part of the package.
    path.push(":");
    path.push(sources.join("examples/session_stores"));
    let command = vec![python, root().join("benches/python").join(script)];
    Ok(Program { command, variables: vec![("PYTHONPATH", path.into())] })
}

fn availability(program: Result<Program, InstallError>) -> Result<Program, String> {
    program.map_err(|error| format!("not installed: {error}"))
}

/// Returns the path of an interpreter: subjects do not see the `PATH` of this machine.
fn interpreter(tool: &'static str, arguments: &[&str]) -> Result<PathBuf, InstallError> {
    stdout_of(tool, arguments).map(PathBuf::from)
}

fn stdout_of(tool: &'static str, arguments: &[&str]) -> Result<String, InstallError> {
    let wanted = "the comparison with an official SDK".to_owned();
    match Command::new(tool).args(arguments).stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            let output = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(InstallError::ToolFailed { tool, wanted, output })
        }
        Err(error) => Err(InstallError::ToolMissing { tool, wanted, error }),
    }
}
