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

use super::latest;
use super::local::{Difference, Lines};
use super::options::StoreOptions;
use super::place::Place;
use super::recover::{Recovered, RecoveryOutcome, leftovers};
use super::session_claim::SessionClaim;
use super::upload::{OwnedSessions, Target, limited};
use super::write_session::{blocking, failed_store, store_failed, write_session};
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::options::{Options, set_aside};
use crate::session_files::note::Note;
use crate::session_files::own_files::OwnFiles;
use crate::session_files::private_folder::PrivateFolder;
use crate::session_files::{errors, live};
use crate::tasks::BoxFuture;
use crate::warning::{Warning, WarningCode};
use claude_session_store::{Epoch, ProjectKey, SessionKey, StoreError};

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
            // Without a known directory, a store that failed is not caught up from files.
            let files = match Place::of(options) {
                Ok(place) => place.files(options).await?,
                Err(_) => OwnFiles::default(),
            };
            let mut restored = Restored::unchanged(options, &store, files);
            restored.warnings.extend(is_earlier.then(not_restored));
            return Ok(Some(restored));
        }
        let place = Place::of(options)?;
        let files = place.files(options).await?;
        let restorer = Restorer { options, place, files, store };
        restorer.run().await.map(Some)
    })
}

/// Returns whether earlier conversations are read from a store.
pub(crate) fn is_restored(options: &Options) -> bool {
    let is_local = options.host.transport.as_ref().is_none_or(|transport| transport.is_local());
    options.host.store.is_some() && is_local
}

impl Restored {
    fn unchanged(options: &Options, store: &StoreOptions, files: OwnFiles) -> Self {
        let (project, store) = (store.project.clone(), store.clone());
        let target = Target { options: store, project, folder: None, files };
        let mirror = MirrorStart { target, sessions: OwnedSessions::default() };
        Self { options: options.clone(), mirror, warnings: Vec::new() }
    }
}

impl MirrorStart {
    /// Returns the claims on the sessions of the run.
    pub(crate) fn claims(&self) -> Vec<SessionClaim> {
        self.sessions.claims(&self.target.options.store)
    }
}

