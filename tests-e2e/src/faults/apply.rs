//! How the faults are applied, and how it goes on from there.

use std::future::{Future as _, poll_fn};
use std::task::Poll;
use std::time::Duration;

use claude_agent_kit::{PermissionMode, Session, shutdown_all};
use rustix::process::Signal;

use super::fault::Fault;
use super::gate::Order;
use super::outcome::Told;
use super::scene::{Result, SOON, Scene, in_time, told, turn_told};
use super::state::State;

/// Far more than an answer takes.
const LONG: Duration = Duration::from_secs(30);

/// More than a pipe holds and may wait to be written.
const MUCH: usize = 1024 * 1024;

/// What is done after a fault, in this order. Whatever is not done must come to its end by itself.
#[derive(Clone, Copy, Default)]
struct Course {
    /// The CLI is asked something.
    ask: bool,
    /// What is held in the state is let go.
    release: bool,
    /// Whoever waits is waited for.
    wait: bool,
    /// The host stops the session.
    stop: bool,
}

impl Course {
    /// It ends by itself.
    const ENDS: Self = Self { ask: false, release: false, wait: false, stop: false };
    const LETS_GO: Self = Self { release: true, ..Self::ENDS };
    const STOPS: Self = Self { stop: true, ..Self::ENDS };
    const WAITS: Self = Self { wait: true, ..Self::STOPS };

    /// As if nothing had been.
    fn goes_on(state: State) -> Self {
        match state {
            State::Spawning | State::Handshake => Self::STOPS,
            State::InputEnded => Self::LETS_GO,
            _ => Self { ask: state.can_ask(), release: true, ..Self::WAITS },
        }
    }
}

/// Applies the fault, and sees it through to the end.
pub(super) async fn see_through(mut scene: Scene) -> Result<super::Outcome> {
    let course = apply(&mut scene).await?;
    if course.ask {
        ask(&mut scene, LONG).await?;
    }
    if course.release {
        release(&mut scene)?;
    }
    if course.wait {
        scene.waiter_is_told().await?;
    }
    if course.stop {
        // How it ended is told by the events.
        drop(in_time("the stop", scene.session()?.stop()).await?);
    }
    scene.end().await
}

async fn apply(scene: &mut Scene) -> Result<Course> {
    match scene.fault {
        Fault::Killed => scene.signal(Signal::KILL).map(|()| Course::ENDS),
        Fault::Aborted => scene.signal(Signal::ABORT).map(|()| Course::ENDS),
        Fault::Terminated => scene.signal(Signal::TERM).map(|()| Course::ENDS),
        Fault::ClosesStdout => Ok(Course::ENDS),
        fault if fault.ends_the_cli() => Ok(Course::ENDS),
        Fault::IgnoresTerm => Ok(Course::STOPS),
        Fault::Hangs => hangs(scene).await,
        Fault::ClosesStdin => Ok(closes_stdin(scene.state)),
        Fault::BrokenPipe => ask(scene, LONG).await.map(|()| Course::ENDS),
        Fault::AnswersTwice | Fault::WrongShape if scene.state.is_before_handshake() => {
            Ok(Course::WAITS)
        }
        Fault::RuntimeGone => {
            if let Some(home) = scene.home.take() {
                home.shutdown_background();
            }
            Ok(Course::ENDS)
        }
        fault if fault.whose() == "callback" => callback(scene).await,
        fault if fault.whose() == "host" || fault == Fault::SlowReader => host(scene).await,
        _ => Ok(Course::goes_on(scene.state)),
    }
}

/// The limits of those who have one pass; the others are stopped.
async fn hangs(scene: &mut Scene) -> Result<Course> {
    if scene.state.is_before_handshake() {
        return Ok(Course::ENDS);
    }
    if scene.state.can_ask() {
        ask(scene, SOON).await?;
    }
    Ok(Course::STOPS)
}

fn closes_stdin(state: State) -> Course {
    match state {
        State::Streaming | State::Tool => Course { release: true, ..Course::WAITS },
        State::Operation => Course { ask: true, ..Course::ENDS },
        State::Idle | State::Hook | State::Permission | State::Mcp => Course::LETS_GO,
        _ => Course::goes_on(state),
    }
}

