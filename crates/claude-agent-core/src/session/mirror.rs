//! Mirrors transcripts to a store: batches, retries, and the results that wait for the store.
//!
//! The store never delays the CLI: frames are queued up to a limit, one append is in flight, and what is
//! written to stdin does not depend on either. Entries are stored in order without gaps, so after a failure
//! that is not retried any more (the mirror is *degraded*) no later entry is sent until the store was caught
//! up from the files of the CLI.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use claude_wire::transcript::{MirrorFrame, TranscriptPath};

use super::catch_up::{MirrorFiles, Recovery};
use super::event::{Effect, RunFailure, RunWarning};
use super::limits::MirrorLimits;
use super::machine::Machine;
use super::mirror_event::{
    AppendFailure, BatchNumber, MirrorBatch, MirrorEntry, MirrorSession, StorePolicy,
};
use super::outbox::Outbox;

/// The entries that are not stored yet, and the append in flight.
#[derive(Debug)]
pub(super) struct Mirror {
    policy: StorePolicy,
    limits: MirrorLimits,
    /// Varies the delays between runs.
    seed: u32,
    queue: VecDeque<QueuedEntry>,
    /// The size of the queue. A batch in flight has a limit of its own.
    bytes: usize,
    in_flight: Option<InFlight>,
    batches: u64,
    /// The number of entries that the CLI has reported.
    received: u64,
    /// The number of entries that are stored.
    stored: u64,
    files: MirrorFiles,
    /// The recovery of a degraded mirror.
    recovery: Option<Recovery>,
    /// The time until which entries are stored after the end of the process.
    flush_until: Option<Duration>,
    /// The last path that was reported as unknown.
    unknown_path: Option<String>,
}

#[derive(Debug)]
struct QueuedEntry {
    session: Arc<MirrorSession>,
    entry: MirrorEntry,
}

/// The batch that is being appended, or waits for its retry.
#[derive(Debug)]
struct InFlight {
    number: BatchNumber,
    entries: u64,
    /// The time of the first attempt.
    since: Duration,
    failures: u32,
    /// The error of the last attempt.
    reason: Option<String>,
    retry_at: Option<Duration>,
}

impl Mirror {
    pub(super) fn new(policy: StorePolicy, limits: MirrorLimits, seed: u32) -> Self {
        Self {
            policy,
            limits,
            seed,
            queue: VecDeque::new(),
            bytes: 0,
            in_flight: None,
            batches: 0,
            received: 0,
            stored: 0,
            files: MirrorFiles::default(),
            recovery: None,
            flush_until: None,
            unknown_path: None,
        }
    }

    /// Returns whether everything that the CLI reported is stored.
    pub(super) fn is_stored(&self) -> bool {
        self.recovery.is_none() && self.stored == self.received
    }

    /// Returns whether entries are being stored.
    pub(super) fn is_pending(&self) -> bool {
        self.in_flight.is_some() || self.is_catching_up()
    }

    /// Returns whether the files of the CLI are being read, so that its frames must be read too.
    pub(super) fn is_catching_up(&self) -> bool {
        self.recovery.as_ref().is_some_and(Recovery::is_running)
    }

