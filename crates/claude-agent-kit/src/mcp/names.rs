//! The names of servers and tools, and what the CLI makes of them.

/// What in-process servers and tools are called.
pub(crate) const NAME: &str = "names have 1 to 64 letters, digits, `_` and `-`";

/// The longest whole name of a tool. The CLI leaves out tools with longer ones, without a word.
const LONGEST: usize = 128;

/// The server of an editor. The CLI shows the model these of its tools and no others.
const EDITOR: (&str, [&str; 2]) = ("ide", ["executeCode", "getDiagnostics"]);

pub(crate) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

fn fits(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-')
}

/// The name under which rules and the model know a tool.
pub(crate) fn whole(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Why the model would never be offered a tool.
pub(crate) fn never_offered(server: &str, tool: &str) -> Option<String> {
    let length = whole(server, tool).len();
    if length > LONGEST {
        return Some(format!(
            "the CLI would call it `{}`, which has {length} characters, and leaves out what has \
             more than {LONGEST}",
            whole(server, tool)
        ));
    }
    let (editor, shown) = EDITOR;
    (server == editor && !shown.contains(&tool)).then(|| {
        format!("the CLI takes a server named {editor:?} for an editor and does not offer this")
    })
}

/// Whether a rule means a whole server and the CLI takes it for something else: it looks for the
/// end of the server's name at the first `__`.
pub(crate) fn is_missed_by(server: &str, rule: &str) -> bool {
    let written = rule.strip_prefix("mcp__").filter(|rest| rest.bytes().all(fits));
    let ambiguous = |rest: &str| rest.is_empty() || rest.contains("__") || rest.ends_with('_');
    written.is_some_and(|rest| ambiguous(rest) && rest == as_written(server))
}

/// A server's name as it stands in the names of its tools.
fn as_written(server: &str) -> String {
    let letter = |unit| u8::try_from(unit).ok().filter(|letter| fits(*letter));
    server.encode_utf16().map(|unit| letter(unit).map_or('_', char::from)).collect()
}
