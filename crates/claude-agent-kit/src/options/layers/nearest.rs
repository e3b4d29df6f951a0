//! Suggests the known name that is most similar to an unknown one.

/// Returns the most similar known name, if one is similar enough.
pub(super) fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    // Comparing long names would be slow.
    if name.len() > 64 {
        return None;
    }
    let wanted = letters(name);
    let mut near: Option<(usize, &str)> = None;
    for known in known {
        let other = letters(known);
        let distance = distance(&wanted, &other);
        let is_similar = distance <= other.len().max(wanted.len()).div_ceil(3);
        if is_similar && near.is_none_or(|(least, _)| distance < least) {
            near = Some((distance, known));
        }
    }
    near.map(|(_, known)| known)
}

/// Returns the letters that are compared.
fn letters(name: &str) -> Vec<char> {
    let mut letters = Vec::new();
    for letter in name.to_lowercase().chars() {
        if !matches!(letter, '-' | '_') {
            letters.push(letter);
        }
    }
    letters
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
            assert_eq!(nearest(name, &KNOWN), expected, "{name}");
        }
    }
}
