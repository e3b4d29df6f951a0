//! Brings the store up to date from the files of the CLI, after a failure of the store.
//!
//! While the mirror is degraded, the files are the queue: memory has only their paths. The driver reads them
//! after the last stored entry, and stops when they have not changed for a while, because the frames of
//! their last lines must have arrived by then.

use std::sync::Arc;
use std::time::Duration;

use claude_wire::transcript::{MirrorFrame, TranscriptPath};

use super::agent_metadata::is_metadata_entry;
use super::event::Effect;
use super::limits::MirrorLimits;
use super::mirror_event::{BatchNumber, CatchUp, MirrorFile, MirrorSession};
use super::outbox::Outbox;

/// The files of the run.
#[derive(Debug, Default)]
pub(super) struct MirrorFiles {
    files: Vec<MirrorFile>,
    last_frame: Duration,
}

impl MirrorFiles {
    /// Records a frame and returns its session.
    pub(super) fn record(
        &mut self,
        frame: &MirrorFrame<'_>,
        path: &TranscriptPath<'_>,
        now: Duration,
    ) -> &MirrorFile {
        self.last_frame = now;
        // The last file is the most likely one.
        let known = self.files.iter().rposition(|file| *file.path == *frame.path);
        let index = known.unwrap_or_else(|| {
            self.files.push(MirrorFile {
                session: self.session_of(path),
                subpath: path.subpath.as_deref().map(Arc::from),
                path: frame.path.as_str().into(),
                metadata: None,
            });
            self.files.len() - 1
        });
        let metadata = frame.entries.iter().rfind(|entry| is_metadata_entry(entry.get()));
        if let Some(metadata) = metadata {
            self.files[index].metadata = Some(metadata.get().into());
        }
        &self.files[index]
    }

    /// Shares the session with the other files.
    fn session_of(&self, path: &TranscriptPath<'_>) -> Arc<MirrorSession> {
        let sessions = self.files.iter().map(|file| &file.session);
        let same = sessions
            .rev()
            .find(|session| session.project == path.project && session.session == path.session);
        same.cloned().unwrap_or_else(|| Arc::new(MirrorSession::new(path.project, path.session)))
    }
}

/// The state of a degraded mirror.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// The time of the next attempt; `None` during an attempt, and if the files do not help.
    next: Option<Duration>,
    /// The attempt in progress, and the number of files that it knows.
    running: Option<(BatchNumber, usize)>,
    /// Whether the process has ended, so that the attempt is the last one.
    is_final: bool,
}

impl Recovery {
    /// Plans the first attempt, if the files have the missing entries.
    pub(super) fn new(is_possible: bool, limits: &MirrorLimits, now: Duration) -> Self {
        let next = is_possible.then(|| now.saturating_add(limits.probe));
        Self { next, ..Self::default() }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn is_attempt(&self, number: BatchNumber) -> bool {
        self.running.is_some_and(|(running, _)| running == number)
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.next
    }

    /// Starts an attempt if its time has come.
    pub(super) fn tick(
        &mut self,
        files: &MirrorFiles,
        batches: &mut u64,
        now: Duration,
        out: &mut Outbox,
    ) {
        if self.next.is_some_and(|at| at <= now) {
            self.start(files, batches, out);
        }
    }

    /// Starts the last attempt, after the process has ended.
    pub(super) fn finish(&mut self, files: &MirrorFiles, batches: &mut u64, out: &mut Outbox) {
        if self.next.is_some() && !self.is_final {
            self.is_final = true;
            self.start(files, batches, out);
        }
    }

    fn start(&mut self, files: &MirrorFiles, batches: &mut u64, out: &mut Outbox) {
        *batches += 1;
        let number = BatchNumber(*batches);
        self.next = None;
        self.running = Some((number, files.files.len()));
        let (files, is_final) = (files.files.clone(), self.is_final);
        out.push(Effect::CatchUp(CatchUp { number, files, is_final }));
    }

    /// Handles the end of an attempt that stored all lines, and returns whether the mirror is up to date.
    pub(super) fn on_caught_up(
        &mut self,
        files: &MirrorFiles,
        limits: &MirrorLimits,
        now: Duration,
    ) -> bool {
        let Some((_, known)) = self.running.take() else { return false };
        // The lines of a frame that has just arrived may have been written after the file was read.
        let is_quiet = files.last_frame.saturating_add(limits.quiet) <= now;
        let is_complete = known == files.files.len() && (is_quiet || self.is_final);
        if !is_complete {
            self.next = Some(now.saturating_add(limits.quiet));
        }
        is_complete
    }

    /// Handles the failure of an attempt.
    pub(super) fn on_failure(&mut self, is_retryable: bool, limits: &MirrorLimits, now: Duration) {
        self.running = None;
        let again = is_retryable && !self.is_final;
        self.next = again.then(|| now.saturating_add(limits.probe));
    }

    /// Gives up.
    pub(super) fn cancel(&mut self, out: &mut Outbox) {
        self.next = None;
        if self.running.take().is_some() {
            out.push(Effect::AbandonAppend);
        }
    }
}
