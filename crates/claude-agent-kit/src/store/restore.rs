//! Prepares a run on a store: a conversation that is resumed is written to the local disk first.
//!
//! The CLI resumes a transcript in its config directory. Where that directory was chosen, the conversation
//! gets a project folder of its own there, so that nothing of the user changes and runs do not disturb each
//! other. Where it was not, the CLI does not let the folder be chosen, and the transcript is written to the
//! folder of the project. A transcript there that has everything the store has is resumed as it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claude_wire::launch::{Origin, Start};
use tokio::time::Instant;

use super::error::StoreError;
use super::key::{Epoch, ProjectKey, SessionKey};
use super::local::Difference;
use super::options::StoreOptions;
use super::place::Place;
use super::private_folder::PrivateFolder;
use super::recover::{Recovered, RecoveryOutcome, leftovers};
use super::request::List;
use super::upload::{OwnedSessions, Target, limited};
use super::write_session::{blocking, store_failed, write_session};
use crate::error::{Error, ErrorKind, Result};
use crate::history::{History, errors};
use crate::id::SessionId;
use crate::options::Options;
use crate::tasks::BoxFuture;
use crate::warning::{Warning, WarningCode};

/// For how long a store that fails is tried again before a conversation is not resumed.
const GIVE_UP: Duration = Duration::from_secs(30);

/// The first and the longest delay between attempts.
const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(10);

/// What the mirror of a run starts with.
#[derive(Debug)]
pub(crate) struct MirrorStart {
    pub(crate) target: Target,
    /// The sessions that were claimed.
    pub(crate) sessions: OwnedSessions,
}

/// A run on a store, before its CLI is started.
pub(crate) struct Restored {
    /// The options with which the CLI finds the conversation.
    pub(crate) options: Options,
    pub(crate) mirror: MirrorStart,
    pub(crate) warnings: Vec<Warning>,
}

/// Writes the conversation of a run to the local disk, if it continues an earlier one. Returns `None`
/// without a store.
pub(crate) fn restore(options: &Options) -> BoxFuture<'_, Result<Option<Restored>>> {
    Box::pin(async move {
        let Some(store) = options.host.store.clone() else { return Ok(None) };
        let is_earlier =
            matches!(options.settings.start.origin, Origin::Latest | Origin::Session(_));
        if !is_earlier || !is_restored(options) {
            let mut restored = Restored::unchanged(options, &store);
            restored.warnings.extend(is_earlier.then(not_restored));
            return Ok(Some(restored));
        }
        let restorer = Restorer { options, place: Place::of(options)?, store };
        restorer.run().await.map(Some)
    })
}

/// Returns whether earlier conversations are read from a store.
pub(crate) fn is_restored(options: &Options) -> bool {
    let is_local = options.host.transport.as_ref().is_none_or(|transport| transport.is_local());
    options.host.store.is_some() && is_local
}

impl Restored {
    fn unchanged(options: &Options, store: &StoreOptions) -> Self {
        let target =
            Target { options: store.clone(), project: store.project.clone(), folder: None };
        let mirror = MirrorStart { target, sessions: OwnedSessions::default() };
        Self { options: options.clone(), mirror, warnings: Vec::new() }
    }
}

struct Restorer<'a> {
    options: &'a Options,
    place: Place,
    store: StoreOptions,
}

