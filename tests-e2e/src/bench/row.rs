//! What is measured, how it is compared, and the targets.

use super::spread::{Spread, digits};

/// A row of the table.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Row {
    /// The workload that the subjects run.
    pub work: &'static str,
    /// The title in the table.
    pub title: &'static str,
    /// The size of the workload.
    pub count: usize,
    /// The size of the workload with `--quick`.
    pub quick_count: usize,
    /// The number of rounds.
    pub rounds: usize,
    /// Whether subject and CLI share one CPU, which removes scheduler noise.
    pub pinned: bool,
    /// How figures are compared with the floor.
    pub comparison: Comparison,
    /// The target for the SDK.
    pub target: Option<Target>,
    /// A subject that has used this many seconds and completed three rounds is skipped.
    pub time_budget: Option<u64>,
}

/// How a figure is compared with the floor of the same round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Comparison {
    /// Both are seconds for the same messages: the ratio of messages per second.
    Throughput,
    /// Both are seconds: the ratio.
    Seconds,
    /// Both are microseconds: the ratio.
    Microseconds,
    /// Both are microseconds: the difference.
    Over,
    /// KiB, without a floor.
    Memory,
}

/// A target for the SDK.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Target {
    /// At least this figure.
    AtLeast(f64),
    /// At most this figure.
    AtMost(f64),
}

impl Target {
    /// Whether the figure meets the target.
    pub fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(aim) => figure >= aim,
            Self::AtMost(aim) => figure <= aim,
        }
    }

    /// Formats the target for the table.
    pub fn text(self) -> String {
        match self {
            Self::AtLeast(aim) => format!("≥ {aim}"),
            Self::AtMost(aim) => format!("≤ {aim}"),
        }
    }
}

impl Comparison {
    /// Compares a figure with the floor of the same round. Returns `None` if the floor is required and missing.
    pub fn of(self, figure: f64, floor: Option<f64>) -> Option<f64> {
        match self {
            Self::Throughput => Some(floor? / figure),
            Self::Seconds | Self::Microseconds => Some(figure / floor?),
            Self::Over => Some(figure - floor?),
            Self::Memory => Some(figure),
        }
    }

    /// Describes the comparison in the table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Throughput => "messages a second, as a ratio: more is better",
            Self::Seconds | Self::Microseconds => "time, as a ratio: less is better",
            Self::Over => "µs over the floor: less is better",
            Self::Memory => "KiB: less is better",
        }
    }

    /// Formats the absolute figure of the floor.
    pub fn absolute(self, figures: &[f64], count: usize) -> String {
        let shown = |unit: &str, convert: &dyn Fn(f64) -> f64| {
            let spread = Spread::of(figures.iter().map(|figure| convert(*figure)));
            spread.map_or_else(String::new, |spread| {
                let digits = digits(spread.median);
                format!("{:.digits$} {unit}", spread.median)
            })
        };
        let messages = u32::try_from(count).map_or(f64::NAN, f64::from);
        match self {
            Self::Throughput => shown("k/s", &|seconds| messages / seconds / 1e3),
            Self::Seconds => shown("ms", &|seconds| seconds * 1e3),
            Self::Microseconds | Self::Over => shown("µs", &|figure| figure),
            Self::Memory => String::new(),
        }
    }
}

/// The default limit of the SDK for the length of a line.
pub const LONG_LINE: usize = 64 << 20;

const MANY: Row = Row {
    work: "flood",
    title: "flood: 200,000 messages with 400-byte texts",
    count: 200_000,
    quick_count: 5_000,
    rounds: 11,
    pinned: false,
    comparison: Comparison::Throughput,
    target: Some(Target::AtLeast(1.5)),
    time_budget: None,
};

const TRIP: Row = Row {
    work: "hook",
    title: "hook round trip, on one CPU",
    count: 2_000,
    quick_count: 100,
    rounds: 11,
    pinned: true,
    comparison: Comparison::Over,
    target: Some(Target::AtMost(6.0)),
    time_budget: Some(60),
};

const FREE_TRIP: Row = Row {
    title: "hook round trip",
    pinned: false,
    comparison: Comparison::Microseconds,
    target: Some(Target::AtMost(1.35)),
    ..TRIP
};

/// All rows of the table.
pub const ROWS: [Row; 12] = [
    MANY,
    Row {
        work: "deltas",
        title: "deltas: 200,000 pieces of a message",
        target: Some(Target::AtLeast(1.8)),
        ..MANY
    },
    TRIP,
    Row { work: "permission", title: "permission round trip, on one CPU", ..TRIP },
    Row { work: "tool", title: "MCP round trip, on one CPU", target: None, ..TRIP },
    FREE_TRIP,
    Row { work: "permission", title: "permission round trip", ..FREE_TRIP },
    Row { work: "tool", title: "MCP round trip", target: None, ..FREE_TRIP },
    Row {
        work: "first",
        title: "from the call to the first message",
        count: 21,
        quick_count: 3,
        comparison: Comparison::Seconds,
        target: None,
        ..FREE_TRIP
    },
    Row {
        work: "line",
        title: "a line of 64 MiB",
        count: LONG_LINE,
        quick_count: LONG_LINE / 16,
        comparison: Comparison::Seconds,
        target: Some(Target::AtMost(1.0)),
        ..FREE_TRIP
    },
    Row {
        work: "sessions",
        title: "1,000 sessions at once, a turn each",
        count: 1_000,
        quick_count: 20,
        comparison: Comparison::Seconds,
        target: None,
        ..FREE_TRIP
    },
    Row {
        work: "idle",
        title: "memory of an idle session in the host",
        count: 1_000,
        quick_count: 20,
        rounds: 3,
        comparison: Comparison::Memory,
        target: Some(Target::AtMost(32.0)),
        ..FREE_TRIP
    },
];

#[cfg(test)]
mod tests {
    use super::{Comparison, ROWS, Target};

    #[test]
    fn figures_are_compared_with_the_floor() {
        let near = |found: Option<f64>, wanted: f64| {
            assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-9), "{found:?} {wanted}");
        };
        near(Comparison::Throughput.of(0.5, Some(1.0)), 2.0);
        near(Comparison::Seconds.of(0.5, Some(1.0)), 0.5);
        near(Comparison::Microseconds.of(3.0, Some(2.0)), 1.5);
        near(Comparison::Over.of(13.0, Some(7.0)), 6.0);
        near(Comparison::Memory.of(17.0, None), 17.0);
        assert_eq!(Comparison::Throughput.of(0.5, None), None);
    }

    #[test]
    fn targets_include_their_bound() {
        assert!(Target::AtLeast(1.5).is_met(1.5) && !Target::AtLeast(1.5).is_met(1.4));
        assert!(Target::AtMost(6.0).is_met(6.0) && !Target::AtMost(6.0).is_met(6.1));
    }

    #[test]
    fn floor_is_shown_in_its_unit() {
        assert_eq!(Comparison::Throughput.absolute(&[0.5], 200_000), "400 k/s");
        assert_eq!(Comparison::Seconds.absolute(&[0.0016], 1), "1.60 ms");
        assert_eq!(Comparison::Over.absolute(&[7.0, 8.0, 7.5], 1), "7.50 µs");
    }

    #[test]
    fn published_throughput_has_enough_rounds_and_messages() {
        for row in ROWS.iter().filter(|row| row.comparison == Comparison::Throughput) {
            assert!(row.count >= 200_000 && row.rounds >= 11, "{}", row.title);
        }
    }
}
