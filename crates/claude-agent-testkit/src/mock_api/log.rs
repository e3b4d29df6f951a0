//! The log of received requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::ApiRequest;

/// The default capacity. It bounds the memory when a client retries for hours.
const KEPT: usize = 10_000;

#[derive(Default)]
pub(crate) struct RequestLog {
    entries: Mutex<LogEntries>,
    arrived: Notify,
}

impl RequestLog {
    /// Creates a log with this capacity.
    pub(crate) fn with_capacity(limit: usize) -> Self {
        let entries = LogEntries { limit, ..LogEntries::default() };
        Self { entries: Mutex::new(entries), arrived: Notify::new() }
    }

    pub(crate) fn record(&self, request: Arc<ApiRequest>) {
        self.entries().push(request);
        self.arrived.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<Arc<ApiRequest>> {
        self.entries().since(0)
    }

    #[cfg(feature = "mock-api")]
    pub(crate) fn dropped(&self) -> u64 {
        self.entries().dropped
    }

    pub(crate) async fn wait_for(&self, matches: impl Fn(&ApiRequest) -> bool) -> ApiRequest {
        let mut next = 0;
        loop {
            // Created before the log is checked, so that a request in between is not missed.
            let arrived = self.arrived.notified();
            // The predicate runs outside the lock, so it may access the log itself.
            let (unseen, end) = {
                let entries = self.entries();
                (entries.since(next), entries.end())
            };
            if let Some(request) = unseen.iter().find(|request| matches(request)) {
                return ApiRequest::clone(request);
            }
            next = end;
            arrived.await;
        }
    }

    fn entries(&self) -> MutexGuard<'_, LogEntries> {
        // No user code runs under the lock, so a poisoned log is still consistent.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LogEntries {
    limit: usize,
    kept: VecDeque<Arc<ApiRequest>>,
    dropped: u64,
}

impl Default for LogEntries {
    fn default() -> Self {
        Self { limit: KEPT, kept: VecDeque::new(), dropped: 0 }
    }
}

impl LogEntries {
    fn push(&mut self, request: Arc<ApiRequest>) {
        if self.kept.len() == self.limit {
            self.kept.pop_front();
            self.dropped += 1;
        }
        self.kept.push_back(request);
    }

    /// Returns the kept requests, starting with number `first`.
    fn since(&self, first: u64) -> Vec<Arc<ApiRequest>> {
        let skipped = usize::try_from(first.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skipped).cloned().collect()
    }

    fn end(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Headers;
    use super::*;

    #[test]
    fn the_newest_requests_are_kept_and_the_rest_is_counted() {
        let request = || {
            Arc::new(ApiRequest {
                method: "POST".to_owned(),
                path: "/v1/messages".to_owned(),
                query: String::new(),
                headers: Headers::default(),
                body: Value::Null,
            })
        };
        let mut entries = LogEntries::default();
        for _ in 0..KEPT + 3 {
            entries.push(request());
        }
        let newest = request();
        entries.push(Arc::clone(&newest));

        assert_eq!(entries.dropped, 4);
        assert_eq!(entries.since(0).len(), KEPT);
        let last = entries.since(entries.end() - 1);
        assert!(last.len() == 1 && Arc::ptr_eq(&last[0], &newest));
        assert!(entries.since(entries.end()).is_empty());
    }
}
