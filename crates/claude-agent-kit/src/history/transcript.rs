//! Opens transcripts and reads their conversations.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use claude_wire::transcript::{EntryRef, Index, Issue, MessageFilter, MessageRef, Tree};

use super::indexing::index;
use super::source::{Source, Span, SpanReader};
use super::stream::{self, EntryStream, HistoryMessage, MessageStream, Parents, Places, Spans};
use super::{CancelFlag, History, errors};
use crate::driver::require_runtime;
use crate::error::Result;
use crate::id::SessionId;
use crate::session_files::members::SessionFiles;
use crate::session_files::open;

/// How many bytes of the end are read first for the last messages.
const FIRST_TAIL_BYTES: u64 = 1024 * 1024;

/// An open transcript with an index of its entries, 48 bytes each.
///
/// The index covers what was in the file when it was opened. Entries are read from the file while
/// streams are consumed.
#[derive(Clone)]
pub struct Transcript {
    history: History,
    session_id: SessionId,
    source: Arc<Source>,
    index: Arc<Index>,
    /// Who started the subagent; `None` in the transcript of a session.
    subagent: Option<Parents>,
}

impl History {
    /// Opens the transcript of a session and indexes its entries. Use it to read more than the
    /// messages: raw entries, issues, branches.
    ///
    /// # Errors
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the transcript cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe. The thread that reads the file stops within 256 KiB.
    pub async fn open(&self, session_id: &SessionId) -> Result<Transcript> {
        if let Some(stored) = self.stored() {
            return self.open_stored(stored, session_id, None).await;
        }
        let id = session_id.clone();
        let read = self.run(move |projects, cancel| read(&projects.require(&id)?, cancel));
        let (source, index) = read.await?;
        Ok(Transcript::new(self, session_id, source, index, None))
    }

    /// Streams the messages of a session, the oldest first. [`MessageStream::skip`] and
    /// [`MessageStream::take`] choose a page without decoding the rest.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn messages(
        &self,
        session_id: &SessionId,
        filter: MessageFilter,
    ) -> Result<MessageStream> {
        self.open(session_id).await?.messages(filter).await
    }

    /// Streams all entries of a session in the order of the file, state entries included.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn entries(&self, session_id: &SessionId) -> Result<EntryStream> {
        self.open(session_id).await?.entries()
    }

    /// Returns what is wrong with a transcript, see [`Transcript::issues`].
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn issues(&self, session_id: &SessionId) -> Result<Vec<Issue>> {
        self.open(session_id).await?.issues().await
    }

    /// Returns the last `count` messages of a session, the oldest first.
    ///
    /// Reads the end of the transcript, and more of it only if the end has fewer messages or a
    /// compaction, so the cost does not grow with the size of the transcript. The result is the end
    /// of [`messages`](Self::messages), unless entries refer to others far behind them.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn last_messages(
        &self,
        session_id: &SessionId,
        count: usize,
        filter: MessageFilter,
    ) -> Result<Vec<HistoryMessage>> {
        if let Some(stored) = self.stored() {
            return self.last_stored_messages(stored, session_id, count, filter).await;
        }
        let id = session_id.clone();
        self.run(move |projects, cancel| last(&projects.require(&id)?, count, filter, cancel)).await
    }
}

impl Transcript {
    pub(super) fn new(
        history: &History,
        session_id: &SessionId,
        source: Source,
        index: Index,
        subagent: Option<Parents>,
    ) -> Self {
        let (source, index) = (Arc::new(source), Arc::new(index));
        Self { history: history.clone(), session_id: session_id.clone(), source, index, subagent }
    }

    /// Returns the ID of the session.
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the path of the file; `None` for a transcript in a store.
    pub fn path(&self) -> Option<&Path> {
        self.history.stored().is_none().then_some(&self.source.path)
    }

