//! Streams of entries and messages, read from the file while they are consumed.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use claude_wire::transcript::{Entry, EntryBody, EntryRef, Index, MessageList, MessageRole};
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use super::source::{READ_BYTES, Source, Span, SpanReader};
use crate::content::Content;
use crate::error::Result;
use crate::id::{AgentId, ToolUseId};
use crate::list;
use crate::tasks::{self, BlockingTask};

/// A message of a stored conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HistoryMessage {
    /// The entry of the transcript, with its `uuid`, `parentUuid` and timestamp. Its bytes are kept on
    /// request, see [`MessageStream::with_raw`].
    pub entry: Entry,
    /// As what the entry is shown.
    pub role: MessageRole,
    /// Whether it is the record or the output of a local command, such as `/cost`.
    pub is_local_command: bool,
    /// The tool call that started the subagent; `None` in the main conversation.
    pub parent_tool_use_id: Option<ToolUseId>,
    /// The subagent that started the subagent, if it was not the main agent.
    pub parent_agent_id: Option<AgentId>,
}

impl HistoryMessage {
    /// Returns the ID under which the message is shown: for a prompt that joined a running turn the
    /// ID that the host sent it with, otherwise that of the entry.
    pub fn uuid(&self) -> Option<Cow<'_, str>> {
        match self.role {
            MessageRole::QueuedPrompt => self.entry.shown_uuid(),
            _ => self.entry.uuid(),
        }
    }

    /// Returns the content of a prompt, a tool result or a response; `None` for system messages.
    pub fn content(&self) -> Option<Content> {
        match &self.entry.body {
            EntryBody::Assistant(entry) => {
                Some(Content::Blocks(entry.message.as_ref()?.content.to_vec()))
            }
            _ => self.entry.prompt(),
        }
    }
}

/// The entries of a stream, in order.
pub(super) enum Places {
    /// All entries of the index.
    All(Arc<Index>),
    /// Entries by their positions in the index.
    Entries(Arc<Index>, Vec<u32>),
    Messages(Arc<Index>, MessageList),
}

impl Places {
    /// Takes some of the entries of the index.
    pub(super) fn entries(index: Arc<Index>, entries: &[EntryRef]) -> Self {
        let position = |entry: &EntryRef| u32::try_from(entry.index()).unwrap_or(u32::MAX);
        Self::Entries(index, list::map(entries, &position))
    }

    fn len(&self) -> usize {
        match self {
            Self::All(index) => index.len(),
            Self::Entries(_, entries) => entries.len(),
            Self::Messages(_, messages) => messages.len(),
        }
    }

    fn get(&self, position: usize) -> Option<Span> {
        match self {
            Self::All(index) => index.get(position).map(Span::from),
            Self::Entries(index, entries) => {
                index.get(*entries.get(position)? as usize).map(Span::from)
            }
            Self::Messages(index, messages) => messages.get(index, position).map(Span::from),
        }
    }
}

type Decoded = Result<(Entry, Span)>;

/// The part that streams of entries and of messages share.
///
/// Entries are decoded where they are consumed. A blocking thread reads the next part of the file
/// meanwhile, into one of two buffers that are kept, so that a long stream does not grow.
pub(super) struct Spans {
    source: Arc<Source>,
    places: Places,
    /// The next item that is returned.
    position: usize,
    end: usize,
    /// Whether entries keep their bytes.
    keep_raw: bool,
    reader: SpanReader,
    /// The first item behind `reader`.
    covered_until: usize,
    /// A buffer for the next read.
    spare: SpanReader,
    pending: Option<Pending>,
    runtime: Handle,
}

/// A read that is under way.
struct Pending {
    /// The item that it starts with, and how many items it has.
    position: usize,
    count: usize,
    task: BlockingTask<Fetched>,
}

/// What a blocking thread read.
enum Fetched {
    /// Bytes with at least the next entry, or why there are none.
    Bytes(SpanReader, Result<()>),
    /// A large entry, which is decoded there too: decoding takes a millisecond per megabyte.
    Entry(Box<Result<Entry>>),
}

impl Spans {
    pub(super) fn new(source: Arc<Source>, places: Places, runtime: Handle) -> Self {
        let end = places.len();
        let (reader, spare) = Default::default();
        Self {
            source,
            places,
            position: 0,
            end,
            keep_raw: false,
            reader,
            covered_until: 0,
            spare,
            pending: None,
            runtime,
        }
    }

    fn skip(&mut self, count: usize) {
        self.position += count.min(self.end - self.position);
    }

