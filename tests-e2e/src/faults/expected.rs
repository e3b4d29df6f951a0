//! The expected outcome of each fault in each state. Written by hand, not recorded.

use claude_agent_kit::{ErrorKind, WarningCode};

use super::fault::Fault;
use super::outcome::{CellOutcome, Resolution, SessionEnd};
use super::state::State;

const CLOSED: Resolution = Resolution::Error(ErrorKind::TransportClosed);
const STOPPED: Resolution = Resolution::Error(ErrorKind::SessionStopped);
const INPUT_ENDED: Resolution = Resolution::Error(ErrorKind::InputEnded);
const FAILED: SessionEnd = SessionEnd::Failed(ErrorKind::ProcessFailed);

/// Returns the expected outcome of a fault in a state.
///
/// # Errors
/// Returns the reason when the fault cannot occur in the state.
pub fn expected(state: State, fault: Fault) -> Result<CellOutcome, &'static str> {
    if let Some(reason) = cannot_be(state, fault) {
        return Err(reason);
    }
    Ok(match fault {
        Fault::ExitSuccess | Fault::Grandchild | Fault::DataAtExit => good_exit(state),
        Fault::ExitFailure
        | Fault::HalfLineExitFailure
        | Fault::Killed
        | Fault::Aborted
        | Fault::Terminated
        | Fault::ClosesStdout => bad_exit(state),
        Fault::HalfLineExitSuccess => {
            good_exit(state).with_warnings(&[WarningCode::IncompleteLastLine])
        }
        Fault::FloodsStderr
        | Fault::FloodsMessages
        | Fault::UnsolicitedResponse
        | Fault::CurrentThread => goes_on(state),
        Fault::NotJson | Fault::NotUtf8 => goes_on(state).with_warnings(&[WarningCode::Malformed]),
        Fault::LongLine => goes_on(state).with_warnings(&[WarningCode::OversizedLine]),
        Fault::UnknownRequest => strange_request(state),
        Fault::IgnoresTerm => deaf(state),
        Fault::Hangs => hangs(state),
        Fault::ClosesStdin => closed_stdin(state),
        Fault::BrokenPipe => bad_exit(state).with_requests(&[CLOSED]),
        Fault::SlowReader => deaf(state).with_requests(&[STOPPED]),
        Fault::DuplicateResponse => changed_answer(state, Resolution::Done),
        Fault::UndecodableResponse => {
            changed_answer(state, Resolution::Error(ErrorKind::UndecodableResponse))
        }
        Fault::HandlesDropped => dropped(state),
        Fault::TurnDropped | Fault::OperationDropped => future_dropped(state, fault),
        Fault::Stop | Fault::ShutdownAll => stopped(state).with_requests(&[Resolution::Done]),
        Fault::StopTwice => stopped(state).with_requests(&[Resolution::Done, Resolution::Done]),
        Fault::EndInput => input_ended(state),
        Fault::HostKilled => CellOutcome::new(SessionEnd::Unobserved, Resolution::NoWaiter),
        Fault::Interrupt => interrupted(state),
        // A failing tool reports its error to the model itself.
        Fault::CallbackFails if state == State::Mcp => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done)
        }
        Fault::CallbackPanics | Fault::CallbackFails => {
            failing_callback(WarningCode::CallbackFailed)
        }
        // The timeout of a tool belongs to its server and not to a failure rule.
        Fault::CallbackNeverReturns if state == State::Mcp => {
            failing_callback(WarningCode::CallbackFailed)
        }
        Fault::CallbackNeverReturns => failing_callback(WarningCode::CallbackTimedOut),
        Fault::CallbackReturnsLate => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Interrupted)
                .with_requests(&[Resolution::Done])
        }
        Fault::CallbackBlocks => goes_on(state).with_warnings(&[WarningCode::CallbackBlocked]),
        Fault::RuntimeGone => runtime_gone(state),
    })
}

