//! Decides when the exit is reported to the machine: after everything that the process wrote.

use std::io;
use std::task::{Context, Poll};

use claude_wire::Exit;

use crate::transport::Running;

/// The capacity of a pipe, in bytes. Anything read beyond that after the exit was written by another
/// process that holds the pipe open and may never stop; the exit must not wait for that.
const MAX_PIPE_BYTES: usize = 1024 * 1024;

/// The exit of the process, from when it is noticed to when it is reported.
#[derive(Debug, Default)]
pub(super) struct ExitWatch {
    noticed: Option<io::Result<Exit>>,
    read_since: usize,
    is_reported: bool,
}

impl ExitWatch {
    /// Checks whether the process has exited.
    pub(super) fn look(&mut self, child: &mut Running, context: &mut Context<'_>) {
        if !self.is_reported
            && self.noticed.is_none()
            && let Poll::Ready(exit) = child.poll_exit(context)
        {
            self.noticed = Some(exit);
        }
    }

    /// Counts bytes that were read from stdout.
    pub(super) fn add_read(&mut self, bytes: usize) {
        if self.noticed.is_some() {
            self.read_since = self.read_since.saturating_add(bytes);
        }
    }

    /// Returns whether the exit must be reported although stdout has more to read.
    pub(super) fn is_overdue(&self) -> bool {
        self.noticed.is_some() && self.read_since >= MAX_PIPE_BYTES
    }

    /// Returns the exit, once.
    pub(super) fn poll_report(&mut self) -> Poll<io::Result<Exit>> {
        match self.noticed.take() {
            Some(exit) => {
                self.is_reported = true;
                Poll::Ready(exit)
            }
            None => Poll::Pending,
        }
    }
}
