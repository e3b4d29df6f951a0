//! The listings of the public API, `docs/api/*.txt`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::parity::{Names, stored};
use tests_e2e::{public_api, workspace};

use super::Outcome;

/// Set when this program runs in place of rustdoc.
const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Regenerates the listings.
pub(crate) fn store() -> Outcome {
    for (name, lines) in listings(&env::current_exe()?)? {
        let path = public_api::path(name);
        fs::create_dir_all(path.parent().ok_or("a listing has a directory")?)?;
        fs::write(path, stored::text_of(&lines))?;
        println!("{name}: {} public items", lines.len());
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns whether the listings are up to date, and prints the differences. `program` is the path of this program.
pub(crate) fn is_as_listed(program: &Path) -> Result<bool, Box<dyn Error>> {
    let mut as_listed = true;
    for (name, lines) in listings(program)? {
        let listed = fs::read_to_string(public_api::path(name)).unwrap_or_default();
        let listed: Names = listed.lines().map(str::to_owned).collect();
        let drift = stored::drift(&listed, &lines);
        if !drift.is_empty() {
            println!("the public API of {name} differs from docs/api:\n{}", drift.join("\n"));
            println!(
                "help: if the change is intended, run `cargo xtask api` to update the listing"
            );
            as_listed = false;
        }
    }
    Ok(as_listed)
}

/// Returns the public API of each crate.
fn listings(program: &Path) -> Result<Vec<(&'static str, Names)>, Box<dyn Error>> {
    // The whole workspace, like the step that builds the documentation, so that dependencies are built only once.
    let status = Command::new(env!("CARGO"))
        .args(["doc", "--workspace", "--lib", "--no-deps", "--all-features", "--quiet"])
        .env("RUSTDOC", program)
        .env(AS_RUSTDOC, "1")
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")
        .current_dir(workspace::root())
        .stdin(Stdio::null())
        .status()?;
    if !status.success() {
        return Err("the documentation could not be built".into());
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

/// Whether this program was started in place of rustdoc.
pub(crate) fn is_rustdoc() -> bool {
    env::var_os(AS_RUSTDOC).is_some()
}

/// Runs rustdoc. Its JSON output is unstable and must be enabled for rustdoc only: cargo would rebuild everything if
/// it saw the variable.
pub(crate) fn rustdoc() -> Outcome {
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").env_remove(AS_RUSTDOC);
    Ok(if rustdoc.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
