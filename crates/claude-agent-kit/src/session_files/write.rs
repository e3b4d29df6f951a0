//! Writes a session into a project folder, as transcripts that the CLI can resume.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use claude_agent_core::session::metadata_file;

use super::members::SessionFiles;
use super::{errors, open, private_file};
use crate::error::Error;
use crate::id::SessionId;
use claude_session_store::{EntryId, Sequence, StoredEntry, Subpath};

/// What a store had of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionContents {
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

/// Transcripts that are being written: `<folder>/<session>.jsonl`, and for each subpath
/// `<folder>/<session>/<subpath>.jsonl` with the metadata of the subagent in a `.meta.json` beside it.
///
/// Transcripts get their names when all are complete, the main one last, and never replace a file: one with
/// the same contents is kept, another one is an error, and existing metadata is kept. A writer that is dropped
/// leaves nothing behind.
pub(crate) struct SessionWriter {
    id: SessionId,
    folder: PathBuf,
    temporary: Option<TemporaryFolder>,
    /// Sorted by subpath.
    transcripts: Vec<(Option<Subpath>, TranscriptFile)>,
    written: SessionContents,
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
    /// Prepares a session for this folder, which is created with the first entries.
    pub(crate) fn new(id: &SessionId, folder: &Path) -> Self {
        Self {
            id: id.clone(),
            folder: folder.to_owned(),
            temporary: None,
            transcripts: Vec::new(),
            written: SessionContents::default(),
        }
    }

    /// Adds entries to the temporary files.
    pub(crate) fn add(&mut self, entries: &[StoredEntry]) -> Result<(), Error> {
        // By the number of the transcript.
        let mut additions: Vec<Addition> = Vec::new();
        for entry in entries {
            let number = self.number(entry.subpath.as_ref());
            additions.resize_with(additions.len().max(number + 1), Addition::default);
            let addition = &mut additions[number];
            let metadata = entry.subpath.as_ref().and_then(|_| metadata_file(&entry.text));
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

    /// Returns the only transcript, in a folder that is removed when it is dropped; `None` if it has no lines.
    pub(crate) fn into_transcript(self) -> Option<(TemporaryFolder, PathBuf)> {
        let number = self.transcripts.iter().find(|(_, file)| file.has_lines)?.1.number;
        let folder = self.temporary?;
        let path = folder.lines(number);
        Some((folder, path))
    }

    /// Gives all files their names.
    pub(crate) fn publish(self) -> Result<SessionContents, Error> {
        let has_main = self.main().is_some_and(|main| main.has_lines);
        let Some(temporary) = self.temporary.as_ref().filter(|_| has_main) else {
            return Ok(SessionContents::default());
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
        let main = SessionFiles::in_folder(&self.folder, self.id.clone()).path;
        let main_lines = self.main().map(|file| temporary.lines(file.number));
        if let Some(lines) = &main_lines {
            // Before the other transcripts, which are of no use without this one.
            self.check_target(lines, &main)?;
        }
        for (subpath, file) in &self.transcripts {
            let Some(subpath) = subpath else { continue };
            let target = self.create_parents(subpath)?;
            if file.has_lines {
                self.publish_file(&temporary.lines(file.number), &target, created)?;
            }
            let metadata = target.with_extension("meta.json");
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
            open::open_append(from)?.0.sync_data()?;
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
            Ok(false) => Err(errors::exists(&self.id, target)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(errors::io("read", target, error)),
        }
    }

    /// Creates the folders of a transcript, and returns its path.
    fn create_parents(&self, subpath: &Subpath) -> Result<PathBuf, Error> {
        let mut path = self.folder.join(self.id.as_str());
        for part in format!("{subpath}.jsonl").split('/') {
            private_file::create_dir(&path).map_err(|error| errors::io("create", &path, error))?;
            path.push(part);
        }
        Ok(path)
    }
}

/// Adds an entry as one line. Between the tokens of JSON, a line break is as good as a space.
fn push_line(lines: &mut Vec<u8>, text: &str) {
    for byte in text.bytes() {
        lines.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
    }
    lines.push(b'\n');
}

fn append(path: &Path, exists: bool, bytes: &[u8]) -> io::Result<()> {
    let mut file = if exists { open::open_append(path)?.0 } else { private_file::create(path)? };
    file.write_all(bytes)
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