struct Restorer<'a> {
    options: &'a Options,
    place: Place,
    files: OwnFiles,
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
        let mut restored = Restored::unchanged(self.options, &self.store, self.files.clone());
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
        // A name that the host chose says itself which sessions belong together.
        let directory = self.store.project.is_none().then_some(&*self.place.directory);
        let found = latest::latest(&*self.store.store, &key, directory).await;
        found.map_err(latest_failed)
    }

    async fn restore_session(&self, key: &SessionKey, restored: &mut Restored) -> Result<()> {
        let failed = |error: StoreError| store_failed("resume", key, error);
        let selects = |note: &Note| note.is_of(key);
        let recovered = leftovers(&self.place, &self.files, &self.store, &selects).await?;
        restored.warnings.extend(recovered.iter().filter_map(orphaned_folder));
        let is_fork = restored.options.settings.start.fork;
        // Before the claim, which would end a run of this machine whose transcript cannot be replaced.
        if !is_fork && !self.place.config.is_chosen && self.is_live(key.session()).await? {
            return Err(in_use(key.session()));
        }
        // Before the entries are read: afterwards no other host can add any. A fork does not change its
        // origin.
        let claimed = if is_fork { None } else { Some(self.claim(key).await?) };
        if let Some(epoch) = claimed {
            restored.mirror.sessions.add(key.clone(), epoch);
        }
        let path = self.place.transcript(key.session());
        let store = &*self.store.store;
        let found = Difference::of(store, key, &self.files, &path, Lines::All).await;
        let found = found.map_err(failed)?;
        if !found.has_messages {
            return self.start_new(key, found, restored).await;
        }
        if found.has_local_only && !found.has_stored_only && claimed.is_some() {
            let MirrorStart { target, sessions } = &mut restored.mirror;
            let folder = self.place.project_folder();
            target.send_local(sessions, &folder, key).await.map_err(failed)?;
        }
        let is_live = found.is_local && self.is_live(key.session()).await?;
        if found.is_local && !found.has_stored_only && !is_live {
            return Ok(());
        }
        if found.has_local_only && found.has_stored_only {
            restored.warnings.push(orphaned(key.session(), &path));
        }
        if self.place.config.is_chosen {
            return self.write_private(key, claimed, restored).await;
        }
        if is_live {
            return Err(in_use(key.session()));
        }
        self.write_in_place(key, found).await
    }

    /// Returns whether a CLI of this machine uses the session.
    async fn is_live(&self, session: &SessionId) -> Result<bool> {
        let (config, session) = (self.place.config.path.clone(), session.clone());
        blocking(move || Ok(live::process_of(&config, &session)?.is_some())).await
    }

    async fn claim(&self, key: &SessionKey) -> Result<Epoch> {
        let claimed = limited(&*self.store.store, self.store.store.claim(key)).await;
        claimed.map_err(|error| store_failed("resume", key, error))
    }

    /// Starts a new conversation with the ID, if that is wanted.
    ///
    /// A CLI that was killed while it started, or that only made a handshake, leaves entries without messages, which
    /// no CLI resumes. Those in the store stay, because acknowledged entries are not removed: the new conversation
    /// continues after them, with the next sequence numbers and the epoch that was claimed. A later resume writes them
    /// before the messages, as they are in the transcript of a CLI that was not killed. A local file is renamed,
    /// because the CLI does not use the ID of an existing one.
    async fn start_new(
        &self,
        key: &SessionKey,
        found: Difference,
        restored: &mut Restored,
    ) -> Result<()> {
        let session = key.session();
        let start = &mut restored.options.settings.start;
        if !start.or_new {
            return Err(if found.is_local || found.is_stored {
                without_messages(session)
            } else {
                not_found(session, &self.place.project_folder())
            });
        }
        *start = Start::with_id(session.clone());
        // If another CLI uses the file, the new one reports that the ID is in use.
        if found.is_local && !self.is_live(session).await? {
            let path = self.place.transcript(session);
            blocking(move || {
                set_aside(&path);
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Writes the conversation to a folder of its own.
    async fn write_private(
        &self,
        key: &SessionKey,
        claimed: Option<Epoch>,
        restored: &mut Restored,
    ) -> Result<()> {
        let projects = self.place.config.projects();
        let (shown, owned) = (projects.clone(), key.clone());
        let start = &restored.options.settings.start;
        let fork = start.id.clone().filter(|_| start.fork);
        let create = move || {
            let folder = PrivateFolder::create(&projects, &owned, fork)?;
            claimed.map(|epoch| folder.claimed(&owned, epoch)).transpose()?;
            Ok(folder)
        };
        let failed = move |error: io::Error| errors::io("create a folder in", &shown, error);
        let folder = blocking(move || create().map_err(failed)).await?;
        let written = write_session(&*self.store.store, key, folder.path()).await?;
        folder
            .restored(key, &written)
            .map_err(|error| errors::io("write to", folder.path(), error))?;
        let options = std::mem::take(&mut restored.options);
        restored.options = self.place.use_folder(options, folder.name());
        let target = &mut restored.mirror.target;
        target.files = self.files.clone().or_of_host();
        target.folder = Some(folder);
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
    failed_store("cannot find the latest conversation in the session store", error)
}

fn invalid_key(error: StoreError) -> Error {
    Error::new(ErrorKind::InvalidOptions, error.to_string()).caused_by(error)
}

pub(crate) fn not_restored() -> Warning {
    let message = "`store` is ignored for the resume because `transport` may start the CLI on another machine, where \
                   only its own transcripts can be resumed; help: return true from `Transport::is_local` if the CLI \
                   uses the files of this machine";
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
        "\"{}\" has entries of session {session} that are not in the store, and will not be sent: another host \
         continued the session without them; help: keep a copy of the file if they matter, then delete it",
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

pub(crate) fn without_messages(session: &SessionId) -> Error {
    let message = format!(
        "session {session} has no messages, so the CLI cannot resume it: an earlier CLI ended before the first one"
    );
    Error::new(ErrorKind::ConversationNotFound, message)
        .with_help(
            "use `Conversation::resume_or_start`, which starts a new conversation with this ID",
        )
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