    /// Returns the time of the next retry, or of the end of all retries.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let retry = self.in_flight.as_ref().and_then(|batch| batch.retry_at);
        let recovery = self.recovery.as_ref().and_then(Recovery::deadline);
        let flush = self.flush_until.filter(|_| self.is_pending());
        [retry, recovery, self.give_up_at(), flush].into_iter().flatten().min()
    }

    fn give_up_at(&self) -> Option<Duration> {
        let in_flight = self.in_flight.as_ref()?;
        (self.policy != StorePolicy::Wait)
            .then(|| in_flight.since.saturating_add(self.limits.give_up))
    }

    /// Queues the entries of a frame. Fails with the reason if the mirror cannot continue without a gap.
    fn add_frame(
        &mut self,
        line: &Bytes,
        held: usize,
        now: Duration,
        out: &mut Outbox,
    ) -> Result<(), StoreFailure> {
        let frame = MirrorFrame::read(line).map_err(|error| StoreFailure {
            reason: format!("a `transcript_mirror` line cannot be decoded: {error}"),
            in_files: false,
        })?;
        let Some(path) = TranscriptPath::read(&frame.path) else {
            if self.unknown_path.as_deref() != Some(frame.path.as_str()) {
                self.unknown_path = Some(frame.path.clone());
                out.warn(RunWarning::UnknownTranscript(frame.path));
            }
            return Ok(());
        };
        let file = self.files.record(&frame, &path, now);
        let (session, subpath) = (file.session.clone(), file.subpath.clone());
        self.received += frame.entries.len() as u64;
        if self.recovery.is_some() {
            return Ok(());
        }
        let size: usize = frame.entries.iter().map(|entry| entry.get().len()).sum();
        let others = self.bytes.saturating_add(held);
        // A single frame of any size is accepted, like a single line.
        if others > 0 && others.saturating_add(size) > self.limits.queued_bytes {
            return Err(StoreFailure::of_store(self.too_slow()));
        }
        for entry in frame.entries {
            let entry = MirrorEntry { subpath: subpath.clone(), text: entry.get().into() };
            self.queue.push_back(QueuedEntry { session: session.clone(), entry });
        }
        self.bytes += size;
        Ok(())
    }

    fn too_slow(&self) -> String {
        let cause = self.in_flight.as_ref().and_then(|batch| batch.reason.as_deref());
        let cause = cause.map(|cause| format!("; the last error: {cause}")).unwrap_or_default();
        let limit = self.limits.queued_bytes;
        format!("more than {limit} bytes are waiting for the store{cause}")
    }

    /// Appends the next batch, unless one is in flight.
    fn append_next(&mut self, now: Duration, out: &mut Outbox) {
        if self.in_flight.is_some() {
            return;
        }
        let Some(first) = self.queue.pop_front() else { return };
        let QueuedEntry { session, entry } = first;
        let mut bytes = entry.text.len();
        let mut entries = vec![entry];
        while let Some(next) = self.queue.front() {
            let size = next.entry.text.len();
            let fits = entries.len() < self.limits.batch_entries
                && bytes.saturating_add(size) <= self.limits.batch_bytes
                && next.session == session;
            if !fits {
                break;
            }
            bytes += size;
            entries.extend(self.queue.pop_front().map(|queued| queued.entry));
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        self.batches += 1;
        let number = BatchNumber(self.batches);
        self.in_flight = Some(InFlight {
            number,
            entries: entries.len() as u64,
            since: now,
            failures: 0,
            reason: None,
            retry_at: None,
        });
        out.push(Effect::Append(MirrorBatch { number, session, entries }));
    }

    fn on_appended(&mut self, number: BatchNumber, now: Duration, out: &mut Outbox) {
        if let Some(recovery) = self.recovery.as_mut().filter(|it| it.is_attempt(number)) {
            if recovery.on_caught_up(&self.files, &self.limits, now) {
                self.recovery = None;
                self.stored = self.received;
                out.warn(RunWarning::MirrorRecovered);
            }
            return;
        }
        let Some(batch) = self.in_flight.take_if(|batch| batch.number == number) else { return };
        self.stored += batch.entries;
        out.release(self.stored);
        self.append_next(now, out);
    }

    fn schedule_retry(&mut self, number: BatchNumber, reason: String, now: Duration) {
        let (limits, seed) = (self.limits, self.seed);
        if let Some(batch) = self.in_flight.as_mut().filter(|batch| batch.number == number) {
            let delay = retry_delay(&limits, seed, batch.failures);
            batch.failures = batch.failures.saturating_add(1);
            batch.reason = Some(reason);
            batch.retry_at = Some(now.saturating_add(delay));
        }
    }

    /// Retries the append if its time has come. Fails with the reason when the retries are over.
    fn tick(&mut self, now: Duration, out: &mut Outbox) -> Result<(), StoreFailure> {
        let is_over = self.give_up_at().is_some_and(|at| at <= now);
        let is_flushed = self.flush_until.is_some_and(|at| at <= now);
        if let Some(recovery) = &mut self.recovery {
            if is_flushed {
                recovery.cancel(out);
            }
            recovery.tick(&self.files, &mut self.batches, now, out);
            return Ok(());
        }
        let Some(batch) = &mut self.in_flight else { return Ok(()) };
        if is_over || is_flushed {
            let limit = if is_over { self.limits.give_up } else { self.limits.flush };
            let cause = batch.reason.as_deref().unwrap_or("the append did not return");
            let reason = format!("appends failed for {limit:?}: {cause}");
            return Err(StoreFailure { reason, in_files: !is_flushed });
        }
        if batch.retry_at.is_some_and(|at| at <= now) {
            batch.retry_at = None;
            out.push(Effect::RetryAppend(batch.number));
        }
        Ok(())
    }

    /// Drops everything that is not stored. Held results stay held.
    fn degrade(&mut self, failure: StoreFailure, now: Duration, out: &mut Outbox) {
        if let Some(recovery) = &mut self.recovery {
            if !failure.in_files {
                recovery.cancel(out);
            }
            return;
        }
        self.recovery = Some(Recovery::new(failure.in_files, &self.limits, now));
        self.queue = VecDeque::new();
        self.bytes = 0;
        if self.in_flight.take().is_some() {
            out.push(Effect::AbandonAppend);
        }
        out.warn(RunWarning::MirrorDegraded(failure.reason));
    }
}