/// Returns why a fault cannot occur in a state.
fn cannot_be(state: State, fault: Fault) -> Option<&'static str> {
    match fault {
        Fault::CallbackPanics
        | Fault::CallbackFails
        | Fault::CallbackNeverReturns
        | Fault::CallbackReturnsLate
        | Fault::CallbackBlocks
            if !state.has_callback() =>
        {
            Some("no callback runs")
        }
        Fault::TurnDropped if !state.has_turn() => Some("no turn is running"),
        Fault::BrokenPipe | Fault::SlowReader if state.is_before_handshake() => {
            Some("nothing is written before the response to the handshake")
        }
        Fault::ClosesStdin if state == State::Spawning => {
            Some("whether the handshake was written earlier is a race")
        }
        Fault::ClosesStdin if matches!(state, State::Stopping | State::InputEnded) => {
            Some("stdin is already closed")
        }
        Fault::DuplicateResponse
        | Fault::UndecodableResponse
        | Fault::BrokenPipe
        | Fault::SlowReader
        | Fault::OperationDropped
            if matches!(state, State::Stopping | State::InputEnded) =>
        {
            Some("no operation can be sent anymore")
        }
        _ => None,
    }
}

/// Returns the resolutions of requests that a stop closes: the operation in flight.
fn along(state: State) -> &'static [Resolution] {
    if state == State::Stopping { &[STOPPED] } else { &[] }
}

/// The session survives: the pending future completes, and the host stops the session.
fn goes_on(state: State) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake => CellOutcome::new(SessionEnd::Stopped, STOPPED),
        State::Stopping => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_requests(along(state))
        }
        State::InputEnded => CellOutcome::new(SessionEnd::Completed, Resolution::Done),
        _ => CellOutcome::new(SessionEnd::Stopped, Resolution::Done)
            .with_requests(&[Resolution::Done]),
    }
}

/// The process exits unexpectedly.
fn bad_exit(state: State) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake => {
            let kind = ErrorKind::ExitedDuringInit;
            CellOutcome::new(SessionEnd::Failed(kind), Resolution::Error(kind))
        }
        State::Idle => CellOutcome::new(FAILED, Resolution::NoWaiter),
        State::Stopping => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_requests(along(state))
        }
        _ => CellOutcome::new(FAILED, CLOSED),
    }
}

/// Exit code 0 is expected only after stdin was closed; the turn still has no result.
fn good_exit(state: State) -> CellOutcome {
    match state {
        State::InputEnded => CellOutcome::new(SessionEnd::Completed, INPUT_ENDED),
        _ => bad_exit(state),
    }
}

/// The host stops a CLI that does not react.
fn deaf(state: State) -> CellOutcome {
    match state {
        State::Idle => CellOutcome::new(SessionEnd::Stopped, Resolution::NoWaiter),
        State::Stopping => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_requests(along(state))
        }
        _ => CellOutcome::new(SessionEnd::Stopped, STOPPED),
    }
}

/// Timeouts expire: that of the handshake, or that of an operation. A turn has none, so the host stops
/// the session.
fn hangs(state: State) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake => handshake_times_out(),
        _ if state.can_send() => {
            deaf(state).with_requests(&[Resolution::Error(ErrorKind::ControlTimeout)])
        }
        _ => deaf(state),
    }
}

fn handshake_times_out() -> CellOutcome {
    let kind = ErrorKind::InitializeTimeout;
    CellOutcome::new(SessionEnd::Failed(kind), Resolution::Error(kind))
}

/// Work that needs no further input completes; the rest fails when the host writes.
fn closed_stdin(state: State) -> CellOutcome {
    match state {
        State::Streaming | State::Tool => CellOutcome::new(SessionEnd::Stopped, Resolution::Done),
        State::Idle | State::Hook | State::Permission | State::Mcp => {
            CellOutcome::new(FAILED, CLOSED)
        }
        State::Operation => CellOutcome::new(FAILED, CLOSED).with_requests(&[CLOSED]),
        _ => goes_on(state),
    }
}

