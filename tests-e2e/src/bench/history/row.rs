//! The operations that are compared, and their targets.

use std::fmt;

use serde_json::Value;

use crate::bench::spread::{Spread, digits};

/// The largest peak memory that an operation may have, in MiB.
pub const MAX_PEAK: f64 = 64.0;

/// An operation on the history.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HistoryRow {
    /// The operation that the subjects perform.
    pub operation: &'static str,
    /// The title in the table.
    pub title: &'static str,
    /// How many times as fast as the Python SDK the operation must be.
    pub python: Option<f64>,
    /// How many times as fast as the TypeScript SDK the operation must be.
    pub typescript: Option<f64>,
}

const fn row(operation: &'static str, title: &'static str) -> HistoryRow {
    HistoryRow { operation, title, python: None, typescript: None }
}

/// All rows of the table.
pub const ROWS: [HistoryRow; 6] = [
    HistoryRow { python: Some(10.0), typescript: Some(20.0), ..row("list", "list 2,001 sessions") },
    HistoryRow { typescript: Some(10.0), ..row("page", "list a page of 50") },
    row("info", "information of one session"),
    HistoryRow {
        python: Some(10.0),
        typescript: Some(5.0),
        ..row("read", "read all messages, 200 MiB")
    },
    row("last", "read the last 10 messages, 200 MiB"),
    row("fork", "fork, 200 MiB"),
];

/// The result of one run of a subject.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// How many sessions or messages were returned.
    pub count: u64,
    /// Wall time in seconds.
    pub wall: f64,
    /// CPU time in seconds.
    pub cpu: f64,
    /// Peak memory of the process in MiB.
    pub peak: f64,
    /// Requests to an S3 server per turn; 0 for everything else.
    pub requests: f64,
}

impl Sample {
    /// Reads the last line that a subject printed.
    ///
    /// # Errors
    ///
    /// Returns the reason that the subject gave, or its output.
    pub fn parse(stdout: &str) -> Result<Self, String> {
        let line = stdout.lines().last().unwrap_or_default();
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let figure = |name: &str| value[name].as_f64();
        let found = value["count"].as_u64().zip(figure("wall"));
        match (found, figure("cpu"), figure("peak")) {
            (Some((count, wall)), Some(cpu), Some(peak)) => {
                let requests = figure("requests").unwrap_or_default();
                Ok(Self { count, wall, cpu, peak, requests })
            }
            _ => Err(value["failed"]
                .as_str()
                .map_or_else(|| format!("no result: {line}"), str::to_owned)),
        }
    }
}

/// The results of one subject in a row of the table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// Returns the median of a figure.
    pub fn median(&self, figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        Spread::of(self.0.iter().map(figure)).map(|spread| spread.median)
    }

    /// Returns the largest peak memory.
    pub fn peak(&self) -> Option<f64> {
        self.0.iter().map(|sample| sample.peak).max_by(f64::total_cmp)
    }

    /// Returns how many times as long the other one took, as the median over the rounds.
    pub fn ratio(&self, other: &Self) -> Option<f64> {
        let rounds = self.0.iter().zip(&other.0);
        Spread::of(rounds.map(|(one, other)| other.wall / one.wall)).map(|spread| spread.median)
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures = (self.median(|sample| sample.wall), self.median(|sample| sample.cpu));
        let ((Some(wall), Some(cpu)), Some(peak)) = (figures, self.peak()) else {
            return f.write_str("failed");
        };
        write!(f, "{}, {}, {peak:.0} MiB", time(wall), time(cpu))
    }
}

/// Formats seconds with three digits.
pub fn time(seconds: f64) -> String {
    let (figure, unit) = if seconds < 1.0 { (seconds * 1e3, "ms") } else { (seconds, "s") };
    format!("{figure:.*} {unit}", digits(figure))
}

/// Formats a ratio, with its target if there is one.
pub fn ratio(ratio: Option<f64>, target: Option<f64>) -> String {
    let figure =
        ratio.map_or_else(|| "failed".to_owned(), |ratio| format!("{ratio:.*}", digits(ratio)));
    match target {
        Some(target) => format!("{figure} (≥ {target})"),
        None => figure,
    }
}

impl HistoryRow {
    /// Describes every target that is missed. The columns are this SDK, Python and TypeScript.
    pub fn missed(&self, [kit, python, typescript]: &[Samples; 3]) -> Vec<String> {
        let mut missed = Vec::new();
        for (name, other, target) in
            [("Python", python, self.python), ("TypeScript", typescript, self.typescript)]
        {
            let found = kit.ratio(other);
            if target.is_some_and(|target| !found.is_some_and(|found| found >= target)) {
                missed.push(format!("{}: {} times {name}", self.title, ratio(found, target)));
            }
        }
        if !kit.peak().is_some_and(|peak| peak < MAX_PEAK) {
            missed.push(format!("{}: peak memory {kit}, limit {MAX_PEAK} MiB", self.title));
        }
        missed
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS, Sample, Samples, ratio, time};

    fn samples(walls: [f64; 3], peak: f64) -> Samples {
        Samples(
            walls.map(|wall| Sample { count: 1, wall, cpu: wall, peak, requests: 0.0 }).to_vec(),
        )
    }

    #[test]
    fn ratio_is_the_median_over_the_rounds() {
        // The machine is twice as slow in the second round.
        let kit = samples([1.0, 2.0, 1.0], 8.0);
        let other = samples([10.0, 20.0, 12.0], 300.0);
        assert_eq!(kit.ratio(&other), Some(10.0));
        assert_eq!(kit.ratio(&Samples::default()), None);
    }

    #[test]
    fn missed_targets_are_described() {
        let list = ROWS[0];
        let kit = samples([1.0; 3], 8.0);
        let columns = [kit.clone(), samples([10.0; 3], 70.0), samples([20.0; 3], 500.0)];
        assert_eq!(list.missed(&columns), Vec::<String>::new());
        let slow = [samples([1.0; 3], 65.0), samples([9.0; 3], 70.0), Samples::default()];
        assert_eq!(
            list.missed(&slow),
            [
                "list 2,001 sessions: 9.00 (≥ 10) times Python",
                "list 2,001 sessions: failed (≥ 20) times TypeScript",
                "list 2,001 sessions: peak memory 1.00 s, 1.00 s, 65 MiB, limit 64 MiB",
            ]
        );
    }

    #[test]
    fn results_of_subjects_are_read() {
        let line = "noise\n{\"count\":50,\"wall\":0.5,\"cpu\":0.25,\"peak\":12.5}\n";
        let sample = Sample { count: 50, wall: 0.5, cpu: 0.25, peak: 12.5, requests: 0.0 };
        assert_eq!(Sample::parse(line), Ok(sample));
        assert_eq!(Sample::parse(r#"{"failed":"why"}"#), Err("why".to_owned()));
        assert_eq!(Sample::parse("x"), Err("no result: x".to_owned()));
    }

    #[test]
    fn figures_have_three_digits() {
        assert_eq!((time(0.0123), time(2.5)), ("12.3 ms".to_owned(), "2.50 s".to_owned()));
        assert_eq!(ratio(Some(21.44), None), "21.4");
    }
}
