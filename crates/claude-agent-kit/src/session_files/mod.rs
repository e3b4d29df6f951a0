//! The files of sessions on the local disk: where they are, which belong to a session, and how they are opened and
//! written. The history, session stores and `doctor` share it, so that they agree.
//!
//! # Which files belong to a session
//! `<id>` is the session ID, a UUID. All paths are below a project folder, `<config>/projects/<project>`.
//!
//! - **`<id>.jsonl`** is the main transcript, and makes the session: a regular file that is not empty.
//! - **`<id>/subagents/…/<name>.jsonl`** is another transcript, with at most eight folders in between: of a subagent if
//!   the name is `agent-<agent ID>`, otherwise of a workflow. Its subpath is `subagents/…/<name>`.
//! - **`<id>/subagents/…/<name>.meta.json`** is the metadata of that transcript, and may exist before it. In a store it
//!   is an entry of the transcript.
//! - **Everything else in `<id>/`** is not a transcript, whatever its extension: tool results, the title, the archive
//!   state, and caches of the CLI such as `resume-head.jsonl`. It is deleted with the session, and neither stored nor
//!   copied.
//!
//! Links are never followed. `claude_wire::transcript::TranscriptPath` reads the same rule from the paths that the CLI
//! reports, so that a store gets the same transcripts from the CLI and from the disk. A store can have other subpaths,
//! from hosts that append entries themselves: those are written to disk where their names say, and not read back.

pub(crate) mod config;
pub(crate) mod errors;
pub(crate) mod live;
pub(crate) mod members;
pub(crate) mod note;
pub(crate) mod open;
pub(crate) mod own_files;
pub(crate) mod private_file;
pub(crate) mod private_folder;
pub(crate) mod project;
pub(crate) mod write;
