//! A reader of the messages of a run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use claude_agent_core::session::RunWarning;
use claude_wire::{Malformed, Message};

use crate::backlog::Subscriber;
use crate::driver::WarningSink;
use crate::error::Result;
use crate::feed::{Feed, LineMark, Piece};
use crate::item::Item;
use crate::permission::ToolRequest;
use crate::warning::Warning;

/// Takes items from the feed and decodes each once, where it is consumed.
#[derive(Debug)]
pub(crate) struct Reader {
    feed: Arc<Feed>,
    warnings: WarningSink,
    subscriber: Subscriber,
    /// Items that were taken from the feed and are not decoded yet.
    taken: VecDeque<Piece>,
}

impl Reader {
    pub(crate) fn new(feed: Arc<Feed>, warnings: WarningSink, subscriber: Subscriber) -> Self {
        Self { feed, warnings, subscriber, taken: VecDeque::new() }
    }

    /// Yields these items before all others.
    pub(crate) fn beginning_with(mut self, first: VecDeque<Piece>) -> Self {
        self.taken = first;
        self
    }

    /// Polls for the next item; `None` at the end. An error is the last item.
    pub(crate) fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        loop {
            match self.taken.pop_front() {
                Some(Piece::Line(line, mark)) => {
                    return Poll::Ready(Some(Ok(match Message::decode(line) {
                        Ok(message) => {
                            self.report_unknown(&message);
                            Item::Message(message)
                        }
                        Err(malformed) => Item::Warning(self.warn(malformed, &mark)),
                    })));
                }
                Some(Piece::Permission(line, origin)) => {
                    // The machine has already decoded the request.
                    if let Some(request) = ToolRequest::decode(line, *origin) {
                        return Poll::Ready(Some(Ok(Item::PermissionRequest(Box::new(request)))));
                    }
                }
                Some(Piece::Warning(warning)) => {
                    return Poll::Ready(Some(Ok(Item::Warning(warning))));
                }
                None => {}
            }
            if !self.taken.is_empty() {
                continue;
            }
            match ready!(self.feed.poll_take(context, self.subscriber, &mut self.taken)) {
                Some(Ok(())) => {}
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// Reports unknown fields that no other reader has reported, right after their message.
    fn report_unknown(&mut self, message: &Message) {
        for warning in self.feed.drift().look_at(message).into_iter().rev() {
            self.warnings.tell(&warning);
            self.taken.push_front(Piece::Warning(warning));
        }
    }

    /// Creates the warning for a malformed line that began like a message. The first reader of the line also
    /// passes the warning to `on_warning`.
    fn warn(&self, malformed: Malformed, mark: &LineMark) -> Warning {
        let warning = Warning::of(RunWarning::Malformed(malformed));
        if mark.is_first_report() {
            self.warnings.tell(&warning);
        }
        warning
    }

    /// Releases the reader's place in the feed.
    pub(crate) fn release(&mut self) {
        self.taken.clear();
        self.feed.unsubscribe(self.subscriber);
    }

    pub(crate) fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.release();
    }
}
