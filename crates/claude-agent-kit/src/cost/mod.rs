//! Tokens that messages report before a result includes them.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use claude_wire::message::{ApiMessage, StreamEvent, Usage};
use claude_wire::{Body, Tokens};

/// The number of recent responses that are distinguished by their IDs.
const RECENT: usize = 64;

/// The tokens of API responses that no result includes yet.
#[derive(Debug, Default)]
pub(crate) struct UncountedTokens {
    /// The latest responses. Several messages report the usage of the same one.
    recent: VecDeque<(Response, Tokens)>,
    older: Tokens,
    /// The response that is being streamed.
    streaming: Option<Response>,
}

/// The hash of a response's ID, which may have any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Response(u64);

impl Response {
    fn of(message: &ApiMessage) -> Option<Self> {
        let mut hasher = DefaultHasher::new();
        message.id.as_ref()?.hash(&mut hasher);
        Some(Self(hasher.finish()))
    }
}

impl UncountedTokens {
    pub(crate) fn record(&mut self, body: &Body) {
        match body {
            Body::Result(_) => *self = Self::default(),
            Body::Assistant(answer) => {
                if let Some(message) = &answer.message {
                    self.add(Response::of(message), message.usage.as_ref());
                }
            }
            Body::StreamEvent(event) => match &event.event {
                Some(StreamEvent::MessageStart(start)) => {
                    let Some(message) = &start.message else { return };
                    self.streaming = Response::of(message);
                    self.add(self.streaming, message.usage.as_ref());
                }
                Some(StreamEvent::MessageDelta(delta)) => {
                    self.add(self.streaming, delta.usage.as_ref());
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Adds the usage of a response. Later reports of the same response are cumulative.
    fn add(&mut self, response: Option<Response>, usage: Option<&Usage>) {
        let (Some(response), Some(usage)) = (response, usage) else { return };
        let tokens = usage.tokens();
        if let Some((_, known)) = self.recent.iter_mut().find(|(known, _)| *known == response) {
            *known = known.zip(tokens, u64::max);
            return;
        }
        if self.recent.len() == RECENT
            && let Some((_, tokens)) = self.recent.pop_front()
        {
            self.older += tokens;
        }
        self.recent.push_back((response, tokens));
    }

    pub(crate) fn tokens(&self) -> Tokens {
        let recent = self.recent.iter().map(|(_, tokens)| *tokens);
        recent.fold(self.older, |mut all, tokens| {
            all += tokens;
            all
        })
    }
}

#[cfg(test)]
mod tests;
