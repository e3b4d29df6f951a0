//! Who reads messages, and what they got.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::{Item, Messages, QueryStream, Result, Turn, WarningCode};
use tokio::time::sleep;

use crate::golden;

use super::check::expected;
use super::draw::Draw;
use super::fate::{Promise, Waiting};
use super::record::Reading;

/// What came just now may still be on its way to the reader.
const JUST_NOW: Duration = Duration::from_secs(1);

/// Longer than a reader that is not disturbed waits.
const LONG: Duration = Duration::from_secs(200);

type Next<'a> = Pin<Box<dyn Future<Output = Option<Result<Item>>> + Send + 'a>>;

/// A stream of items.
pub(super) trait Items {
    const NAME: &'static str;
    const PROMISE: Promise;
    fn next(&mut self) -> Next<'_>;
}

macro_rules! items {
    ($type:ty, $name:literal, $promise:ident) => {
        impl Items for $type {
            const NAME: &'static str = $name;
            const PROMISE: Promise = Promise::$promise;
            fn next(&mut self) -> Next<'_> {
                Box::pin(self.next())
            }
        }
    };
}

items!(Messages, "messages", AtTheEnd);
items!(QueryStream, "query", IfHealthy);
items!(Turn, "turn", IfHealthy);

/// A stream of which everything is noted that it gives.
pub(super) struct Reader<S: Items> {
    pub(super) stream: Option<S>,
    waiting: Waiting,
    reading: Reading,
}

impl<S: Items> Reader<S> {
    pub(super) fn new(stream: S, from_start: bool, waiting: &Waiting) -> Self {
        let reading =
            Reading { who: S::NAME, from_start, lines: Vec::new(), items: Vec::new(), end: None };
        Self { stream: Some(stream), waiting: waiting.clone(), reading }
    }

    /// Whether there is nothing more.
    pub(super) fn ended(&self) -> bool {
        self.reading.end.is_some()
    }

    /// Reads so many items, slowly perhaps, each of which may be waited for in vain.
    pub(super) async fn read(&mut self, items: usize, draw: &mut Draw) {
        let slow = draw.chance(20);
        for _ in 0..items {
            if self.ended() {
                return self.read_after_the_end().await;
            }
            if slow {
                sleep(draw.delay()).await;
            }
            let Some(stream) = &mut self.stream else { return };
            let next = stream.next();
            let waiting = self.waiting.clone();
            let began = waiting.record.now();
            if let Some(item) = waiting.mortal(S::NAME, S::PROMISE, draw, next).await {
                self.take(item);
                continue;
            }
            let waited = waiting.record.now().saturating_sub(began);
            if waited > JUST_NOW {
                self.check_nothing_is_held_back();
            }
            // Who has waited in vain for that long does not wait again.
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
                self.waiting.record.count(format!("warning: {:?}", warning.code()));
                let line = warning.line().filter(|_| warning.code() == WarningCode::Malformed);
                self.reading.lines.extend(line.cloned());
            }
            Some(Err(error)) => {
                self.waiting.record.count(format!("{} ended: {:?}", S::NAME, error.kind()));
                self.reading.end = Some(Err(error.kind()));
            }
            None => {
                self.waiting.record.count(format!("{} ended: well", S::NAME));
                self.reading.end = Some(Ok(()));
            }
        }
    }

    async fn read_after_the_end(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let next = stream.next();
        if let Some(Some(_)) = self.waiting.patient(S::NAME, Promise::Kept, next).await {
            self.waiting.record.violation(format!("`{}` gave an item after its end", S::NAME));
        }
    }

    /// Somebody waited in vain: then nothing must have come that it did not get.
    fn check_nothing_is_held_back(&self) {
        let state = self.waiting.record.lock();
        let since = self.waiting.record.now().saturating_sub(JUST_NOW);
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
            self.waiting.record.violation(text);
        }
    }
}

impl<S: Items> Drop for Reader<S> {
    fn drop(&mut self) {
        let reading = Reading {
            who: S::NAME,
            from_start: self.reading.from_start,
            lines: std::mem::take(&mut self.reading.lines),
            items: std::mem::take(&mut self.reading.items),
            end: self.reading.end,
        };
        if reading.end.is_none() {
            self.waiting.record.count(format!("handle dropped: {}", S::NAME));
        }
        self.waiting.record.lock().readings.push(reading);
    }
}
