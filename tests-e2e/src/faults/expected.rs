//! What should come of each fault in each state. Written down, not found out.

use claude_agent_kit::{ErrorKind, WarningCode};

use super::fault::Fault;
use super::outcome::{End, Outcome, Told};
use super::state::State;

const CLOSED: Told = Told::Error(ErrorKind::TransportClosed);
const STOPPED: Told = Told::Error(ErrorKind::SessionStopped);
const INPUT_ENDED: Told = Told::Error(ErrorKind::InputEnded);
const FAILED: End = End::Failed(ErrorKind::ProcessFailed);

/// What should come of a fault in a state, or why there is no such thing.
///
/// # Errors
/// The reason for which the two cannot meet.
pub fn expected(state: State, fault: Fault) -> Result<Outcome, &'static str> {
    if let Some(reason) = cannot_be(state, fault) {
        return Err(reason);
    }
    Ok(match fault {
        Fault::ExitGood | Fault::Grandchild | Fault::DataAtExit => good_exit(state),
        Fault::ExitBad
        | Fault::HalfLineExitBad
        | Fault::Killed
        | Fault::Aborted
        | Fault::Terminated
        | Fault::ClosesStdout => bad_exit(state),
        Fault::HalfLineExitGood => good_exit(state).warned(&[WarningCode::IncompleteLastLine]),
        Fault::FloodsStderr
        | Fault::FloodsMessages
        | Fault::StrangeAnswer
        | Fault::CurrentThread => goes_on(state),
        Fault::NoJson | Fault::NoUtf8 => goes_on(state).warned(&[WarningCode::Malformed]),
        Fault::LongLine => goes_on(state).warned(&[WarningCode::OversizedLine]),
        Fault::StrangeRequest => strange_request(state),
        Fault::IgnoresTerm => deaf(state),
        Fault::Hangs => hangs(state),
        Fault::ClosesStdin => closed_stdin(state),
        Fault::BrokenPipe => bad_exit(state).asked(&[CLOSED]),
        Fault::SlowReader => deaf(state).asked(&[STOPPED]),
        Fault::AnswersTwice => changed_answer(state, Told::Done),
        Fault::WrongShape => changed_answer(state, Told::Error(ErrorKind::UndecodableResponse)),
        Fault::HandlesDropped => dropped(state),
        Fault::TurnDropped | Fault::OperationDropped => future_dropped(state, fault),
        Fault::Stop | Fault::ShutdownAll => stopped(state).asked(&[Told::Done]),
        Fault::StopTwice => stopped(state).asked(&[Told::Done, Told::Done]),
        Fault::EndInput => input_ended(state),
        Fault::HostKilled => Outcome::new(End::Untold, Told::Nobody),
        Fault::Interrupt => interrupted(state),
        // A tool tells the model itself.
        Fault::CallbackFails if state == State::Mcp => Outcome::new(End::Stopped, Told::Done),
        Fault::CallbackPanics | Fault::CallbackFails => {
            failing_callback(WarningCode::CallbackFailed)
        }
        // The limit of a tool is its server's, and not a fail rule's.
        Fault::CallbackNeverReturns if state == State::Mcp => {
            failing_callback(WarningCode::CallbackFailed)
        }
        Fault::CallbackNeverReturns => failing_callback(WarningCode::CallbackTimedOut),
        Fault::CallbackReturnsLate => {
            Outcome::new(End::Stopped, Told::Interrupted).asked(&[Told::Done])
        }
        Fault::CallbackBlocks => goes_on(state).warned(&[WarningCode::CallbackBlocked]),
        Fault::RuntimeGone => runtime_gone(state),
    })
}

/// Why a fault has no meaning in a state.
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
        Fault::TurnDropped if !state.has_turn() => Some("there is no turn"),
        Fault::BrokenPipe | Fault::SlowReader if state.is_before_handshake() => {
            Some("nothing is written before the handshake is answered")
        }
        Fault::ClosesStdin if state == State::Spawning => {
            Some("whether the handshake was written before is chance")
        }
        Fault::ClosesStdin if matches!(state, State::Stopping | State::InputEnded) => {
            Some("the input is at its end already")
        }
        Fault::AnswersTwice
        | Fault::WrongShape
        | Fault::BrokenPipe
        | Fault::SlowReader
        | Fault::OperationDropped
            if matches!(state, State::Stopping | State::InputEnded) =>
        {
            Some("nothing can be asked any more")
        }
        _ => None,
    }
}

/// Those who wait for what a stop closes: the operation that was open then.
fn along(state: State) -> &'static [Told] {
    if state == State::Stopping { &[STOPPED] } else { &[] }
}

/// The session goes on as if nothing had been: what waited is done, and the host stops it.
fn goes_on(state: State) -> Outcome {
    match state {
        State::Spawning | State::Handshake => Outcome::new(End::Stopped, STOPPED),
        State::Stopping => Outcome::new(End::Stopped, Told::Done).asked(along(state)),
        State::InputEnded => Outcome::new(End::Completed, Told::Done),
        _ => Outcome::new(End::Stopped, Told::Done).asked(&[Told::Done]),
    }
}

/// The process is gone, and nobody wanted that.
fn bad_exit(state: State) -> Outcome {
    match state {
        State::Spawning | State::Handshake => {
            let kind = ErrorKind::ExitedDuringInit;
            Outcome::new(End::Failed(kind), Told::Error(kind))
        }
        State::Idle => Outcome::new(FAILED, Told::Nobody),
        State::Stopping => Outcome::new(End::Stopped, Told::Done).asked(along(state)),
        _ => Outcome::new(FAILED, CLOSED),
    }
}

