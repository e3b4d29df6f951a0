//! Seeded runs in which the server is killed, the connections of a host are stalled, and hosts are killed, all in the
//! middle of appends and compactions.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use claude_agent_kit::store::{
    Append, Load, NewEntry, SessionKey, SessionStore, StoreError, StoreErrorKind,
};
use claude_agent_store::{S3Options, S3Store};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use tests_servers::Proxy;
use tests_servers::s3::{ACCESS_KEY, SECRET_KEY, Server, url};

const HOSTS: usize = 2;
const SESSIONS: usize = 2;
const BATCHES: u64 = 40;

/// The length of an entry. A session gets about 2 MB, so that its parts are compacted several times.
const ENTRY_BYTES: usize = 9_000;

/// The variable that makes a program a host.
const CHILD: &str = "CLAUDE_STORE_S3_HOST";

/// The time that nothing happens before a run fails.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    /// How often the server was killed.
    pub(crate) servers: u64,
    /// How often a host was killed.
    pub(crate) hosts: u64,
    /// How often the connections of a host were stalled.
    pub(crate) stalls: u64,
    /// Appends that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Appends that failed, so that their effect was unknown, and were repeated by the same host.
    pub(crate) repeated: u64,
    /// Appends that had been stored before.
    pub(crate) found: u64,
}

impl Played {
    pub(crate) fn add(&mut self, other: &Self) {
        self.servers += other.servers;
        self.hosts += other.hosts;
        self.stalls += other.stalls;
        self.acknowledged += other.acknowledged;
        self.repeated += other.repeated;
        self.found += other.found;
    }
}

/// What a host has printed.
enum Line {
    /// A session, the number of a batch, the skipped entries, and how often the append failed before.
    Acknowledged(usize, u64, u64, u64),
    End,
    Failed(String),
}

/// A host process, and what it has acknowledged.
struct Host {
    child: Child,
    proxy: Proxy,
    /// The next batch for each session.
    next: [u64; SESSIONS],
    /// Lines of earlier processes do not count.
    process: u64,
    has_ended: bool,
}

/// Plays a run: two hosts that write to the same two sessions, with one to three faults.
///
/// # Errors
/// Returns the violation.
pub(crate) fn play(server: &mut Server, seed: u64) -> Result<Played, String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let prefix = format!("kills-{seed}-{}", std::process::id());
    let (sender, lines) = channel();
    let mut hosts = Vec::new();
    for host in 0..HOSTS {
        let proxy = runtime.block_on(Proxy::start(server.port()));
        let proxy = proxy.map_err(|error| error.to_string())?;
        let next = [0; SESSIONS];
        let child = spawn(&proxy, &prefix, host, &next, 0, &sender)?;
        hosts.push(Host { child, proxy, next, process: 0, has_ended: false });
    }
    let mut game = Run {
        server,
        hosts,
        prefix,
        send: sender,
        receive: lines,
        played: Played::default(),
        random: seed,
    };
    let result = game.all();
    for host in &mut game.hosts {
        drop(host.child.kill());
        drop(host.child.wait());
    }
    result
        .and_then(|()| check(&runtime, game.server, &game.prefix))
        .map_err(|error| format!("seed {seed}: {error}"))?;
    Ok(game.played)
}

struct Run<'a> {
    server: &'a mut Server,
    hosts: Vec<Host>,
    prefix: String,
    send: Sender<(usize, u64, Line)>,
    receive: Receiver<(usize, u64, Line)>,
    played: Played,
    random: u64,
}

