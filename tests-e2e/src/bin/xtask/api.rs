//! The listings of what the crates publish, `docs/api/*.txt`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::parity::{Names, stored};
use tests_e2e::{public_api, workspace};

use super::Outcome;

/// Set where this program is run in the place of rustdoc.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Writes the listings anew.
pub(crate) fn store() -> Outcome {
    for (name, lines) in listings(&env::current_exe()?)? {
        let path = public_api::path(name);
        fs::create_dir_all(path.parent().ok_or("a listing has a directory")?)?;
        fs::write(path, stored::text_of(&lines))?;
        println!("{name}: {} public items", lines.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the crates publish what the listings say; prints what they do not agree on. `program` is
/// where this one lies.
pub(crate) fn is_as_listed(program: &Path) -> Result<bool, Box<dyn Error>> {
    let mut as_listed = true;
    for (name, lines) in listings(program)? {
        let listed = fs::read_to_string(public_api::path(name)).unwrap_or_default();
        let listed: Names = listed.lines().map(str::to_owned).collect();
        let drift = stored::drift(&listed, &lines);
        if !drift.is_empty() {
            println!("the public API of {name} is not what docs/api says:\n{}", drift.join("\n"));
            println!("if that is meant: `cargo xtask api` writes the listing anew");
            as_listed = false;
        }
    }
    Ok(as_listed)
}

/// What each crate publishes.
fn listings(program: &Path) -> Result<Vec<(&'static str, Names)>, Box<dyn Error>> {
    // The whole workspace, as the step that builds the documentation does: so the crates it needs
    // are built once for both.
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--workspace", "--lib", "--no-deps", "--all-features", "--quiet"])
        .env("RUSTDOC", program)
        .env(AS_RUSTDOC, "1")
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("the documentation cannot be built".into());
    }
    let mut listings = Vec::new();
    for name in public_api::CRATES {
        let file = target().join("doc").join(format!("{}.json", name.replace('-', "_")));
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        listings.push((name, public_api::lines(&serde_json::from_str(&text)?)?));
    }
    Ok(listings)
}

fn target() -> std::path::PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace::root().join("target"), Into::into)
}

/// Whether this program was started in the place of rustdoc.
pub(crate) fn is_rustdoc() -> bool {
    env::var_os(AS_RUSTDOC).is_some()
}

/// Runs rustdoc. Its output as JSON is not stable yet and has to be unlocked, for rustdoc only: if
/// cargo saw the variable, it would build everything anew.
pub(crate) fn rustdoc() -> Outcome {
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    Ok(if rustdoc.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
