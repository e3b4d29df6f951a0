//! Effects in order, and the bytes that wait to be written to the CLI.

use std::collections::VecDeque;

use bytes::Bytes;

use super::event::{Effect, Notice, Settled, Waiter};
use super::shorten::{MAX_REASON_BYTES, shorten};
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
    /// Responses among the unwritten bytes.
    unwritten_responses: usize,
    last_response: usize,
    /// What the unwritten bytes are, in order; neighbours of one kind are one segment.
    segments: VecDeque<Segment>,
    input: Input,
}

#[derive(Debug)]
struct Segment {
    bytes: usize,
    is_response: bool,
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
        Self {
            effects: VecDeque::new(),
            unwritten: 0,
            limit,
            unwritten_responses: 0,
            last_response: 0,
            segments: VecDeque::new(),
            input: Input::Open,
        }
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    pub(super) fn pop(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Warns. Texts of the CLI are shortened here, for whoever keeps or shows the warning.
    pub(super) fn warn(&mut self, mut notice: Notice) {
        notice.shorten();
        self.push(Effect::Warn(notice));
    }

    pub(super) fn settle(&mut self, waiter: Waiter, settled: Settled) {
        self.push(Effect::Settle(waiter, settled));
    }

    /// Writes a line. What comes after the close is dropped.
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
    pub(super) fn answer(&mut self, request: &RequestId, answer: &Json) {
        self.respond(FromHost::encode_success(request, answer));
    }

    /// Responds to a request of the CLI with an error.
    pub(super) fn answer_error(&mut self, request: &RequestId, reason: &str) {
        let reason = shorten(reason, MAX_REASON_BYTES);
        let response = ControlResponse::error(request.clone(), &*reason);
        self.respond(FromHost::Response(Box::new(response)).encode());
    }

    fn respond(&mut self, line: Result<Bytes, DecodeError>) {
        // An answer holds texts and JSON text, so writing it cannot fail.
        if let Ok(line) = line {
            self.enqueue(line, true);
        }
    }

    /// The bytes of responses that wait to be written.
    pub(super) fn unwritten_responses(&self) -> usize {
        self.unwritten_responses
    }

    /// The same without the newest response, which may be of any length.
    pub(super) fn older_responses(&self) -> usize {
        self.unwritten_responses.saturating_sub(self.last_response)
    }

    /// Whether a line of this length may be added to what waits to be written. An empty buffer
    /// takes a line of any length, or it would wait for ever.
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
        self.input == Input::Open
    }

    /// Nothing more can be written. Whether that is news.
    pub(super) fn break_input(&mut self) -> bool {
        self.unwritten = 0;
        self.unwritten_responses = 0;
        self.segments.clear();
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
