//! The lines with new entries of transcripts, and the transcripts that their paths name.

use serde::de::Error as _;
use serde_json::Error;
use serde_json::value::RawValue;

use super::is_uuid;
use crate::error::DecodeError;
use crate::schema::Reader;

/// A `transcript_mirror` line: new entries of one file.
#[derive(Debug)]
#[non_exhaustive]
pub struct MirrorFrame<'a> {
    /// The path of the file on the machine of the CLI.
    pub path: String,
    /// The entries, each as it is in the line.
    pub entries: Vec<&'a RawValue>,
}

impl<'a> MirrorFrame<'a> {
    /// Reads a line.
    ///
    /// # Errors
    /// If the line is not JSON, or lacks the path or the entries.
    pub fn read(line: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read_fields(line).map_err(DecodeError::from_json)
    }

    fn read_fields(line: &'a [u8]) -> serde_json::Result<Self> {
        let mut reader = Reader::new(std::str::from_utf8(line).map_err(Error::custom)?);
        let mut fields = reader.object("an object")?;
        let (mut path, mut entries) = (None, None);
        while let Some(name) = fields.next_key()? {
            match &*name {
                "filePath" => path = Some(fields.reader.string()?.into_owned()),
                "entries" => entries = Some(fields.reader.raw_items()?),
                _ => fields.reader.skip()?,
            }
        }
        reader.end()?;
        let path = path.ok_or_else(|| Error::missing_field("filePath"))?;
        let entries = entries.ok_or_else(|| Error::missing_field("entries"))?;
        Ok(Self { path, entries })
    }
}

/// The maximum number of folders between `subagents` and a transcript; the CLI uses three levels.
const MAX_FOLDERS: usize = 8;

/// A transcript, as the path of its file names it.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptPath<'a> {
    /// The name of the project folder.
    pub project: &'a str,
    /// The session ID.
    pub session: &'a str,
    /// The path below the session folder with `/`, without `.jsonl`; `None` for the main transcript.
    pub subpath: Option<String>,
}

impl<'a> TranscriptPath<'a> {
    /// Reads `<config>/projects/<project>/<session>.jsonl`, or below that folder
    /// `<session>/subagents/…/<name>.jsonl` with at most eight folders in between. Returns `None` for every
    /// other path: the CLI keeps further files in the folder of a session, which are not transcripts.
    ///
    /// The config directory belongs to the machine of the CLI, which may be another one, so only the parts
    /// after `projects` count. The last `projects` that fits is the right one: the session is a UUID.
    pub fn read(path: &'a str) -> Option<Self> {
        let parts: Vec<&str> = if is_windows(path) {
            path.split(['\\', '/']).collect()
        } else {
            path.split('/').collect()
        };
        let positions = parts.iter().enumerate().rev().filter(|(_, part)| **part == "projects");
        positions.map(|(index, _)| &parts[index + 1..]).find_map(Self::below_projects)
    }

    fn below_projects(parts: &[&'a str]) -> Option<Self> {
        let [project, session, rest @ ..] = parts else { return None };
        if project.is_empty() || rest.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return None;
        }
        let (session, subpath) = match rest {
            [] => (session.strip_suffix(".jsonl")?, None),
            ["subagents", folders @ .., name] if folders.len() <= MAX_FOLDERS => {
                name.strip_suffix(".jsonl").filter(|stem| !stem.is_empty())?;
                let path = rest.join("/");
                (*session, path.strip_suffix(".jsonl").map(str::to_owned))
            }
            _ => return None,
        };
        is_uuid(session).then_some(Self { project, session, subpath })
    }
}

/// Returns whether the path starts with a drive or a share.
fn is_windows(path: &str) -> bool {
    path.starts_with(r"\\") || path.as_bytes().get(1) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    fn read(path: &str) -> Option<(String, Option<String>)> {
        let path = path.replace("ID", ID);
        TranscriptPath::read(&path).map(|found| {
            assert_eq!(found.session, ID);
            (found.project.to_owned(), found.subpath)
        })
    }

    #[test]
    fn paths_below_projects_name_a_transcript() {
        for (path, project, subpath) in [
            ("/home/u/.claude/projects/-work/ID.jsonl", "-work", None),
            ("/projects/projects/-work/ID.jsonl", "-work", None),
            ("/c/projects/-w/ID/subagents/agent-a.jsonl", "-w", Some("subagents/agent-a")),
            ("/c/projects/-w/ID/subagents/b/c.jsonl", "-w", Some("subagents/b/c")),
            ("/c/projects/-w/ID/subagents/projects/x.jsonl", "-w", Some("subagents/projects/x")),
            (r"C:\u\.claude\projects\C--w\ID.jsonl", "C--w", None),
            (r"C:\u\projects\w\ID\subagents\agent-a.jsonl", "w", Some("subagents/agent-a")),
        ] {
            let expected = (project.to_owned(), subpath.map(str::to_owned));
            assert_eq!(read(path), Some(expected), "{path}");
        }
    }

    #[test]
    fn other_paths_name_none() {
        for path in [
            "",
            "/",
            "ID.jsonl",
            "/srv/ID.jsonl",
            "/c/projects/ID.jsonl",
            "/c/projects/-w/ID",
            "/c/projects/-w/ID.json",
            "/c/projects/-w/ID/agent.jsonl",
            "/c/projects/-w/ID/resume-head.jsonl",
            "/c/projects/-w/ID/tool-results/x.jsonl",
            "/c/projects/-w/ID/subagents/agent-a",
            "/c/projects/-w/ID/subagents/.jsonl",
            "/c/projects/-w/ID/subagents/1/2/3/4/5/6/7/8/9/x.jsonl",
            "/c/projects/-w/other.jsonl",
            "/c/projects//ID.jsonl",
            "/c/projects/-w/ID/../x/y.jsonl",
            r"/c/projects\-w\ID.jsonl",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
