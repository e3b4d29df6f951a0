//! Writes a session of a store into a project folder, as transcripts that the CLI can resume.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::pages::Pages;
use super::upload::{SESSION_STORE, limited};
use crate::driver::require_runtime;
use crate::error::{Error, ErrorKind};
use crate::history::errors;
use crate::id::SessionId;
use crate::session_files::private_file;
use crate::tasks::{self, BoxFuture, Boxed, Unboxing};
use claude_session_store::{
    EntryId, EntryPage, Load, LoadScope, Sequence, SessionKey, SessionStore, StoreError,
    StoreErrorKind, StoreFuture, StoredEntry, Subpath,
};

/// The start of an entry with the metadata of a subagent, as the CLI writes it.
const METADATA: &str = r#"{"type":"agent_metadata""#;

/// What a store had of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// The number of entries of all transcripts, metadata included. 0 if the store has no main transcript of
    /// this session; then nothing was written.
    pub(crate) entries: u64,
    /// The bytes of their lines.
    pub(crate) bytes: u64,
    /// The sequence number of the last entry.
    pub(crate) last: Sequence,
    /// The ID of the last entry.
    pub(crate) last_id: Option<EntryId>,
}

/// Writes `<folder>/<session>.jsonl`, and for each subpath `<folder>/<session>/<subpath>.jsonl` with the
/// metadata of the subagent in a `.meta.json` beside it. Creates the folder.
///
/// Transcripts get their names when all are complete, the main one last, and never replace a file: one with
/// the same contents is kept, another one is an error, and existing metadata is kept. Loads page by page,
/// and needs memory for one page. Dropping the future leaves nothing behind, except for transcripts if it
/// is dropped at the very end.
pub(crate) fn write_session<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    project_folder: &'a Path,
) -> BoxFuture<'a, Result<Written, Error>> {
    Box::pin(async move {
        let mut writer = SessionWriter::new(key.session(), project_folder);
        writer.load(store, key, LoadScope::All).await?;
        blocking(move || writer.publish()).await
    })
}

/// Writes one transcript, without metadata, into a file of a private temporary folder. Returns `None` if the
/// transcript has no entries.
pub(crate) fn spool<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    transcript: LoadScope<'a>,
) -> BoxFuture<'a, Result<Option<(TemporaryFolder, PathBuf)>, Error>> {
    Box::pin(async move {
        let mut writer = SessionWriter::new(key.session(), &std::env::temp_dir());
        writer.load(store, key, transcript).await?;
        let SessionWriter { temporary, transcripts, .. } = writer;
        let number =
            transcripts.iter().find(|(_, file)| file.has_lines).map(|(_, file)| file.number);
        Ok(temporary.zip(number).map(|(folder, number)| {
            let path = folder.lines(number);
            (folder, path)
        }))
    })
}

/// Loads a page, whose entries must be in order: a store that repeats them would never come to an end.
pub(crate) fn load_page<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    load: Load<'a>,
) -> StoreFuture<'a, EntryPage> {
    Box::pin(async move {
        let page = limited(store.load(key, load)).await?;
        if page.more && page.entries.is_empty() {
            return Err(empty_page(key));
        }
        let mut before = load.after;
        for entry in &page.entries {
            if entry.sequence <= before {
                return Err(out_of_order(key, entry.sequence, before));
            }
            before = entry.sequence;
        }
        Ok(page)
    })
}

pub(crate) fn out_of_order(key: &SessionKey, entry: Sequence, before: Sequence) -> StoreError {
    let session = key.session();
    broken_store(&format!(
        "entry {} after entry {} of session {session}",
        entry.get(),
        before.get()
    ))
}

pub(crate) fn empty_page(key: &SessionKey) -> StoreError {
    broken_store(&format!("an empty page of session {} that is not the last one", key.session()))
}

fn broken_store(found: &str) -> StoreError {
    let message = format!("the store returned {found}");
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "the store or its data is damaged: run \
         the suite in `claude_session_store::conformance` on a custom store, or restore a backup",
    )
}

