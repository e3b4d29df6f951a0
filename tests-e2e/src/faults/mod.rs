//! The fault matrix: what becomes of a session in every state when something goes wrong.
//!
//! States and faults are rows of two tables, [`expected`] is the third: what should come of each
//! pair. [`run`] finds out what does come of it, on `claude-sim` as a process.

mod apply;
mod expected;
mod fault;
mod gate;
mod outcome;
mod scene;
mod state;
mod table;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub use expected::expected;
pub use fault::Fault;
pub use gate::quiet_panics;
pub use outcome::{End, Outcome, Told};
use scene::{MARK, Result, Scene};
pub use state::State;
pub use table::{count, document, table, wanted};
use tokio::runtime::Builder;

use crate::golden::Golden;
use crate::harness::processes::{marked, wait_until};

/// Far more than a whole cell takes.
const LIMIT: Duration = Duration::from_secs(120);

/// The programs that cells run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Programs<'a> {
    /// The simulated CLI.
    pub sim: &'a str,
    /// The host as a process.
    pub host: &'a str,
}

impl<'a> Programs<'a> {
    /// These.
    pub fn new(sim: &'a str, host: &'a str) -> Self {
        Self { sim, host }
    }
}

/// Lets a fault happen in a state, and says what came of it: [`Outcome::line`] and its text.
///
/// # Errors
/// What was lost or left, who still waits, or why it could not be tried.
pub fn run(state: State, fault: Fault, programs: Programs<'_>) -> Result<(String, String)> {
    match fault {
        Fault::HostKilled => host_killed(state, programs),
        // It ends every session of its process.
        Fault::ShutdownAll => in_a_host(state, fault, programs),
        _ => run_here(state, fault, programs.sim),
    }
}

/// The same, in this process.
///
/// # Errors
/// As [`run`].
pub fn run_here(state: State, fault: Fault, sim: &str) -> Result<(String, String)> {
    outcome(state, fault, sim).map(|outcome| (outcome.line(), outcome.text))
}

/// What is written to the CLI and read from it in a cell that needs no other host process.
///
/// # Errors
/// As [`run`].
pub fn golden(state: State, fault: Fault, sim: &str) -> Result<Golden> {
    outcome(state, fault, sim).map(|outcome| outcome.golden)
}

fn outcome(state: State, fault: Fault, sim: &str) -> Result<Outcome> {
    let mut builder = match fault {
        Fault::CurrentThread => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let cell = async {
            let mut scene = Scene::open(state, fault, sim).await?;
            scene.reach().await?;
            scene.strike().await?;
            Box::pin(apply::see_through(scene)).await
        };
        let cell = tokio::time::timeout(LIMIT, Box::pin(cell)).await;
        cell.map_err(|_| "the cell itself does not end".to_owned())?
    })
}

/// Brings a session into a state, tells its mark on stdout, and waits to be killed.
///
/// # Errors
/// Why the state could not be reached.
#[expect(clippy::print_stdout, reason = "that is its answer")]
pub fn hold(state: State, sim: &str) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut scene = Scene::open(state, Fault::HostKilled, sim).await?;
        scene.reach().await?;
        scene.strike().await?;
        println!("{}", scene.mark());
        std::future::pending().await
    })
}

fn in_a_host(state: State, fault: Fault, programs: Programs<'_>) -> Result<(String, String)> {
    let output = Command::new(programs.host)
        .args(["fault", programs.sim, state.name(), fault.name()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let came = String::from_utf8_lossy(&output.stdout).into_owned();
    let (line, text) = came.trim().split_once('\n').ok_or("the host did not say what came")?;
    Ok((line.to_owned(), text.to_owned()))
}

/// A host that dies leaves nothing behind.
fn host_killed(state: State, programs: Programs<'_>) -> Result<(String, String)> {
    // What a host leaves on disk that is killed goes with it.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut host = Command::new(programs.host)
        .args(["hold", programs.sim, state.name()])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let held = held(&mut host);
    let killed = host.kill().and_then(|()| host.wait());
    killed.map_err(|error| error.to_string())?;
    let mark = held?;
    if !wait_until(LIMIT, || marked(MARK, &mark).is_empty()) {
        return Err(format!("{:?} outlived the host", marked(MARK, &mark)));
    }
    Ok((Outcome::new(End::Untold, Told::Nobody).line(), String::new()))
}

/// The mark of a session that a host holds.
fn held(host: &mut Child) -> Result<String> {
    let stdout = host.stdout.take().ok_or("the host has no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
    if line.is_empty() {
        return Err("the host did not bring its session into the state".to_owned());
    }
    if marked(MARK, line.trim()).is_empty() {
        return Err("the session of the host is not there".to_owned());
    }
    Ok(line.trim().to_owned())
}
