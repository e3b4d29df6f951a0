//! Kills database servers and hosts in the middle of appends and writes of records, and stalls their connections.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use claude_agent_store::PostgresStore;
use tests_servers::{Proxy, postgres, s3};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::appends::{self, BATCHES, Counts, Event, WRITERS};
use super::record_writes;
use crate::simulation::rng::Rng;

/// Longer than anything takes that does not hang.
const LIMIT: Duration = Duration::from_secs(120);

/// The kind of the server, and what its hosts write.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ServerKind {
    /// PostgreSQL, with transcripts.
    Postgres,
    /// PostgreSQL, with records.
    PostgresRecords,
    /// SeaweedFS, with transcripts.
    S3,
}

impl ServerKind {
    /// Returns the command of the program `host`.
    fn command(self) -> &'static str {
        match self {
            Self::Postgres | Self::S3 => "store-appends",
            Self::PostgresRecords => "record-writes",
        }
    }

    /// Returns what is stored of each writer.
    async fn counts(self, url: &str, scope: &str) -> appends::Outcome<Counts> {
        match self {
            Self::Postgres | Self::S3 => {
                appends::counts(&*super::open_store(url).await?, scope).await
            }
            Self::PostgresRecords => {
                record_writes::counts(&PostgresStore::open(url).await?, scope).await
            }
        }
    }
}

enum Server {
    Postgres(postgres::Server),
    S3(s3::Server),
}

impl Server {
    fn start(kind: ServerKind) -> Result<Self, String> {
        Ok(match kind {
            ServerKind::Postgres | ServerKind::PostgresRecords => {
                Self::Postgres(postgres::Server::start()?)
            }
            ServerKind::S3 => Self::S3(s3::Server::start()?),
        })
    }

    /// Kills the server with SIGKILL, and starts it again.
    fn kill_and_restart(&mut self) -> Result<(), String> {
        match self {
            Self::Postgres(server) => {
                server.kill();
                server.restart()
            }
            Self::S3(server) => {
                server.kill();
                server.restart()
            }
        }
    }

    fn port(&self) -> u16 {
        match self {
            Self::Postgres(server) => server.port(),
            Self::S3(server) => server.port(),
        }
    }

    /// Returns the URL of the store behind a port.
    fn url(&self, port: u16) -> String {
        match self {
            Self::Postgres(server) => server.url_with_password(port),
            Self::S3(_) => s3::url(port, "faults"),
        }
    }

    /// Returns the length of the filler of an entry. Sessions on S3 are long enough that their parts are compacted
    /// several times.
    fn filler(&self) -> usize {
        match self {
            Self::Postgres(_) => 0,
            Self::S3(_) => 9_000,
        }
    }
}

/// What happened in runs.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Played {
    /// How often the server was killed.
    pub killed_servers: usize,
    /// How often a host was killed.
    pub killed_hosts: usize,
    /// How often all connections of a host were stalled.
    pub stalls: usize,
    /// Writes that were acknowledged.
    pub acknowledged: usize,
    /// Writes that failed, so that their effect was unknown, and were repeated.
    pub failed: usize,
    /// Writes of an earlier attempt or an earlier host that had been stored without being acknowledged.
    pub found: usize,
}

impl Played {
    /// Adds another run.
    pub fn add(&mut self, other: &Self) {
        self.killed_servers += other.killed_servers;
        self.killed_hosts += other.killed_hosts;
        self.stalls += other.stalls;
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.found += other.found;
    }
}

impl std::fmt::Display for Played {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} servers and {} hosts killed, {} stalls, {} writes acknowledged, {} failed and repeated, \
             {} found stored without having been acknowledged",
            self.killed_servers,
            self.killed_hosts,
            self.stalls,
            self.acknowledged,
            self.failed,
            self.found
        )
    }
}

/// Plays runs with the seeds from 0 on one server, with the program `host`, and reports the total after each.
///
/// # Errors
/// Returns the violation, or why the server cannot be started.
pub fn play(
    kind: ServerKind,
    host: &Path,
    runs: usize,
    report: impl Fn(usize, &Played),
) -> Result<Played, String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let mut server = Server::start(kind)?;
    let mut total = Played::default();
    for seed in 0..runs {
        let played = runtime.block_on(async {
            let mut run = Run::start(kind, &mut server, host, seed as u64).await?;
            run.play().await.map(|()| run.played)
        });
        total.add(&played.map_err(|violation| format!("seed {seed}: {violation}"))?);
        report(seed + 1, &total);
    }
    Ok(total)
}

/// A fault, at a random point of the run.
#[derive(Clone, Copy)]
enum Fault {
    KillServer,
    /// The host is killed; then another one takes over.
    KillHost,
    /// The server has executed appends when the host is killed, but the host does not know.
    KillHostWithoutResponses,
    /// The last requests of the killed host arrive when another one has taken over.
    KillHostWithLateRequests,
    /// Nothing passes for some milliseconds.
    Stall,
    /// Nothing passes until the host gives up.
    StallUntilTimeout,
    /// As before, but the server gets the requests.
    StallResponsesUntilTimeout,
}

const FAULTS: [Fault; 9] = [
    Fault::KillServer,
    Fault::KillServer,
    Fault::KillServer,
    Fault::KillHost,
    Fault::KillHostWithoutResponses,
    Fault::KillHostWithLateRequests,
    Fault::Stall,
    Fault::StallUntilTimeout,
    Fault::StallResponsesUntilTimeout,
];

/// A running host with its proxy.
struct Host {
    proxy: Proxy,
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

struct Run<'a> {
    kind: ServerKind,
    server: &'a mut Server,
    program: &'a Path,
    scope: String,
    rng: Rng,
    host: Host,
    /// Proxies of killed hosts, which still pass on what they have received.
    earlier: Vec<Proxy>,
    acknowledged: Counts,
    played: Played,
}