/// Creates the error of a call that failed because of its store.
pub(crate) fn store_failed(action: &str, key: &SessionKey, error: StoreError) -> Error {
    failed_store(&format!("cannot {action} session {}", key.session()), error)
        .with(|facts| facts.session_id = Some(key.session().clone()))
}

/// Creates the error of a call that failed because of its session store.
pub(crate) fn failed_store(failure: &str, error: StoreError) -> Error {
    failed_in(SESSION_STORE, failure, error)
}

/// Creates the error of a call that failed because of a store, whose own help takes precedence.
pub(crate) fn failed_in(store: &str, failure: &str, error: StoreError) -> Error {
    if let Some(cause) = no_runtime(&error) {
        return cause;
    }
    let kind = match error.kind() {
        StoreErrorKind::Superseded => ErrorKind::Superseded,
        _ => ErrorKind::StoreFailed,
    };
    let again = if error.is_retryable() { ", then try again" } else { "" };
    let general = format!("check the {store}{again}");
    let help = error.help().unwrap_or(&general).to_owned();
    Error::new(kind, format!("{failure}: {}", error.message())).caused_by(error).with_help(help)
}

/// Returns the cause if the runtime cannot make requests: a mistake of the host, not a failure of the store.
fn no_runtime(error: &StoreError) -> Option<Error> {
    let cause = std::error::Error::source(error)?.downcast_ref::<Error>()?;
    (cause.kind() == ErrorKind::NoRuntime).then(|| cause.clone())
}

pub(crate) fn exists(id: &SessionId, path: &Path) -> Error {
    let message =
        format!("cannot write session {id}: \"{}\" exists and has other contents", path.display());
    Error::new(ErrorKind::InvalidHistoryChange, message)
        .with_help("use another config directory, or move the file away")
        .with(|facts| facts.session_id = Some(id.clone()))
}

/// Runs file operations on a blocking thread.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Unboxing<BoxFuture<'static, Result<Boxed, Error>>, T> {
    Unboxing::new(blocking_boxed(Box::new(move || work().map(|value| Box::new(value) as Boxed))))
}

fn blocking_boxed(
    work: Box<dyn FnOnce() -> Result<Boxed, Error> + Send>,
) -> BoxFuture<'static, Result<Boxed, Error>> {
    Box::pin(async move {
        let runtime = require_runtime()?;
        tasks::joined(tasks::spawn_blocking(&runtime, work).await)?
    })
}

/// Transcripts that are being written.
struct SessionWriter {
    id: SessionId,
    folder: PathBuf,
    temporary: Option<TemporaryFolder>,
    /// Sorted by subpath.
    transcripts: Vec<(Option<Subpath>, TranscriptFile)>,
    written: Written,
}

/// A transcript in the temporary folder. Its name there is a number, because subpaths that differ can name
/// the same file on some file systems.
#[derive(Clone, Copy)]
struct TranscriptFile {
    number: usize,
    has_lines: bool,
    has_metadata: bool,
}

/// What a page adds to a transcript.
#[derive(Default)]
struct Addition {
    lines: Vec<u8>,
    metadata: Option<String>,
}

impl SessionWriter {
    fn new(id: &SessionId, folder: &Path) -> Self {
        Self {
            id: id.clone(),
            folder: folder.to_owned(),
            temporary: None,
            transcripts: Vec::new(),
            written: Written::default(),
        }
    }

    /// Loads entries into the temporary files.
    async fn load(
        &mut self,
        store: &dyn SessionStore,
        key: &SessionKey,
        transcript: LoadScope<'_>,
    ) -> Result<(), Error> {
        let mut pages = Pages::new();
        loop {
            let mut load = Load::all();
            load.subpath = transcript;
            let page = pages.next(store, key, load).await;
            let page = page.map_err(|error| store_failed("load", key, error))?;
            let Some(page) = page.filter(|page| !page.entries.is_empty()) else { return Ok(()) };
            let mut writer = std::mem::replace(self, Self::new(&self.id, &self.folder));
            let add = move || writer.add(&page.entries).map(|()| writer);
            *self = blocking(add).await?;
        }
    }

