//! Renames, tags, archives and deletes sessions.

use std::io::{self, Write as _};
use std::path::Path;

use claude_wire::transcript::{WINDOW, tag_line, title_line, with_leading_newline};

use super::stored::StoredChange;
use super::{History, errors, time};
use crate::error::Result;
use crate::id::SessionId;
use crate::session_files::members::SessionFiles;
use crate::session_files::{live, open, private_file};

/// How often a change is written until it stays.
const ATTEMPTS: usize = 5;

impl History {
    /// Gives a session a title, which is trimmed. The session becomes the most recently modified one.
    ///
    /// # Errors
    /// [`InvalidHistoryChange`](crate::ErrorKind::InvalidHistoryChange) when the title is blank,
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the transcript cannot be written.
    ///
    /// # Cancel safety
    /// The change is made or not made, never in part.
    pub async fn rename(&self, session_id: &SessionId, title: impl Into<String>) -> Result<()> {
        let (id, title) = (session_id.clone(), title.into());
        if let Some(stored) = self.stored() {
            return self.change_stored(stored, &id, StoredChange::Title(&title)).await;
        }
        self.run(move |projects, _| {
            let line = title_line(id.as_str(), &title);
            let line = line.map_err(|error| errors::invalid_change(&id, error))?;
            append(&projects.require(&id)?, &line)
        })
        .await
    }

    /// Sets the tag of a session, or removes it with `None`. The tag is trimmed and loses invisible
    /// characters. The session becomes the most recently modified one.
    ///
    /// # Errors
    /// As [`rename`](Self::rename).
    ///
    /// # Cancel safety
    /// The change is made or not made, never in part.
    pub async fn tag(&self, session_id: &SessionId, tag: Option<&str>) -> Result<()> {
        if let Some(stored) = self.stored() {
            return self.change_stored(stored, session_id, StoredChange::Tag(tag)).await;
        }
        let (id, tag) = (session_id.clone(), tag.map(str::to_owned));
        self.run(move |projects, _| {
            let line = tag_line(id.as_str(), tag.as_deref());
            let line = line.map_err(|error| errors::invalid_change(&id, error))?;
            append(&projects.require(&id)?, &line)
        })
        .await
    }

    /// Archives a session: every copy of it. The transcript does not change. A prompt that is sent
    /// later ends the archiving.
    ///
    /// # Errors
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the file beside the transcript cannot be
    /// written.
    ///
    /// # Cancel safety
    /// The change continues in the background.
    pub async fn archive(&self, session_id: &SessionId) -> Result<()> {
        self.set_archived(session_id, true).await
    }

    /// Takes a session out of the archive.
    ///
    /// # Errors
    /// As [`archive`](Self::archive).
    ///
    /// # Cancel safety
    /// The change continues in the background.
    pub async fn unarchive(&self, session_id: &SessionId) -> Result<()> {
        self.set_archived(session_id, false).await
    }

    async fn set_archived(&self, session_id: &SessionId, archived: bool) -> Result<()> {
        self.require_disk(if archived { "archive" } else { "unarchive" })?;
        let id = session_id.clone();
        self.run(move |projects, _| {
            let copies = projects.copies(&id)?;
            if copies.is_empty() {
                projects.require(&id)?;
            }
            let text = format!(r#"{{"archived":{archived},"at":"{}","by":"sdk"}}"#, time::now());
            for (located, _) in copies {
                let folder = located.folder();
                let write = || {
                    private_file::create_dir(&folder)?;
                    private_file::replace(&located.archive_file(), text.as_bytes())
                };
                write().map_err(|error| errors::io("write to", &folder, error))?;
            }
            Ok(())
        })
        .await
    }

    /// Returns whether a CLI on this machine is using the session, according to the registry of
    /// running CLIs in the config directory.
    ///
    /// A CLI that has just started may not be registered yet, and CLIs on other machines or in other
    /// containers cannot be recognized. Where a process cannot be checked, its entry counts as live.
    ///
    /// # Errors
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the registry cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn is_live(&self, session_id: &SessionId) -> Result<bool> {
        self.require_disk("is_live")?;
        let id = session_id.clone();
        self.run(move |projects, _| Ok(live::process_of(&projects.config.path, &id)?.is_some()))
            .await
    }

    /// Deletes a session: its transcript, then the folder with its subagents and tool results.
    /// Checkpoints of files in `file-history` and other copies of the session are kept, and so are its
    /// [approvals](crate::approval), which [`Approvals::delete_session`](crate::approval::Approvals::delete_session)
    /// deletes.
    ///
    /// A session that a CLI is using is not deleted: the CLI would write a new transcript with
    /// only the later entries. See [`is_live`](Self::is_live) for what is recognized.
    ///
    /// # Errors
    /// [`SessionLive`](crate::ErrorKind::SessionLive) when a CLI is using the session,
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when something cannot be removed.
    ///
    /// # Cancel safety
    /// The deletion continues in the background.
    pub async fn delete(&self, session_id: &SessionId) -> Result<()> {
        if let Some(stored) = self.stored() {
            return self.delete_stored(stored, session_id).await;
        }
        let id = session_id.clone();
        self.run(move |projects, _| match live::process_of(&projects.config.path, &id)? {
            Some(pid) => Err(errors::live(&id, pid)),
            None => projects.require(&id)?.remove(),
        })
        .await
    }

    /// Deletes a session even if a CLI is using it, see [`delete`](Self::delete).
    ///
    /// # Errors
    /// As [`delete`](Self::delete), except for [`SessionLive`](crate::ErrorKind::SessionLive).
    ///
    /// # Cancel safety
    /// The deletion continues in the background.
    pub async fn force_delete(&self, session_id: &SessionId) -> Result<()> {
        if let Some(stored) = self.stored() {
            return self.delete_stored(stored, session_id).await;
        }
        let id = session_id.clone();
        self.run(move |projects, _| projects.require(&id)?.remove()).await
    }
}

/// Appends a line to a transcript, and again if it was overwritten.
fn append(located: &SessionFiles, line: &[u8]) -> Result<()> {
    for _ in 0..ATTEMPTS {
        let attempt = append_once(&located.path, line);
        match attempt {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => return Err(errors::io("append to", &located.path, error)),
        }
    }
    Err(errors::overwritten(&located.path))
}

/// Appends a line in one write, and returns whether the file at this path has it.
fn append_once(path: &Path, line: &[u8]) -> io::Result<bool> {
    let (mut file, metadata) = open::open_append(path)?;
    let mut last = [0];
    let has_last = metadata.len() > 0 && open::read_at(&file, &mut last, metadata.len() - 1)? == 1;
    let bytes = with_leading_newline(line, has_last.then_some(last[0]));
    // Not `write_all`: the rest of a short write could end up behind another writer's line. The
    // next attempt starts with a line break.
    let written = loop {
        match file.write(&bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    drop(file);
    Ok(written == bytes.len() && ends_with_line(path, line)?)
}

/// Returns whether the line is near the end of the file. The file is opened again, since the CLI may
/// have replaced it.
pub(super) fn ends_with_line(path: &Path, line: &[u8]) -> io::Result<bool> {
    let (file, metadata) = match open::open(path) {
        Ok(opened) => opened,
        Err(error) if open::is_absent(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    let length = line.len() + WINDOW;
    let mut tail = vec![0; length];
    let start = metadata.len().saturating_sub(length as u64);
    let read = open::read_at(&file, &mut tail, start)?;
    // Without the line break at the end.
    let text = &line[..line.len() - 1];
    Ok(tail[..read].split(|byte| *byte == b'\n').any(|found| found == text))
}
