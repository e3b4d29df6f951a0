//! Points in time as the CLI writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the current time in ISO 8601 with milliseconds.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    iso(since)
}

/// Returns a time in seconds since the Unix epoch in ISO 8601.
pub(crate) fn iso_seconds(seconds: u64) -> String {
    iso(Duration::new(seconds, 0))
}

/// Returns a time since the Unix epoch in ISO 8601.
fn iso(since: Duration) -> String {
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Returns the date of a day since the Unix epoch.
fn date(mut days: u64) -> (u64, usize, u64) {
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        month += 1;
        if days < length {
            break;
        }
        days -= length;
    }
    (year, month, days + 1)
}

/// Returns a point in time from milliseconds since the Unix epoch; `None` before it.
pub(super) fn from_millis(millis: i64) -> Option<SystemTime> {
    let millis = u64::try_from(millis).ok()?;
    let nanos = u32::try_from(millis % 1000).ok()? * 1_000_000;
    UNIX_EPOCH.checked_add(Duration::new(millis / 1000, nanos))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claude_wire::transcript::parse_timestamp;

    use super::iso;

    #[test]
    fn times_are_written_as_the_parser_reads_them() {
        for millis in
            [0_u64, 951_782_400_123, 951_868_799_999, 1_769_860_800_000, 4_102_444_799_999]
        {
            let text = iso(Duration::from_millis(millis));
            assert_eq!(parse_timestamp(&text), i64::try_from(millis).ok(), "{text}");
        }
        assert_eq!(iso(Duration::from_millis(1_709_164_800_007)), "2024-02-29T00:00:00.007Z");
    }
}
