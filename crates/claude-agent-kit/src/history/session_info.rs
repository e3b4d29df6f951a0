//! What lists show of a session.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use claude_wire::transcript::{Ends, parse_timestamp};
use serde_json::Value;

use super::{errors, time};
use crate::error::Result;
use crate::id::SessionId;
use crate::session_files::members::SessionFiles;
use crate::session_files::open;
use crate::session_files::project::Projects;

/// The longest title in `custom-title.json` that is shown, in characters.
const MAX_TITLE: usize = 200;

/// What a list shows of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The ID of the session.
    pub session_id: SessionId,
    /// The title, or else the last prompt, a summary, or the first prompt. Never empty.
    pub summary: String,
    /// When the transcript was last written.
    pub last_modified: SystemTime,
    /// The size of the transcript in bytes; `None` in a store.
    pub file_size: Option<u64>,
    /// The title that a user gave, or else the one that the model gave.
    pub custom_title: Option<String>,
    /// The first prompt, cut to 200 characters.
    pub first_prompt: Option<String>,
    /// The Git branch of the newest entry.
    pub git_branch: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The tag.
    pub tag: Option<String>,
    /// When the session began.
    pub created_at: Option<SystemTime>,
    /// Whether the session is archived; `None` if it never was. A prompt that is newer than the
    /// archiving ends it.
    pub archived: Option<bool>,
    /// The transcript; `None` in a store.
    pub path: Option<PathBuf>,
}

/// Reads what a list shows of one session.
pub(super) fn read(projects: &Projects, located: &SessionFiles) -> Result<Option<SessionInfo>> {
    let read = || {
        let mut buffers = open::EndBuffers::default();
        let (ends, metadata) = buffers.open(&located.path)?;
        Ok(from_ends(projects, located, &ends, &metadata))
    };
    match read() {
        Ok(info) => Ok(info),
        Err(error) if open::is_absent(&error) => Ok(None),
        Err(error) => Err(errors::io("read the transcript", &located.path, error)),
    }
}

/// Returns what a list shows, from the ends of the transcript and the files beside it.
pub(super) fn from_ends(
    projects: &Projects,
    located: &SessionFiles,
    ends: &Ends<'_>,
    metadata: &Metadata,
) -> Option<SessionInfo> {
    // Most sessions have no folder, so that it is looked for once and not for each of its files.
    let has_folder = located.folder().symlink_metadata().is_ok();
    let title = if has_folder { sidecar_title(located, ends) } else { None };
    let info = ends.info(title.as_deref())?;
    let directory = projects.directory.as_deref().and_then(Path::to_str).map(str::to_owned);
    Some(SessionInfo {
        session_id: located.id.clone(),
        summary: info.summary,
        last_modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        file_size: Some(metadata.len()),
        custom_title: info.custom_title,
        first_prompt: info.first_prompt,
        git_branch: info.git_branch,
        cwd: info.cwd.or(directory),
        tag: info.tag,
        created_at: info.created_at.and_then(time::from_millis),
        archived: if has_folder { archived(located, ends) } else { None },
        path: Some(located.path.clone()),
    })
}

/// Returns the title that the CLI keeps beside the transcript, if it may be used.
pub(super) fn sidecar_title(located: &SessionFiles, ends: &Ends<'_>) -> Option<String> {
    if !ends.needs_sidecar_title() {
        return None;
    }
    let value = open::read_json(&located.title_file())?;
    let title = shown_title(value.get("customTitle")?.as_str()?);
    (!title.is_empty()).then_some(title)
}

/// Returns a title as one line: a space in place of characters that cannot be seen, and cut.
fn shown_title(title: &str) -> String {
    let mut shown = String::new();
    let mut is_after_invisible = false;
    for character in title.trim().chars() {
        let is_invisible = character.is_control()
            || matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(character, '\u{2060}'..='\u{206f}' | '\u{feff}');
        match (is_invisible, is_after_invisible) {
            (false, _) => shown.push(character),
            (true, false) => shown.push(' '),
            (true, true) => {}
        }
        is_after_invisible = is_invisible;
    }
    shown.chars().take(MAX_TITLE).collect::<String>().trim().to_owned()
}

fn archived(located: &SessionFiles, ends: &Ends<'_>) -> Option<bool> {
    let value = open::read_json(&located.archive_file())?;
    let archived = value.get("archived")?.as_bool()?;
    let at = value.get("at").and_then(Value::as_str).and_then(parse_timestamp);
    Some(archived && !at.is_some_and(|at| ends.has_prompt_after(at)))
}