impl Run<'_> {
    fn all(&mut self) -> Result<(), String> {
        let all = (HOSTS * SESSIONS) as u64 * BATCHES;
        for _ in 0..=next(&mut self.random) % 3 {
            let now = self.played.acknowledged;
            let at = now + next(&mut self.random) % (all - now).max(1);
            while self.played.acknowledged < at {
                self.read_line()?;
            }
            // Within an append, not always directly after one.
            std::thread::sleep(Duration::from_micros(next(&mut self.random) % 8_000));
            if self.hosts.iter().flat_map(|host| host.next).any(|next| next < BATCHES) {
                self.fault()?;
            }
        }
        while self.hosts.iter().flat_map(|host| host.next).any(|next| next < BATCHES) {
            self.read_line()?;
        }
        Ok(())
    }

    fn fault(&mut self) -> Result<(), String> {
        let host = usize::try_from(next(&mut self.random)).unwrap_or_default() % HOSTS;
        match next(&mut self.random) % 3 {
            0 => {
                self.server.kill();
                self.server.restart()?;
                self.played.servers += 1;
            }
            1 => {
                // Longer than the timeout of the host, or shorter.
                let pause = Duration::from_millis(next(&mut self.random) % 2_500);
                self.hosts[host].proxy.stall(true);
                std::thread::sleep(pause);
                self.hosts[host].proxy.stall(false);
                self.played.stalls += 1;
            }
            _ => self.kill_host(host)?,
        }
        Ok(())
    }

    /// Kills a host and starts another process in its place, unless it has written everything.
    fn kill_host(&mut self, host: usize) -> Result<(), String> {
        let child = &mut self.hosts[host].child;
        child.kill().map_err(|error| error.to_string())?;
        child.wait().map_err(|error| error.to_string())?;
        // What it acknowledged before counts.
        let is_complete = |host: &Host| host.next.iter().all(|next| *next == BATCHES);
        while !self.hosts[host].has_ended {
            match self.receive.recv_timeout(MAX_SILENCE) {
                Ok((of, _, Line::End)) if of == host => self.hosts[host].has_ended = true,
                Ok(line) => self.count(line)?,
                Err(_) => return Err("the end of a host is missing".to_owned()),
            }
        }
        let of_run = &mut self.hosts[host];
        if is_complete(of_run) {
            return Ok(());
        }
        (of_run.process, of_run.has_ended) = (of_run.process + 1, false);
        let (process, next) = (of_run.process, of_run.next);
        of_run.child = spawn(&of_run.proxy, &self.prefix, host, &next, process, &self.send)?;
        self.played.hosts += 1;
        Ok(())
    }

    fn read_line(&mut self) -> Result<(), String> {
        match self.receive.recv_timeout(MAX_SILENCE) {
            Ok(line) => self.count(line),
            Err(RecvTimeoutError::Timeout) => Err("no append was acknowledged".to_owned()),
            Err(RecvTimeoutError::Disconnected) => Err("all hosts have ended".to_owned()),
        }
    }

    fn count(&mut self, (host, process, line): (usize, u64, Line)) -> Result<(), String> {
        let of_run = &mut self.hosts[host];
        match line {
            Line::Acknowledged(session, batch, skipped, repeated) => {
                if of_run.next.get(session) != Some(&batch) || !matches!(skipped, 0 | 3) {
                    return Err(format!(
                        "batch {batch} of host {host} with {skipped} skipped entries"
                    ));
                }
                of_run.next[session] += 1;
                self.played.acknowledged += 1;
                self.played.repeated += repeated;
                self.played.found += u64::from(skipped == 3);
                Ok(())
            }
            Line::End
                if process == of_run.process && of_run.next.iter().any(|it| *it < BATCHES) =>
            {
                Err(format!("host {host} has ended"))
            }
            Line::End => {
                of_run.has_ended = true;
                Ok(())
            }
            Line::Failed(error) => Err(error),
        }
    }
}

/// Starts this program as a host.
fn spawn(
    proxy: &Proxy,
    prefix: &str,
    host: usize,
    next: &[u64; SESSIONS],
    process: u64,
    send: &Sender<(usize, u64, Line)>,
) -> Result<Child, String> {
    let next: Vec<String> = next.iter().map(u64::to_string).collect();
    // Not the path of the program, which a build may have replaced.
    let child = Command::new("/proc/self/exe")
        .env(CHILD, format!("{} {prefix} {host} {}", proxy.port(), next.join(" ")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let stdout = child.stdout.take().ok_or("no stdout")?;
    let send = send.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
            let line = match numbers[..] {
                [session, batch, skipped, repeated] => {
                    let session = usize::try_from(session).unwrap_or(usize::MAX);
                    Line::Acknowledged(session, batch, skipped, repeated)
                }
                _ => Line::Failed(line),
            };
            drop(send.send((host, process, line)));
        }
        drop(send.send((host, process, Line::End)));
    });
    Ok(child)
}

/// Runs as a host, if this process was started as one. Must be called at the start of `main`.
pub(crate) fn run_as_host() -> bool {
    let Some(arguments) = std::env::var_os(CHILD) else { return false };
    let arguments = arguments.to_string_lossy().into_owned();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(write_all(&arguments)),
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = result {
        print(&error.replace(' ', "_"));
    }
    true
}

