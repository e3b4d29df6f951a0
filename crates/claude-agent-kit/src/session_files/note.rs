//! The note in a private folder that says which run it belongs to.

#[cfg(target_os = "linux")]
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use claude_wire::Map;
use serde_json::{Value, json};

use super::own_files::OwnFiles;
use super::private_file;
use crate::id::SessionId;
use crate::{list, small_file};
use claude_session_store::{Epoch, SessionKey};

/// The note of a private folder.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) scope: String,
    pub(crate) project: String,
    /// The session that was resumed.
    pub(crate) session: SessionId,
    /// The sessions that the run claimed.
    pub(crate) epochs: Map<u64>,
    /// The sessions that the run created.
    pub(crate) created: Vec<SessionId>,
    /// The last entry of each session that the store is known to have.
    pub(crate) acknowledged: Map<String>,
    /// The last sequence number of the resumed session that was written to the folder.
    pub(crate) restored: u64,
    /// The process of the host.
    process: Value,
    pub(crate) state: NoteState,
}

/// What is known about the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoteState {
    /// The run is in progress if its process exists.
    Running,
    /// The run has ended, and the store may lack entries.
    Ended,
    /// Another host continued the session, so that the entries in the folder are a branch of their own.
    Orphaned,
}

impl NoteState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Orphaned => "orphaned",
        }
    }

    fn from_str(text: &str) -> Option<Self> {
        [Self::Running, Self::Ended, Self::Orphaned].into_iter().find(|it| it.as_str() == text)
    }
}

/// Whether the run of a note is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnerState {
    Gone,
    Alive,
    /// The process is in another container, or the platform does not tell.
    Unknown,
}

impl Note {
    pub(crate) fn new(key: &SessionKey) -> Self {
        Self {
            scope: key.scope().to_owned(),
            project: key.project().to_owned(),
            session: key.session().clone(),
            epochs: Map::new(),
            created: Vec::new(),
            acknowledged: Map::new(),
            restored: 0,
            process: this_process(),
            state: NoteState::Running,
        }
    }

    pub(crate) fn claim(&mut self, key: &SessionKey, epoch: Epoch) {
        self.epochs.insert(key.session().to_string(), epoch.get());
    }

    /// Returns whether the note is of this session.
    pub(crate) fn is_of(&self, key: &SessionKey) -> bool {
        self.scope == key.scope()
            && self.project == key.project()
            && (self.session == *key.session()
                || self.created.contains(key.session())
                || self.epochs.contains_key(key.session().as_str()))
    }

    /// Returns the path of the note of a folder.
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("session-store.json")
    }

    /// Reads the note of a folder; `None` if it has none that can be read, or that another user wrote.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let bytes = OwnFiles::of_host(folder).read(&Self::path(folder)).ok()?;
        let mut value = small_file::parse_json(&bytes).ok()?;
        let process = value.get_mut("process").map(Value::take).unwrap_or_default();
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let mut epochs = Map::new();
        for (id, epoch) in value["epochs"].as_object()? {
            epochs.insert(id.as_str(), epoch.as_u64()?);
        }
        let mut acknowledged = Map::new();
        for (id, entry) in value["acknowledged"].as_object().into_iter().flatten() {
            acknowledged.insert(id.as_str(), entry.as_str()?.to_owned());
        }
        let created = value["created"].as_array().into_iter().flatten();
        let created = created.filter_map(|id| id.as_str().map(SessionId::from)).collect();
        Some(Self {
            scope: text("scope")?,
            project: text("project")?,
            session: SessionId::from(text("session")?),
            epochs,
            created,
            acknowledged,
            restored: value["restored"].as_u64()?,
            process,
            state: NoteState::from_str(value["state"].as_str()?)?,
        })
    }

    /// Writes the note. A reader sees the old or the new one.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let value = json!({
            "about": "files of a conversation that a session store resumed; removed when the store has them all",
            "scope": self.scope,
            "project": self.project,
            "session": self.session.as_str(),
            "epochs": self.epochs,
            "created": list::map(&self.created, &|id: &SessionId| id.as_str().to_owned()),
            "acknowledged": self.acknowledged,
            "restored": self.restored,
            "process": self.process,
            "state": self.state.as_str(),
        });
        private_file::replace(&Self::path(folder), value.to_string().as_bytes())
    }

    pub(crate) fn owner(&self) -> OwnerState {
        match self.state {
            NoteState::Ended | NoteState::Orphaned => OwnerState::Gone,
            NoteState::Running => owner_of(&self.process),
        }
    }
}