impl<'a> Run<'a> {
    async fn start(
        kind: ServerKind,
        server: &'a mut Server,
        program: &'a Path,
        seed: u64,
    ) -> Result<Self, String> {
        let (scope, acknowledged) = (format!("seed-{seed}"), [0; WRITERS]);
        let host = Host::start(kind, server, program, &scope, &acknowledged).await?;
        let (rng, played, earlier) = (Rng::new(seed), Played::default(), Vec::new());
        Ok(Self { kind, server, program, scope, rng, host, earlier, acknowledged, played })
    }

    async fn play(&mut self) -> Result<(), String> {
        let mut faults: VecDeque<Fault> =
            (0..self.rng.between(3, 5)).map(|_| self.rng.pick(&FAULTS)).collect();
        let mut at = self.next_fault();
        while let Some(event) = self.host.next().await? {
            self.observe(event)?;
            if self.acknowledged.iter().sum::<usize>() >= at
                && let Some(fault) = faults.pop_front()
            {
                // Within an append, not always directly after one.
                self.pause(3_000).await;
                self.inject(fault).await?;
                at = self.next_fault();
            }
        }
        let status = self.host.process.wait().await.map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("a host failed: {status}"));
        }
        let url = self.server.url(self.server.port());
        let counts = self.kind.counts(&url, &self.scope).await;
        match counts.map_err(|violation| violation.to_string())? {
            counts if counts == [BATCHES; WRITERS] => Ok(()),
            counts => Err(format!("the numbers of stored batches are {counts:?}")),
        }
    }

    /// Returns the number of acknowledged appends at the next fault.
    fn next_fault(&mut self) -> usize {
        self.acknowledged.iter().sum::<usize>() + self.rng.between(1, WRITERS * BATCHES / 4)
    }

    async fn pause(&mut self, micros: usize) {
        tokio::time::sleep(Duration::from_micros(self.rng.between(0, micros) as u64)).await;
    }

    fn observe(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Loaded(counts) => {
                // A writer has one append in flight at most.
                for (found, acknowledged) in counts.into_iter().zip(self.acknowledged) {
                    if found != acknowledged && found != acknowledged + 1 {
                        return Err(format!(
                            "a host found {counts:?}, and {:?} were acknowledged",
                            self.acknowledged
                        ));
                    }
                }
                // The last requests of an earlier host are delivered now.
                self.earlier.iter().for_each(|proxy| proxy.stall(false));
            }
            Event::Acknowledged { writer, was_stored } => {
                self.acknowledged[writer] += 1;
                self.played.acknowledged += 1;
                self.played.found += usize::from(was_stored);
            }
            Event::Failed => self.played.failed += 1,
        }
        Ok(())
    }

    async fn inject(&mut self, fault: Fault) -> Result<(), String> {
        match fault {
            Fault::KillServer => {
                self.server.kill_and_restart()?;
                self.played.killed_servers += 1;
                return Ok(());
            }
            Fault::KillHost => return self.kill_host().await,
            Fault::KillHostWithoutResponses => {
                self.host.proxy.stall_responses(true);
                self.pause(20_000).await;
                return self.kill_host().await;
            }
            Fault::KillHostWithLateRequests => {
                self.host.proxy.stall(true);
                self.pause(20_000).await;
                return self.kill_host().await;
            }
            Fault::Stall => {
                self.host.proxy.stall(true);
                self.pause(300_000).await;
            }
            Fault::StallUntilTimeout => {
                self.host.proxy.stall(true);
                self.wait_for_failure().await?;
            }
            Fault::StallResponsesUntilTimeout => {
                self.host.proxy.stall_responses(true);
                self.wait_for_failure().await?;
            }
        }
        self.host.proxy.stall(false);
        self.played.stalls += 1;
        Ok(())
    }

    /// Waits until an append has failed, or the host has nothing left to append.
    async fn wait_for_failure(&mut self) -> Result<(), String> {
        let failed = self.played.failed;
        while self.played.failed == failed {
            let Some(event) = self.host.next().await? else { break };
            self.observe(event)?;
        }
        Ok(())
    }

    /// Kills the host with SIGKILL, and starts another one.
    async fn kill_host(&mut self) -> Result<(), String> {
        self.host.process.kill().await.map_err(|error| error.to_string())?;
        // What the host printed before it was killed counts.
        while let Some(event) = self.host.next().await? {
            self.observe(event)?;
        }
        let next =
            Host::start(self.kind, self.server, self.program, &self.scope, &self.acknowledged)
                .await?;
        self.earlier.push(std::mem::replace(&mut self.host, next).proxy);
        self.played.killed_hosts += 1;
        Ok(())
    }
}

impl Host {
    async fn start(
        kind: ServerKind,
        server: &Server,
        program: &Path,
        scope: &str,
        acknowledged: &Counts,
    ) -> Result<Self, String> {
        let proxy = Proxy::start(server.port()).await.map_err(|error| error.to_string())?;
        let task = appends::task(&server.url(proxy.port()), scope, server.filler(), acknowledged);
        let mut process = Command::new(program)
            .args([kind.command(), &task])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let lines = BufReader::new(process.stdout.take().ok_or("no stdout")?).lines();
        Ok(Self { proxy, process, lines })
    }

    /// Returns what the host prints next, or `None` when it has ended.
    async fn next(&mut self) -> Result<Option<Event>, String> {
        let line = tokio::time::timeout(LIMIT, self.lines.next_line()).await;
        let line = line.map_err(|_| "a host hangs")?.map_err(|error| error.to_string())?;
        line.map(|line| Event::from_line(&line)).transpose()
    }
}
