//! Applies the faults and drives the session to its end.

use std::future::{Future as _, poll_fn};
use std::task::Poll;
use std::time::Duration;

use claude_agent_kit::{PermissionMode, Session, shutdown_all};
use rustix::process::Signal;

use super::callback_gate::CallbackAction;
use super::cell::{FaultCell, Result, SHORT_TIMEOUT, in_time, resolution, turn_resolution};
use super::fault::Fault;
use super::outcome::Resolution;
use super::state::State;

/// Far longer than any response takes.
const LONG: Duration = Duration::from_secs(30);

/// More bytes than the pipe and the write buffer hold together.
const MUCH: usize = 1024 * 1024;

/// The steps after a fault, in this order. Whatever is not driven by a step must end on its own.
#[derive(Clone, Copy, Default)]
struct NextSteps {
    /// Sends an operation to the CLI.
    operation: bool,
    /// Releases what the state holds back.
    release: bool,
    /// Waits for the pending future of the state.
    wait: bool,
    /// Stops the session from the host.
    stop: bool,
}

impl NextSteps {
    /// No step: the session ends on its own.
    const ENDS: Self = Self { operation: false, release: false, wait: false, stop: false };
    const LETS_GO: Self = Self { release: true, ..Self::ENDS };
    const STOPS: Self = Self { stop: true, ..Self::ENDS };
    const WAITS: Self = Self { wait: true, ..Self::STOPS };

    /// The steps of a session that survives the fault.
    fn goes_on(state: State) -> Self {
        match state {
            State::Spawning | State::Handshake => Self::STOPS,
            State::InputEnded => Self::LETS_GO,
            _ => Self { operation: state.can_send(), release: true, ..Self::WAITS },
        }
    }
}

/// Applies the fault and drives the cell until the session has ended.
pub(super) async fn run_to_end(mut cell: FaultCell) -> Result<super::CellOutcome> {
    let steps = apply(&mut cell).await?;
    if steps.operation {
        send_operation(&mut cell, LONG).await?;
    }
    if steps.release {
        release(&mut cell)?;
    }
    if steps.wait {
        cell.wait_for_waiter().await?;
    }
    if steps.stop {
        // The events report how the session ended.
        drop(in_time("the stop", cell.session()?.stop()).await?);
    }
    cell.end().await
}

async fn apply(cell: &mut FaultCell) -> Result<NextSteps> {
    match cell.fault {
        Fault::Killed => cell.signal(Signal::KILL).map(|()| NextSteps::ENDS),
        Fault::Aborted => cell.signal(Signal::ABORT).map(|()| NextSteps::ENDS),
        Fault::Terminated => cell.signal(Signal::TERM).map(|()| NextSteps::ENDS),
        Fault::ClosesStdout => Ok(NextSteps::ENDS),
        fault if fault.ends_the_cli() => Ok(NextSteps::ENDS),
        Fault::IgnoresTerm => Ok(NextSteps::STOPS),
        Fault::Hangs => hangs(cell).await,
        Fault::ClosesStdin => Ok(closes_stdin(cell.state)),
        Fault::BrokenPipe => send_operation(cell, LONG).await.map(|()| NextSteps::ENDS),
        Fault::DuplicateResponse | Fault::UndecodableResponse
            if cell.state.is_before_handshake() =>
        {
            Ok(NextSteps::WAITS)
        }
        Fault::RuntimeGone => {
            if let Some(session_runtime) = cell.session_runtime.take() {
                session_runtime.shutdown_background();
            }
            Ok(NextSteps::ENDS)
        }
        fault if fault.origin() == "callback" => callback(cell).await,
        fault if fault.origin() == "host" || fault == Fault::SlowReader => host(cell).await,
        _ => Ok(NextSteps::goes_on(cell.state)),
    }
}

/// Lets the timeouts expire where there are some, and stops the session otherwise.
async fn hangs(cell: &mut FaultCell) -> Result<NextSteps> {
    if cell.state.is_before_handshake() {
        return Ok(NextSteps::ENDS);
    }
    if cell.state.can_send() {
        send_operation(cell, SHORT_TIMEOUT).await?;
    }
    Ok(NextSteps::STOPS)
}

fn closes_stdin(state: State) -> NextSteps {
    match state {
        State::Streaming | State::Tool => NextSteps { release: true, ..NextSteps::WAITS },
        State::Operation => NextSteps { operation: true, ..NextSteps::ENDS },
        State::Idle | State::Hook | State::Permission | State::Mcp => NextSteps::LETS_GO,
        _ => NextSteps::goes_on(state),
    }
}

