//! Names of MCP servers and tools, and how the CLI treats them.

/// The rule for the names of in-process servers and tools.
pub(crate) const NAME: &str = "use 1 to 64 ASCII letters, digits, `_` and `-`";

/// The maximum length of the full name of a tool. The CLI silently ignores tools with longer names.
const LONGEST: usize = 128;

/// The server of an editor, and the only tools of it that the CLI offers to the model.
const EDITOR: (&str, [&str; 2]) = ("ide", ["executeCode", "getDiagnostics"]);

pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn fits(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-')
}

/// Returns the full name of a tool, as used in rules and by the model.
pub(crate) fn whole(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Returns why a tool would never be offered to the model.
pub(crate) fn never_offered(server: &str, tool: &str) -> Option<String> {
    let length = whole(server, tool).len();
    if length > LONGEST {
        return Some(format!(
            "the full name `{}` has {length} characters, and the CLI ignores tools with more than \
             {LONGEST}; help: shorten the name",
            whole(server, tool)
        ));
    }
    let (editor, shown) = EDITOR;
    (server == editor && !shown.contains(&tool)).then(|| {
        format!(
            "the CLI treats a server named {editor:?} as an editor and does not offer this tool; help: \
             rename the server"
        )
    })
}

/// Returns whether a rule is meant for a whole server, but the CLI applies it to another one: it ends the
/// name of the server at the first `__`.
pub(crate) fn is_missed_by(server: &str, rule: &str) -> bool {
    let written = rule.strip_prefix("mcp__").filter(|rest| rest.bytes().all(fits));
    let ambiguous = |rest: &str| rest.is_empty() || rest.contains("__") || rest.ends_with('_');
    written.is_some_and(|rest| ambiguous(rest) && rest == as_written(server))
}

/// Returns the name of a server as it occurs in the names of its tools.
fn as_written(server: &str) -> String {
    let letter = |unit| u8::try_from(unit).ok().filter(|letter| fits(*letter));
    server.encode_utf16().map(|unit| letter(unit).map_or('_', char::from)).collect()
}
