//! Recordings of sessions on the simulated and on the real CLI, replayed to the SDK.

use std::future::ready;
use std::sync::{Arc, Mutex};

use claude_agent_kit::Exit;
use claude_agent_kit::hook::{HookResponse, PostToolUse, PreToolUse};
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::settings::McpDelivery;
use claude_agent_kit::testing::{Mismatch, Recorder, Recording, Reply, Script};
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory, Launch};
use claude_agent_kit::{Options, Permission, Session, Tool, ToolServer};
use claude_agent_testkit::player::Player;
use claude_agent_testkit::recording::EntryKind;
use serde::Deserialize;
use serde_json::json;
use tests_e2e::harness::Harness;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use crate::helpers::calls;
use crate::support::{in_time, real, run};

const PIPE: usize = 64 * 1024;

/// A pseudorandom number generator with a seed.
#[derive(Debug, Clone, Copy)]
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Yields to other tasks, a number of times that depends on the seed.
    async fn yield_randomly(&mut self) {
        for _ in 0..self.below(12) {
            tokio::task::yield_now().await;
        }
    }
}

/// The outcome of a replay.
type ReplayOutcome = Arc<Mutex<Option<Result<claude_agent_testkit::recording::Exit, Mismatch>>>>;

/// Returns options that connect to a player. Both directions are split into chunks and delayed,
/// depending on the seed.
fn replay_options(player: Player, seed: u64) -> (Options, ReplayOutcome) {
    let outcome = ReplayOutcome::default();
    let shared = outcome.clone();
    let connect = move |launch: Launch| {
        let mut cli = player.clone().arguments(launch.args()).start();
        let (stdin, input) = duplex(PIPE);
        let (stdout, output) = duplex(PIPE);
        tokio::spawn(copy_with_delays(input, cli.stdin.take().unwrap(), Rng(seed)));
        let from_cli =
            tokio::spawn(copy_with_delays(cli.stdout.take().unwrap(), output, Rng(!seed)));
        // Taken here because waiting for the player closes the streams that it still holds.
        let outcome = shared.clone();
        let child = ChildFuture::new(async move {
            let ended = cli.wait().await;
            from_cli.await.unwrap();
            outcome.lock().unwrap().insert(ended).clone().map_or(Exit::Code(1), Exit::from)
        });
        ready(Ok(Connection::new(stdin, stdout, child)))
    };
    // The recorded CLI got the servers in the handshake, and this transport does not tell its version.
    let options = Options::new().mcp_delivery(McpDelivery::Handshake);
    (options.transport(InMemory::new(connect)), outcome)
}

async fn copy_with_delays(mut from: DuplexStream, mut to: DuplexStream, mut rng: Rng) {
    let mut chunk = vec![0; PIPE];
    loop {
        let most = 1 + usize::try_from(rng.below(8192)).unwrap();
        let Ok(count @ 1..) = from.read(&mut chunk[..most]).await else { break };
        rng.yield_randomly().await;
        if to.write_all(&chunk[..count]).await.is_err() {
            break;
        }
    }
}

/// Replays a recording strictly and leniently with many seeds, with the same host each time.
async fn replay_with_seeds(recording: &Recording, runs: u64) {
    let recording = Recording::parse(&recording.to_bytes()).unwrap();
    for seed in 0..runs {
        for player in
            [Player::new(recording.clone()).strict(), Player::new(recording.clone()).lenient()]
        {
            let (options, outcome) = replay_options(player, seed);
            let seen = host(options, Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))).await;
            let outcome = outcome.lock().unwrap().clone();
            assert_eq!(outcome, Some(Ok(recording.exit().unwrap())), "seed {seed}");
            assert_eq!(seen, ["Looked.", "Both."], "seed {seed}");
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    name: String,
}

/// Returns a model that makes four calls at once and then runs two commands that need permission.
fn model() -> Script {
    let look = |reply: Reply, name: &str| reply.and_tool("mcp__eyes__look", json!({"name": name}));
    Script::new()
        .when(
            "look around",
            [
                ["north", "east", "south", "west"].into_iter().fold(Reply::new(), look),
                Reply::text("Looked."),
            ],
        )
        .when("run both", [calls(&["echo one", "echo two"]), Reply::text("Both.")])
}

/// Runs a host that uses hooks, tools and permissions at once and stops as soon as it has its last
/// result.
async fn host(options: Options, rng: Rng) -> Vec<String> {
    let rng = Arc::new(Mutex::new(rng));
    let yield_randomly = move || {
        let mut mine = Rng(rng.lock().unwrap().below(u64::MAX));
        async move { mine.yield_randomly().await }
    };
    let (in_tool, before, after, in_permission) =
        (yield_randomly.clone(), yield_randomly.clone(), yield_randomly.clone(), yield_randomly);
    let look = Tool::new("look", "Looks at a place", move |place: Place| {
        let yield_randomly = in_tool();
        async move {
            yield_randomly.await;
            Ok(format!("{} is empty", place.name))
        }
    });
    let options = options
        .mcp("eyes", ToolServer::new().add(look.read_only()))
        .allowed_tools(["mcp__eyes"])
        .on(PreToolUse, move |_, _| {
            let yield_randomly = before();
            async move {
                yield_randomly.await;
                HookResponse::new()
            }
        })
        .on(PostToolUse, move |_, _| {
            let yield_randomly = after();
            async move {
                yield_randomly.await;
                HookResponse::new()
            }
        })
        .can_use_tool(move |_, _| {
            let yield_randomly = in_permission();
            async move {
                yield_randomly.await;
                Permission::allow()
            }
        });
    let session = in_time(Session::start(options)).await.unwrap();
    let mut texts = Vec::new();
    for prompt in ["look around", "run both"] {
        let turn = session.send(prompt).await.unwrap();
        texts.push(in_time(turn.finish()).await.unwrap().text);
    }
    in_time(session.stop()).await.unwrap();
    texts
}

/// Runs the host once with these options and returns the recording.
async fn record(options: Options) -> Recording {
    let recorder = Recorder::new();
    host(options.recorded_to(&recorder), Rng(7)).await;
    recorder.recordings().unwrap().remove(0)
}

/// Returns how many interrupts the host sent.
fn interrupts(recording: &Recording) -> usize {
    let sent = recording.sent().map(|line| String::from_utf8_lossy(line).into_owned());
    sent.filter(|line| line.contains(r#""subtype":"interrupt""#)).count()
}

#[test]
fn session_on_the_simulated_cli_can_be_replayed() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new().cwd(directory.path()).simulated(model());
        let recording = record(options).await;
        assert_eq!(interrupts(&recording), 0);
        replay_with_seeds(&recording, 50).await;
    });
}

#[test]
fn session_on_the_real_cli_is_replayed_strictly_with_any_timing() {
    run(async {
        let harness = Harness::real(model(), real()).await.unwrap();
        let recording = record(harness.options()).await;
        assert_eq!(interrupts(&recording), 0, "no tool runs after the host has stopped");
        let ends = recording.entries.iter().rev().map(|entry| &entry.kind);
        let ends: Vec<_> =
            ends.take_while(|what| !matches!(what, EntryKind::Received(_))).collect();
        assert!(
            matches!(
                ends[..],
                [EntryKind::Exited(_), EntryKind::StdoutClosed, EntryKind::StdinClosed]
            ),
            "{ends:?}"
        );
        replay_with_seeds(&recording, 50).await;
    });
}
