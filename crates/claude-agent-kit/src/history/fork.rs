//! Copies a session under a new ID.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use claude_wire::transcript::{Ends, Fork, ForkIds, Index};

use super::source::{Source, Span, SpanReader};
use super::{CancelFlag, History, errors, session_info, time, transcript};
use crate::error::Result;
use crate::id::SessionId;
use crate::session_files::members::SessionFiles;
use crate::session_files::open;
use crate::session_files::private_file;

/// How a session is forked. Default: as a whole, with the title of the session and ` (fork)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until they are given to `History::fork`"]
pub struct ForkOptions {
    up_to: Option<String>,
    title: Option<String>,
}

impl ForkOptions {
    /// Creates options that fork a session as a whole.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the message up to which the session is copied, inclusive. Default: the last one.
    pub fn up_to(mut self, message_id: impl Into<String>) -> Self {
        self.up_to = Some(message_id.into());
        self
    }

    /// Sets the title of the copy. Default: the title of the session and ` (fork)`.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

impl History {
    /// Copies a session under a new ID in the same project folder, and returns the ID. All entries
    /// have new IDs too. Subagents, tool results and checkpoints of files are not copied.
    ///
    /// The copy appears when it is complete, and never replaces a file.
    ///
    /// # Errors
    /// [`InvalidHistoryChange`](crate::ErrorKind::InvalidHistoryChange) when the title is blank, the
    /// message does not exist or there is nothing to copy,
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when a file cannot be read or written.
    ///
    /// # Cancel safety
    /// Stops without a copy, unless the copy was complete already.
    pub async fn fork(&self, session_id: &SessionId, options: ForkOptions) -> Result<SessionId> {
        if let Some(stored) = self.stored() {
            return self.fork_stored(stored, session_id, options).await;
        }
        let id = session_id.clone();
        self.run(move |projects, cancel| fork(&projects.require(&id)?, &options, cancel)).await
    }
}

pub(super) fn fork(
    located: &SessionFiles,
    options: &ForkOptions,
    cancel: &CancelFlag,
) -> Result<SessionId> {
    let (source, index) = transcript::read(located, cancel)?;
    let new_id = crate::random::uuid();
    let title = match &options.title {
        Some(title) => title.clone(),
        None => default_title(located, &source)?,
    };
    let target = located.path.with_file_name(format!("{new_id}.jsonl"));
    // Not the name of a session, so that no list shows a part of the copy.
    let temporary = located.path.with_file_name(format!("{new_id}.jsonl.tmp"));
    let copy = Copy { located, source: &source, index: &index, cancel };
    let write = || {
        copy.write(options.up_to.as_deref(), &new_id, &title, &temporary)?;
        private_file::publish(&temporary, &target)
            .map_err(|error| errors::io("create", &target, error))
    };
    let result = write();
    // Already gone if it was renamed; not created if the options are invalid.
    drop(fs::remove_file(&temporary));
    result.map(|()| SessionId::from(new_id))
}

fn default_title(located: &SessionFiles, source: &Source) -> Result<String> {
    let read = || {
        let mut buffers = open::EndBuffers::default();
        let length = source.file.metadata()?.len();
        let ends: Ends<'_> = buffers.read(&source.file, length)?;
        Ok(ends.fork_title(session_info::sidecar_title(located, &ends).as_deref()))
    };
    read().map_err(|error| errors::io("read", &located.path, error))
}

/// A copy that is being written.
struct Copy<'a> {
    located: &'a SessionFiles,
    source: &'a Source,
    index: &'a Index,
    cancel: &'a CancelFlag,
}

impl Copy<'_> {
    fn write(&self, up_to: Option<&str>, new_id: &str, title: &str, path: &Path) -> Result<()> {
        let id = &self.located.id;
        let invalid = |error| errors::invalid_change(id, error);
        let is_cancelled = || self.cancel.is_set();
        let plan = self.index.cancellable_tree(&is_cancelled).fork(up_to);
        self.cancel.check()?;
        let plan = plan.map_err(invalid)?;
        let ids = ForkIds::new(id.as_str(), new_id, time::now());
        let mut fork = Fork::new(&plan, ids, || uuid::Uuid::new_v4().into_bytes());
        let mut reader = SpanReader::default();
        for entry in plan.state_entries() {
            self.cancel.check()?;
            fork.carry(entry, reader.read(self.source, Span::from(entry))?);
        }
        if fork.needs_all_entries() {
            for entry in plan.left_out_entries() {
                self.cancel.check()?;
                fork.note(entry, reader.read(self.source, Span::from(entry))?);
            }
        }
        let failed = |error| errors::io("write", path, error);
        let mut output = BufWriter::new(private_file::create(path).map_err(failed)?);
        output.write_all(&fork.header()).map_err(failed)?;
        for entry in plan.entries() {
            self.cancel.check()?;
            let bytes = reader.read(self.source, Span::from(entry))?;
            let copy = fork.entry(entry, bytes);
            let copy = copy.map_err(|error| errors::changed(&self.source.path).caused_by(error))?;
            output.write_all(&copy).map_err(failed)?;
        }
        let trailer = fork.trailer(title).map_err(invalid)?;
        output.write_all(&trailer).map_err(failed)?;
        let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
        // The name must not become durable before the contents.
        file.sync_data().map_err(failed)
    }
}
