//! Counts the public items of the kit in their listing.

use super::{markdown, read};
use crate::workspace;

/// The rows, the start of the names that each of them counts, and the number before the API was revised.
const ROWS: &[(&str, &str, &str)] = &[
    ("the module `history`", "history", "–"),
    ("the module `store`", "store", "–"),
    ("the module `approval`", "approval", "–"),
    ("methods of `Options`", "Options::", "115"),
    ("methods of `Session`", "Session::", "63"),
];

/// The modules that did not exist before.
const MODULES: usize = 3;

/// Returns the table of `docs/ergonomics.md`, with its name.
///
/// # Errors
/// Returns an error when the listing cannot be read.
pub fn table() -> Result<(String, String), String> {
    let listing = read(&workspace::root().join("docs/api/claude-agent-kit.txt"))?;
    let mut rows = vec![[
        "all items outside of the modules below".to_owned(),
        "1,136".to_owned(),
        others(&listing).to_string(),
    ]];
    for (title, start, before) in ROWS {
        rows.push([(*title).to_owned(), (*before).to_owned(), count(&listing, start).to_string()]);
    }
    Ok(("size of the API".to_owned(), markdown(["items", "before", "now"], &rows)))
}

/// Returns how many items are in a module, or begin with a path that ends with `::`.
fn count(listing: &str, start: &str) -> usize {
    let names = listing.lines().filter_map(|line| line.strip_prefix("claude_agent_kit::"));
    let is_counted = |name: &&str| {
        name.strip_prefix(start).is_some_and(|rest| start.ends_with(':') || rest.starts_with(':'))
    };
    names.filter(is_counted).count()
}

fn others(listing: &str) -> usize {
    let new: usize = ROWS.iter().take(MODULES).map(|(_, start, _)| count(listing, start)).sum();
    listing.lines().count() - new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_by_module_and_type() {
        let listing = "claude_agent_kit::Session: pub struct\nclaude_agent_kit::Session::pid: pub fn\n\
                       claude_agent_kit::SessionState: pub enum\nclaude_agent_kit::store: mod\n\
                       claude_agent_kit::store::key::Key: pub struct\n";
        assert_eq!(count(listing, "Session::"), 1);
        assert_eq!(count(listing, "store"), 2);
        assert_eq!(others(listing), 3);
    }
}
