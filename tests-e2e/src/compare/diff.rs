//! The difference between two sequences of words.

/// A word that is only in one of the sequences.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change<'a> {
    Removed(&'a str),
    Added(&'a str),
}

/// Returns the changes that turn `from` into `to`, by their longest common subsequence. The sequences are short, so a
/// quadratic table is fine.
pub(super) fn between<'a>(from: &'a [String], to: &'a [String]) -> Vec<Change<'a>> {
    let mut common = vec![vec![0_usize; to.len() + 1]; from.len() + 1];
    for (i, word) in from.iter().enumerate().rev() {
        for (j, other) in to.iter().enumerate().rev() {
            common[i][j] = if word == other {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut changes = Vec::new();
    while i < from.len() || j < to.len() {
        if i < from.len() && j < to.len() && from[i] == to[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == to.len() || (i < from.len() && common[i + 1][j] >= common[i][j + 1]) {
            changes.push(Change::Removed(&from[i]));
            i += 1;
        } else {
            changes.push(Change::Added(&to[j]));
            j += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::{Change, between};

    fn row(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn equal_rows_have_no_changes() {
        assert!(between(&row("a b c"), &row("a b c")).is_empty());
        assert!(between(&[], &[]).is_empty());
    }

    #[test]
    fn moved_words_are_removed_and_added() {
        assert_eq!(
            between(&row("a b c d"), &row("a c b d x")),
            [Change::Removed("b"), Change::Added("b"), Change::Added("x")]
        );
    }
}
