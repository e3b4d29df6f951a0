//! IDs of requests and messages: counted, so that a scenario sends the same bytes in every run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Generates IDs that are unique in a scenario. Clones share the counters.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    seed: u64,
    requests: Arc<AtomicU64>,
    messages: Arc<AtomicU64>,
}

impl Ids {
    pub(super) fn new(scenario: &str) -> Self {
        let seed = mix(0xcbf2_9ce4_8422_2325, scenario.as_bytes());
        Self { seed, requests: Arc::default(), messages: Arc::default() }
    }

    /// Returns a request ID, `req_<n>_<8 hex>`.
    pub(super) fn request(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let hex = mix(self.seed, &number.to_le_bytes()) & 0xffff_ffff;
        format!("req_{number}_{hex:08x}")
    }

    /// Returns a message ID with the form of a UUID of version 4.
    pub(super) fn message(&self) -> String {
        let number = self.messages.fetch_add(1, Ordering::Relaxed) + 1;
        let high = mix(self.seed, &number.to_be_bytes());
        let low = mix(high, b"low");
        format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff,
        )
    }
}

/// FNV-1a.
fn mix(seed: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
