//! What is to be done, in order, and how much of what was written has not left yet.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{Effect, Notice, Settled, Waiter};
use crate::control::ControlResponse;
use crate::error::DecodeError;
use crate::from_host::FromHost;
use crate::id::RequestId;
use crate::json::Json;

#[derive(Debug)]
pub(super) struct Outbox {
    effects: VecDeque<Effect>,
    unwritten: usize,
    limit: usize,
    input: Input,
}

/// What can be done with the input of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Input {
    Open,
    /// Nothing arrives there any more.
    Broken,
    /// It was closed from here.
    Closed,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Self { effects: VecDeque::new(), unwritten: 0, limit, input: Input::Open }
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    pub(super) fn warn(&mut self, notice: Notice) {
        self.push(Effect::Warn(notice));
    }

    pub(super) fn settle(&mut self, waiter: Waiter, settled: Settled) {
        self.push(Effect::Settle(waiter, settled));
    }

    /// Writes a line. What comes after the close is dropped.
    pub(super) fn write(&mut self, line: Bytes) {
        if self.is_open() {
            self.unwritten += line.len();
            self.push(Effect::Write(line));
        }
    }

    /// Answers a request of the CLI. Answers always have room.
    pub(super) fn answer(&mut self, request: &RequestId, answer: &Json) {
        self.respond(FromHost::encode_success(request, answer));
    }

    /// Answers a request of the CLI with an error.
    pub(super) fn answer_error(&mut self, request: &RequestId, reason: &str) {
        let response = ControlResponse::error(request.clone(), reason);
        self.respond(FromHost::Response(Box::new(response)).encode());
    }

    fn respond(&mut self, line: Result<Bytes, DecodeError>) {
        // An answer holds texts and JSON text, so writing it cannot fail.
        if let Ok(line) = line {
            self.write(line);
        }
    }

    /// Whether a line of this length may be added to what waits to be written. An empty buffer
    /// takes a line of any length, or it would wait for ever.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.unwritten == 0 || self.unwritten.saturating_add(length) <= self.limit
    }

    pub(super) fn written(&mut self, bytes: usize) {
        self.unwritten = self.unwritten.saturating_sub(bytes);
    }

    pub(super) fn is_open(&self) -> bool {
        self.input == Input::Open
    }

    /// Nothing more can be written. Whether that is news.
    pub(super) fn break_input(&mut self) -> bool {
        self.unwritten = 0;
        let news = self.input == Input::Open;
        if news {
            self.input = Input::Broken;
        }
        news
    }

    /// Closes the input. Whether it was not closed before.
    pub(super) fn close_input(&mut self) -> bool {
        let news = self.input != Input::Closed;
        if news {
            self.input = Input::Closed;
            self.push(Effect::CloseInput);
        }
        news
    }
}
