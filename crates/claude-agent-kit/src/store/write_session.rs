//! Writes a session of a store into a project folder, and the errors of calls that failed because of a store.

use std::path::{Path, PathBuf};

use super::pages::Pages;
use super::store_name::StoreName;
use super::upload::limited;
use crate::driver::require_runtime;
use crate::error::{Error, ErrorKind};
use crate::session_files::write::{SessionContents, SessionWriter, TemporaryFolder};
use crate::tasks::{self, BoxFuture, Boxed, Unboxing};
use claude_session_store::{
    EntryPage, Load, LoadScope, Sequence, SessionKey, SessionStore, StoreError, StoreErrorKind,
    StoreFuture,
};

/// Writes a session of a store into a folder, see [`SessionWriter`]. Loads page by page, and needs memory for
/// one page. Dropping the future leaves nothing behind, except for transcripts if it is dropped at the very end.
pub(crate) fn write_session<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    project_folder: &'a Path,
) -> BoxFuture<'a, Result<SessionContents, Error>> {
    Box::pin(async move {
        let writer = SessionWriter::new(key.session(), project_folder);
        let writer = load(writer, store, key, LoadScope::All).await?;
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
        let writer = SessionWriter::new(key.session(), &std::env::temp_dir());
        Ok(load(writer, store, key, transcript).await?.into_transcript())
    })
}

/// Adds the entries of a store.
async fn load(
    mut writer: SessionWriter,
    store: &dyn SessionStore,
    key: &SessionKey,
    transcript: LoadScope<'_>,
) -> Result<SessionWriter, Error> {
    let mut pages = Pages::new();
    loop {
        let mut load = Load::all();
        load.subpath = transcript;
        let page = pages.next(store, key, load).await;
        let page = page.map_err(|error| store_failed("load", key, error))?;
        let Some(page) = page.filter(|page| !page.entries.is_empty()) else { return Ok(writer) };
        writer = blocking(move || writer.add(&page.entries).map(|()| writer)).await?;
    }
}

/// Loads a page, whose entries must be in order: a store that repeats them would never come to an end.
pub(crate) fn load_page<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    load: Load<'a>,
) -> StoreFuture<'a, EntryPage> {
    Box::pin(async move {
        let page = limited(store, store.load(key, load)).await?;
        if page.more && page.entries.is_empty() {
            return Err(empty_page(StoreName::Sessions(store), key));
        }
        let mut before = load.after;
        for entry in &page.entries {
            if entry.sequence <= before {
                return Err(out_of_order(StoreName::Sessions(store), key, entry.sequence, before));
            }
            before = entry.sequence;
        }
        Ok(page)
    })
}

pub(crate) fn out_of_order(
    store: StoreName<'_>,
    key: &SessionKey,
    entry: Sequence,
    before: Sequence,
) -> StoreError {
    let (session, entry, before) = (key.session(), entry.get(), before.get());
    broken_store(store, &format!("entry {entry} after entry {before} of session {session}"))
}

pub(crate) fn empty_page(store: StoreName<'_>, key: &SessionKey) -> StoreError {
    let found = format!("an empty page of session {} that is not the last one", key.session());
    broken_store(store, &found)
}

fn broken_store(store: StoreName<'_>, found: &str) -> StoreError {
    let message = format!("the {store} returned {found}");
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
    failed_in("session store", failure, error)
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

#[cfg(test)]
mod tests;
