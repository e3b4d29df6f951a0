//! Checks of hook registrations.

use claude_wire::control::HookDenial;
use claude_wire::launch::Problem;

use super::{HookTarget, pattern};

/// Returns why a hook would silently have no effect.
pub(crate) fn problem(target: &HookTarget) -> Option<Problem> {
    let reason = target.pattern.as_deref().and_then(matcher_problem).or_else(|| {
        let is_guard =
            target.fail_closed && HookDenial::for_event(&target.event) == HookDenial::Impossible;
        is_guard.then(|| {
            "`fail_closed` has no effect because the CLI does not stop at this event; \
             help: remove it, or guard `PreToolUse`, `PostToolUse` or `PostToolBatch`"
                .to_owned()
        })
    })?;
    Some(Problem::new(&["on"], format!("hook for `{}`: {reason}", target.event)))
}

/// Returns why the CLI would never call a hook with this matcher. The CLI accepts an invalid matcher
/// and matches nothing.
fn matcher_problem(pattern: &str) -> Option<String> {
    // These match everything.
    if pattern.is_empty() || pattern == "*" {
        return None;
    }
    if let Err(error) = pattern::check(pattern) {
        return Some(format!(
            "matcher {pattern:?} is not a valid JavaScript regular expression: {error}; \
             help: escape special characters with `\\`"
        ));
    }
    // `Bash(git:*)` is a valid expression, for names that no tool has.
    pattern.contains(":*)").then(|| {
        format!(
            "matcher {pattern:?} is a permission rule, and matches no tool name; \
             help: match the tool's name and read its input in the hook"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::problem;

    fn reason<E: HookEvent>(registration: HookRegistration<E>) -> String {
        problem(&registration.into_target()).map(|problem| problem.to_string()).unwrap_or_default()
    }

    #[test]
    fn matchers_that_match_nothing_are_reported() {
        for pattern in [
            "Bash(",
            "Bash)",
            "**",
            "[",
            "Bas{2,1}h",
            "(?<n>B)(?<n>a)",
            "(?i)bash",
            "\\",
            "+",
            "Bash++",
            "[z-a]",
            "Bash(*)",
            "(?P<n>Bash)",
            "Bash|Edit(",
            "Bash(git:*)",
        ] {
            let reason = reason(PreToolUse.matching(pattern));
            let expected = format!("on: hook for `PreToolUse`: matcher {pattern:?} ");
            assert!(reason.starts_with(&expected), "{pattern}: {reason}");
            assert!(reason.contains("; help: "), "{reason}");
        }
    }

    #[test]
    fn matchers_that_the_cli_follows_are_accepted() {
        for pattern in [
            "",
            "*",
            "Bash",
            "Write|Edit",
            "Bash, Edit",
            "mcp__.*",
            "^Ba",
            "B*",
            "(?:Bash)",
            "(?!Edit)",
            "(?<n>Bash)",
            "(?i:bash)",
            "\\w+",
            "[^E]",
            "Web(Fetch|Search)",
            "Bash{",
        ] {
            assert_eq!(reason(PreToolUse.matching(pattern)), "", "{pattern}");
        }
    }

    #[test]
    fn guard_of_an_event_that_cannot_be_denied_is_reported() {
        let text = reason(SessionStart.fail_closed());
        assert!(text.contains("`SessionStart`") && text.contains("`fail_closed`"), "{text}");
        assert_eq!(reason(SessionStart), "");
        assert_eq!(reason(Stop.fail_closed()), "");
        assert_eq!(reason(HookRegistration::named("SomethingNew").fail_closed()), "");
    }
}
