//! The gap of a faulty store between the check of an epoch and the write.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a request waits for the others. Most checks have no requests at the same time.
const TIMEOUT: Duration = Duration::from_millis(20);

/// How many reads without a claim end the wait of a write. A check that claims after it has read a write can
/// have made two of them since the next write began.
const READS: u32 = 3;

/// Lets a claim, and the read after it, take place between the check of a write and the write itself, so that
/// finding the fault does not depend on the speed of the machine.
#[derive(Debug)]
pub(crate) struct FenceGap(watch::Sender<Requests>);

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    writes_in_gap: u32,
    claims: u32,
    reads: u32,
    reads_at_claim: u32,
}

impl Default for FenceGap {
    fn default() -> Self {
        Self(watch::Sender::new(Requests::default()))
    }
}

impl FenceGap {
    /// Waits before a claim for a write that has been checked.
    pub(crate) async fn before_claim(&self) {
        let mut requests = self.0.subscribe();
        drop(timeout(TIMEOUT, requests.wait_for(|now| now.writes_in_gap > 0)).await);
    }

    pub(crate) fn claimed(&self) {
        self.0.send_modify(|now| {
            now.claims += 1;
            now.reads_at_claim = now.reads;
        });
    }

    pub(crate) fn read(&self) {
        self.0.send_modify(|now| now.reads += 1);
    }

    /// Waits with a write that has been checked for a claim and the read after it.
    pub(crate) async fn before_write(&self) {
        let mut requests = self.0.subscribe();
        let start = *requests.borrow_and_update();
        self.0.send_modify(|now| now.writes_in_gap += 1);
        let is_over = |now: &Requests| {
            if now.claims > start.claims {
                now.reads > now.reads_at_claim
            } else {
                now.reads >= start.reads + READS
            }
        };
        drop(timeout(TIMEOUT, requests.wait_for(is_over)).await);
        self.0.send_modify(|now| now.writes_in_gap -= 1);
    }
}
