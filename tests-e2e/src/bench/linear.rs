//! Checks that cost grows linearly with size.

use super::spread::digits;

/// A quantity whose growth is measured.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Growth {
    /// The workload that the subject runs.
    pub work: &'static str,
    /// The quantity and its sizes, as a title.
    pub title: &'static str,
    /// The largest size; the others are a tenth and a hundredth of it.
    pub most: usize,
    /// The unit of the cost per item, and how many of it a second has.
    pub unit: (&'static str, f64),
    /// The number of counted units per item.
    pub each: f64,
}

/// The quantities whose growth is measured.
pub const GROWTHS: [Growth; 3] = [
    Growth {
        work: "flood",
        title: "messages: 20,000, 200,000, 2,000,000",
        most: 2_000_000,
        unit: ("µs a message", 1e6),
        each: 1.0,
    },
    Growth {
        work: "line",
        title: "bytes of a line: 0.64, 6.4, 64 MiB",
        most: super::row::LONG_LINE,
        unit: ("ms a MiB", 1e3),
        each: (1 << 20) as f64,
    },
    Growth {
        work: "sessions",
        title: "sessions at once: 10, 100, 1,000",
        most: 1_000,
        unit: ("ms a session", 1e3),
        each: 1.0,
    },
];

/// The largest ratio between the costs per item at two sizes that still counts as linear. It covers cache misses
/// and noise; a cost that doubles with every tenfold size does not pass.
pub const TOLERANCE: f64 = 1.5;

impl Growth {
    /// Returns the sizes, in ascending order.
    pub fn sizes(&self) -> [usize; 3] {
        [self.most / 100, self.most / 10, self.most]
    }

    /// Returns the cost per item, from the seconds that a size took.
    pub fn cost(&self, seconds: f64, size: usize) -> f64 {
        let count = u32::try_from(size).map_or(f64::NAN, f64::from) / self.each;
        seconds * self.unit.1 / count
    }
}

/// Whether the cost per item does not grow with the size.
pub fn is_linear(costs: [f64; 3]) -> bool {
    let [one, ten, hundred] = costs;
    ten <= TOLERANCE * one && hundred <= TOLERANCE * one
}

/// Formats a line of the table.
pub fn line(growth: &Growth, costs: [f64; 3]) -> String {
    let [one, ten, hundred] = costs.map(|cost| format!("{cost:.*}", digits(cost)));
    let verdict = if is_linear(costs) { "linear" } else { "NOT LINEAR" };
    let (title, unit) = (growth.title, growth.unit.0);
    format!("| {title} | {unit} | {one} | {ten} | {hundred} | {verdict} |\n")
}

/// The header of the table.
pub const HEAD: &str =
    "| of more and more | cost of one | 1x | 10x | 100x | |\n|---|---|---|---|---|---|\n";

#[cfg(test)]
mod tests {
    use super::{GROWTHS, is_linear, line};

    #[test]
    fn constant_or_falling_cost_is_linear() {
        assert!(is_linear([2.0, 2.1, 2.4]));
        assert!(is_linear([9.0, 3.0, 2.0]));
        assert!(!is_linear([1.0, 1.2, 1.6]));
        assert!(!is_linear([1.0, 10.0, 1.0]));
        assert!(!is_linear([f64::NAN, 1.0, 1.0]));
    }

    #[test]
    fn sizes_are_a_hundredth_a_tenth_and_all() {
        assert_eq!(GROWTHS[0].sizes(), [20_000, 200_000, 2_000_000]);
    }

    #[test]
    fn cost_is_per_item() {
        let [messages, bytes, sessions] = GROWTHS;
        assert!((messages.cost(0.5, 200_000) - 2.5).abs() < 1e-9);
        assert!((bytes.cost(0.064, 64 << 20) - 1.0).abs() < 1e-9);
        assert!((sessions.cost(1.5, 1_000) - 1.5).abs() < 1e-9);
    }

    #[test]
    fn line_contains_costs_and_verdict() {
        let text = line(&GROWTHS[0], [2.0, 2.5, 4.0]);
        assert!(text.ends_with("| 2.00 | 2.50 | 4.00 | NOT LINEAR |\n"), "{text}");
    }
}
