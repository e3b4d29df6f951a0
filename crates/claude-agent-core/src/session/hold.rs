//! Holds results back until the entries before them are stored.

use std::collections::VecDeque;

use super::event::{Effect, TurnEnd};

/// The effects from the first held result on.
#[derive(Debug, Default)]
pub(super) struct Hold {
    items: VecDeque<HeldItem>,
    /// The size of the held messages without the first result, which may have any size.
    bytes: usize,
    /// Whether everything before the last result was stored when it was delivered; `None` without a
    /// store, and before the first result.
    last: Option<bool>,
    /// Whether the run has failed: messages and turns end with the failure.
    is_ended: bool,
}

#[derive(Debug)]
enum HeldItem {
    /// A result follows, which needs this many entries.
    Result(u64),
    Effect(Effect),
}

impl HeldItem {
    fn bytes(&self) -> usize {
        match self {
            Self::Effect(Effect::Deliver(line)) => line.len(),
            Self::Effect(_) | Self::Result(_) => 0,
        }
    }
}

impl Hold {
    /// Returns the size of the held messages in bytes, without the first result.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Holds the next result until `needs` entries are stored.
    pub(super) fn hold(&mut self, needs: u64) {
        self.items.push_back(HeldItem::Result(needs));
    }

    /// Keeps an effect that must not overtake a held result, and returns all others.
    ///
    /// Warnings, costs, completions and everything that is sent to the CLI overtake it.
    pub(super) fn filter(&mut self, effect: Effect) -> Option<Effect> {
        if self.items.is_empty() && !self.is_ended {
            return Some(self.marked(effect));
        }
        match &effect {
            Effect::Deliver(_)
            | Effect::TurnStarted(_)
            | Effect::ReplayStarted(_)
            | Effect::TurnEnded(..)
                if self.is_ended =>
            {
                return None;
            }
            Effect::Deliver(_) if self.items.len() == 1 => {}
            Effect::Deliver(line) => self.bytes = self.bytes.saturating_add(line.len()),
            Effect::TurnStarted(_)
            | Effect::ReplayStarted(_)
            | Effect::NoReplay
            | Effect::TurnEnded(..) => {}
            Effect::Write(_)
            | Effect::CloseStdin
            | Effect::Terminate
            | Effect::TerminateAtOnce
            | Effect::Kill
            | Effect::DeliverPermission(_)
            | Effect::Cost(_)
            | Effect::Stored(_)
            | Effect::Warn(_)
            | Effect::State(_)
            | Effect::Complete(..)
            | Effect::UnmatchedResponse { .. }
            | Effect::RunCallback { .. }
            | Effect::CancelCallback(_)
            | Effect::AbortCallback(_)
            | Effect::Append(_)
            | Effect::RetryAppend(_)
            | Effect::CatchUp(_)
            | Effect::AbandonAppend
            | Effect::End(_) => return Some(effect),
        }
        self.items.push_back(HeldItem::Effect(effect));
        None
    }

    /// Releases the results that need no more than `stored` entries, and what follows them.
    pub(super) fn release(&mut self, stored: u64, effects: &mut VecDeque<Effect>) {
        while let Some(item) = self.items.pop_front() {
            match item {
                HeldItem::Result(needs) if needs > stored => {
                    self.items.push_front(HeldItem::Result(needs));
                    break;
                }
                HeldItem::Result(_) => self.mark_result(true, effects),
                HeldItem::Effect(effect) => self.push(effect, effects),
            }
        }
        self.bytes = self.items.iter().skip(2).map(HeldItem::bytes).sum();
    }

    /// Releases everything. The results say that they are not stored.
    pub(super) fn release_all(&mut self, effects: &mut VecDeque<Effect>) {
        for item in std::mem::take(&mut self.items) {
            match item {
                HeldItem::Result(_) => self.mark_result(false, effects),
                HeldItem::Effect(effect) => self.push(effect, effects),
            }
        }
        self.bytes = 0;
    }

    /// Discards everything.
    pub(super) fn discard(&mut self) {
        self.items.clear();
        self.bytes = 0;
    }

    /// Discards the messages and turns that follow.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
    }

    /// Returns whether a result is held, or the last one was delivered although it is not stored.
    pub(super) fn has_unstored_result(&self) -> bool {
        !self.items.is_empty() || self.last == Some(false)
    }

    /// Publishes whether everything before the next result is stored.
    pub(super) fn mark_result(&mut self, stored: bool, effects: &mut VecDeque<Effect>) {
        self.last = Some(stored);
        effects.push_back(Effect::Stored(stored));
    }

    fn push(&self, effect: Effect, effects: &mut VecDeque<Effect>) {
        let effect = self.marked(effect);
        effects.push_back(effect);
    }

    /// Sets whether the result that ended a turn is stored.
    fn marked(&self, mut effect: Effect) -> Effect {
        if let Effect::TurnEnded(_, TurnEnd::Result { stored, .. }) = &mut effect {
            *stored = self.last;
        }
        effect
    }
}
