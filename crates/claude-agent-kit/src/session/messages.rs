//! All messages of a session.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use super::Session;
use crate::error::Result;
use crate::item::Item;
use crate::reader::Reader;

/// A stream of all messages and warnings of a session, without control frames. Ends with the session.
///
/// An `Err` is the last item: the error of the session, or [`Lagged`](crate::ErrorKind::Lagged) if
/// this stream was read too slowly.
pub struct Messages {
    reader: Reader,
    session: Session,
    done: bool,
}

impl Messages {
    pub(super) fn new(session: Session) -> Self {
        Self { reader: session.shared.handles.reader(), session, done: false }
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// The error of the session, or [`Lagged`](crate::ErrorKind::Lagged); once, as the last item.
    ///
    /// # Cancel safety
    /// Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let item = ready!(self.reader.poll_item(context));
        self.done = !matches!(item, Some(Ok(_)));
        Poll::Ready(item.or_else(|| self.session.shared.handles.feed.error().map(Err)))
    }
}

impl Stream for Messages {
    type Item = Result<Item>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(context)
    }
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("done", &self.done).finish_non_exhaustive()
    }
}
