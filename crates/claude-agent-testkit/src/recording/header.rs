//! The first line of a recording.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::FORMAT;

/// The metadata of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The version of the file format.
    pub format: u32,
    /// The version of the CLI, as `1.2.3`.
    #[serde(default)]
    pub cli_version: String,
    /// The day of the recording, as `2026-11-15`.
    #[serde(default)]
    pub date: String,
    /// The name of the recorded scenario.
    #[serde(default)]
    pub scenario: String,
    /// A one-sentence description of the scenario.
    #[serde(default)]
    pub about: String,
    /// The arguments of the CLI, without the program name.
    #[serde(default)]
    pub argv: Vec<String>,
    /// The environment variables that the client or the scenario set, without secrets.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

impl Header {
    /// Creates a header with this scenario name; the other fields are empty.
    pub fn new(scenario: impl Into<String>) -> Self {
        Self {
            format: FORMAT,
            cli_version: String::new(),
            date: String::new(),
            scenario: scenario.into(),
            about: String::new(),
            argv: Vec::new(),
            env: BTreeMap::new(),
        }
    }

    /// Returns the header as a line of the file, including the newline.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let mut line = b"## ".to_vec();
        // Strings, numbers and a map with string keys always serialize, and writing to a `Vec` cannot
        // fail.
        serde_json::to_writer(&mut line, self).expect("a header serializes");
        line.push(b'\n');
        line
    }
}

/// Returns the current date in UTC, as `2026-11-15`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    day(seconds / 86_400)
}

/// Formats the date that is this number of days after 1970-01-01.
fn day(since_1970: u64) -> String {
    // Years are counted from March, so that the leap day is the last day of a year.
    let days = since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn day_numbers_are_formatted_as_dates() {
        for (number, name) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_772, "2026-11-15"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(day(number), name);
        }
    }
}
