//! Rounds in which everybody takes a turn, so that what disturbs one disturbs the others.

use std::time::{Duration, Instant};

use super::row::{Comparison, Row};
use super::spread::Spread;
use super::subject::Measurement;

/// What came of one subject in a row of the table.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// What was measured in which round.
    pub figures: Vec<Option<f64>>,
    /// Why there is no more.
    pub failure: Option<String>,
    spent: Duration,
}

impl Column {
    /// One with these figures.
    pub fn with(figures: impl IntoIterator<Item = f64>) -> Self {
        Self { figures: figures.into_iter().map(Some).collect(), ..Self::default() }
    }

    /// What was measured.
    pub fn measured(&self) -> Vec<f64> {
        self.figures.iter().flatten().copied().collect()
    }

    /// Its figures beside those of the floor, each with the one of the same round.
    pub fn beside(&self, floor: &Self, comparison: Comparison) -> Option<Spread> {
        let pairs = self.figures.iter().enumerate().filter_map(|(round, figure)| {
            let floor = floor.figures.get(round).copied().flatten();
            comparison.of((*figure)?, floor)
        });
        Spread::of(pairs)
    }

    fn takes_a_turn(&self, row: &Row) -> bool {
        let time_budget = row.time_budget.map_or(Duration::MAX, Duration::from_secs);
        self.failure.is_none() && (self.spent < time_budget || self.measured().len() < 3)
    }

    fn take(&mut self, answer: Measurement, took: Duration) {
        self.spent += took;
        match answer {
            Measurement::Figure(figure) => self.figures.push(Some(figure)),
            Measurement::Failure(failure) => self.failure = Some(failure),
        }
    }

    fn sit_out(&mut self) {
        self.figures.push(None);
    }
}

/// Runs `turn` for each of `subjects` in every round, each round beginning with another.
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
            if column.takes_a_turn(row) {
                let began = Instant::now();
                let answer = turn(index);
                column.take(answer, began.elapsed());
            } else {
                column.sit_out();
            }
        }
    }
    columns
}

/// Who follows whom in a round.
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
    fn every_round_begins_with_another_and_leaves_nobody_out() {
        assert_eq!(order(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(order(1, 3).collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(order(5, 3).collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn figures_are_paired_with_the_floor_of_their_round() {
        // The machine is twice as slow in the second round and three times in the third.
        let floor = Column::with([1.0, 2.0, 3.0]);
        let other = Column::with([2.0, 4.0, 6.0]);
        let spread = other.beside(&floor, Comparison::Seconds);
        assert_eq!(spread, Spread::of([2.0]));
    }

    #[test]
    fn a_round_that_one_of_the_two_sat_out_is_no_pair() {
        let floor = Column::with([1.0, 2.0]);
        let mut other = Column::default();
        other.sit_out();
        other.figures.push(Some(6.0));
        assert_eq!(other.beside(&floor, Comparison::Seconds), Spread::of([3.0]));
        assert_eq!(Column::default().beside(&floor, Comparison::Seconds), None);
    }

    #[test]
    fn who_is_in_trouble_is_not_asked_again_and_the_others_are() {
        let mut asked = [0, 0];
        let columns = rounds(&ROWS[0], 4, 2, |index| {
            asked[index] += 1;
            if index == 1 {
                Measurement::Failure("hangs".to_owned())
            } else {
                Measurement::Figure(1.0)
            }
        });
        assert_eq!(asked, [4, 1]);
        assert_eq!(columns[0].measured().len(), 4);
        assert_eq!(columns[1].failure.as_deref(), Some("hangs"));
        assert_eq!(columns[1].measured(), [0.0; 0]);
    }

    #[test]
    fn who_is_slow_has_three_rounds_all_the_same() {
        let without_budget = Row { time_budget: Some(0), ..ROWS[0] };
        let columns = rounds(&without_budget, 11, 1, |_| Measurement::Figure(1.0));
        assert_eq!(columns[0].measured().len(), 3);
        assert_eq!(columns[0].figures.len(), 11);
    }
}
