//! Interleaved rounds, so that noise affects all subjects alike.

use std::time::{Duration, Instant};

use super::row::{Comparison, Row};
use super::spread::Spread;
use super::subject::Measurement;

/// The results of one subject in a row of the table.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// The measured figure of each round; `None` where the subject was skipped.
    pub figures: Vec<Option<f64>>,
    /// Why measuring stopped.
    pub failure: Option<String>,
    spent: Duration,
}

impl Column {
    /// Creates a column with these figures.
    pub fn with(figures: impl IntoIterator<Item = f64>) -> Self {
        Self { figures: figures.into_iter().map(Some).collect(), ..Self::default() }
    }

    /// Returns the measured figures.
    pub fn measured(&self) -> Vec<f64> {
        self.figures.iter().flatten().copied().collect()
    }

    /// Compares each figure with the floor of the same round.
    pub fn relative_to(&self, floor: &Self, comparison: Comparison) -> Option<Spread> {
        let pairs = self.figures.iter().enumerate().filter_map(|(round, figure)| {
            let floor = floor.figures.get(round).copied().flatten();
            comparison.of((*figure)?, floor)
        });
        Spread::of(pairs)
    }

    fn needs_another_round(&self, row: &Row) -> bool {
        let time_budget = row.time_budget.map_or(Duration::MAX, Duration::from_secs);
        self.failure.is_none() && (self.spent < time_budget || self.measured().len() < 3)
    }

    fn take(&mut self, measurement: Measurement, took: Duration) {
        self.spent += took;
        match measurement {
            Measurement::Figure(figure) => self.figures.push(Some(figure)),
            Measurement::Failure(failure) => self.failure = Some(failure),
        }
    }

    fn skip_round(&mut self) {
        self.figures.push(None);
    }
}

/// Runs `turn` for each of `subjects` in every round; each round starts with another subject.
pub fn rounds(
    row: &Row,
    rounds: usize,
    subjects: usize,
    mut turn: impl FnMut(usize) -> Measurement,
) -> Vec<Column> {
    let mut columns = vec![Column::default(); subjects];
    for round in 0..rounds {
        for index in order(round, subjects) {
            let Some(column) = columns.get_mut(index) else { continue };
            if column.needs_another_round(row) {
                let began = Instant::now();
                let measurement = turn(index);
                column.take(measurement, began.elapsed());
            } else {
                column.skip_round();
            }
        }
    }
    columns
}

/// Returns the order of the subjects in a round.
fn order(round: usize, subjects: usize) -> impl Iterator<Item = usize> {
    (0..subjects).map(move |turn| (round + turn) % subjects)
}

#[cfg(test)]
mod tests {
    use super::{Column, order, rounds};
    use crate::bench::row::{Comparison, ROWS, Row};
    use crate::bench::spread::Spread;
    use crate::bench::subject::Measurement;

    #[test]
    fn every_round_starts_with_another_subject() {
        assert_eq!(order(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(order(1, 3).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(order(5, 3).collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn figures_are_paired_with_the_floor_of_their_round() {
        // The machine is twice as slow in the second round and three times in the third.
        let floor = Column::with([1.0, 2.0, 3.0]);
        let other = Column::with([2.0, 4.0, 6.0]);
        let spread = other.relative_to(&floor, Comparison::Seconds);
        assert_eq!(spread, Spread::of([2.0]));
    }

    #[test]
    fn skipped_rounds_are_not_compared() {
        let floor = Column::with([1.0, 2.0]);
        let mut other = Column::default();
        other.skip_round();
        other.figures.push(Some(6.0));
        assert_eq!(other.relative_to(&floor, Comparison::Seconds), Spread::of([3.0]));
        assert_eq!(Column::default().relative_to(&floor, Comparison::Seconds), None);
    }

    #[test]
    fn failed_subject_is_not_run_again() {
        let mut runs = [0, 0];
        let columns = rounds(&ROWS[0], 4, 2, |index| {
            runs[index] += 1;
            if index == 1 {
                Measurement::Failure("hangs".to_owned())
            } else {
                Measurement::Figure(1.0)
            }
        });
        assert_eq!(runs, [4, 1]);
        assert_eq!(columns[0].measured().len(), 4);
        assert_eq!(columns[1].failure.as_deref(), Some("hangs"));
        assert_eq!(columns[1].measured(), [0.0; 0]);
    }

    #[test]
    fn slow_subject_runs_three_rounds() {
        let without_budget = Row { time_budget: Some(0), ..ROWS[0] };
        let columns = rounds(&without_budget, 11, 1, |_| Measurement::Figure(1.0));
        assert_eq!(columns[0].measured().len(), 3);
        assert_eq!(columns[0].figures.len(), 11);
    }
}
