//! Permission rules: `Bash`, `Bash(touch:*)`, `Read`, `mcp__server`, `mcp__server__tool`.

use serde_json::Value;

/// A rule for a tool, or for some calls of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PermissionRule {
    pub(super) tool: String,
    pub(super) content: Option<String>,
}

impl PermissionRule {
    pub(super) fn parse(text: &str) -> Self {
        match text.split_once('(') {
            Some((tool, content)) => {
                let content = content.strip_suffix(')').unwrap_or(content);
                let content = (content != "*" && !content.is_empty()).then(|| content.to_owned());
                Self { tool: tool.trim().to_owned(), content }
            }
            None => Self { tool: text.trim().to_owned(), content: None },
        }
    }

    /// Parses a rule of a permission update.
    pub(super) fn from_update(update: &Value) -> Option<Self> {
        let tool = update["toolName"].as_str()?.to_owned();
        Some(Self { tool, content: update["ruleContent"].as_str().map(str::to_owned) })
    }

    /// Returns whether the rule applies to all calls of this tool.
    pub(super) fn covers_all(&self, tool: &str) -> bool {
        self.content.is_none() && self.matches_tool(tool)
    }

    /// Returns whether the rule applies to this call.
    pub(super) fn covers(&self, tool: &str, input: &Value) -> bool {
        let Some(content) = &self.content else { return self.matches_tool(tool) };
        self.matches_tool(tool)
            && rule_subject(tool, input).is_some_and(|subject| matches_pattern(content, subject))
    }

    fn matches_tool(&self, tool: &str) -> bool {
        if self.tool == tool || self.tool == "*" {
            return true;
        }
        // `mcp__server` and `mcp__server__*` apply to every tool of a server.
        let server = self.tool.strip_suffix("__*").unwrap_or(&self.tool);
        server.starts_with("mcp__")
            && server.matches("__").count() == 1
            && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
    }
}

/// Returns the input field that the content of a rule is matched against.
fn rule_subject<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let field = match tool {
        "Bash" => "command",
        "Read" | "Write" | "Edit" => "file_path",
        "WebFetch" => "url",
        "Skill" => "skill",
        "Agent" | "Task" => "subagent_type",
        _ => return None,
    };
    input[field].as_str()
}

/// Matches a pattern: `prefix:*` and `prefix *` match the prefix as whole words, `*` elsewhere
/// matches any characters.
fn matches_pattern(pattern: &str, subject: &str) -> bool {
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    if let Some(prefix) = prefix {
        let rest = subject.strip_prefix(prefix);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    }
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| subject.strip_prefix(first)) else {
        return false;
    };
    let mut open = false;
    for piece in pieces {
        open = true;
        if piece.is_empty() {
            continue;
        }
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
        open = false;
    }
    open || rest.is_empty()
}

/// Parses a list of rules, separated by commas or spaces outside parentheses.
pub(super) fn parse_rules(list: &str) -> Vec<PermissionRule> {
    let mut depth = 0_usize;
    let divided = list.split(|character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (character == ',' || character == ' ')
    });
    divided.filter(|rule| !rule.is_empty()).map(PermissionRule::parse).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_split_outside_parentheses() {
        let rules = parse_rules("Bash(git log:*), Read mcp__calc,Edit()");
        let tools: Vec<&str> = rules.iter().map(|rule| rule.tool.as_str()).collect();
        assert_eq!(tools, ["Bash", "Read", "mcp__calc", "Edit"]);
        assert_eq!(rules[0].content.as_deref(), Some("git log:*"));
    }

    #[test]
    fn a_rule_applies_to_matching_calls() {
        let covers = |rule: &str, tool: &str, command: &str| {
            PermissionRule::parse(rule).covers(tool, &json!({"command": command}))
        };
        assert!(covers("Bash", "Bash", "anything"));
        assert!(covers("Bash(touch:*)", "Bash", "touch made"));
        assert!(covers("Bash(touch made *)", "Bash", "touch made"));
        assert!(!covers("Bash(touch:*)", "Bash", "touching"));
        assert!(!covers("Bash(touch)", "Bash", "touch made"));
        assert!(covers("Bash(git * main)", "Bash", "git push main"));
        assert!(!covers("Read", "Bash", "x"));
        assert!(covers("mcp__calc", "mcp__calc__add", ""));
        assert!(covers("mcp__calc__*", "mcp__calc__add", ""));
        assert!(!covers("mcp__cal", "mcp__calc__add", ""));
        assert!(covers("mcp__calc__add", "mcp__calc__add", ""));
    }
}