/// A good exit is one only where the input was ended; the turn has no result all the same.
fn good_exit(state: State) -> Outcome {
    match state {
        State::InputEnded => Outcome::new(End::Completed, INPUT_ENDED),
        _ => bad_exit(state),
    }
}

/// The host stops a CLI that does not hear it.
fn deaf(state: State) -> Outcome {
    match state {
        State::Idle => Outcome::new(End::Stopped, Told::Nobody),
        State::Stopping => Outcome::new(End::Stopped, Told::Done).asked(along(state)),
        _ => Outcome::new(End::Stopped, STOPPED),
    }
}

/// Limits pass: that of the handshake, or of an operation that is asked. A turn has none; the host
/// stops it.
fn hangs(state: State) -> Outcome {
    match state {
        State::Spawning | State::Handshake => handshake_times_out(),
        _ if state.can_ask() => deaf(state).asked(&[Told::Error(ErrorKind::ControlTimeout)]),
        _ => deaf(state),
    }
}

fn handshake_times_out() -> Outcome {
    let kind = ErrorKind::InitializeTimeout;
    Outcome::new(End::Failed(kind), Told::Error(kind))
}

/// What needs no more input is done; what does fails when the host writes.
fn closed_stdin(state: State) -> Outcome {
    match state {
        State::Streaming | State::Tool => Outcome::new(End::Stopped, Told::Done),
        State::Idle | State::Hook | State::Permission | State::Mcp => Outcome::new(FAILED, CLOSED),
        State::Operation => Outcome::new(FAILED, CLOSED).asked(&[CLOSED]),
        _ => goes_on(state),
    }
}

/// Only the first answer counts, and a handshake may say anything.
fn changed_answer(state: State, answer: Told) -> Outcome {
    match state {
        State::Spawning | State::Handshake => Outcome::new(End::Stopped, Told::Done),
        _ => Outcome::new(End::Stopped, Told::Done).asked(&[answer]),
    }
}

/// It is answered with an error, if it can be answered.
fn strange_request(state: State) -> Outcome {
    match state {
        State::Stopping | State::InputEnded => goes_on(state),
        _ => goes_on(state).warned(&[WarningCode::UnansweredRequest]),
    }
}

fn dropped(state: State) -> Outcome {
    let waited = if state == State::Idle { Told::Nobody } else { Told::Dropped };
    Outcome::new(End::Stopped, waited).asked(along(state))
}

/// Nobody else notices.
fn future_dropped(state: State, fault: Fault) -> Outcome {
    let others = goes_on(state);
    if state.has_turn() && fault == Fault::TurnDropped || state == State::Operation {
        return Outcome { waited: Told::Dropped, ..others };
    }
    others
}

/// A turn that runs is interrupted first, and so has its result.
fn stopped(state: State) -> Outcome {
    match state {
        State::Spawning | State::Handshake | State::Operation => {
            Outcome::new(End::Stopped, STOPPED)
        }
        State::Idle => Outcome::new(End::Stopped, Told::Nobody),
        State::Stopping => Outcome::new(End::Stopped, Told::Done).asked(along(state)),
        // It cannot be told any more; its process is ended.
        State::InputEnded => Outcome::new(End::Stopped, STOPPED),
        _ => Outcome::new(End::Stopped, Told::Interrupted),
    }
}

/// What runs is finished; callbacks are cancelled, and the CLI does without their answers.
fn input_ended(state: State) -> Outcome {
    match state {
        State::Spawning | State::Handshake => handshake_times_out().asked(&[Told::Done]),
        State::Idle => Outcome::new(End::Completed, Told::Nobody).asked(&[Told::Done]),
        State::Stopping => goes_on(state).asked(&[STOPPED]),
        _ => Outcome::new(End::Completed, Told::Done).asked(&[Told::Done]),
    }
}

fn interrupted(state: State) -> Outcome {
    match state {
        // It waits for the handshake, or is refused.
        State::Spawning | State::Handshake | State::Stopping => goes_on(state).asked(&[STOPPED]),
        State::Idle => goes_on(state).asked(&[Told::Done]),
        State::Operation => Outcome::new(End::Stopped, Told::Done).asked(&[Told::Done]),
        State::InputEnded => goes_on(state).asked(&[INPUT_ENDED]),
        _ => Outcome::new(End::Stopped, Told::Interrupted).asked(&[Told::Done]),
    }
}

/// The fail rule answers, and the turn goes on.
fn failing_callback(warning: WarningCode) -> Outcome {
    Outcome::new(End::Stopped, Told::Done).warned(&[warning])
}

fn runtime_gone(state: State) -> Outcome {
    let gone =
        Outcome::new(End::Failed(ErrorKind::RuntimeGone), Told::Error(ErrorKind::RuntimeGone));
    match state {
        State::Idle => Outcome::new(End::Failed(ErrorKind::RuntimeGone), Told::Nobody),
        State::Stopping => gone.asked(along(state)),
        // Its runtime ends the callback too, before or after the session.
        State::Hook | State::Permission | State::Mcp => {
            gone.perhaps_warned(WarningCode::CallbackFailed)
        }
        _ => gone,
    }
}
