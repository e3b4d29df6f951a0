//! The fault matrix: the outcome of every fault in every session state.
//!
//! States and faults are the rows of two tables; [`expected`] is the expected outcome of each pair. [`run`]
//! runs a pair against `claude-sim` as a process.

mod apply;
mod callback_gate;
mod cell;
mod expected;
mod fault;
mod outcome;
mod state;
mod table;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub use callback_gate::quiet_panics;
use cell::{FaultCell, MARK, Result};
pub use expected::expected;
pub use fault::Fault;
pub use outcome::{CellOutcome, Resolution, SessionEnd};
pub use state::State;
pub use table::{count, document, expected_code, table};
use tokio::runtime::Builder;

use crate::golden::Golden;
use crate::harness::processes::{marked, wait_until};

/// Far longer than any cell takes.
const LIMIT: Duration = Duration::from_secs(120);

/// The programs that a cell runs.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Programs<'a> {
    /// The simulated CLI.
    pub sim: &'a str,
    /// The host application.
    pub host: &'a str,
}

impl<'a> Programs<'a> {
    /// Creates the pair from the paths of both programs.
    pub fn new(sim: &'a str, host: &'a str) -> Self {
        Self { sim, host }
    }
}

/// Injects a fault into a session in a state and returns [`CellOutcome::line`] and its text.
///
/// # Errors
/// Returns what was lost or left over, which future is still pending, or why the cell could not run.
pub fn run(state: State, fault: Fault, programs: Programs<'_>) -> Result<(String, String)> {
    match fault {
        Fault::HostKilled => host_killed(state, programs),
        // `shutdown_all` ends every session of the process.
        Fault::ShutdownAll => in_a_host(state, fault, programs),
        _ => run_here(state, fault, programs.sim),
    }
}

/// Runs a cell in this process.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_here(state: State, fault: Fault, sim: &str) -> Result<(String, String)> {
    outcome(state, fault, sim).map(|outcome| (outcome.line(), outcome.text))
}

/// Returns what a cell writes to the CLI and reads from it, for cells that need no separate host process.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn golden(state: State, fault: Fault, sim: &str) -> Result<Golden> {
    outcome(state, fault, sim).map(|outcome| outcome.golden)
}

fn outcome(state: State, fault: Fault, sim: &str) -> Result<CellOutcome> {
    let mut builder = match fault {
        Fault::CurrentThread => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let cell = async {
            let mut cell = FaultCell::open(state, fault, sim).await?;
            cell.enter_state().await?;
            cell.inject().await?;
            Box::pin(apply::run_to_end(cell)).await
        };
        let cell = tokio::time::timeout(LIMIT, Box::pin(cell)).await;
        cell.map_err(|_| "the cell itself does not end".to_owned())?
    })
}

/// Brings a session into a state, prints its mark to stdout and waits to be killed.
///
/// # Errors
/// Returns why the state could not be reached.
#[expect(clippy::print_stdout, reason = "that is its answer")]
pub fn hold(state: State, sim: &str) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut cell = FaultCell::open(state, Fault::HostKilled, sim).await?;
        cell.enter_state().await?;
        cell.inject().await?;
        println!("{}", cell.mark());
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
    let (line, text) = came.trim().split_once('\n').ok_or("the host printed no outcome")?;
    Ok((line.to_owned(), text.to_owned()))
}

/// Kills the host and checks that no process of its session survives.
fn host_killed(state: State, programs: Programs<'_>) -> Result<(String, String)> {
    // The files of a killed host are removed with this directory.
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
    Ok((CellOutcome::new(SessionEnd::Unobserved, Resolution::NoWaiter).line(), String::new()))
}

/// Reads the mark of the session that the host holds.
fn held(host: &mut Child) -> Result<String> {
    let stdout = host.stdout.take().ok_or("the host has no stdout")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
    if line.is_empty() {
        return Err("the host did not reach the state".to_owned());
    }
    if marked(MARK, line.trim()).is_empty() {
        return Err("no process of the host's session was found".to_owned());
    }
    Ok(line.trim().to_owned())
}
