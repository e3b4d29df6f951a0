//! Facts from which a failed run is diagnosed.

use std::collections::VecDeque;

use bytes::Bytes;
use claude_wire::Envelope;
use claude_wire::id::SessionId;

/// The maximum size of the malformed line that is kept.
const MALFORMED_LINE_BYTES: usize = 4 * 1024;

/// The maximum size of the stdout that is kept during the handshake.
const TAIL_BYTES: usize = 64 * 1024;

/// Facts about a run, for its diagnosis.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// The first 4 KiB of the last malformed line.
    pub last_malformed_line: Option<Bytes>,
    /// The session ID that the CLI last reported.
    pub session_id: Option<SessionId>,
    /// The error with which reading stdout failed.
    pub read_error: Option<String>,
    /// The error with which writing to stdin failed.
    pub write_error: Option<String>,
    tail: VecDeque<Bytes>,
    tail_bytes: usize,
}

impl Evidence {
    /// Returns the last lines, up to 64 KiB, that were read during the handshake. Empty once the
    /// handshake is complete.
    pub fn output_before_handshake(&self) -> impl Iterator<Item = &Bytes> {
        self.tail.iter()
    }

    /// Keeps a copy of a line that was read during the handshake, because a slice would keep the whole
    /// read buffer in memory.
    pub(super) fn record_before_handshake(&mut self, line: &[u8]) {
        let kept = &line[line.len().saturating_sub(TAIL_BYTES)..];
        self.tail_bytes += kept.len();
        self.tail.push_back(Bytes::copy_from_slice(kept));
        while self.tail_bytes > TAIL_BYTES {
            let removed = self.tail.pop_front().map_or(0, |line| line.len());
            self.tail_bytes -= removed;
        }
    }

    pub(super) fn handshake_confirmed(&mut self) {
        self.tail = VecDeque::new();
        self.tail_bytes = 0;
    }

    pub(super) fn record_malformed_line(&mut self, line: &[u8]) {
        let kept = &line[..line.len().min(MALFORMED_LINE_BYTES)];
        self.last_malformed_line = Some(Bytes::copy_from_slice(kept));
    }

    pub(super) fn record_envelope(&mut self, envelope: &Envelope<'_>) {
        if let Some(id) = envelope.session_id.as_deref() {
            self.set_session_id(id);
        }
    }

    pub(super) fn set_session_id(&mut self, id: &str) {
        if !id.is_empty() && self.session_id.as_ref().is_none_or(|known| known != id) {
            self.session_id = Some(SessionId::from(id));
        }
    }
}
