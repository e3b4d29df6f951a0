//! The trait of record stores.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use super::key::{OwnerKey, RecordKind};
use super::list::{RecordList, RecordPage, RecordSelection, RecordWatch};
use super::write::RecordWrite;
use crate::{Epoch, StoreFuture};

/// How often a store without notifications is asked for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Stores records, usually beside the sessions: `MemoryStore`, and `SqliteStore` and `PostgresStore` of the crate
/// `claude-agent-store` store both.
///
/// # Implementing a store
/// - A write that succeeded is durable. A request that fails with
///   [`Unavailable`](crate::StoreErrorKind::Unavailable) may have been carried out or not, and is repeated.
/// - Keys are compared byte for byte. Texts are kept byte for byte.
/// - A store needs no timer: callers ask again after [`poll_interval`](Self::poll_interval).
///
/// The module `conformance` (a feature) checks all rules.
pub trait RecordStore: Send + Sync + 'static {
    /// Takes ownership of the records of an owner and returns its new epoch, which is greater than all earlier ones. The
    /// last claimer wins. The epoch is independent of the one that [`SessionStore::claim`](crate::SessionStore::claim)
    /// returns for a session of the same name.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to.
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch>;

    /// Writes all changes if each stored record has the version that its change [replaces](super::RecordChange::replaces),
    /// or does not exist if that is `None`; otherwise none. Returns whether the changes were written. Comparison and
    /// write are one atomic step.
    ///
    /// A write without changes returns `true`, or fails because of its epoch.
    ///
    /// # Errors
    /// Fails with [`Superseded`](crate::StoreErrorKind::Superseded) if the owner in [`RecordWrite::fence`] has another
    /// epoch, and with [`Rejected`](crate::StoreErrorKind::Rejected) for what [`RecordWrite::check`] rejects.
    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool>;

    /// Returns records in the order of their [sequence numbers](super::Record::sequence), and the time on the clock of
    /// the store. All of them [belong in the list](RecordList::contains); callers reject others.
    ///
    /// A record that cannot be read must not hide the others from operators: with filters that
    /// [report unreadable records](super::RecordFilter::reports_unreadable) it is in [`RecordPage::unreadable`], and the
    /// list goes on. With the other filters the request fails, because hosts use them to find out what was decided.
    ///
    /// # Errors
    /// Fails if the store cannot be reached, and, with filters that do not report unreadable records, if a record cannot
    /// be read.
    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage>;

    /// Waits until a record may have changed. Begins to watch when it is called, so that a caller that lists records
    /// between the call and the first poll misses no change.
    ///
    /// A store that learns of all changes wakes its callers; one that learns of some of them, such as those of this
    /// process, wakes them early. Callers do not rely on it: they look again after [`poll_interval`](Self::poll_interval).
    /// The default implementation never returns.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        let _ = watch;
        Box::pin(pending())
    }

    /// Returns after which time a caller looks again although [`records_changed`](Self::records_changed) has not
    /// returned; asked after each call of it. Default: half a second.
    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    /// Returns where the store keeps its records, for errors: a path or a server, such as `SQLite "/srv/sessions.db"`,
    /// without credentials. Default: `None`.
    fn records_location(&self) -> Option<String> {
        None
    }

    /// Deletes at most `limit` records, of one kind or of all, and returns their number; fewer than `limit` if no others
    /// are left. The epochs of their owners stay, so that an earlier owner stays fenced.
    ///
    /// Selection and deletion are one atomic step: a record that no longer matches is not deleted.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to.
    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64>;
}

/// A shared store is a store.
impl<S: RecordStore + ?Sized> RecordStore for Arc<S> {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        (**self).claim_records(owner)
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        (**self).write_records(write)
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        (**self).list_records(list)
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        (**self).records_changed(watch)
    }

    fn poll_interval(&self) -> Duration {
        (**self).poll_interval()
    }

    fn records_location(&self) -> Option<String> {
        (**self).records_location()
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        (**self).delete_records(selection, kind, limit)
    }
}
