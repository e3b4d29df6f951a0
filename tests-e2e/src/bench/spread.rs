//! Medians and quartiles.

use std::fmt;

/// The median and the quartiles of measured figures.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Spread {
    /// The lower quartile.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub high: f64,
}

impl Spread {
    /// Computes the spread of figures in any order. Returns `None` without figures.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let steps = figures.len().checked_sub(1)?;
        // Interpolates between two neighbors.
        let at = |part: usize| {
            let (whole, rest) = (steps * part / 4, [0.0, 0.25, 0.5, 0.75][steps * part % 4]);
            let low = figures.get(whole)?;
            Some(low + (figures.get(whole + 1).unwrap_or(low) - low) * rest)
        };
        Some(Self { low: at(1)?, median: at(2)?, high: at(3)? })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, median, high } = self;
        let digits = digits(*median);
        write!(f, "{median:.digits$} ({low:.digits$} to {high:.digits$})")
    }
}

/// Returns the number of decimals that shows three significant digits.
pub fn digits(figure: f64) -> usize {
    match figure.abs() {
        size if size < 10.0 => 2,
        size if size < 100.0 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn median_and_quartiles_of_unordered_figures() {
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(spread, Some(Spread { low: 2.0, median: 3.0, high: 4.0 }));
        let eleven = Spread::of((1..=11).rev().map(f64::from));
        assert_eq!(eleven, Some(Spread { low: 3.5, median: 6.0, high: 8.5 }));
        assert_eq!(Spread::of([1.0, 2.0]), Some(Spread { low: 1.25, median: 1.5, high: 1.75 }));
    }

    #[test]
    fn single_figure_is_median_and_quartiles() {
        assert_eq!(Spread::of([7.0]), Some(Spread { low: 7.0, median: 7.0, high: 7.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn three_significant_digits_are_shown() {
        let shown = |figure| Spread::of([figure]).map(|spread| spread.to_string());
        assert_eq!(shown(1.234).as_deref(), Some("1.23 (1.23 to 1.23)"));
        assert_eq!(shown(-12.34).as_deref(), Some("-12.3 (-12.3 to -12.3)"));
        assert_eq!(shown(1234.5).as_deref(), Some("1234 (1234 to 1234)"));
    }
}
