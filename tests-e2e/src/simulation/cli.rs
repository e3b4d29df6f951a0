//! The simulated CLI behind pipes that the seed disturbs.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use claude_agent_kit::transport::{Child, Connection, Exit, InMemory, Launch};
use claude_agent_kit::{Options, PermissionMode};
use claude_agent_testkit::sim::{Fault, Faults, Point, Sim, SimHandle, VERSIONS};
use tokio::time::sleep;

use super::model;
use super::observed_streams::{ObservedReader, ObservedWriter};
use super::pipe::{PipeBehavior, carry};
use super::record::Record;
use super::rng::Rng;

/// Returns options that connect to the CLI of this seed.
pub(super) fn reaching(options: Options, rng: Rng, record: &Record, healthy: bool) -> Options {
    let record = record.clone();
    // Some versions start in a mode that never requests permission.
    let options = options.permission_mode(PermissionMode::Default);
    options.transport(InMemory::new(move |launch| {
        connect(launch, rng.clone(), record.clone(), healthy)
    }))
}

async fn connect(
    launch: Launch,
    mut rng: Rng,
    record: Record,
    healthy: bool,
) -> io::Result<Connection> {
    sleep(rng.delay()).await;
    if !healthy && rng.chance(2) {
        record.count("fault: not started");
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let faults = if healthy { Faults::new() } else { faults(&mut rng, &record) };
    // The oldest version differs most from the newest.
    let version = if rng.chance(30) { VERSIONS[0] } else { rng.pick(&VERSIONS) };
    record.count(format!("version {version}"));
    let variables = launch.envs().iter();
    record.lock().launch = described(&launch);
    let sim = Sim::new()
        .script(model::script(rng.branch(), &record, healthy))
        .faults(faults)
        .version(version)
        .args(launch.args())
        .envs(variables.map(|(name, value)| (name.as_str(), value.expose())))
        // A directory that does not exist and has the same name on every machine.
        .cwd("/simulated")
        .env("CLAUDE_SIM_PID", "1234");
    let (stdin, stdout, stderr, handle) = sim.start().into_parts();
    record.lock().wire.started = true;
    let handle = Arc::new(handle);
    let output = PipeBehavior::pick(&mut rng, "stdout", healthy);
    let (input, their_input) = tokio::io::duplex(rng.pick(&[64, 1_000, 65_536]));
    let (their_output, host_output) = tokio::io::duplex(rng.pick(&[64, 1_000, 65_536]));
    let (their_errors, errors) = tokio::io::duplex(1_000);
    let breaks = output.breaks;
    tokio::spawn(carry(stdout, their_output, output, record.clone()));
    let pipe = PipeBehavior::pick(&mut rng, "stdin", healthy);
    tokio::spawn(carry(their_input, stdin, pipe, record.clone()));
    let pipe = PipeBehavior::pick(&mut rng, "stderr", healthy);
    tokio::spawn(carry(stderr, their_errors, pipe, record.clone()));
    let child = Process::new(handle, &mut rng, &record, healthy);
    let output = ObservedReader { inner: host_output, record: record.clone(), breaks };
    let input = ObservedWriter { inner: input, record };
    Ok(Connection::new(input, output, child).stderr(errors))
}

fn described(launch: &Launch) -> Vec<String> {
    let variables = launch.envs().iter();
    let variables = variables.map(|(name, value)| format!("{name}={}", value.expose()));
    launch.args().iter().cloned().chain(variables).collect()
}

/// Picks the faults of the CLI.
fn faults(rng: &mut Rng, record: &Record) -> Faults {
    const LINES: [&str; 7] = [
        "assistant",
        "result",
        "system/init",
        "stream_event",
        "control_request",
        "control_response/initialize",
        "*",
    ];
    const READ: [&str; 3] = ["user", "control_request", "control_response"];
    let mut faults = Faults::new();
    if rng.chance(10) {
        record.count("fault: SIGTERM ignored");
        faults = faults.at_start(Fault::IgnoreTerminate);
    }
    for _ in 0..rng.pick(&[0, 0, 1, 1, 2]) {
        let (name, fault) = fault(rng);
        record.count(format!("fault: {name}"));
        let times = rng.between(1, 3);
        let point = match rng.between(0, 4) {
            0 => Point::Start,
            1 => Point::Read(rng.pick(&READ).to_owned(), times),
            2 => Point::After(rng.pick(&LINES).to_owned(), times),
            _ => Point::Before(rng.pick(&LINES).to_owned(), times),
        };
        faults = faults.at(point, fault);
    }
    faults
}

fn fault(rng: &mut Rng) -> (&'static str, Fault) {
    match rng.between(0, 10) {
        0 => ("exit", Fault::Exit(rng.pick(&[0, 1, 7]))),
        1 => ("signal", Fault::Signal(rng.pick(&[6, 9, 15]))),
        2 => ("hang", Fault::Hang),
        3 => ("pause", Fault::Pause(rng.moment())),
        4 => ("flood of messages", Fault::Messages(rng.between(1, 40))),
        5 => ("flood of deltas", Fault::Deltas(rng.between(1, 60))),
        6 => ("flood of stderr", Fault::Stderr(rng.between(1, 20_000))),
        7 => ("long line", Fault::LongLine(rng.between(500, 20_000))),
        8 => ("closed stdout", Fault::CloseStdout),
        9 => ("closed stdin", Fault::CloseStdin),
        _ => ("no more reading", Fault::StopReading),
    }
}

/// The process as the host sees it.
struct Process {
    handle: Arc<SimHandle>,
    exit: Pin<Box<dyn Future<Output = Exit> + Send>>,
    exit_status: Option<Exit>,
    ignores_signals: bool,
    record: Record,
}

impl Process {
    fn new(handle: Arc<SimHandle>, rng: &mut Rng, record: &Record, healthy: bool) -> Self {
        let crash = Arc::new(Mutex::new(None));
        if !healthy && rng.chance(15) {
            let exit = rng.pick(&[Exit::Code(1), Exit::Code(137), Exit::Signal(11)]);
            let crashing =
                crash_at(rng.moment(), exit, handle.clone(), crash.clone(), record.clone());
            tokio::spawn(crashing);
        }
        let late = if healthy || !rng.chance(20) { Duration::ZERO } else { rng.delay() };
        if late > Duration::ZERO {
            record.count("fault: late exit");
        }
        let ignores_signals = !healthy && rng.chance(10);
        if ignores_signals {
            record.count("fault: signals lost");
        }
        let waited_for = handle.clone();
        let exit = Box::pin(async move {
            let exit = waited_for.wait().await.into();
            sleep(late).await;
            crash.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(exit)
        });
        Self { handle, exit, exit_status: None, ignores_signals, record: record.clone() }
    }
}

async fn crash_at(
    moment: Duration,
    exit: Exit,
    handle: Arc<SimHandle>,
    crash: Arc<Mutex<Option<Exit>>>,
    record: Record,
) {
    tokio::select! {
        biased;
        _ = handle.wait() => return,
        () = sleep(moment) => {}
    }
    record.count("fault: crash");
    *crash.lock().unwrap_or_else(PoisonError::into_inner) = Some(exit);
    handle.kill();
}

impl Child for Process {
    fn poll_exit(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Exit>> {
        if let Some(exit) = self.exit_status {
            return Poll::Ready(Ok(exit));
        }
        let polled = self.exit.as_mut().poll(context);
        if let Poll::Ready(exit) = polled {
            self.exit_status = Some(exit);
            self.record.count(format!("exit: {exit:?}"));
            let now = self.record.now();
            self.record.lock().wire.exit_reported = Some(now);
        }
        polled.map(Ok)
    }

    fn terminate(&mut self) {
        self.record.count("terminated");
        let now = self.record.now();
        self.record.lock().wire.terminated.get_or_insert(now);
        if !self.ignores_signals {
            self.handle.terminate();
        }
    }

    fn kill(&mut self) {
        self.record.count("killed");
        let now = self.record.now();
        self.record.lock().wire.killed.get_or_insert(now);
        self.handle.kill();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.exit_status.is_none() {
            self.record.lock().wire.abandoned = true;
            self.handle.kill();
        }
    }
}