/// A failure after which entries are missing in the store.
struct StoreFailure {
    reason: String,
    /// Whether the missing entries can be read from the files of the CLI later.
    in_files: bool,
}

impl StoreFailure {
    fn of_store(reason: String) -> Self {
        Self { reason, in_files: true }
    }
}

/// Returns the delay before a retry: doubled after each failure, and varied by up to a quarter in both
/// directions, so that many runs do not retry at the same time.
fn retry_delay(limits: &MirrorLimits, seed: u32, failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
    let delay = limits.first_retry.saturating_mul(factor).min(limits.max_retry);
    // A multiplicative hash; its upper bits vary most.
    let hash = seed.wrapping_add(failures).wrapping_mul(0x9E37_79B9) >> 16;
    let per_mille = 750 + hash % 500;
    (delay.saturating_mul(per_mille) / 1000).min(limits.max_retry)
}

impl Machine {
    pub(super) fn on_mirror_frame(&mut self, line: &Bytes, now: Duration) {
        let held = self.out.held_bytes();
        let Some(mirror) = &mut self.mirror else { return };
        match mirror.add_frame(line, held, now, &mut self.out) {
            Ok(()) => mirror.append_next(now, &mut self.out),
            Err(failure) => self.on_store_failure(failure, now),
        }
    }

    /// Handles a frame that is too long to be read, whose entries are missing in the store.
    pub(super) fn on_oversized_mirror_frame(&mut self, size: u64, now: Duration) {
        if self.mirror.is_some() {
            let reason = format!("a `transcript_mirror` line of {size} bytes was discarded");
            self.on_store_failure(StoreFailure { reason, in_files: false }, now);
        }
    }

    /// Holds the result that is about to be delivered, if entries before it are not stored.
    pub(super) fn before_result(&mut self) {
        let Some(mirror) = &self.mirror else { return };
        let is_complete = mirror.stored == mirror.received;
        if self.has_failed() {
            return;
        }
        if mirror.recovery.is_some() {
            self.out.mark_result(false);
        } else if is_complete && !self.out.is_holding() {
            self.out.mark_result(true);
        } else {
            self.out.hold_result(mirror.received);
        }
    }

    /// Degrades the mirror if the messages after a held result take too much memory.
    pub(super) fn check_held_messages(&mut self, now: Duration) {
        let held = self.out.held_bytes();
        let Some(mirror) = self.mirror.as_ref().filter(|_| held > 0) else { return };
        if held.saturating_add(mirror.bytes) > mirror.limits.queued_bytes {
            let failure = StoreFailure::of_store(mirror.too_slow());
            self.on_store_failure(failure, now);
        }
    }

    pub(super) fn on_appended(&mut self, batch: BatchNumber, now: Duration) {
        if let Some(mirror) = &mut self.mirror {
            mirror.on_appended(batch, now, &mut self.out);
        }
    }

