//! Measures the compile time of programs that use an SDK: `cargo xtask bench compile`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::spread::Spread;
use crate::workspace::root;

/// The number of rounds. In each, every program is built once, so that a slow machine is slow for all.
const ROUNDS: usize = 3;

/// How much longer than with [`PEER`] a release build may take.
pub const MAX_RATIO: f64 = 2.0;

/// The columns of the table.
const HEAD: &str = "| program | dev, CPU seconds | release, CPU seconds | release, ratio | crates |
|---|---|---|---|---|
";

/// The row that the others are compared with.
pub const PEER: &str = "claude-code-client-sdk 0.1.46";

/// A program that sends one prompt and prints the answer.
struct Program {
    /// The name of the row.
    title: &'static str,
    /// The dependency on the SDK; `{root}` is the directory of this workspace.
    dependency: &'static str,
    source: &'static str,
    /// Whether the program is built; otherwise only its crates are counted.
    is_built: bool,
}

const KIT: &str = r#"
#[tokio::main]
async fn main() -> claude_agent_kit::Result<()> {
    let query = claude_agent_kit::query("Hello", claude_agent_kit::Options::new()).await?;
    println!("{}", query.collect().await.into_result()?.text());
    Ok(())
}
"#;

const CLIENT_SDK: &str = r#"
use claude_code::{ClaudeAgentOptions, InputPrompt, Message, query_stream};
use futures::StreamExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let prompt = InputPrompt::Text("Hello".to_owned());
    let mut messages = query_stream(prompt, Some(ClaudeAgentOptions::default()), None).await?;
    while let Some(message) = messages.next().await {
        if let Message::Result(result) = message? {
            println!("{}", result.result.unwrap_or_default());
        }
    }
    Ok(())
}
"#;

const AGENT_SDK: &str = r#"
use claude_agent_sdk_rs::{Message, query_stream};
use futures::StreamExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut messages = query_stream("Hello", None).await?;
    while let Some(message) = messages.next().await {
        if let Message::Result(result) = message? {
            println!("{}", result.result.unwrap_or_default());
        }
    }
    Ok(())
}
"#;

/// The programs that are compared.
const PROGRAMS: [Program; 5] = [
    Program {
        title: "this SDK",
        dependency: r#"claude-agent-kit = { path = "{root}/crates/claude-agent-kit" }"#,
        source: KIT,
        is_built: true,
    },
    Program {
        title: "this SDK, no default features",
        dependency: r#"claude-agent-kit = { path = "{root}/crates/claude-agent-kit", default-features = false }"#,
        source: KIT,
        is_built: true,
    },
    Program {
        title: "this SDK, all features",
        dependency: r#"claude-agent-kit = { path = "{root}/crates/claude-agent-kit", features = ["rmcp", "mock-api"] }"#,
        source: KIT,
        is_built: false,
    },
    Program {
        title: PEER,
        dependency: "claude-code-client-sdk = \"=0.1.46\"\nfutures = \"0.3\"",
        source: CLIENT_SDK,
        is_built: true,
    },
    Program {
        title: "claude-agent-sdk-rs 0.6.4",
        dependency: "claude-agent-sdk-rs = \"=0.6.4\"\nfutures = \"0.3\"",
        source: AGENT_SDK,
        is_built: true,
    },
];

/// A program in a directory, and the CPU seconds of its builds.
struct Built {
    folder: TempDir,
    crates: usize,
    dev: Vec<f64>,
    release: Vec<f64>,
}

/// The compile times of all programs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The table.
    pub table: String,
    /// The ratio of the release builds of the first program and [`PEER`].
    pub ratio: f64,
}

/// Builds every program from nothing in both profiles.
///
/// # Errors
/// Returns an error when a directory cannot be written or a command fails.
pub fn compare() -> Result<Comparison, String> {
    let mut built = PROGRAMS.iter().map(Program::create).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..ROUNDS {
        for (_, built) in PROGRAMS.iter().zip(&mut built).filter(|(it, _)| it.is_built) {
            let folder = built.folder.path();
            built.dev.push(cpu_seconds(folder, "dev")?);
            built.release.push(cpu_seconds(folder, "release")?);
        }
    }
    let peer = PROGRAMS.iter().position(|program| program.title == PEER).unwrap_or_default();
    let ratio = |figures: &[f64], peer: &[f64]| {
        Spread::of(figures.iter().zip(peer).map(|(figure, peer)| figure / peer))
    };
    let mut table = HEAD.to_owned();
    for (program, row) in PROGRAMS.iter().zip(&built) {
        let ratio = ratio(&row.release, &built[peer].release);
        let [dev, release] = [&row.dev, &row.release].map(|it| Spread::of(it.iter().copied()));
        let [dev, release, ratio] =
            [dev, release, ratio].map(|it| it.map_or_else(String::new, |it| it.to_string()));
        let (title, crates) = (program.title, row.crates);
        let line = format!("| {title} | {dev} | {release} | {ratio} | {crates} |\n");
        table.push_str(&line);
    }
    let ratio = ratio(&built[0].release, &built[peer].release);
    let ratio = ratio.ok_or("nothing was built")?.median;
    Ok(Comparison { table, ratio })
}

impl Program {
    fn create(&self) -> Result<Built, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.write(folder.path()).map_err(|error| format!("{}: {error}", self.title))?;
        let crates = count(folder.path())?;
        Ok(Built { folder, crates, dev: Vec::new(), release: Vec::new() })
    }

    fn write(&self, folder: &Path) -> std::io::Result<()> {
        let dependency = self.dependency.replace("{root}", &root().to_string_lossy());
        let manifest = format!(
            "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\n{dependency}\n\
             tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n\n\
             [workspace]\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::create_dir(folder.join("src"))?;
        fs::write(folder.join("src/main.rs"), self.source)
    }
}

/// Counts the crates that are compiled for the program, build scripts and macros included.
fn count(folder: &Path) -> Result<usize, String> {
    let tree = run(Command::new("cargo")
        .args(["tree", "--quiet", "--edges", "no-dev", "--prefix", "none"])
        .current_dir(folder))?;
    let crates: BTreeSet<Vec<&str>> =
        tree.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    Ok(crates.len().saturating_sub(1))
}

/// The user and system time of a build and of all its child processes.
fn cpu_seconds(folder: &Path, profile: &str) -> Result<f64, String> {
    // Dependencies are downloaded before, so that only compiling counts.
    run(Command::new("cargo").args(["fetch", "--quiet"]).current_dir(folder))?;
    // `times` writes the shell's own times and then those of its children.
    let times = run(Command::new("sh")
        .args(["-c", "cargo build --quiet --profile \"$1\" && times", "sh", profile])
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .current_dir(folder))?;
    // The next build starts from nothing.
    fs::remove_dir_all(folder.join("target")).map_err(|error| error.to_string())?;
    let children = times
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().map(seconds).sum::<Option<f64>>());
    children.ok_or_else(|| format!("the shell printed no times: {times:?}"))
}

/// Reads `1m2.5s`.
fn seconds(text: &str) -> Option<f64> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{command:?} did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn times_of_a_shell_are_read() {
        assert_eq!(seconds("1m2.500s"), Some(62.5));
        assert_eq!(seconds("0m0.04s"), Some(0.04));
        assert_eq!(seconds("2.5"), None);
    }
}