/// Prints a line at once, so that it is not lost with this process.
fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Without a reader, nothing is counted.
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

async fn write_all(arguments: &str) -> Result<(), String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [port, prefix, host, first @ ..] = &words[..] else { return Err("arguments".to_owned()) };
    let options = options(port.parse().map_err(|_| "port")?, prefix)?;
    let options = options.request_timeout(Duration::from_secs(1));
    // The server may be dead in this moment.
    let store = loop {
        match S3Store::open_with(options.clone()).await {
            Ok(store) => break Arc::new(store),
            Err(error) if error.kind() == StoreErrorKind::Unavailable => pause().await,
            Err(error) => return Err(text(error)),
        }
    };
    let mut writers = JoinSet::new();
    for (session, first) in first.iter().enumerate() {
        let first: u64 = first.parse().map_err(|_| "batch")?;
        let host: u64 = host.parse().map_err(|_| "host")?;
        writers.spawn(write(store.clone(), host, session, first));
    }
    while let Some(result) = writers.join_next().await {
        result.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn options(port: u16, prefix: &str) -> Result<S3Options, String> {
    let options = S3Options::new(&url(port, prefix)).map_err(text)?;
    Ok(options.credentials(ACCESS_KEY, SECRET_KEY))
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn text(error: StoreError) -> String {
    format!("{}: {error}", error.kind())
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

/// Appends batches. One that fails is repeated until it is acknowledged, one that is acknowledged never again.
async fn write(store: Arc<S3Store>, host: u64, session: usize, first: u64) -> Result<(), String> {
    let key = key(session)?;
    for number in first..BATCHES {
        let entries = batch(host, number).map(|text| NewEntry::new(None, text, 0));
        let entries: Vec<NewEntry> = entries.into_iter().collect::<Result<_, _>>().map_err(text)?;
        let mut repeated = 0;
        let appended = loop {
            match store.append(&key, Append::new(&entries)).await {
                Ok(appended) => break appended,
                Err(error) if error.kind() == StoreErrorKind::Unavailable => repeated += 1,
                Err(error) => return Err(text(error)),
            }
            pause().await;
        };
        print(&format!("{session} {number} {} {repeated}", appended.skipped));
    }
    Ok(())
}

/// Returns the next random number (`SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn key(session: usize) -> Result<SessionKey, String> {
    let id = format!("{session:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).map_err(text)
}

/// Returns the texts of a batch: `[host,batch,number,"…"]`.
fn batch(host: u64, batch: u64) -> [String; 3] {
    let filler = "x".repeat(ENTRY_BYTES);
    [0, 1, 2].map(|number| format!("[{host},{batch},{number},\"{filler}\"]"))
}

/// Checks that every batch is stored once, whole, and in the order of its host.
fn check(runtime: &Runtime, server: &Server, prefix: &str) -> Result<(), String> {
    let store = S3Store::open_with(options(server.port(), prefix)?);
    let store = runtime.block_on(store).map_err(text)?;
    for session in 0..SESSIONS {
        let found = runtime.block_on(load(&store, &key(session)?))?;
        let mut expected: HashMap<u64, u64> = HashMap::new();
        for entries in found.chunks(3) {
            let host = entries[0].trim_start_matches('[').split(',').next();
            let host = host.and_then(|host| host.parse().ok()).unwrap_or_default();
            let number = expected.entry(host).or_default();
            if entries != batch(host, *number) {
                let shown: Vec<&str> = entries.iter().filter_map(|entry| entry.get(..9)).collect();
                return Err(format!("found {shown:?} for batch {number} of host {host}"));
            }
            *number += 1;
        }
        if expected.len() != HOSTS || expected.values().any(|number| *number != BATCHES) {
            return Err(format!("the numbers of stored batches are {expected:?}"));
        }
    }
    Ok(())
}

async fn load(store: &S3Store, key: &SessionKey) -> Result<Vec<String>, String> {
    let (mut load, mut found) = (Load::all(), Vec::new());
    loop {
        let page = store.load(key, load).await.map_err(text)?;
        for entry in &page.entries {
            if entry.sequence.get() != load.after.get() + 1 {
                return Err(format!("{} after {}", entry.sequence, load.after));
            }
            load.after = entry.sequence;
            found.push(entry.text.to_string());
        }
        if !page.more {
            return Ok(found);
        }
    }
}
