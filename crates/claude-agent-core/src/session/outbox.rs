//! The queue of effects, and the accounting of unwritten bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use claude_wire::control::ControlResponse;
use claude_wire::id::RequestId;
use claude_wire::{DecodeError, FromHost, Json};

use super::event::{Completion, Effect, RunWarning, Waiter};
use super::hold::Hold;
use super::shorten::{MAX_REASON_BYTES, shorten};

#[derive(Debug)]
pub(super) struct Outbox {
    effects: VecDeque<Effect>,
    hold: Hold,
    /// Whether a result that is not stored is discarded if the run fails.
    needs_store: bool,
    unwritten: usize,
    limit: usize,
    /// The responses among the unwritten bytes.
    unwritten_responses: usize,
    last_response: usize,
    /// The kinds of the unwritten bytes, in order; adjacent bytes of one kind form one segment.
    segments: VecDeque<Segment>,
    stdin: StdinState,
}

#[derive(Debug)]
struct Segment {
    bytes: usize,
    is_response: bool,
}

/// The state of the stdin of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StdinState {
    Open,
    /// Writing has failed.
    Broken,
    /// The machine has closed it.
    Closed,
}

impl Outbox {
    /// Creates an outbox. With `needs_store`, a result that is not stored is discarded if the run fails.
    pub(super) fn new(limit: usize, needs_store: bool) -> Self {
        Self {
            effects: VecDeque::new(),
            hold: Hold::default(),
            needs_store,
            unwritten: 0,
            limit,
            unwritten_responses: 0,
            last_response: 0,
            segments: VecDeque::new(),
            stdin: StdinState::Open,
        }
    }

    pub(super) fn push(&mut self, effect: Effect) {
        let effect = self.hold.filter(effect);
        self.effects.extend(effect);
    }

    /// Ends the wait for the store because the run has failed: results that are not stored are discarded if they may
    /// not be delivered.
    pub(super) fn fail_held(&mut self, is_store_lost: bool) {
        if is_store_lost || self.needs_store {
            self.discard_held();
        } else {
            self.release_all();
        }
    }

    /// Holds the next result, and the messages and turns after it, until `needs` entries are stored.
    pub(super) fn hold_result(&mut self, needs: u64) {
        self.hold.hold(needs);
    }

    /// Publishes whether everything before the next result is stored.
    pub(super) fn mark_result(&mut self, stored: bool) {
        self.hold.mark_result(stored, &mut self.effects);
    }

    /// Releases the held results that need no more than `stored` entries.
    pub(super) fn release(&mut self, stored: u64) {
        self.hold.release(stored, &mut self.effects);
    }

    /// Releases all held results. They say that they are not stored.
    pub(super) fn release_all(&mut self) {
        self.hold.release_all(&mut self.effects);
    }

    /// Discards all held results, with the messages and turns after them.
    pub(super) fn discard_held(&mut self) {
        self.hold.discard();
    }

    /// Discards the messages and turns that follow, because the run has failed.
    pub(super) fn end_turns(&mut self) {
        self.hold.end();
    }

    /// Returns whether a result is held, or the last one was delivered although it is not stored.
    pub(super) fn has_unstored_result(&self) -> bool {
        self.hold.has_unstored_result()
    }

    /// Returns whether a result is held.
    pub(super) fn is_holding(&self) -> bool {
        !self.hold.is_empty()
    }

    /// Returns the size of the held messages in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.hold.bytes()
    }

    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Adds a warning, after shortening the texts of the CLI in it.
    pub(super) fn warn(&mut self, mut warning: RunWarning) {
        warning.shorten();
        self.push(Effect::Warn(warning));
    }

    pub(super) fn complete(&mut self, waiter: Waiter, completion: Completion) {
        self.push(Effect::Complete(waiter, completion));
    }

    /// Writes a line. Discards it if stdin is no longer open.
    pub(super) fn write(&mut self, line: Bytes) {
        self.enqueue(line, false);
    }

    fn enqueue(&mut self, line: Bytes, is_response: bool) {
        if !self.is_open() {
            return;
        }
        self.unwritten += line.len();
        if is_response {
            self.unwritten_responses += line.len();
            self.last_response = line.len();
        }
        match self.segments.back_mut() {
            Some(last) if last.is_response == is_response => last.bytes += line.len(),
            _ => self.segments.push_back(Segment { bytes: line.len(), is_response }),
        }
        self.push(Effect::Write(line));
    }

    /// Responds to a request of the CLI. Responses have a limit of their own.
    pub(super) fn respond(&mut self, request: &RequestId, response: &Json) {
        self.enqueue_response(FromHost::encode_success(request, response));
    }

    /// Responds to a request of the CLI with an error.
    pub(super) fn respond_error(&mut self, request: &RequestId, reason: &str) {
        let reason = shorten(reason, MAX_REASON_BYTES);
        let response = ControlResponse::error(request.clone(), &*reason);
        self.enqueue_response(FromHost::Response(Box::new(response)).encode());
    }

    fn enqueue_response(&mut self, line: Result<Bytes, DecodeError>) {
        // Responses consist of strings and JSON text, so encoding them cannot fail.
        if let Ok(line) = line {
            self.enqueue(line, true);
        }
    }

    /// Returns the size of the unwritten responses in bytes.
    pub(super) fn unwritten_responses(&self) -> usize {
        self.unwritten_responses
    }

    /// Returns the same without the newest response, which may have any length.
    pub(super) fn older_responses(&self) -> usize {
        self.unwritten_responses.saturating_sub(self.last_response)
    }

    /// Returns whether the write buffer has room for a line of this length. An empty buffer accepts a
    /// line of any length, which would otherwise never be sent.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.unwritten == 0 || self.unwritten.saturating_add(length) <= self.limit
    }

    pub(super) fn written(&mut self, mut bytes: usize) {
        self.unwritten = self.unwritten.saturating_sub(bytes);
        while let Some(first) = self.segments.front_mut().filter(|_| bytes > 0) {
            let part = first.bytes.min(bytes);
            bytes -= part;
            first.bytes -= part;
            if first.is_response {
                self.unwritten_responses -= part;
            }
            if first.bytes == 0 {
                self.segments.pop_front();
            }
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.stdin == StdinState::Open
    }

    /// Marks stdin as broken and returns whether it was open before.
    pub(super) fn mark_broken(&mut self) -> bool {
        self.unwritten = 0;
        self.unwritten_responses = 0;
        self.segments.clear();
        let was_open = self.stdin == StdinState::Open;
        if was_open {
            self.stdin = StdinState::Broken;
        }
        was_open
    }

    /// Closes stdin and returns whether it was not closed before.
    pub(super) fn close(&mut self) -> bool {
        let is_first = self.stdin != StdinState::Closed;
        if is_first {
            self.stdin = StdinState::Closed;
            self.push(Effect::CloseStdin);
        }
        is_first
    }
}