async fn callback(cell: &mut FaultCell) -> Result<NextSteps> {
    match cell.fault {
        Fault::CallbackPanics => cell.gate.order(CallbackAction::Panic),
        Fault::CallbackFails => cell.gate.order(CallbackAction::Fail),
        Fault::CallbackBlocks => {
            cell.gate.order(CallbackAction::Block);
            // A blocked callback must not delay other operations.
            send_operation(cell, LONG).await?;
        }
        Fault::CallbackReturnsLate => {
            cell.gate.order(CallbackAction::AnswerWhenCancelled);
            let session = cell.session()?;
            cell.spawn_request(async move { resolution(&session.interrupt().await) });
            cell.wait_for_last_request().await?;
        }
        _ => {}
    }
    Ok(NextSteps::WAITS)
}

/// Applies a fault that is caused by the host.
async fn host(cell: &mut FaultCell) -> Result<NextSteps> {
    let session = cell.session()?;
    let again = session.clone();
    match cell.fault {
        Fault::SlowReader => fill(cell, session).await.map(|()| NextSteps::STOPS),
        Fault::HandlesDropped => {
            drop((session, again));
            cell.drop_all().await.map(|()| NextSteps::ENDS)
        }
        Fault::TurnDropped => {
            cell.drop_waiter().await?;
            let steps = NextSteps::goes_on(cell.state);
            Ok(NextSteps { wait: false, ..steps })
        }
        Fault::OperationDropped => operation_dropped(cell, &session).await,
        Fault::Stop | Fault::StopTwice => {
            cell.spawn_request(async move { resolution(&session.stop().await) });
            if cell.fault == Fault::StopTwice {
                cell.spawn_request(async move { resolution(&again.stop().await) });
            }
            Ok(NextSteps::ENDS)
        }
        Fault::ShutdownAll => {
            cell.spawn_request(async move {
                let left = shutdown_all(LONG).await;
                if left == 0 { Resolution::Done } else { Resolution::Dropped }
            });
            Ok(NextSteps::ENDS)
        }
        Fault::EndInput => {
            cell.spawn_request(async move { resolution(&session.end_input().await) });
            cell.wait_for_last_request().await?;
            Ok(if cell.state.has_callback() { NextSteps::ENDS } else { NextSteps::LETS_GO })
        }
        _ => interrupt(cell, session).await,
    }
}

async fn operation_dropped(cell: &mut FaultCell, session: &Session) -> Result<NextSteps> {
    let steps = NextSteps::goes_on(cell.state);
    if cell.state == State::Operation {
        cell.drop_waiter().await?;
        return Ok(NextSteps { wait: false, ..steps });
    }
    let mut asking = Box::pin(session.mcp().status());
    let at_once = poll_fn(|context| Poll::Ready(asking.as_mut().poll(context).is_ready())).await;
    if at_once {
        return Err("the operation completed on its first poll".to_owned());
    }
    drop(asking);
    Ok(steps)
}

async fn interrupt(cell: &mut FaultCell, session: Session) -> Result<NextSteps> {
    cell.spawn_request(async move { resolution(&session.interrupt().await) });
    if cell.state.is_before_handshake() {
        return Ok(NextSteps::STOPS);
    }
    cell.wait_for_last_request().await?;
    Ok(match cell.state {
        State::Idle | State::Stopping | State::InputEnded => NextSteps::goes_on(cell.state),
        _ => NextSteps::WAITS,
    })
}

/// Sends messages until the write buffer is full.
async fn fill(cell: &mut FaultCell, session: Session) -> Result<()> {
    let text = "x".repeat(MUCH);
    // The first turn is dropped; only the second message matters.
    drop(in_time("capacity for a message", session.send(text.clone())).await?);
    cell.spawn_request(async move { resolution(&session.send(text).await) });
    // The second message must stay queued: one poll is enough for `stop` to find it pending.
    tokio::task::yield_now().await;
    Ok(())
}

/// Sends a small operation to the CLI.
async fn send_operation(cell: &mut FaultCell, limit: Duration) -> Result<()> {
    let session = cell.session()?.with_timeout(limit);
    cell.spawn_request(async move {
        resolution(&session.set_permission_mode(PermissionMode::Default).await)
    });
    cell.wait_for_last_request().await
}

/// Releases what the state holds back.
fn release(cell: &mut FaultCell) -> Result<()> {
    match cell.state {
        State::Streaming | State::InputEnded => cell.harness.api().release_held(),
        State::Tool => cell.release_tool()?,
        State::Hook | State::Permission | State::Mcp => cell.gate.order(CallbackAction::Answer),
        State::Idle if cell.fault != Fault::EndInput => {
            let session = cell.session()?;
            cell.waiter = Some(tokio::spawn(async move {
                match session.send("Go.").await {
                    Ok(turn) => turn_resolution(&turn.finish().await),
                    Err(error) => Resolution::Error(error.kind()),
                }
            }));
        }
        _ => {}
    }
    Ok(())
}
