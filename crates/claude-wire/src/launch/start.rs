//! The conversation that a run starts with.

use std::fmt;

use super::check::Found;
use super::values::check_id;
use crate::id::{MessageId, SessionId};
use crate::transcript::is_uuid;

/// The origin of the conversation of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// None: the session is new.
    #[default]
    New,
    /// The latest session of the working directory; a new one if there is none.
    Latest,
    /// The session with this ID.
    Session(SessionId),
}

/// The conversation that a run starts with: a new one, an earlier one, or a fork.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// The origin of the conversation.
    pub origin: Origin,
    /// Whether to start a new session with the ID of the origin if the CLI reports that the origin does
    /// not exist. The command line resumes; the host must start again with
    /// [`fallback`](Self::fallback).
    pub or_new: bool,
    /// Whether the origin is forked and remains unchanged.
    pub fork: bool,
    /// The ID of the new session or of the copy.
    pub id: Option<SessionId>,
    /// The message of the origin to continue from; later messages are left out.
    pub at: Option<MessageId>,
    /// The prompt of the turn that continuing from that message leaves out.
    pub dropping_turn: Option<MessageId>,
}

impl Start {
    /// Starts a new session with this ID.
    pub fn with_id(id: SessionId) -> Self {
        Self { id: Some(id), ..Self::default() }
    }

    /// Starts from this origin.
    pub fn from_origin(origin: Origin) -> Self {
        Self { origin, ..Self::default() }
    }

    /// Returns the ID that the session will have, where it is known before the CLI runs.
    pub fn session_id(&self) -> Option<&SessionId> {
        match &self.origin {
            Origin::Session(id) if !self.fork => Some(id),
            Origin::New | Origin::Latest | Origin::Session(_) => self.id.as_ref(),
        }
    }

    /// Returns the start to use instead if the CLI reports that the session does not exist.
    pub fn fallback(&self) -> Option<Self> {
        match &self.origin {
            Origin::Session(id) if self.or_new => Some(Self::with_id(id.clone())),
            Origin::New | Origin::Latest | Origin::Session(_) => None,
        }
    }

    /// Reports all problems.
    pub(super) fn check(&self, found: &mut Found) {
        const OPTION: &[&str] = &["conversation"];
        let session = match &self.origin {
            Origin::Session(id) => Some(id),
            Origin::New | Origin::Latest => None,
        };
        let ids = [
            session.map(AsRef::as_ref),
            self.at.as_ref().map(AsRef::as_ref),
            self.dropping_turn.as_ref().map(AsRef::as_ref),
            self.id.as_ref().map(AsRef::as_ref),
        ];
        ids.into_iter().flatten().for_each(|id| check_id(found, "conversation", id));
        let new = self.id.as_ref().or(session.filter(|_| self.or_new)).map(SessionId::as_str);
        if new.is_some_and(|id| !id.trim().is_empty() && !id.contains('\0') && !is_uuid(id)) {
            found.add(OPTION, "the ID of a new session is not a UUID; help: pass a UUID, or no ID");
        }
        if self.fork && self.origin == Origin::New {
            found.add(OPTION, "there is nothing to fork; help: name a session");
        }
        if self.id.is_some() && self.origin != Origin::New && !self.fork {
            found.add(OPTION, "a resumed session keeps its ID; help: fork it, or pass no new ID");
        }
        if self.at.is_some() && session.is_none() {
            found.add(OPTION, "`at` needs a session; help: use `resume` or `fork`");
        }
        if self.or_new && (self.at.is_some() || self.fork) {
            found.add(OPTION, "`resume_or_start` takes no message; help: use `resume`");
        }
        if self.dropping_turn.is_some() && self.at.is_none() {
            found.add(OPTION, "`dropping_turn` needs the message to continue from; help: add `at`");
        }
    }
}

impl fmt::Debug for Start {
    /// Formats as in a configuration file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        let resume = if self.or_new { "resume_or_start" } else { "resume" };
        match &self.origin {
            Origin::New => {}
            Origin::Latest if self.fork => drop(map.entry(&"fork_latest", &true)),
            Origin::Latest => drop(map.entry(&"latest", &true)),
            Origin::Session(id) => {
                map.entry(&if self.fork { "fork" } else { resume }, &id.as_str());
            }
        }
        let id = if self.fork { "fork_id" } else { "with_id" };
        let ids = [
            (id, self.id.as_ref().map(AsRef::<str>::as_ref)),
            ("at", self.at.as_ref().map(AsRef::as_ref)),
            ("dropping_turn", self.dropping_turn.as_ref().map(AsRef::as_ref)),
        ];
        map.entries(ids.into_iter().filter_map(|(name, id)| id.map(|id| (name, id)))).finish()
    }
}
