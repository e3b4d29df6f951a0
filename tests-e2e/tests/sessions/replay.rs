//! Recordings of sessions, replayed to the SDK: of the simulated and of the real CLI.

use std::future::ready;
use std::sync::{Arc, Mutex};

use claude_agent_kit::hook::{HookResponse, PostToolUse, PreToolUse};
use claude_agent_kit::schemars::{self, JsonSchema};
use claude_agent_kit::testing::{Mismatch, Recorder, Recording, Reply, Script};
use claude_agent_kit::transport::{ChildFuture, Connection, Exit, InMemory, Launch};
use claude_agent_kit::{Options, Permission, Session, Tool, ToolServer};
use claude_agent_testkit::player::Player;
use claude_agent_testkit::recording::EntryKind;
use serde::Deserialize;
use serde_json::json;
use tests_e2e::stage::Stage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use crate::play::calls;
use crate::support::{in_time, real, run};

const PIPE: usize = 64 * 1024;

/// Numbers that follow from a seed.
#[derive(Debug, Clone, Copy)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    /// Lets others run for a while that follows from the seed.
    async fn dawdle(&mut self) {
        for _ in 0..self.roll(12) {
            tokio::task::yield_now().await;
        }
    }
}

// --- replaying --------------------------------------------------------------------------------

/// What became of a replay.
type Verdict = Arc<Mutex<Option<Result<claude_agent_testkit::recording::Exit, Mismatch>>>>;

/// Options that reach a player. What goes either way is cut anywhere and delayed, as the seed says.
fn replayed(player: Player, seed: u64) -> (Options, Verdict) {
    let verdict = Verdict::default();
    let heard = verdict.clone();
    let connect = move |launch: Launch| {
        let mut cli = player.clone().arguments(launch.args()).start();
        let (stdin, input) = duplex(PIPE);
        let (stdout, output) = duplex(PIPE);
        tokio::spawn(delayed(input, cli.stdin.take().unwrap(), Dice(seed)));
        let from_cli = tokio::spawn(delayed(cli.stdout.take().unwrap(), output, Dice(!seed)));
        // Taken here: whoever waits for the player closes what is still in it.
        let heard = heard.clone();
        let child = ChildFuture::new(async move {
            let ended = cli.wait().await;
            from_cli.await.unwrap();
            heard.lock().unwrap().insert(ended).clone().map_or(Exit::Code(1), Exit::from)
        });
        ready(Ok(Connection::new(stdin, stdout, child)))
    };
    (Options::new().transport(InMemory::new(connect)), verdict)
}

async fn delayed(mut from: DuplexStream, mut to: DuplexStream, mut dice: Dice) {
    let mut chunk = vec![0; PIPE];
    loop {
        let most = 1 + usize::try_from(dice.roll(8192)).unwrap();
        let Ok(count @ 1..) = from.read(&mut chunk[..most]).await else { break };
        dice.dawdle().await;
        if to.write_all(&chunk[..count]).await.is_err() {
            break;
        }
    }
}

/// Replays a recording strictly with many seeds, and plays the same host each time.
async fn replay_often(recording: &Recording, runs: u64) {
    let recording = Recording::parse(&recording.to_bytes()).unwrap();
    for seed in 0..runs {
        for player in
            [Player::new(recording.clone()).strict(), Player::new(recording.clone()).lenient()]
        {
            let (options, verdict) = replayed(player, seed);
            let seen = host(options, Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))).await;
            let verdict = verdict.lock().unwrap().clone();
            assert_eq!(verdict, Some(Ok(recording.exit().unwrap())), "seed {seed}");
            assert_eq!(seen, ["Looked.", "Both."], "seed {seed}");
        }
    }
}

// --- what is played ---------------------------------------------------------------------------

#[derive(Debug, Deserialize, JsonSchema)]
struct Place {
    name: String,
}

/// Four calls at once, then two commands that need permission.
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

/// A host that does several things at once and stops as soon as it has its last result.
async fn host(options: Options, dice: Dice) -> Vec<String> {
    let dice = Arc::new(Mutex::new(dice));
    let dawdle = move || {
        let mut mine = Dice(dice.lock().unwrap().roll(u64::MAX));
        async move { mine.dawdle().await }
    };
    let (in_tool, before, after, asked) = (dawdle.clone(), dawdle.clone(), dawdle.clone(), dawdle);
    let look = Tool::new("look", "Looks at a place", move |place: Place| {
        let dawdle = in_tool();
        async move {
            dawdle.await;
            Ok(format!("{} is empty", place.name))
        }
    });
    let options = options
        .mcp("eyes", ToolServer::new().add(look.read_only()))
        .allowed_tools(["mcp__eyes"])
        .on(PreToolUse, move |_, _| {
            let dawdle = before();
            async move {
                dawdle.await;
                HookResponse::new()
            }
        })
        .on(PostToolUse, move |_, _| {
            let dawdle = after();
            async move {
                dawdle.await;
                HookResponse::new()
            }
        })
        .can_use_tool(move |_, _| {
            let dawdle = asked();
            async move {
                dawdle.await;
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

/// Plays the host once on these options and returns the recording.
async fn recorded(options: Options) -> Recording {
    let recorder = Recorder::new();
    host(options.recorded_to(&recorder), Dice(7)).await;
    recorder.recordings().unwrap().remove(0)
}

/// How many interrupts the host sent.
fn interrupts(recording: &Recording) -> usize {
    let sent = recording.sent().map(|line| String::from_utf8_lossy(line).into_owned());
    sent.filter(|line| line.contains(r#""subtype":"interrupt""#)).count()
}

#[test]
fn a_session_of_the_simulated_cli_in_memory_can_be_replayed() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new().cwd(directory.path()).simulated(model());
        let recording = recorded(options).await;
        assert_eq!(interrupts(&recording), 0);
        replay_often(&recording, 50).await;
    });
}

#[test]
fn a_session_of_the_real_cli_is_replayed_strictly_whatever_the_timing() {
    run(async {
        let stage = Stage::real(model(), real()).await.unwrap();
        let recording = recorded(stage.options()).await;
        assert_eq!(interrupts(&recording), 0, "nothing runs any more when the host stops");
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
        replay_often(&recording, 50).await;
    });
}