#[cfg(target_os = "linux")]
fn this_process() -> Value {
    let pid = std::process::id();
    json!({
        "pid": pid,
        "start": start_of(pid),
        "boot": boot_id(),
        "namespace": namespace(),
    })
}

#[cfg(not(target_os = "linux"))]
fn this_process() -> Value {
    json!({ "pid": std::process::id() })
}

#[cfg(target_os = "linux")]
fn owner_of(process: &Value) -> OwnerState {
    let recorded = |name: &str| process[name].as_str().map(str::to_owned);
    let (Some(boot), Some(recorded_boot)) = (boot_id(), recorded("boot")) else {
        return OwnerState::Unknown;
    };
    if boot != recorded_boot {
        return OwnerState::Gone;
    }
    if namespace().is_none() || namespace() != recorded("namespace") {
        return OwnerState::Unknown;
    }
    let pid = process["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    match pid.and_then(start_of) {
        Some(start) if Some(&start) == recorded("start").as_ref() => OwnerState::Alive,
        _ => OwnerState::Gone,
    }
}

/// Other processes end with their machine; here it is not known when.
#[cfg(not(target_os = "linux"))]
fn owner_of(process: &Value) -> OwnerState {
    match process["pid"].as_u64() == Some(u64::from(std::process::id())) {
        true => OwnerState::Alive,
        false => OwnerState::Unknown,
    }
}

/// Returns when a process started, in ticks since the boot.
#[cfg(target_os = "linux")]
pub(super) fn start_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may contain any character.
    Some(stat[stat.rfind(')')? + 1..].split_whitespace().nth(19)?.to_owned())
}

#[cfg(target_os = "linux")]
fn boot_id() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Returns the namespace of process IDs: another container has others.
#[cfg(target_os = "linux")]
fn namespace() -> Option<String> {
    fs::read_link("/proc/self/ns/pid").ok()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    fn note() -> (SessionKey, Note) {
        let key = SessionKey::new("tenant", "app", ID).unwrap();
        let mut note = Note::new(&key);
        note.claim(&key, Epoch::new(3));
        note.created.push(SessionId::from("1b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11"));
        note.acknowledged.insert(ID, "entry".to_owned());
        (key, note)
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let (key, mut note) = note();
        for state in [NoteState::Running, NoteState::Ended, NoteState::Orphaned] {
            note.state = state;
            note.write(folder.path()).unwrap();
            assert_eq!(Note::read(folder.path()), Some(note.clone()));
        }
        assert!(note.is_of(&key));
        assert!(!note.is_of(&SessionKey::new("other", "app", ID).unwrap()));
        for text in ["", "{", "{}", "[]", r#"{"scope":"tenant"}"#] {
            fs::write(Note::path(folder.path()), text).unwrap();
            assert_eq!(Note::read(folder.path()), None, "{text}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_owner_is_gone_with_its_process_or_its_machine() {
        let (_, mut note) = note();
        assert_eq!(note.owner(), OwnerState::Alive);
        for (field, value, expected) in [
            ("start", "1", OwnerState::Gone),
            ("boot", "another", OwnerState::Gone),
            ("namespace", "pid:[1]", OwnerState::Unknown),
        ] {
            let before = note.process.clone();
            note.process[field] = value.into();
            assert_eq!(note.owner(), expected, "{field}");
            note.process = before;
        }
        note.state = NoteState::Ended;
        assert_eq!(note.owner(), OwnerState::Gone);
    }
}