impl Restorer<'_> {
    /// Tries again while the store fails.
    async fn run(&self) -> Result<Restored> {
        let began = Instant::now();
        let mut delay = FIRST_DELAY;
        loop {
            match self.attempt().await {
                Err(error) if is_retryable(&error) && began.elapsed() + delay < GIVE_UP => {
                    tracing::debug!("the store failed, trying again: {error}");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(MAX_DELAY);
                }
                result => return result,
            }
        }
    }

    async fn attempt(&self) -> Result<Restored> {
        let mut restored = Restored::unchanged(self.options, &self.store);
        let project: Arc<str> = match &self.store.project {
            Some(project) => project.clone(),
            None => self.place.folder.as_str().into(),
        };
        let start = &mut restored.options.settings.start;
        if let Origin::Latest = start.origin {
            match self.latest(&project).await? {
                Some(id) => start.origin = Origin::Session(id),
                // There is nothing to fork either.
                None => *start = start.id.take().map(Start::with_id).unwrap_or_default(),
            }
        }
        let Origin::Session(id) = start.origin.clone() else { return Ok(restored) };
        // The CLI also resumes by a title; then the conversation must be on this machine.
        let Ok(key) = SessionKey::new(&self.store.scope, &project, id.as_str()) else {
            return Ok(restored);
        };
        restored.mirror.target.project = Some(project);
        self.restore_session(&key, &mut restored).await?;
        Ok(restored)
    }

    /// Returns the session of the project that was modified last.
    async fn latest(&self, project: &str) -> Result<Option<SessionId>> {
        let key = ProjectKey::new(&self.store.scope, project).map_err(invalid_key)?;
        let list = limited(self.store.store.list(&key, List::new().limit(1))).await;
        let list = list.map_err(latest_failed)?;
        Ok(list.sessions.into_iter().next().map(|row| row.session))
    }

    async fn restore_session(&self, key: &SessionKey, restored: &mut Restored) -> Result<()> {
        let failed = |error: StoreError| store_failed("resume", key, error);
        let recovered = leftovers(&self.place, &self.store, &|note| note.is_of(key)).await?;
        restored.warnings.extend(recovered.iter().filter_map(orphaned_folder));
        // Before the entries are read: afterwards no other host can add any. A fork does not change its
        // origin.
        let is_fork = restored.options.settings.start.fork;
        let claimed = if is_fork { None } else { Some(self.claim(key).await?) };
        if let Some(epoch) = claimed {
            restored.mirror.sessions.add(key.clone(), epoch);
        }
        let path = self.place.transcript(key.session());
        let found = Difference::of(&*self.store.store, key, &path).await.map_err(failed)?;
        if !found.is_local && !found.is_stored {
            return self.start_new(key, restored);
        }
        if found.has_local_only && !found.has_stored_only && claimed.is_some() {
            let MirrorStart { target, sessions } = &mut restored.mirror;
            let folder = self.place.project_folder();
            let sent = target.send_all(sessions, &folder, key.project(), Some(key.session())).await;
            sent.map_err(failed)?;
        }
        let is_live = found.is_local && self.history().is_live(key.session()).await?;
        if found.is_local && !found.has_stored_only && !is_live {
            return Ok(());
        }
        if found.has_local_only && found.has_stored_only {
            restored.warnings.push(orphaned(key.session(), &path));
        }
        if self.place.is_folder_chosen {
            return self.write_private(key, claimed, restored).await;
        }
        if is_live {
            return Err(in_use(key.session()));
        }
        self.write_in_place(key, found).await
    }

    fn history(&self) -> History {
        History::at(&self.place.config)
    }

    async fn claim(&self, key: &SessionKey) -> Result<Epoch> {
        let claimed = limited(self.store.store.claim(key)).await;
        claimed.map_err(|error| store_failed("resume", key, error))
    }

    /// Starts a new conversation with the ID, if that is wanted.
    fn start_new(&self, key: &SessionKey, restored: &mut Restored) -> Result<()> {
        let start = &mut restored.options.settings.start;
        if !start.or_new {
            return Err(not_found(key.session(), &self.place.project_folder()));
        }
        *start = Start::with_id(key.session().clone());
        Ok(())
    }

    /// Writes the conversation to a folder of its own.
    async fn write_private(
        &self,
        key: &SessionKey,
        claimed: Option<Epoch>,
        restored: &mut Restored,
    ) -> Result<()> {
        let projects = self.place.projects();
        let (shown, owned) = (projects.clone(), key.clone());
        let create = move || {
            let folder = PrivateFolder::create(&projects, &owned)?;
            claimed.map(|epoch| folder.claimed(&owned, epoch)).transpose()?;
            Ok(folder)
        };
        let failed = move |error: io::Error| errors::io("create a folder in", &shown, error);
        let folder = blocking(move || create().map_err(failed)).await?;
        let written = write_session(&*self.store.store, key, folder.path()).await?;
        folder
            .restored(written.last)
            .map_err(|error| errors::io("write to", folder.path(), error))?;
        let options = std::mem::take(&mut restored.options);
        restored.options = self.place.use_folder(options, folder.name());
        restored.mirror.target.folder = Some(folder);
        Ok(())
    }

    /// Writes the conversation to the folder of the project, in place of an older transcript.
    async fn write_in_place(&self, key: &SessionKey, found: Difference) -> Result<()> {
        let path = self.place.transcript(key.session());
        let aside = path.with_extension(format!("{}.orphaned", crate::random::uuid()));
        if found.is_local {
            rename(path.clone(), aside.clone()).await?;
        }
        let written = write_session(&*self.store.store, key, &self.place.project_folder()).await;
        match written {
            Err(error) if found.is_local => {
                rename(aside, path).await?;
                Err(error)
            }
            // The new transcript has everything that the old one had.
            Ok(_) if found.is_local && !found.has_local_only => {
                blocking(move || {
                    fs::remove_file(&aside).map_err(|error| errors::io("remove", &aside, error))
                })
                .await
            }
            written => written.map(drop),
        }
    }
}

