//! Long-running checks: fuzzing, and a soak test with real processes.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::workspace::root;

use super::Outcome;

/// Runs every fuzz target for this many seconds. New inputs are stored in `fuzz/found`, not in the corpus.
pub(crate) fn fuzz(seconds: &str) -> Outcome {
    let seconds: u32 = seconds.parse()?;
    let Some(compiler) = compiler() else {
        println!("cargo-fuzz is not installed; help: run `cargo install cargo-fuzz`");
        return Ok(ExitCode::FAILURE);
    };
    let root = root();
    for target in targets(&root)? {
        let found = root.join("fuzz/found").join(&target);
        fs::create_dir_all(&found)?;
        println!("== {target} for {seconds} s");
        let status = compiler
            .cargo()
            .args(["fuzz", "run", "--fuzz-dir", "fuzz", &target])
            .arg(&found)
            .arg(root.join("fuzz/corpus").join(&target))
            .args(["--", &format!("-max_total_time={seconds}"), "-timeout=20", "-verbosity=0"])
            .current_dir(&root)
            .status()?;
        if !status.success() {
            println!("== {target} failed; the input is in fuzz/artifacts/{target}");
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("== no failures");
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of the fuzz targets.
fn targets(root: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for program in fs::read_dir(root.join("fuzz/fuzz_targets"))? {
        let path = program?.path();
        names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// The compiler for fuzzing, which needs flags of a nightly compiler.
#[derive(Clone, Copy)]
enum Compiler {
    Nightly,
    /// The current compiler, with unstable flags enabled.
    Present,
}

impl Compiler {
    fn cargo(self) -> Command {
        match self {
            Self::Nightly => {
                let mut command = Command::new("rustup");
                command.args(["run", "nightly", "cargo"]);
                command
            }
            Self::Present => {
                let mut command = Command::new("cargo");
                command.env("RUSTC_BOOTSTRAP", "1");
                command
            }
        }
    }

    fn has_fuzz(self) -> bool {
        let mut command = self.cargo();
        command.args(["fuzz", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

fn compiler() -> Option<Compiler> {
    if Compiler::Nightly.has_fuzz() {
        return Some(Compiler::Nightly);
    }
    println!(
        "no nightly compiler with cargo-fuzz; using the current compiler with RUSTC_BOOTSTRAP=1; help: run \
              `rustup toolchain install nightly`"
    );
    Some(Compiler::Present).filter(|compiler| compiler.has_fuzz())
}

/// Runs sessions with real processes for this many seconds, and prints what they did.
pub(crate) fn soak(seconds: &str) -> Outcome {
    let seconds: u32 = seconds.parse()?;
    let build = ["build", "--package", "tests-e2e", "--bin", "host", "--bin", "sim"];
    if !Command::new(env!("CARGO")).args(build).current_dir(root()).status()?.success() {
        return Ok(ExitCode::FAILURE);
    }
    let here = env::current_exe()?;
    let beside = |name: &str| here.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX));
    let status = Command::new(beside("host"))
        .args(["soak", &seconds.to_string()])
        .arg(beside("sim"))
        .status()?;
    println!("== {}", if status.success() { "no leaks" } else { "the soak test failed" });
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