    /// Adds entries to the temporary files.
    fn add(&mut self, entries: &[StoredEntry]) -> Result<(), Error> {
        // By the number of the transcript.
        let mut additions: Vec<Addition> = Vec::new();
        for entry in entries {
            let number = self.number(entry.subpath.as_ref());
            additions.resize_with(additions.len().max(number + 1), Addition::default);
            let addition = &mut additions[number];
            let metadata = entry.subpath.as_ref().and_then(|_| metadata_of(&entry.text));
            match metadata {
                Some(metadata) => addition.metadata = Some(metadata.into_owned()),
                None => push_line(&mut addition.lines, &entry.text),
            }
            self.written.entries += 1;
            self.written.bytes += entry.text.len() as u64 + 1;
            self.written.last = entry.sequence;
        }
        if let Some(last) = entries.iter().rfind(|entry| entry.id.has_uuid()) {
            self.written.last_id = Some(last.id.clone());
        }
        let temporary = match &self.temporary {
            Some(temporary) => temporary,
            None => self.temporary.insert(TemporaryFolder::create(&self.folder, &self.id)?),
        };
        for (_, file) in &mut self.transcripts {
            let Some(addition) = additions.get(file.number) else { continue };
            if !addition.lines.is_empty() {
                let path = temporary.lines(file.number);
                append(&path, file.has_lines, &addition.lines)
                    .map_err(|error| errors::io("write", &path, error))?;
                file.has_lines = true;
            }
            if let Some(metadata) = &addition.metadata {
                let path = temporary.metadata(file.number);
                fs::remove_file(&path)
                    .or_else(|error| if file.has_metadata { Err(error) } else { Ok(()) })
                    .and_then(|()| private_file::create(&path)?.write_all(metadata.as_bytes()))
                    .map_err(|error| errors::io("write", &path, error))?;
                file.has_metadata = true;
            }
        }
        Ok(())
    }

    /// Returns the number of a transcript, which is new if the subpath is.
    fn number(&mut self, subpath: Option<&Subpath>) -> usize {
        let found = self.transcripts.binary_search_by(|(known, _)| known.as_ref().cmp(&subpath));
        let place = found.unwrap_or_else(|place| {
            let number = self.transcripts.len();
            let file = TranscriptFile { number, has_lines: false, has_metadata: false };
            self.transcripts.insert(place, (subpath.cloned(), file));
            place
        });
        self.transcripts[place].1.number
    }

    fn main(&self) -> Option<&TranscriptFile> {
        let (subpath, file) = self.transcripts.first()?;
        subpath.is_none().then_some(file)
    }

    /// Gives all files their names.
    fn publish(self) -> Result<Written, Error> {
        let has_main = self.main().is_some_and(|main| main.has_lines);
        let Some(temporary) = self.temporary.as_ref().filter(|_| has_main) else {
            return Ok(Written::default());
        };
        let mut created = Vec::new();
        let published = self.publish_from(temporary, &mut created);
        if published.is_err() {
            for path in created {
                // The error of the publication is the one to report.
                drop(fs::remove_file(path));
            }
        }
        published.map(|()| self.written)
    }

    fn publish_from(
        &self,
        temporary: &TemporaryFolder,
        created: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let main = self.folder.join(format!("{}.jsonl", self.id));
        let main_lines = self.main().map(|file| temporary.lines(file.number));
        if let Some(lines) = &main_lines {
            // Before the other transcripts, which are of no use without this one.
            self.check_target(lines, &main)?;
        }
        for (subpath, file) in &self.transcripts {
            let Some(subpath) = subpath else { continue };
            let target = self.create_parents(subpath)?;
            if file.has_lines {
                let target = with_suffix(&target, ".jsonl");
                self.publish_file(&temporary.lines(file.number), &target, created)?;
            }
            let metadata = with_suffix(&target, ".meta.json");
            // The CLI replaces metadata as a whole, so that what it has is newer.
            if file.has_metadata && metadata.symlink_metadata().is_err() {
                self.publish_file(&temporary.metadata(file.number), &metadata, created)?;
            }
        }
        match main_lines {
            Some(lines) => self.publish_file(&lines, &main, created),
            None => Ok(()),
        }
    }