async fn rename(from: PathBuf, to: PathBuf) -> Result<()> {
    blocking(move || fs::rename(&from, &to).map_err(|error| errors::io("rename", &from, error)))
        .await
}

/// Returns whether the store may work later.
fn is_retryable(error: &Error) -> bool {
    let cause = std::error::Error::source(error);
    cause.and_then(|cause| cause.downcast_ref::<StoreError>()).is_some_and(StoreError::is_retryable)
}

pub(crate) fn latest_failed(error: StoreError) -> Error {
    let message = format!("cannot find the latest conversation in the store: {error}");
    Error::new(ErrorKind::StoreFailed, message).caused_by(error)
}

fn invalid_key(error: StoreError) -> Error {
    Error::new(ErrorKind::InvalidOptions, error.to_string()).caused_by(error)
}

pub(crate) fn not_restored() -> Warning {
    let message = "the conversation is not read from the store: the transport may start the CLI on another \
                   machine, where only its own transcripts can be resumed";
    let warning = Warning::new(WarningCode::OptionIgnored, message);
    warning.with(|facts| facts.options = vec!["store", "transport"])
}

fn orphaned_folder(recovered: &Recovered) -> Option<Warning> {
    match &recovered.outcome {
        RecoveryOutcome::Orphaned(folder) => Some(orphaned(&recovered.session, folder)),
        RecoveryOutcome::Stored(_) => None,
    }
}

/// Creates the warning about entries that will not be part of the conversation.
pub(crate) fn orphaned(session: &SessionId, path: &Path) -> Warning {
    let message = format!(
        "\"{}\" has entries of session {session} that are not in the store: another host continued the \
         session without them; help: keep the file if they matter, or delete it",
        path.display()
    );
    Warning::new(WarningCode::OrphanedBranch, message)
}

pub(crate) fn in_use(session: &SessionId) -> Error {
    let message = format!(
        "cannot resume session {session}: another CLI on this machine is using it, and without \
         CLAUDE_CONFIG_DIR both would write to the same transcript"
    );
    Error::new(ErrorKind::SessionLive, message)
        .with_help("set CLAUDE_CONFIG_DIR with `Options::env`, or stop the other run")
        .with(|facts| facts.session_id = Some(session.clone()))
}

pub(crate) fn not_found(session: &SessionId, project: &Path) -> Error {
    let message = format!(
        "session {session} not found: neither in the store nor in \"{}\"",
        project.display()
    );
    Error::new(ErrorKind::ConversationNotFound, message)
        .with_help("check the scope and the project of the store")
        .with(|facts| facts.session_id = Some(session.clone()))
}
