//! Hook matchers: which tools, agents or triggers a hook registration applies to.

use regress::Regex;

/// Returns whether a matcher applies to a subject, by the rules of the real CLI.
///
/// No matcher, an empty one and `*` apply to everything. A matcher of word characters, `|`, `,` and
/// spaces is a list of exact names. Everything else is a JavaScript regular expression that may
/// match anywhere in the subject; an invalid one applies to nothing. An event without a subject is
/// never filtered.
pub(super) fn applies(matcher: Option<&str>, subject: Option<&str>) -> bool {
    let (Some(matcher), Some(subject)) = (matcher, subject) else { return true };
    if matcher.is_empty() || matcher == "*" {
        return true;
    }
    if matcher.chars().all(is_in_list) {
        return matcher.split(['|', ',']).any(|name| name.trim() == subject);
    }
    Regex::new(matcher).is_ok_and(|expression| expression.find(subject).is_some())
}

fn is_in_list(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '|' | ',' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_exact_names() {
        for matcher in ["Bash", "Edit|Bash", "Edit,Bash", " Bash", "Edit, Bash", "Bash |Edit"] {
            assert!(applies(Some(matcher), Some("Bash")), "{matcher:?}");
        }
        for matcher in ["Ba", "bash", "Edit|Write", "Bash Edit", "|", " ", "BashOutput"] {
            assert!(!applies(Some(matcher), Some("Bash")), "{matcher:?}");
        }
    }

    #[test]
    fn other_matchers_are_regular_expressions() {
        for matcher in ["^Ba", "B*", "(?!Edit)", "(?i:bash)", "[^E]", ".*", "^(Edit|Bash)$"] {
            assert!(applies(Some(matcher), Some("Bash")), "{matcher:?}");
        }
        for matcher in ["^ash", "Ba$", "^(?!Bash)", "mcp__.*"] {
            assert!(!applies(Some(matcher), Some("Bash")), "{matcher:?}");
        }
        assert!(applies(Some("mcp__.*"), Some("mcp__calc__add")));
        assert!(applies(Some("my-server"), Some("mcp__my-server__add")));
    }

    #[test]
    fn invalid_expressions_match_nothing() {
        for matcher in ["Bash(", "[", "**", "Bash++"] {
            assert!(!applies(Some(matcher), Some("Bash")), "{matcher:?}");
        }
    }

    #[test]
    fn a_missing_matcher_or_subject_matches_everything() {
        for matcher in [None, Some(""), Some("*")] {
            assert!(applies(matcher, Some("Bash")), "{matcher:?}");
        }
        assert!(applies(Some("Edit"), None));
    }
}