async fn callback(scene: &mut Scene) -> Result<Course> {
    match scene.fault {
        Fault::CallbackPanics => scene.gate.order(Order::Panic),
        Fault::CallbackFails => scene.gate.order(Order::Fail),
        Fault::CallbackBlocks => {
            scene.gate.order(Order::Block);
            // Nobody else is held up by it.
            ask(scene, LONG).await?;
        }
        Fault::CallbackReturnsLate => {
            scene.gate.order(Order::AnswerWhenCancelled);
            let session = scene.session()?;
            scene.ask(async move { told(&session.interrupt().await) });
            scene.last_is_told().await?;
        }
        _ => {}
    }
    Ok(Course::WAITS)
}

/// What the host does.
async fn host(scene: &mut Scene) -> Result<Course> {
    let session = scene.session()?;
    let again = session.clone();
    match scene.fault {
        Fault::SlowReader => fill(scene, session).await.map(|()| Course::STOPS),
        Fault::HandlesDropped => {
            drop((session, again));
            scene.drop_all().await.map(|()| Course::ENDS)
        }
        Fault::TurnDropped => {
            scene.drop_waiter().await?;
            let course = Course::goes_on(scene.state);
            Ok(Course { wait: false, ..course })
        }
        Fault::OperationDropped => operation_dropped(scene, &session).await,
        Fault::Stop | Fault::StopTwice => {
            scene.ask(async move { told(&session.stop().await) });
            if scene.fault == Fault::StopTwice {
                scene.ask(async move { told(&again.stop().await) });
            }
            Ok(Course::ENDS)
        }
        Fault::ShutdownAll => {
            scene.ask(async move {
                let left = shutdown_all(LONG).await;
                if left == 0 { Told::Done } else { Told::Dropped }
            });
            Ok(Course::ENDS)
        }
        Fault::EndInput => {
            scene.ask(async move { told(&session.end_input().await) });
            scene.last_is_told().await?;
            Ok(if scene.state.has_callback() { Course::ENDS } else { Course::LETS_GO })
        }
        _ => interrupt(scene, session).await,
    }
}

async fn operation_dropped(scene: &mut Scene, session: &Session) -> Result<Course> {
    let course = Course::goes_on(scene.state);
    if scene.state == State::Operation {
        scene.drop_waiter().await?;
        return Ok(Course { wait: false, ..course });
    }
    let mut asking = Box::pin(session.mcp().status());
    let at_once = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_ready())).await;
    if at_once {
        return Err("the operation was answered at once".to_owned());
    }
    drop(asking);
    Ok(course)
}

async fn interrupt(scene: &mut Scene, session: Session) -> Result<Course> {
    scene.ask(async move { told(&session.interrupt().await) });
    if scene.state.is_before_handshake() {
        return Ok(Course::STOPS);
    }
    scene.last_is_told().await?;
    Ok(match scene.state {
        State::Idle | State::Stopping | State::InputEnded => Course::goes_on(scene.state),
        _ => Course::WAITS,
    })
}

/// Sends until nothing more can be written.
async fn fill(scene: &mut Scene, session: Session) -> Result<()> {
    let text = "x".repeat(MUCH);
    // Its turn is let go; only the next one counts.
    drop(in_time("room for a message", session.send(text.clone())).await?);
    scene.ask(async move { told(&session.send(text).await) });
    // It must not be sent: as long as it is polled once, the stop finds it waiting.
    tokio::task::yield_now().await;
    Ok(())
}

/// Asks the CLI for something small.
async fn ask(scene: &mut Scene, limit: Duration) -> Result<()> {
    let session = scene.session()?.with_timeout(limit);
    scene.ask(async move { told(&session.set_permission_mode(PermissionMode::Default).await) });
    scene.last_is_told().await
}

/// Lets go what is held in the state.
fn release(scene: &mut Scene) -> Result<()> {
    match scene.state {
        State::Streaming | State::InputEnded => scene.harness.api().release_held(),
        State::Tool => scene.let_tool_go()?,
        State::Hook | State::Permission | State::Mcp => scene.gate.order(Order::Answer),
        State::Idle if scene.fault != Fault::EndInput => {
            let session = scene.session()?;
            scene.waiter = Some(tokio::spawn(async move {
                match session.send("Go.").await {
                    Ok(turn) => turn_told(&turn.finish().await),
                    Err(error) => Told::Error(error.kind()),
                }
            }));
        }
        _ => {}
    }
    Ok(())
}
