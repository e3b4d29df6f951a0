//! Streams of entries and messages, read from the file while they are consumed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use claude_wire::transcript::{Entry, EntryBody, EntryRef, MessageRef, MessageRole};
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::{errors, file, join};
use crate::content::Content;
use crate::error::Result;
use crate::id::{AgentId, ToolUseId};

/// How many entries are decoded together at most.
const BATCH_ENTRIES: usize = 256;
/// How many batches are decoded ahead of the consumer, each on its own thread.
const READ_AHEAD: usize = 2;
/// How many bytes of entries are decoded together; a larger entry is decoded alone.
const BATCH_BYTES: usize = 1024 * 1024;
/// How many bytes are read at a time, at least.
const READ_BYTES: usize = 256 * 1024;

/// A message of a stored conversation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HistoryMessage {
    /// The entry of the transcript, with its `uuid`, `parentUuid`, timestamp and raw JSON.
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

/// An open transcript.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

/// Where an entry is, and as what it is shown.
#[derive(Clone, Copy)]
pub(super) struct Span {
    offset: u64,
    length: u32,
    role: Option<MessageRole>,
    is_local_command: bool,
}

impl Span {
    /// Moves the span by the offset of the part of the file that was indexed.
    pub(super) fn shifted(mut self, by: u64) -> Self {
        self.offset += by;
        self
    }
}

impl From<EntryRef> for Span {
    fn from(entry: EntryRef) -> Self {
        // An index has no entries above 1 GiB.
        let length = u32::try_from(entry.len()).unwrap_or(u32::MAX);
        Self { offset: entry.offset(), length, role: None, is_local_command: false }
    }
}

impl From<MessageRef> for Span {
    fn from(message: MessageRef) -> Self {
        let is_local_command = message.is_local_command;
        Self { role: Some(message.role), is_local_command, ..Self::from(message.entry) }
    }
}

/// Reads entries by their places, several with one read where they are near to each other.
#[derive(Default)]
pub(super) struct SpanReader {
    start: u64,
    bytes: Vec<u8>,
}

impl SpanReader {
    /// Returns the bytes of an entry.
    ///
    /// # Errors
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo), also when the file is shorter than it was.
    pub(super) fn read(&mut self, source: &Source, span: Span) -> Result<&[u8]> {
        let length = span.length as usize;
        let is_buffered = span.offset >= self.start
            && span.offset + u64::from(span.length) <= self.start + self.bytes.len() as u64;
        if !is_buffered {
            self.start = span.offset;
            self.bytes.resize(length.max(READ_BYTES), 0);
            let read = file::read_at(&source.file, &mut self.bytes, span.offset);
            let read = read.inspect_err(|_| self.bytes.clear());
            let read = read.map_err(|error| errors::io("read", &source.path, error))?;
            self.bytes.truncate(read);
        }
        let from = usize::try_from(span.offset - self.start).unwrap_or(usize::MAX);
        let found = from.checked_add(length).and_then(|end| self.bytes.get(from..end));
        found.ok_or_else(|| errors::changed(&source.path))
    }

    fn decode(&mut self, source: &Source, span: Span) -> Result<Entry> {
        let bytes = Bytes::copy_from_slice(self.read(source, span)?);
        Entry::decode(bytes).map_err(|error| errors::changed(&source.path).caused_by(error))
    }
}

type Decoded = Result<(Entry, Span)>;

/// The part that streams of entries and of messages share.
pub(super) struct Spans {
    source: Arc<Source>,
    places: Arc<[Span]>,
    /// The next item that is returned.
    position: usize,
    end: usize,
    ready: VecDeque<Decoded>,
    /// The batches behind `ready`, in order.
    pending: VecDeque<JoinHandle<Vec<Decoded>>>,
    /// The first item behind the pending batches.
    requested: usize,
    runtime: Handle,
}

impl Spans {
    pub(super) fn new(source: Arc<Source>, spans: Vec<Span>, runtime: Handle) -> Self {
        let end = spans.len();
        Self {
            source,
            places: spans.into(),
            position: 0,
            end,
            ready: VecDeque::new(),
            pending: VecDeque::new(),
            requested: 0,
            runtime,
        }
    }

    fn skip(&mut self, count: usize) {
        let count = count.min(self.end - self.position);
        self.position += count;
        if count <= self.ready.len() {
            self.ready.drain(..count);
        } else {
            self.ready.clear();
            self.pending.clear();
            self.requested = self.position;
        }
    }

    fn take(&mut self, count: usize) {
        self.end = self.end.min(self.position.saturating_add(count));
    }

    /// Starts to decode the next batches.
    fn read_ahead(&mut self) {
        while self.pending.len() < READ_AHEAD && self.requested < self.end {
            let rest = &self.places[self.requested..self.end];
            let is_large = rest[0].length as usize > BATCH_BYTES;
            // Of large entries there is one in memory.
            if is_large && !(self.pending.is_empty() && self.ready.is_empty()) {
                break;
            }
            let range = self.requested..self.requested + batch_len(rest);
            self.requested = range.end;
            let (source, places) = (self.source.clone(), self.places.clone());
            let task = self.runtime.spawn_blocking(move || batch(&source, &places[range]));
            self.pending.push_back(task);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Decoded>> {
        if self.position >= self.end {
            return Poll::Ready(None);
        }
        self.read_ahead();
        while self.ready.is_empty() {
            let Some(task) = self.pending.front_mut() else { return Poll::Ready(None) };
            let result = join(ready!(Pin::new(task).poll(context)));
            self.pending.pop_front();
            match result {
                Ok(batch) => self.ready.extend(batch),
                Err(error) => {
                    self.position = self.end;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
        self.position += 1;
        Poll::Ready(self.ready.pop_front())
    }
}

/// Decodes entries: at least one, at most a batch.
pub(super) fn batch(source: &Source, spans: &[Span]) -> Vec<Decoded> {
    let mut reader = SpanReader::default();
    let spans = &spans[..batch_len(spans)];
    let decode = |span: &Span| reader.decode(source, *span).map(|entry| (entry, *span));
    spans.iter().map(decode).collect()
}

/// Returns how many entries the next batch has: at least one, if there is one.
fn batch_len(spans: &[Span]) -> usize {
    let mut bytes = 0;
    let fits = |span: &&Span| {
        bytes += span.length as usize;
        bytes <= BATCH_BYTES
    };
    spans.iter().take(BATCH_ENTRIES).take_while(fits).count().max(1).min(spans.len())
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

/// A stream of raw entries, decoded while they are consumed.
///
/// Holds 16 bytes per entry that is to come, and decodes at most three batches of 256 entries or
/// 1 MiB ahead. An `Err` concerns one entry; the stream continues behind it.
#[must_use = "streams do nothing unless polled"]
pub struct EntryStream {
    spans: Spans,
}

/// A stream of the messages of a conversation, decoded while they are consumed.
///
/// Holds 16 bytes per message that is to come, and decodes at most three batches of 256 messages or
/// 1 MiB ahead. An `Err` concerns one message; the stream continues behind it.
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
