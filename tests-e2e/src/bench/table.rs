//! The results as Markdown.

use super::measure::Column;
use super::row::{Row, Target};

/// Formats the header of the table. The floor is the first column.
pub fn head(names: &[String]) -> String {
    let cells = ["work", "compared"].into_iter().map(str::to_owned);
    let head = cells.chain(names.iter().cloned()).chain(["target".to_owned()]);
    format!("{}|{}\n", joined(head), "---|".repeat(names.len() + 3))
}

/// Formats a row; the columns have the order of the header.
pub fn line(row: &Row, count: usize, columns: &[Column]) -> String {
    let Some((floor, others)) = columns.split_first() else { return String::new() };
    let absolute = row.comparison.absolute(&floor.measured(), count);
    let cells = [row.title.to_owned(), row.comparison.words().to_owned(), absolute];
    let others = others.iter().map(|column| cell(row, floor, column));
    let target = row.target.map(Target::text).unwrap_or_default();
    joined(cells.into_iter().chain(others).chain([target]))
}

fn joined(cells: impl IntoIterator<Item = String>) -> String {
    let cells: Vec<String> = cells.into_iter().collect();
    format!("| {} |\n", cells.join(" | "))
}

fn cell(row: &Row, floor: &Column, column: &Column) -> String {
    let figure = column.relative_to(floor, row.comparison).map(|spread| spread.to_string());
    match (&column.failure, figure) {
        (Some(failure), Some(figure)) => format!("{figure}, then {}", short(failure)),
        (Some(failure), None) => short(failure),
        (None, Some(figure)) => figure,
        (None, None) => "nothing".to_owned(),
    }
}

/// Shortens a text for a cell.
fn short(failure: &str) -> String {
    const LONGEST: usize = 60;
    let clean: String =
        failure.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

/// Judges the SDK, which is the second column, against the target. Returns `None` without a target.
pub fn verdict(row: &Row, columns: &[Column]) -> Option<(bool, String)> {
    let target = row.target?;
    let spread = columns.get(1)?.relative_to(columns.first()?, row.comparison);
    let met = spread.is_some_and(|spread| target.is_met(spread.median));
    let figure = spread.map_or_else(|| "nothing".to_owned(), |spread| spread.to_string());
    let word = if met { "met" } else { "MISSED" };
    Some((met, format!("{word}: {}: {figure}, target {}", row.title, target.text())))
}

#[cfg(test)]
mod tests {
    use super::{head, line, verdict};
    use crate::bench::measure::Column;
    use crate::bench::row::ROWS;

    fn names() -> Vec<String> {
        ["floor", "kit", "other"].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_subject_has_a_cell() {
        let mut unsupported = Column::default();
        unsupported.failure = Some("unsupported: no | hooks".to_owned());
        let columns = [Column::with([1.0, 1.0]), Column::with([0.5, 0.5]), unsupported];
        let row = line(&ROWS[0], 200_000, &columns);
        assert_eq!(
            row,
            "| flood: 200,000 messages with 400-byte texts | messages a second, as a ratio: more is better \
             | 200 k/s | 2.00 (2.00 to 2.00) | unsupported: no   hooks | ≥ 1.5 |\n"
        );
        let bars = |text: &str| text.matches('|').count();
        let head = head(&names());
        assert!(head.lines().all(|line| bars(line) == bars(&row)), "{head}{row}");
    }

    #[test]
    fn target_is_judged_by_the_median() {
        let floor = Column::with([1.0, 1.0, 1.0]);
        let good = [floor.clone(), Column::with([0.5, 0.6, 10.0])];
        assert!(verdict(&ROWS[0], &good).is_some_and(|(met, text)| met && text.starts_with("met")));
        let bad = [floor.clone(), Column::with([0.5, 0.9, 10.0])];
        assert!(
            verdict(&ROWS[0], &bad).is_some_and(|(met, text)| !met && text.starts_with("MISSED"))
        );
        let none = [floor, Column::default()];
        assert!(verdict(&ROWS[0], &none).is_some_and(|(met, _)| !met));
        let without = ROWS.iter().find(|row| row.target.is_none());
        assert!(without.is_some_and(|row| verdict(row, &good).is_none()));
    }
}
