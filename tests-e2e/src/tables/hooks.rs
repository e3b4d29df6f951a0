//! The hook events: when they happen, what a hook can answer, and what a refusal does.

use std::collections::BTreeSet;

use claude_wire::control::HookInput;
use claude_wire::session::HookRefusal;

use super::{docs, markdown, read};
use crate::{places, public_api};

/// Where the doc comments of the events stand: each above a line that begins with the name.
const EVENTS: &str = "crates/claude-wire/src/control/hook/list.rs";

/// The published events with the first paragraphs of their doc comments.
fn events() -> Result<Vec<(&'static str, String)>, String> {
    let source = read(&places::root().join(EVENTS))?;
    let with_doc = |event: &'static str| match doc(&source, event) {
        Some(doc) => Ok((event, doc)),
        None => Err(format!("{EVENTS} has no docs of {event}")),
    };
    HookInput::KNOWN.iter().copied().map(with_doc).collect()
}

fn is_unseen(doc: &str) -> bool {
    doc.contains("not seen")
}

/// The events that the pinned CLI was not seen to call hooks for, as their docs say.
///
/// # Errors
///
/// When the docs cannot be read.
pub fn unseen() -> Result<BTreeSet<String>, String> {
    let unseen = events()?.into_iter().filter(|(_, doc)| is_unseen(doc));
    Ok(unseen.map(|(event, _)| event.to_owned()).collect())
}

pub(super) fn table() -> Result<(String, String), String> {
    let api = read(&public_api::path("claude-agent-kit"))?;
    let common = common(&api);
    let mut rows = Vec::new();
    for (event, doc) in events()? {
        let mut when = docs::without_links(docs::sentences(&doc).next().unwrap_or_default());
        if is_unseen(&doc) {
            when += " (*not seen*)";
        }
        let own = answers(&api, event).into_iter().filter(|(_, name)| !common.contains(name));
        let can: Vec<String> = own.map(|(_, name)| format!("`{name}`")).collect();
        let refusal = refusal(HookRefusal::of(event)).to_owned();
        rows.push([format!("`{event}`"), when, can.join(", "), refusal]);
    }
    let titles = ["event", "when", "the answer can", "a refusal"];
    Ok(("hook events".to_owned(), markdown(titles, &rows)))
}

fn refusal(refusal: HookRefusal) -> &'static str {
    match refusal {
        HookRefusal::Deny => "denies",
        HookRefusal::Block => "blocks",
        HookRefusal::End => "ends the turn",
        HookRefusal::Decline => "declines",
        HookRefusal::Hide => "hides the text",
        HookRefusal::Impossible => "–",
    }
}

/// The first paragraph of the doc comment above the line that begins with this name.
fn doc(source: &str, event: &str) -> Option<String> {
    let mut comment = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
            continue;
        }
        let is_event = line.strip_prefix(event).is_some_and(|rest| {
            !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_')
        });
        if is_event && !comment.is_empty() {
            return Some(docs::paragraph(&comment));
        }
        if !line.starts_with("#[") {
            comment.clear();
        }
    }
    None
}

/// The functions of the answer of an event, from the listing of the public API: those that make an
/// answer first, then those that change one.
fn answers(api: &str, event: &str) -> BTreeSet<(bool, String)> {
    let start = format!("claude_agent_kit::hook::{event}Answer::");
    let functions =
        api.lines().filter_map(|line| line.strip_prefix(&start)?.split_once(": pub fn("));
    functions.map(|(name, rest)| (rest.starts_with("self"), name.to_owned())).collect()
}

/// The functions that the answers of all events have.
fn common(api: &str) -> BTreeSet<String> {
    let each = HookInput::KNOWN.iter().map(|event| answers(api, event));
    let each = each.map(|own| own.into_iter().map(|(_, name)| name).collect::<BTreeSet<_>>());
    each.reduce(|one, other| &one & &other).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_of_an_event_stand_above_its_name() {
        let source = "/// Other.\nstruct Stop;\n\n    /// The model is done. CLI 1 calls hooks\n    \
                      /// for it.\n    ///\n    /// More.\n    #[x]\n    Stop(Input) -> Answer;\n    \
                      /// Failed.\n    StopFailure(Input);\n";
        assert_eq!(
            doc(source, "Stop").as_deref(),
            Some("The model is done. CLI 1 calls hooks for it.")
        );
        assert_eq!(doc(source, "StopFailure").as_deref(), Some("Failed."));
        assert_eq!(doc(source, "Setup"), None);
    }
}
