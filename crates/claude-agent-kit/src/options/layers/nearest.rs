//! Suggests the known name that is most similar to an unknown one.

/// Returns the most similar known name, if one is similar enough.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing long names would be slow.
    if name.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.replace(['-', '_'], "").to_lowercase();
    let wanted: Vec<char> = plain(name).chars().collect();
    let near = known.into_iter().map(|known| {
        let letters: Vec<char> = plain(known).chars().collect();
        (distance(&wanted, &letters), letters.len().max(wanted.len()), known)
    });
    let near = near.filter(|(distance, length, _)| *distance <= length.div_ceil(3));
    near.min_by_key(|(distance, ..)| *distance).map(|(.., known)| known)
}

/// Returns the Levenshtein distance.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.iter().enumerate() {
        let mut diagonal = above;
        row[0] = above + 1;
        for (left, other) in to.iter().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[left + 1];
            row[left + 1] = changed.min(diagonal + 1).min(row[left] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_recognized() {
        const KNOWN: [&str; 4] = ["model", "max_turns", "fallback_model", "env"];
        for (name, expected) in [
            ("modle", Some("model")),
            ("maxTurns", Some("max_turns")),
            ("max-turn", Some("max_turns")),
            ("fallbackmodel", Some("fallback_model")),
            ("Env", Some("env")),
            ("colour", None),
            ("", None),
            (&"m".repeat(100), None),
        ] {
            assert_eq!(nearest(name, KNOWN), expected, "{name}");
        }
    }
}
