//! The requests that arrived, and waiting for one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::ApiRequest;

/// How many requests are kept. A test looks at a handful; the limit only keeps a client that
/// retries for hours from eating the memory.
const KEPT: usize = 10_000;

#[derive(Default)]
pub(crate) struct RequestLog {
    entries: Mutex<LogEntries>,
    arrived: Notify,
}

impl RequestLog {
    /// A log that keeps no more than this.
    pub(crate) fn keeping(limit: usize) -> Self {
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
            // Made before the look at the log: a request that arrives in between wakes it.
            let arrived = self.arrived.notified();
            // The predicate runs on copies, outside the lock, so it may itself ask the log.
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
        // No foreign code runs under the lock, so a poisoned log is still a whole one.
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

    /// The kept requests from the one with the running number `first` on.
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
    fn the_newest_requests_are_kept_and_the_others_counted() {
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
