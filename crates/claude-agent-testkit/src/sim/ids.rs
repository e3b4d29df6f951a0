//! Ids and times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Generates ids that are unique across simulated CLIs.
#[derive(Debug)]
pub(super) struct IdGenerator {
    seed: u64,
    uuids: AtomicU64,
    messages: AtomicU64,
    tools: AtomicU64,
}

impl IdGenerator {
    pub(super) fn new() -> Self {
        /// Distinguishes the simulated CLIs of one process.
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        let instance = INSTANCES.fetch_add(1, Ordering::Relaxed);
        let nanos = since_epoch().as_nanos();
        let mut seed = mix(0xcbf2_9ce4_8422_2325, &nanos.to_le_bytes());
        seed = mix(seed, &std::process::id().to_le_bytes());
        seed = mix(seed, &instance.to_le_bytes());
        let zero = || AtomicU64::new(0);
        Self { seed, uuids: zero(), messages: zero(), tools: zero() }
    }

    /// Returns a string in the format of a version 4 UUID.
    pub(super) fn uuid(&self) -> String {
        let (high, low) = self.next();
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff,
        )
    }

    /// Returns the id of a message of the model.
    pub(super) fn message(&self) -> String {
        format!("msg_{}", self.messages.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the id of a tool call.
    pub(super) fn tool(&self) -> String {
        format!("toolu_{}", self.tools.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns the id of an agent: `a` and 16 hexadecimal digits.
    pub(super) fn agent(&self) -> String {
        format!("a{:016x}", self.next().0)
    }

    /// Returns the id of a background shell: `b` and eight hexadecimal digits.
    pub(super) fn shell(&self) -> String {
        format!("b{:08x}", self.next().0 >> 32)
    }

    /// Returns the id of one run of a task.
    pub(super) fn run(&self) -> String {
        let (high, low) = self.next();
        format!("0{:08x}-{:08x}", high >> 32, low >> 32)
    }

    fn next(&self) -> (u64, u64) {
        let number = self.uuids.fetch_add(1, Ordering::Relaxed);
        let high = mix(self.seed, &number.to_le_bytes());
        (high, mix(high, b"low"))
    }
}

/// FNV-1a with a finalizer, so that consecutive numbers give unrelated hashes.
fn mix(seed: u64, bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 29)
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Returns the current time in milliseconds.
pub(super) fn now_ms() -> u128 {
    since_epoch().as_millis()
}

/// Returns the current time as `2026-01-31T23:59:59.000Z`.
pub(super) fn timestamp() -> String {
    format_timestamp(since_epoch())
}

fn format_timestamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60,
        since_epoch.subsec_millis(),
    )
}

/// Returns the date of a day, counted from 1970-01-01 (Hinnant's algorithm for non-negative days).
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn timestamps_are_formatted_as_dates() {
        let at = |seconds| format_timestamp(Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(1_794_782_013), "2026-11-15T22:33:33.000Z");
    }

    #[test]
    fn ids_are_unique() {
        let ids: Vec<IdGenerator> = (0..10).map(|_| IdGenerator::new()).collect();
        let all: Vec<String> = ids.iter().flat_map(|ids| (0..100).map(|_| ids.uuid())).collect();
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1000);
        assert!(all.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'4'));
    }
}
