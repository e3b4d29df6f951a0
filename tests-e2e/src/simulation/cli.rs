//! The simulated CLI behind pipes that a seed disturbs.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use claude_agent_kit::Exit;
use claude_agent_kit::transport::{Child, Connection, InMemory, Launch};
use claude_agent_kit::{Options, PermissionMode};
use claude_agent_testkit::sim::{Fault, Faults, Point, Sim, SimHandle, VERSIONS};
use tokio::time::sleep;

use super::draw::Draw;
use super::model;
use super::pipe::{Way, carry};
use super::record::Record;
use super::tap::{TapRead, TapWrite};

/// Options that reach the CLI of this seed.
pub(super) fn reaching(options: Options, draw: Draw, record: &Record, healthy: bool) -> Options {
    let record = record.clone();
    // Some versions start in a mode in which they do not ask.
    let options = options.permission_mode(PermissionMode::Default);
    options.transport(InMemory::new(move |launch| {
        connect(launch, draw.clone(), record.clone(), healthy)
    }))
}

async fn connect(
    launch: Launch,
    mut draw: Draw,
    record: Record,
    healthy: bool,
) -> io::Result<Connection> {
    sleep(draw.delay()).await;
    if !healthy && draw.chance(2) {
        record.count("fault: not started");
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let faults = if healthy { Faults::new() } else { faults(&mut draw, &record) };
    // The oldest differs most from what the newest says.
    let version = if draw.chance(30) { VERSIONS[0] } else { draw.pick(&VERSIONS) };
    record.count(format!("version {version}"));
    let variables = launch.envs().iter();
    record.lock().launch = described(&launch);
    let sim = Sim::new()
        .script(model::script(draw.branch(), &record, healthy))
        .faults(faults)
        .version(version)
        .args(launch.args())
        .envs(variables.map(|(name, value)| (name.as_str(), value.expose())))
        // A directory that is nowhere, and the same on every machine.
        .cwd("/simulated")
        .env("CLAUDE_SIM_PID", "1234");
    let (stdin, stdout, stderr, handle) = sim.start().into_parts();
    record.lock().wire.started = true;
    let handle = Arc::new(handle);
    let output = Way::draw(&mut draw, "output", healthy);
    let (input, their_input) = tokio::io::duplex(draw.pick(&[64, 1_000, 65_536]));
    let (their_output, host_output) = tokio::io::duplex(draw.pick(&[64, 1_000, 65_536]));
    let (their_errors, errors) = tokio::io::duplex(1_000);
    let breaks = output.breaks;
    tokio::spawn(carry(stdout, their_output, output, record.clone()));
    let way = Way::draw(&mut draw, "input", healthy);
    tokio::spawn(carry(their_input, stdin, way, record.clone()));
    let way = Way::draw(&mut draw, "errors", healthy);
    tokio::spawn(carry(stderr, their_errors, way, record.clone()));
    let child = Process::new(handle, &mut draw, &record, healthy);
    let output = TapRead { inner: host_output, record: record.clone(), breaks };
    let input = TapWrite { inner: input, record };
    Ok(Connection::new(input, output, child).stderr(errors))
}

fn described(launch: &Launch) -> Vec<String> {
    let variables = launch.envs().iter();
    let variables = variables.map(|(name, value)| format!("{name}={}", value.expose()));
    launch.args().iter().cloned().chain(variables).collect()
}

/// What goes wrong inside the CLI.
fn faults(draw: &mut Draw, record: &Record) -> Faults {
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
    if draw.chance(10) {
        record.count("fault: deaf to terminate");
        faults = faults.at_start(Fault::IgnoreTerminate);
    }
    for _ in 0..draw.pick(&[0, 0, 1, 1, 2]) {
        let (name, fault) = fault(draw);
        record.count(format!("fault: {name}"));
        let times = draw.between(1, 3);
        let point = match draw.between(0, 4) {
            0 => Point::Start,
            1 => Point::Read(draw.pick(&READ).to_owned(), times),
            2 => Point::After(draw.pick(&LINES).to_owned(), times),
            _ => Point::Before(draw.pick(&LINES).to_owned(), times),
        };
        faults = faults.at(point, fault);
    }
    faults
}

fn fault(draw: &mut Draw) -> (&'static str, Fault) {
    match draw.between(0, 10) {
        0 => ("exit", Fault::Exit(draw.pick(&[0, 1, 7]))),
        1 => ("signal", Fault::Signal(draw.pick(&[6, 9, 15]))),
        2 => ("hang", Fault::Hang),
        3 => ("pause", Fault::Pause(draw.moment())),
        4 => ("flood of messages", Fault::Messages(draw.between(1, 40))),
        5 => ("flood of deltas", Fault::Deltas(draw.between(1, 60))),
        6 => ("flood of stderr", Fault::Stderr(draw.between(1, 20_000))),
        7 => ("long line", Fault::LongLine(draw.between(500, 20_000))),
        8 => ("closed stdout", Fault::CloseStdout),
        9 => ("closed stdin", Fault::CloseStdin),
        _ => ("no more reading", Fault::StopReading),
    }
}

/// The process as the host sees it.
struct Process {
    handle: Arc<SimHandle>,
    exit: Pin<Box<dyn Future<Output = Exit> + Send>>,
    told: Option<Exit>,
    deaf: bool,
    record: Record,
}

impl Process {
    fn new(handle: Arc<SimHandle>, draw: &mut Draw, record: &Record, healthy: bool) -> Self {
        let crash = Arc::new(Mutex::new(None));
        if !healthy && draw.chance(15) {
            let exit = draw.pick(&[Exit::Code(1), Exit::Code(137), Exit::Signal(11)]);
            let crashing =
                crash_at(draw.moment(), exit, handle.clone(), crash.clone(), record.clone());
            tokio::spawn(crashing);
        }
        let late = if healthy || !draw.chance(20) { Duration::ZERO } else { draw.delay() };
        if late > Duration::ZERO {
            record.count("fault: late exit");
        }
        let deaf = !healthy && draw.chance(10);
        if deaf {
            record.count("fault: no signal arrives");
        }
        let waited_for = handle.clone();
        let exit = Box::pin(async move {
            let exit = waited_for.wait().await.into();
            sleep(late).await;
            crash.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(exit)
        });
        Self { handle, exit, told: None, deaf, record: record.clone() }
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
        if let Some(exit) = self.told {
            return Poll::Ready(Ok(exit));
        }
        let polled = self.exit.as_mut().poll(context);
        if let Poll::Ready(exit) = polled {
            self.told = Some(exit);
            self.record.count(format!("exit: {exit:?}"));
            let now = self.record.now();
            self.record.lock().wire.exit_told = Some(now);
        }
        polled.map(Ok)
    }

    fn terminate(&mut self) {
        self.record.count("terminated");
        let now = self.record.now();
        self.record.lock().wire.terminated.get_or_insert(now);
        if !self.deaf {
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
        if self.told.is_none() {
            self.record.lock().wire.abandoned = true;
            self.handle.kill();
        }
    }
}
