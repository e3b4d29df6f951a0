//! Timestamps of a transcript.

/// Parses an ISO 8601 timestamp into milliseconds since the Unix epoch, as `Date.parse` does for
/// the timestamps that the CLI writes (`2026-01-31T12:00:00.000Z`).
///
/// A date alone is midnight UTC. A time without an offset counts as UTC, because the local time
/// zone is not known here. Returns `None` for any other text.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let midnight = days_since_epoch(year, month, day) * 86_400_000;
    time.map_or(Some(midnight), |time| Some(midnight + time_of_day(time)?))
}

fn time_of_day(text: &str) -> Option<i64> {
    let (clock, offset) = match text.find(['Z', '+', '-']) {
        Some(at) => (&text[..at], offset_millis(&text[at..])?),
        None => (text, 0),
    };
    let mut parts = clock.split(':');
    let hours = digits(parts.next()?, 2)?;
    let minutes = digits(parts.next()?, 2)?;
    let (seconds, millis) = match parts.next() {
        Some(seconds) => seconds_and_millis(seconds)?,
        None => (0, 0),
    };
    if parts.next().is_some() || hours > 24 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(((hours * 60 + minutes) * 60 + seconds) * 1000 + millis - offset)
}

fn seconds_and_millis(text: &str) -> Option<(i64, i64)> {
    let Some((seconds, fraction)) = text.split_once('.') else {
        return Some((digits(text, 2)?, 0));
    };
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = fraction.bytes().chain(*b"00").take(3);
    let millis = thousandths.fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0'));
    Some((digits(seconds, 2)?, millis))
}

fn offset_millis(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' if text.len() == 1 => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let text = &text[1..];
    let (hours, minutes) = text.split_once(':').or_else(|| text.split_at_checked(2))?;
    Some(sign * (digits(hours, 2)? * 60 + digits(minutes, 2)?) * 60_000)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let valid = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

/// Counts the days of the proleptic Gregorian calendar.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last day of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::parse_timestamp;

    #[test]
    fn timestamps_are_milliseconds_since_the_epoch() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000Z", Some(0)),
            ("1970-01-01", Some(0)),
            ("2000-02-29T12:34:56.789Z", Some(951_827_696_789)),
            ("2026-01-31T12:00:00Z", Some(1_769_860_800_000)),
            ("2026-01-31T13:00:00+01:00", Some(1_769_860_800_000)),
            ("2026-01-31T12:00Z", Some(1_769_860_800_000)),
            ("1969-12-31T23:59:59.9999Z", Some(-1)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-01-31T12:00:00.Z", None),
            ("yesterday", None),
            ("", None),
            ("é-é-é", None),
        ] {
            assert_eq!(parse_timestamp(text), expected, "{text}");
        }
    }
}
