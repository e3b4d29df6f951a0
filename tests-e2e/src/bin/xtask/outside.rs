//! A project outside the workspace that depends on the kit as users do, and compiles every snippet
//! of README and guide, every example, and the applications of `docs/ergonomics`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use tests_e2e::snippets;
use tests_e2e::workspace::root;

use super::Outcome;

/// The dependencies of a typical user of the kit.
const SNIPPETS: &str = "\
[package]
name = \"snippets\"
version = \"0.0.0\"
edition = \"2024\"

[dependencies]
claude-agent-kit = { path = \"KIT\", features = [\"mock-api\"] }
claude-agent-store = { path = \"STORE\", features = [\"postgres\", \"s3\"] }
serde = { version = \"1\", features = [\"derive\"] }
tokio = { version = \"1\", features = [\"full\", \"test-util\"] }
";

/// The web services among the applications need a web framework as well.
const APPLICATIONS: &str = "\
[package]
name = \"applications\"
version = \"0.0.0\"
edition = \"2024\"

[dependencies]
axum = { version = \"0.8\", default-features = false, features = [\"http1\", \"json\", \"tokio\"] }
claude-agent-kit = { path = \"KIT\", features = [\"testing\"] }
futures-util = { version = \"0.3\", default-features = false, features = [\"std\"] }
serde = { version = \"1\", features = [\"derive\"] }
tokio = { version = \"1\", features = [\"full\"] }
";

pub(crate) fn run() -> Outcome {
    Ok(if passes()? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Generates the project, compiles all of it without warnings about the API, and runs its tests.
pub(crate) fn passes() -> Result<bool, Box<dyn Error>> {
    let project = tempfile::tempdir()?;
    generate(project.path())?;
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--workspace", "--all-targets"])
        .arg("--target-dir")
        .arg(root().join("target/outside"))
        // Like the packages, whose dependencies are in the same directory.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .current_dir(project.path())
        .stdin(Stdio::null())
        .status()?;
    Ok(status.success())
}

fn generate(project: &Path) -> Result<(), Box<dyn Error>> {
    let manifest = "[workspace]\nresolver = \"3\"\nmembers = [\"snippets\", \"applications\"]\n";
    fs::write(project.join("Cargo.toml"), manifest)?;
    // The versions that the workspace is tested with.
    fs::copy(root().join("Cargo.lock"), project.join("Cargo.lock"))?;
    write_snippets(&project.join("snippets"))?;
    write_applications(&project.join("applications"))
}

fn write_manifest(package: &Path, manifest: &str) -> Result<(), Box<dyn Error>> {
    let crates = root().join("crates");
    let crates = crates.to_str().ok_or("the path of the workspace is not UTF-8")?;
    fs::create_dir_all(package.join("src/bin"))?;
    let manifest = manifest.replace("KIT", &format!("{crates}/claude-agent-kit"));
    let manifest = manifest.replace("STORE", &format!("{crates}/claude-agent-store"));
    fs::write(package.join("Cargo.toml"), manifest)?;
    Ok(())
}

fn write_snippets(package: &Path) -> Result<(), Box<dyn Error>> {
    write_manifest(package, SNIPPETS)?;
    let mut library =
        "#![allow(dead_code, unused_imports, unused_variables, unused_must_use)]\n".to_owned();
    for snippet in snippets::all()? {
        library.extend(["mod ", &snippet.name, ";\n"]);
        fs::write(package.join(format!("src/{}.rs", snippet.name)), snippet.module())?;
    }
    fs::write(package.join("src/lib.rs"), library)?;
    copy_programs(&root().join("crates/claude-agent-kit/examples"), &package.join("src/bin"))
}

/// Copies the applications; those with tests become test programs.
fn write_applications(package: &Path) -> Result<(), Box<dyn Error>> {
    write_manifest(package, APPLICATIONS)?;
    let (bin, tests) = (package.join("src/bin"), package.join("tests"));
    fs::create_dir_all(&tests)?;
    let source = root().join("docs/ergonomics/after");
    copy_programs(&source, &bin)?;
    for entry in fs::read_dir(&bin)? {
        let path = entry?.path();
        if fs::read_to_string(&path)?.contains("#[tokio::test") {
            fs::rename(&path, tests.join(path.file_name().unwrap_or_default()))?;
        }
    }
    for entry in fs::read_dir(source)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "wire") {
            fs::copy(&path, tests.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

fn copy_programs(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        // A server written with rmcp needs that crate as well.
        if path.extension().is_some_and(|end| end == "rs")
            && !fs::read_to_string(&path)?.contains("use rmcp::")
        {
            fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
