//! What a diagnostic can be made of when a run fails.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::envelope::Envelope;
use crate::id::SessionId;

/// How much is kept of the last line that is none of the protocol.
const OTHER_LINE_BYTES: usize = 4 * 1024;

/// How much is kept of the output before the handshake ended.
const TAIL_BYTES: usize = 64 * 1024;

/// Facts about a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Evidence {
    /// The last line that is none of the protocol, its first 4 KiB.
    pub last_other_line: Option<Bytes>,
    /// The session that the CLI names.
    pub session_id: Option<SessionId>,
    /// Why the output could not be read any more.
    pub read_error: Option<String>,
    /// Why the input could not be written any more.
    pub write_error: Option<String>,
    tail: VecDeque<Bytes>,
    tail_bytes: usize,
}

impl Evidence {
    /// The last lines, up to 64 KiB, that came before the handshake was confirmed. Gone after it.
    pub fn output_before_handshake(&self) -> impl Iterator<Item = &Bytes> {
        self.tail.iter()
    }

    /// Keeps a line that came before the handshake ended. A copy, because a short line can hold a
    /// long buffer.
    pub(super) fn before_handshake(&mut self, line: &[u8]) {
        let kept = &line[line.len().saturating_sub(TAIL_BYTES)..];
        self.tail_bytes += kept.len();
        self.tail.push_back(Bytes::copy_from_slice(kept));
        while self.tail_bytes > TAIL_BYTES {
            let gone = self.tail.pop_front().map_or(0, |line| line.len());
            self.tail_bytes -= gone;
        }
    }

    pub(super) fn handshake_confirmed(&mut self) {
        self.tail = VecDeque::new();
        self.tail_bytes = 0;
    }

    pub(super) fn other_line(&mut self, line: &[u8]) {
        let kept = &line[..line.len().min(OTHER_LINE_BYTES)];
        self.last_other_line = Some(Bytes::copy_from_slice(kept));
    }

    pub(super) fn envelope(&mut self, envelope: &Envelope<'_>) {
        if let Some(named) = envelope.session_id.as_deref() {
            self.session_is(named);
        }
    }

    /// Notes how the CLI names the session.
    pub(super) fn session_is(&mut self, named: &str) {
        if !named.is_empty() && self.session_id.as_ref().is_none_or(|known| known != named) {
            self.session_id = Some(SessionId::from(named));
        }
    }
}