    /// Returns the index of the entries.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Streams the messages of the conversation, the oldest first. The filter has no effect in the
    /// transcript of a subagent.
    ///
    /// # Errors
    /// [`NoRuntime`](crate::ErrorKind::NoRuntime) outside of a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn messages(&self, filter: MessageFilter) -> Result<MessageStream> {
        let (index, is_subagent) = (self.index.clone(), self.subagent.is_some());
        let choose = move |tree: &Tree<'_>| {
            if is_subagent { tree.subagent_message_list() } else { tree.message_list(filter) }
        };
        let messages = self.history.run(move |_, cancel| cancel.choose(&index, choose)).await?;
        let places = Places::Messages(self.index.clone(), messages);
        Ok(MessageStream::new(self.spans(places)?, self.subagent.clone().unwrap_or_default()))
    }

    /// Streams all entries in the order of the file, state entries and other branches included.
    ///
    /// # Errors
    /// [`NoRuntime`](crate::ErrorKind::NoRuntime) outside of a Tokio runtime.
    pub fn entries(&self) -> Result<EntryStream> {
        Ok(EntryStream::new(self.spans(Places::All(self.index.clone()))?))
    }

    /// Returns the newest entry of each branch, in the order of the file.
    ///
    /// # Errors
    /// [`NoRuntime`](crate::ErrorKind::NoRuntime) outside of a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is not general in the lifetime of the tree"
    )]
    pub async fn branches(&self) -> Result<Vec<EntryRef>> {
        let index = self.index.clone();
        self.history.run(move |_, cancel| cancel.choose(&index, |tree| tree.branches())).await
    }

    /// Streams the entries from the start of the session to `entry`, one of
    /// [`branches`](Self::branches), with everything that compactions removed from the context.
    /// Empty for an entry of another transcript.
    ///
    /// # Errors
    /// [`NoRuntime`](crate::ErrorKind::NoRuntime) outside of a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn branch(&self, entry: EntryRef) -> Result<EntryStream> {
        let index = self.index.clone();
        let path = self.history.run(move |_, cancel| {
            let is_own = index.get(entry.index()) == Some(entry);
            let path = if is_own {
                cancel.choose(&index, |tree| tree.full_path(entry))?
            } else {
                Vec::new()
            };
            Ok(Places::entries(index, &path))
        });
        Ok(EntryStream::new(self.spans(path.await?)?))
    }

    /// Returns every line that is malformed, torn, spliced, repeated or not part of the conversation,
    /// in the order of the file. A line that the CLI is just writing counts as torn.
    ///
    /// # Errors
    /// [`NoRuntime`](crate::ErrorKind::NoRuntime) outside of a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is not general in the lifetime of the tree"
    )]
    pub async fn issues(&self) -> Result<Vec<Issue>> {
        let index = self.index.clone();
        self.history.run(move |_, cancel| cancel.choose(&index, |tree| tree.issues())).await
    }

    fn spans(&self, places: Places) -> Result<Spans> {
        Ok(Spans::new(self.source.clone(), places, require_runtime()?))
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("path", &self.source.path)
            .field("entries", &self.index.len())
            .finish_non_exhaustive()
    }
}

/// Opens a transcript and indexes it.
pub(super) fn read(located: &SessionFiles, cancel: &CancelFlag) -> Result<(Source, Index)> {
    let (source, length) = open(located)?;
    let index = index(&source, 0, length, cancel)?;
    Ok((source, index))
}

fn open(located: &SessionFiles) -> Result<(Source, u64)> {
    let path = located.path.clone();
    match open::open(&path) {
        Ok((file, metadata)) => Ok((Source { file, path }, metadata.len())),
        Err(error) => Err(errors::io("open the transcript", &path, error)),
    }
}

/// Reads the last messages from a part at the end of the file that is enlarged as needed.
fn last(
    located: &SessionFiles,
    count: usize,
    filter: MessageFilter,
    cancel: &CancelFlag,
) -> Result<Vec<HistoryMessage>> {
    let (source, length) = open(located)?;
    let mut tail = FIRST_TAIL_BYTES;
    loop {
        let start = length.saturating_sub(tail);
        let index = index(&source, start, length, cancel)?;
        let messages = cancel.choose(&index, |tree| tree.messages(filter))?;
        let has_boundary = index.entries().any(|entry| entry.is_compact_boundary());
        // One more than needed: the first one may have lost those that belong before it.
        if start == 0 || (messages.len() > count && !has_boundary) {
            let messages = &messages[messages.len().saturating_sub(count)..];
            return decode(&source, messages, start, cancel);
        }
        tail = tail.saturating_mul(4);
    }
}

fn decode(
    source: &Source,
    messages: &[MessageRef],
    start: u64,
    cancel: &CancelFlag,
) -> Result<Vec<HistoryMessage>> {
    let mut reader = SpanReader::default();
    let mut decoded = Vec::with_capacity(messages.len());
    for message in messages {
        cancel.check()?;
        let span = Span::from(*message).shifted(start);
        decoded.push(stream::message(reader.decode(source, span)?, span, &Parents::default()));
    }
    Ok(decoded)
}
