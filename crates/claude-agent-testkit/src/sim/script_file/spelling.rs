//! Suggestions for misspelled words.

/// Returns the known word that is most similar to `word`, if any is similar enough.
pub(super) fn nearest(
    word: &str,
    known: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let word: Vec<char> = word.chars().collect();
    // A third of the letters may differ; no known word has more than 32 letters.
    let limit = (word.len() / 3).max(1);
    if word.len() < 2 || word.len() > 32 {
        return None;
    }
    let distances = known.map(|other| (distance(&word, other), other));
    distances.filter(|(distance, _)| *distance <= limit).min().map(|(_, other)| other)
}

/// Returns the Damerau-Levenshtein distance: the number of changed, added, removed or swapped letters.
fn distance(word: &[char], other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, letter) in word.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, other_letter) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(letter != other_letter);
            let mut least = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && word[i - 1] == *other_letter {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[word.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_similar_words_are_suggested() {
        let check = |word: &str, expected: Option<&str>| {
            let known = ["say", "think", "call", "then", "pause-before", "pause-between"];
            assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
        };
        check("sya", Some("say"));
        check("thnik", Some("think"));
        check("calll", Some("call"));
        check("pause_before", Some("pause-before"));
        check("weather", None);
        check("s", None);
        check("", None);
        check(&"say".repeat(1000), None);
    }
}