    fn take(&mut self, count: usize) {
        self.end = self.end.min(self.position.saturating_add(count));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Decoded>> {
        if self.position >= self.end {
            return Poll::Ready(None);
        }
        let Some(span) = self.places.get(self.position) else { return Poll::Ready(None) };
        let entry = if self.reader.has(span) {
            self.reader.decode_buffered(&self.source, span, self.keep_raw)
        } else {
            match tasks::joined(ready!(self.poll_fetch(span, context))) {
                Ok(Fetched::Bytes(reader, result)) => {
                    self.spare = std::mem::replace(&mut self.reader, reader);
                    self.read_ahead();
                    let decode = || self.reader.decode_buffered(&self.source, span, self.keep_raw);
                    result.and_then(|()| decode())
                }
                Ok(Fetched::Entry(entry)) => *entry,
                Err(error) => {
                    self.position = self.end;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        };
        self.position += 1;
        Poll::Ready(Some(entry.map(|entry| (entry, span))))
    }

    /// Waits for the read that starts with the next item.
    fn poll_fetch(
        &mut self,
        span: Span,
        context: &mut Context<'_>,
    ) -> Poll<std::result::Result<Fetched, JoinError>> {
        // Items may have been skipped since the read began.
        let pending = self.pending.take().filter(|pending| pending.position == self.position);
        let mut pending = pending.unwrap_or_else(|| self.fetch(self.position, span));
        match Pin::new(&mut pending.task).poll(context) {
            Poll::Ready(fetched) => {
                self.covered_until = pending.position + pending.count;
                Poll::Ready(fetched)
            }
            Poll::Pending => {
                self.pending = Some(pending);
                Poll::Pending
            }
        }
    }

    /// Starts to read what follows the current buffer. Of large entries there is one in memory.
    fn read_ahead(&mut self) {
        let position = self.covered_until;
        if position < self.end
            && let Some(span) = self.places.get(position)
            && !span.is_large()
        {
            self.pending = Some(self.fetch(position, span));
        }
    }

    /// Reads an entry, and those that follow it in the stream and in the file, on a blocking thread.
    fn fetch(&mut self, position: usize, span: Span) -> Pending {
        let next = (position..self.end).map_while(|at| self.places.get(at));
        let (length, count) = extent(span, next);
        let (source, mut reader) = (self.source.clone(), std::mem::take(&mut self.spare));
        let keep_raw = self.keep_raw;
        let task = tasks::spawn_blocking(&self.runtime, move || {
            if span.is_large() {
                return Fetched::Entry(Box::new(source.decode_large(span, keep_raw)));
            }
            let result = reader.fill(&source, span, length);
            Fetched::Bytes(reader, result)
        });
        Pending { position, count, task }
    }
}

/// Returns how many bytes are read for an entry and those that follow it in the stream, and how many
/// entries these are.
fn extent(first: Span, next: impl Iterator<Item = Span>) -> (usize, usize) {
    let ends = next.map_while(|span| {
        let end = span.offset.checked_sub(first.offset)? + u64::from(span.length);
        usize::try_from(end).ok().filter(|end| *end <= READ_BYTES)
    });
    ends.fold((first.length as usize, 0), |(length, count), end| (length.max(end), count + 1))
}

/// The parents of a subagent.
#[derive(Clone, Debug, Default)]
pub(super) struct Parents {
    pub(super) tool_use: Option<ToolUseId>,
    pub(super) agent: Option<AgentId>,
}

pub(super) fn message(entry: Entry, span: Span, parents: &Parents) -> HistoryMessage {
    HistoryMessage {
        entry,
        role: span.role.unwrap_or(MessageRole::System),
        is_local_command: span.is_local_command,
        parent_tool_use_id: parents.tool_use.clone(),
        parent_agent_id: parents.agent.clone(),
    }
}

/// A stream of entries, decoded while they are consumed.
///
/// Holds the index of the transcript and one entry, and reads at most 256 KiB ahead. An `Err` concerns
/// one entry; the stream continues behind it.
#[must_use = "streams do nothing unless polled"]
pub struct EntryStream {
    spans: Spans,
}

/// A stream of the messages of a conversation, decoded while they are consumed.
///
/// Holds the index of the transcript, four bytes per message and one message, and reads at most 256 KiB
/// ahead. An `Err` concerns one message; the stream continues behind it.
#[must_use = "streams do nothing unless polled"]
pub struct MessageStream {
    spans: Spans,
    parents: Parents,
}

impl EntryStream {
    pub(super) fn new(spans: Spans) -> Self {
        Self { spans }
    }
}

impl MessageStream {
    pub(super) fn new(spans: Spans, parents: Parents) -> Self {
        Self { spans, parents }
    }
}

macro_rules! history_stream {
    ($stream:ident, $item:ty, $what:literal, |$this:ident, $entry:ident, $span:ident| $map:expr) => {
        impl $stream {
            #[doc = concat!("Returns the next ", $what, "; `None` at the end.")]
            ///
            /// # Errors
            /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the file cannot be read, or was
            /// rewritten meanwhile.
            ///
            /// # Cancel safety
            /// Cancel safe: nothing is lost.
            pub async fn next(&mut self) -> Option<Result<$item>> {
                poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
            }

            #[doc = concat!("Skips ", $what, " items without reading them.")]
            pub fn skip(mut self, count: usize) -> Self {
                self.spans.skip(count);
                self
            }

            /// Ends the stream after this many items.
            pub fn take(mut self, count: usize) -> Self {
                self.spans.take(count);
                self
            }

            /// Keeps the exact bytes of each entry, for [`Entry::raw`]. They need as much memory as what
            /// is decoded from them. Default: they are not kept.
            pub fn with_raw(mut self) -> Self {
                self.spans.keep_raw = true;
                self
            }

            /// Returns how many items are to come.
            pub fn len(&self) -> usize {
                self.spans.end - self.spans.position
            }

            /// Returns whether no items are to come.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        impl Stream for $stream {
            type Item = Result<$item>;

            fn poll_next(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<Option<Self::Item>> {
                let $this = self.get_mut();
                let next = ready!($this.spans.poll(context));
                Poll::Ready(next.map(|next| next.map(|($entry, $span)| $map)))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.len(), Some(self.len()))
            }
        }

        impl fmt::Debug for $stream {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($stream))
                    .field("path", &self.spans.source.path)
                    .field("len", &self.len())
                    .finish_non_exhaustive()
            }
        }
    };
}

history_stream!(EntryStream, Entry, "entry", |this, entry, _span| entry);
history_stream!(MessageStream, HistoryMessage, "message", |this, entry, span| message(
    entry,
    span,
    &this.parents
));
