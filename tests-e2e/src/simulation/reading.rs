//! Readers of messages, and what they received.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::{Item, Messages, QueryStream, Result, Turn, WarningCode};
use tokio::time::sleep;

use crate::golden;

use super::check::expected;
use super::record::ReaderLog;
use super::rng::Rng;
use super::watcher::{Completion, Watcher};

/// Messages that arrived this recently may not have been delivered yet.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Longer than a reader without faults waits.
const LONG: Duration = Duration::from_secs(200);

type Next<'a> = Pin<Box<dyn Future<Output = Option<Result<Item>>> + Send + 'a>>;

/// A stream of items.
pub(super) trait Items {
    const NAME: &'static str;
    const COMPLETION: Completion;
    fn next(&mut self) -> Next<'_>;
}

macro_rules! items {
    ($type:ty, $name:literal, $completion:ident) => {
        impl Items for $type {
            const NAME: &'static str = $name;
            const COMPLETION: Completion = Completion::$completion;
            fn next(&mut self) -> Next<'_> {
                Box::pin(self.next())
            }
        }
    };
}

items!(Messages, "messages", WithCli);
items!(QueryStream, "query", IfHealthy);
items!(Turn, "turn", IfHealthy);

/// A stream whose items are recorded.
pub(super) struct Reader<S: Items> {
    pub(super) stream: Option<S>,
    watcher: Watcher,
    reading: ReaderLog,
}

impl<S: Items> Reader<S> {
    pub(super) fn new(stream: S, from_start: bool, watcher: &Watcher) -> Self {
        let reading =
            ReaderLog { who: S::NAME, from_start, lines: Vec::new(), items: Vec::new(), end: None };
        Self { stream: Some(stream), watcher: watcher.clone(), reading }
    }

    /// Whether the stream has ended.
    pub(super) fn ended(&self) -> bool {
        self.reading.end.is_some()
    }

    /// Reads up to `items` items, possibly slowly; each wait may be dropped.
    pub(super) async fn read(&mut self, items: usize, rng: &mut Rng) {
        let slow = rng.chance(20);
        for _ in 0..items {
            if self.ended() {
                return self.read_after_the_end().await;
            }
            if slow {
                sleep(rng.delay()).await;
            }
            let Some(stream) = &mut self.stream else { return };
            let next = stream.next();
            let watcher = self.watcher.clone();
            let began = watcher.record.now();
            if let Some(item) = watcher.run_or_drop(S::NAME, S::COMPLETION, rng, next).await {
                self.take(item);
                continue;
            }
            let waited = watcher.record.now().saturating_sub(began);
            if waited > JUST_NOW {
                self.check_nothing_is_held_back();
            }
            // Stops after one wait of this length.
            if waited > LONG {
                return;
            }
        }
    }

    fn take(&mut self, item: Option<Result<Item>>) {
        self.reading.items.push(item.as_ref().map_or_else(|| "end".to_owned(), golden::text));
        match item {
            Some(Ok(Item::Message(message))) => self.reading.lines.push(message.raw().clone()),
            Some(Ok(Item::PermissionRequest(_))) => {}
            Some(Ok(Item::Warning(warning))) => {
                self.watcher.record.count(format!("warning: {:?}", warning.code()));
                let line = warning.line().filter(|_| warning.code() == WarningCode::Malformed);
                self.reading.lines.extend(line.cloned());
            }
            Some(Err(error)) => {
                self.watcher.record.count(format!("{} ended: {:?}", S::NAME, error.kind()));
                self.reading.end = Some(Err(error.kind()));
            }
            None => {
                self.watcher.record.count(format!("{} ended: ok", S::NAME));
                self.reading.end = Some(Ok(()));
            }
        }
    }

    async fn read_after_the_end(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let next = stream.next();
        if let Some(Some(_)) = self.watcher.run(S::NAME, Completion::Guaranteed, next).await {
            self.watcher.record.violation(format!("`{}` returned an item after its end", S::NAME));
        }
    }

    /// Checks after an unsuccessful wait that no message was withheld from the reader.
    fn check_nothing_is_held_back(&self) {
        let state = self.watcher.record.lock();
        let since = self.watcher.record.now().saturating_sub(JUST_NOW);
        let read: Vec<Bytes> = expected(&state.wire.read, since);
        let missing = self.reading.from_start && read.len() > self.reading.lines.len();
        drop(state);
        if missing {
            let text = format!(
                "`{}` waits after {} of {} messages",
                S::NAME,
                self.reading.lines.len(),
                read.len()
            );
            self.watcher.record.violation(text);
        }
    }
}

impl<S: Items> Drop for Reader<S> {
    fn drop(&mut self) {
        let reading = ReaderLog {
            who: S::NAME,
            from_start: self.reading.from_start,
            lines: std::mem::take(&mut self.reading.lines),
            items: std::mem::take(&mut self.reading.items),
            end: self.reading.end,
        };
        if reading.end.is_none() {
            self.watcher.record.count(format!("handle dropped: {}", S::NAME));
        }
        self.watcher.record.lock().readings.push(reading);
    }
}
