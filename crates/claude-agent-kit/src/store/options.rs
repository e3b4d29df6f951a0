//! The options of a run with a store.

use std::fmt;
use std::sync::Arc;

use claude_agent_core::session::StorePolicy;

use claude_session_store::{ProjectKey, SessionStore, StoreError};

/// What a run does when its store fails.
///
/// A failed append is retried after 200 milliseconds, then after twice as long each time, up to 10 seconds.
/// An error that is not [retryable](StoreError::is_retryable) is not retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreFailurePolicy {
    /// After 30 seconds of retries, the run continues with a warning, and its results say that they are not
    /// stored. The store is tried again every 30 seconds and caught up from the transcript on the local disk,
    /// if the CLI runs on this machine.
    #[default]
    Continue,
    /// The append is retried without a time limit, and results wait for it. If more than 8 MiB are waiting
    /// for the store, the run continues as with [`Continue`](Self::Continue).
    Wait,
    /// After 30 seconds of retries, the run fails with [`StoreFailed`](crate::ErrorKind::StoreFailed).
    Stop,
}

/// The store of a run, for [`Options::store`](crate::Options::store).
#[derive(Clone)]
#[must_use = "setters return the changed value"]
pub struct StoreOptions {
    pub(crate) scope: Arc<str>,
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) project: Option<Arc<str>>,
    policy: StoreFailurePolicy,
}

impl StoreOptions {
    /// Stores sessions under `scope`, which the host chooses, such as a tenant: 1 to 512 bytes without NUL
    /// characters.
    pub fn new(scope: impl Into<Arc<str>>, store: impl SessionStore) -> Self {
        let policy = StoreFailurePolicy::default();
        Self { scope: scope.into(), store: Arc::new(store), project: None, policy }
    }

    /// Sets the project under which sessions are stored, with the limits of the scope. Default: the name of
    /// the CLI's project folder, which is derived from the working directory.
    ///
    /// With a project of its own, a conversation can be resumed in another working directory.
    pub fn project(mut self, project: impl Into<Arc<str>>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Sets what the run does when the store fails. Default: [`StoreFailurePolicy::Continue`].
    pub fn on_failure(mut self, policy: StoreFailurePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Checks that the scope and the project can be part of a key.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let project = self.project.as_deref().unwrap_or("project");
        ProjectKey::new(&self.scope, project).map(drop)
    }

    pub(crate) fn policy(&self) -> StorePolicy {
        match self.policy {
            StoreFailurePolicy::Continue => StorePolicy::Continue,
            StoreFailurePolicy::Wait => StorePolicy::Wait,
            StoreFailurePolicy::Stop => StorePolicy::Stop,
        }
    }
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("scope", &self.scope)
            .field("project", &self.project)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