/// Only the first response counts, and any payload is a valid response to the handshake.
fn changed_answer(state: State, answer: Resolution) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done)
        }
        _ => CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_requests(&[answer]),
    }
}

/// The host responds with an error, as long as it can write.
fn strange_request(state: State) -> CellOutcome {
    match state {
        State::Stopping | State::InputEnded => goes_on(state),
        _ => goes_on(state).with_warnings(&[WarningCode::UnansweredRequest]),
    }
}

fn dropped(state: State) -> CellOutcome {
    let waiter = if state == State::Idle { Resolution::NoWaiter } else { Resolution::Dropped };
    CellOutcome::new(SessionEnd::Stopped, waiter).with_requests(along(state))
}

/// Dropping one future does not affect the others.
fn future_dropped(state: State, fault: Fault) -> CellOutcome {
    let others = goes_on(state);
    if state.has_turn() && fault == Fault::TurnDropped || state == State::Operation {
        return CellOutcome { waiter: Resolution::Dropped, ..others };
    }
    others
}

/// A running turn is interrupted first and therefore has a result.
fn stopped(state: State) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake | State::Operation => {
            CellOutcome::new(SessionEnd::Stopped, STOPPED)
        }
        State::Idle => CellOutcome::new(SessionEnd::Stopped, Resolution::NoWaiter),
        State::Stopping => {
            CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_requests(along(state))
        }
        // The turn cannot be interrupted anymore, so the process is terminated.
        State::InputEnded => CellOutcome::new(SessionEnd::Stopped, STOPPED),
        _ => CellOutcome::new(SessionEnd::Stopped, Resolution::Interrupted),
    }
}

/// The running turn completes; callbacks are cancelled, and the CLI continues without their responses.
fn input_ended(state: State) -> CellOutcome {
    match state {
        State::Spawning | State::Handshake => {
            handshake_times_out().with_requests(&[Resolution::Done])
        }
        State::Idle => CellOutcome::new(SessionEnd::Completed, Resolution::NoWaiter)
            .with_requests(&[Resolution::Done]),
        State::Stopping => goes_on(state).with_requests(&[STOPPED]),
        _ => CellOutcome::new(SessionEnd::Completed, Resolution::Done)
            .with_requests(&[Resolution::Done]),
    }
}

fn interrupted(state: State) -> CellOutcome {
    match state {
        // The interrupt waits for the handshake, or is rejected.
        State::Spawning | State::Handshake | State::Stopping => {
            goes_on(state).with_requests(&[STOPPED])
        }
        State::Idle => goes_on(state).with_requests(&[Resolution::Done]),
        State::Operation => CellOutcome::new(SessionEnd::Stopped, Resolution::Done)
            .with_requests(&[Resolution::Done]),
        State::InputEnded => goes_on(state).with_requests(&[INPUT_ENDED]),
        _ => CellOutcome::new(SessionEnd::Stopped, Resolution::Interrupted)
            .with_requests(&[Resolution::Done]),
    }
}

/// The failure rule supplies the response, and the turn continues.
fn failing_callback(warning: WarningCode) -> CellOutcome {
    CellOutcome::new(SessionEnd::Stopped, Resolution::Done).with_warnings(&[warning])
}

fn runtime_gone(state: State) -> CellOutcome {
    let gone = CellOutcome::new(
        SessionEnd::Failed(ErrorKind::RuntimeGone),
        Resolution::Error(ErrorKind::RuntimeGone),
    );
    match state {
        State::Idle => {
            CellOutcome::new(SessionEnd::Failed(ErrorKind::RuntimeGone), Resolution::NoWaiter)
        }
        State::Stopping => gone.with_requests(along(state)),
        // The runtime drops the callback as well, before or after the session.
        State::Hook | State::Permission | State::Mcp => {
            gone.with_optional_warning(WarningCode::CallbackFailed)
        }
        _ => gone,
    }
}
