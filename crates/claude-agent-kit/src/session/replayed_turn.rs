//! The turn in which the CLI replays a deferred tool call.

use std::sync::Mutex;

use crate::lock::lock;
use crate::turn::DetachedTurn;

/// Keeps the replayed turn until the host takes it or gives it up.
///
/// Only handles of the session own this, so that the turn of a dropped session keeps no messages. It contains no
/// handle itself, which would keep the session alive.
#[derive(Debug, Default)]
pub(crate) struct ReplayedTurn(Mutex<ReplayState>);

#[derive(Debug, Default)]
enum ReplayState {
    /// The CLI has not replayed anything yet.
    #[default]
    None,
    /// The CLI has started a replay.
    Started(DetachedTurn),
    /// The host has taken the turn, or reads messages in another way.
    Claimed,
}

impl ReplayedTurn {
    /// Keeps the turn of a replay that has started, unless the host has given it up.
    pub(crate) fn offer(&self, turn: DetachedTurn) {
        let mut state = lock(&self.0);
        let unwanted = match *state {
            ReplayState::None => {
                *state = ReplayState::Started(turn);
                return;
            }
            ReplayState::Started(_) | ReplayState::Claimed => turn,
        };
        // Dropping a reader wakes the driver, which runs code of the host.
        drop(state);
        drop(unwanted);
    }

    /// Returns the turn, once.
    pub(super) fn take(&self) -> Option<DetachedTurn> {
        let state = std::mem::replace(&mut *lock(&self.0), ReplayState::Claimed);
        match state {
            ReplayState::Started(turn) => Some(turn),
            ReplayState::None | ReplayState::Claimed => None,
        }
    }

    /// Discards the turn and its messages, because the host reads messages in another way.
    pub(super) fn give_up(&self) {
        drop(self.take());
    }
}