    pub(super) fn on_append_failed(
        &mut self,
        number: BatchNumber,
        failure: AppendFailure,
        reason: String,
        now: Duration,
    ) {
        let Some(mirror) = &mut self.mirror else { return };
        let recovery = mirror.recovery.as_mut().filter(|recovery| recovery.is_attempt(number));
        let is_catch_up = recovery.is_some();
        if let Some(recovery) = recovery {
            let is_retryable = failure == AppendFailure::Retryable;
            recovery.on_failure(is_retryable, &mirror.limits, now);
        } else if failure != AppendFailure::Superseded
            && mirror.in_flight.as_ref().is_none_or(|batch| batch.number != number)
        {
            // Of a batch that was abandoned. That the session is lost remains true.
            return;
        }
        match failure {
            AppendFailure::Superseded => {
                let ends = RunFailure::Superseded(reason.clone());
                self.end_mirror(StoreFailure { reason, in_files: false }, Some(ends), now);
            }
            AppendFailure::Retryable | AppendFailure::Permanent if is_catch_up => {}
            AppendFailure::Retryable => mirror.schedule_retry(number, reason, now),
            AppendFailure::Permanent => {
                self.on_store_failure(StoreFailure { reason, in_files: false }, now);
            }
        }
    }

    pub(super) fn mirror_tick(&mut self, now: Duration) {
        if let Some(mirror) = &mut self.mirror
            && let Err(failure) = mirror.tick(now, &mut self.out)
        {
            self.on_store_failure(failure, now);
        }
    }

    /// Handles a failure after which the store is not used any more.
    fn on_store_failure(&mut self, mut failure: StoreFailure, now: Duration) {
        let is_stop = self.mirror.as_ref().is_some_and(|it| it.policy == StorePolicy::Stop);
        let ends = is_stop.then(|| RunFailure::StoreFailed(failure.reason.clone()));
        failure.in_files &= !is_stop;
        self.end_mirror(failure, ends, now);
    }

    /// Degrades the mirror, and fails the run with `ends`. Held results are delivered if the run continues.
    fn end_mirror(&mut self, failure: StoreFailure, ends: Option<RunFailure>, now: Duration) {
        if let Some(mirror) = &mut self.mirror {
            mirror.degrade(failure, now, &mut self.out);
        }
        match ends {
            Some(failure) => self.lose_store(failure, now),
            None => self.out.release_all(),
        }
    }

    /// Fails the run because another host owns the session.
    pub(super) fn on_superseded(&mut self, reason: String, now: Duration) {
        self.lose_store(RunFailure::Superseded(reason), now);
    }

    /// Ends a run that may not continue because of its store. A query that has delivered a stored result does not
    /// fail.
    fn lose_store(&mut self, failure: RunFailure, now: Duration) {
        if self.query_has_result() && !self.out.has_unstored_result() {
            self.stop_after_result(now);
        } else {
            self.fail_at_once(failure, now);
        }
    }

    /// Returns whether the end of the run waits for the store, for at most the flush time.
    pub(super) fn is_flushing(&mut self, now: Duration) -> bool {
        let Some(mirror) = &mut self.mirror else { return false };
        if let Some(recovery) = &mut mirror.recovery {
            recovery.finish(&mirror.files, &mut mirror.batches, &mut self.out);
        }
        if !mirror.is_pending() {
            return false;
        }
        let limit = mirror.limits.flush;
        mirror.flush_until.get_or_insert(now.saturating_add(limit));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_differ_between_runs() {
        let limits = MirrorLimits::default();
        for seed in [0, 1, 77, u32::MAX] {
            for failures in [0, 1, 2, 3, 5, 6, 31, 32, u32::MAX] {
                let delay = retry_delay(&limits, seed, failures).as_millis();
                let plain = (200_u128 << failures.min(20)).min(10_000);
                let range = plain * 3 / 4..=(plain * 5 / 4).min(10_000);
                assert!(range.contains(&delay), "{seed} {failures}: {delay}");
            }
        }
        assert_ne!(retry_delay(&limits, 1, 3), retry_delay(&limits, 2, 3));
    }
}
