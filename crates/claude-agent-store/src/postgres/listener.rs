//! Notifications of the server about changed records.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claude_session_store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

use super::errors;
use super::pool::Pool;
use super::records::key_of;
use crate::records::Changes;

/// How long the first notification may take, which the store sends to itself.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two tries to listen.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How often a change is looked for without notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often a change is looked for although notifications arrive: the network may have lost the connection.
const SLOW_POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Listens for notifications, on a connection of its own, from the first time that a run waits.
pub(super) struct Listener {
    state: Arc<ListenerState>,
    /// The task and the time of its start.
    task: Mutex<Option<(JoinHandle<()>, Instant)>>,
}

#[derive(Default)]
struct ListenerState {
    is_working: AtomicBool,
    /// Whether a pooler keeps notifications from arriving.
    is_useless: AtomicBool,
}

impl Listener {
    pub(super) fn new() -> Self {
        Self { state: Arc::default(), task: Mutex::new(None) }
    }

    /// Returns how often to look for changes.
    pub(super) fn poll_interval(&self) -> Duration {
        let is_working = self.state.is_working.load(Ordering::Relaxed);
        if is_working { SLOW_POLL_INTERVAL } else { POLL_INTERVAL }
    }

    /// Listens, unless that is useless or was tried a moment ago.
    pub(super) fn start(&self, pool: &Arc<Pool>, schema: &str, changes: &Changes) {
        if self.state.is_working.load(Ordering::Relaxed) {
            return;
        }
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        // A watch may be created outside of a runtime. Changes are looked for then.
        let Ok(runtime) = Handle::try_current() else { return };
        let is_due = task
            .as_ref()
            .is_none_or(|(task, start)| task.is_finished() && start.elapsed() >= RETRY_INTERVAL);
        if is_due && !self.state.is_useless.load(Ordering::Relaxed) {
            let (pool, schema, changes) = (Arc::clone(pool), schema.to_owned(), changes.clone());
            let state = Arc::clone(&self.state);
            let listen = async move {
                // Also if the runtime ends.
                let _stops = StopsWorking(&state);
                // Without notifications, changes are found by looking for them, which has the same errors.
                drop(listen(&pool, &schema, changes, &state).await);
            };
            *task = Some((runtime.spawn(listen), Instant::now()));
        }
    }
}

/// Records that notifications no longer arrive.
struct StopsWorking<'a>(&'a ListenerState);

impl Drop for StopsWorking<'_> {
    fn drop(&mut self) {
        self.0.is_working.store(false, Ordering::Relaxed);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((task, _)) = task {
            task.abort();
        }
    }
}

/// Passes notifications on until the connection is lost.
async fn listen(
    pool: &Pool,
    schema: &str,
    changes: Changes,
    state: &ListenerState,
) -> Result<(), StoreError> {
    let (client, mut connection) = pool.connect_alone().await?;
    let (received, mut is_received) = watch::channel(false);
    // Ends when the client is dropped.
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            let AsyncMessage::Notification(notification) = message else { continue };
            received.send_replace(true);
            if let Some(key) = key_of(notification.payload()) {
                changes.send(key);
            }
        }
    });
    let listening = client.batch_execute(&format!("LISTEN {schema}")).await;
    listening.map_err(|error| errors::failure(pool.target(), error))?;
    // On another connection: behind a pooler, the server would only send it together with the response.
    pool.query("SELECT pg_notify($1, '')", &[(&schema, Type::TEXT)]).await?;
    let probe = async { is_received.wait_for(|it| *it).await.is_ok() };
    match tokio::time::timeout(PROBE_TIMEOUT, probe).await {
        Ok(true) => {
            state.is_working.store(true, Ordering::Relaxed);
            // An error means that the runtime ends.
            drop(driver.await);
        }
        // The connection was lost.
        Ok(false) => {}
        Err(_) => state.is_useless.store(true, Ordering::Relaxed),
    }
    Ok(())
}