    fn publish_file(
        &self,
        from: &Path,
        target: &Path,
        created: &mut Vec<PathBuf>,
    ) -> Result<(), Error> {
        let publish = || {
            // The name must not become durable before the contents.
            reopen(from)?.sync_data()?;
            private_file::publish(from, target)
        };
        match publish() {
            Ok(()) => created.push(target.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.check_target(from, target)?;
            }
            Err(error) => return Err(errors::io("create", target, error)),
        }
        Ok(())
    }

    /// Fails if a file exists with other contents.
    fn check_target(&self, from: &Path, target: &Path) -> Result<(), Error> {
        match private_file::has_contents_of(target, from) {
            Ok(true) => Ok(()),
            Ok(false) => Err(exists(&self.id, target)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(errors::io("read", target, error)),
        }
    }

    /// Creates the folders of a subpath, and returns its path without an extension.
    fn create_parents(&self, subpath: &Subpath) -> Result<PathBuf, Error> {
        let mut path = self.folder.join(self.id.as_str());
        for part in subpath.as_str().split('/') {
            private_file::create_dir(&path).map_err(|error| errors::io("create", &path, error))?;
            path.push(part);
        }
        Ok(path)
    }
}

/// Returns the metadata of a subagent without its type; `None` for all other entries.
pub(crate) fn metadata_of(text: &str) -> Option<Cow<'_, str>> {
    if let Some(rest) = text.strip_prefix(METADATA) {
        match rest.trim_start().strip_prefix(',') {
            Some(members) => return Some(Cow::Owned(format!("{{{members}"))),
            None => return Some(Cow::Borrowed("{}")),
        }
    }
    if !text.contains("agent_metadata") {
        return None;
    }
    let object: Map<String, Value> = serde_json::from_str(text).ok()?;
    if *object.get("type")? != "agent_metadata" {
        return None;
    }
    let mut metadata = Map::new();
    for (name, value) in object {
        if name != "type" {
            metadata.insert(name, value);
        }
    }
    Some(Cow::Owned(Value::Object(metadata).to_string()))
}

/// Adds an entry as one line. Between the tokens of JSON, a line break is as good as a space.
fn push_line(lines: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        lines.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
    }
    lines.push(b'\n');
}

fn append(path: &Path, exists: bool, bytes: &[u8]) -> io::Result<()> {
    let mut file = if exists { reopen(path)? } else { private_file::create(path)? };
    file.write_all(bytes)
}

/// Opens a file that this process created. The folder belongs to the agent, which may have put a link or a pipe in its
/// place.
fn reopen(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags((libc::O_NOFOLLOW | libc::O_NONBLOCK) as _);
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// A folder for incomplete files, which is removed with its contents.
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates the folder in the project folder: files are renamed, which needs the same file system.
    fn create(folder: &Path, id: &SessionId) -> Result<Self, Error> {
        let path = folder.join(format!("{id}.{}.tmp", crate::random::uuid()));
        let create = || {
            private_file::create_dir_all(folder)?;
            private_file::create_dir(&path)
        };
        create().map_err(|error| errors::io("create", &path, error))?;
        Ok(Self(path))
    }

    fn lines(&self, number: usize) -> PathBuf {
        self.0.join(format!("{number}.jsonl"))
    }

    fn metadata(&self, number: usize) -> PathBuf {
        self.0.join(format!("{number}.meta.json"))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!("cannot remove \"{}\": {error}", self.0.display());
        }
    }
}

#[cfg(test)]
mod tests;
