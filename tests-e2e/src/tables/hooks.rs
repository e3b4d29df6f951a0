//! The hook events: when they fire, what a response can contain, and the effect of a refusal.

use std::collections::BTreeSet;

use claude_wire::control::HookDenial;
use claude_wire::hook_input::HookInput;

use super::{docs, markdown, read};
use crate::workspace;

/// The file with the doc comments of the events, each above a line that starts with the name.
const EVENTS: &str = "crates/claude-wire/src/control/hook/list.rs";

/// Returns the published events with the first paragraphs of their doc comments.
fn events() -> Result<Vec<(&'static str, String)>, String> {
    let source = read(&workspace::root().join(EVENTS))?;
    let with_doc = |event: &'static str| match doc(&source, event) {
        Some(doc) => Ok((event, doc)),
        None => Err(format!("{EVENTS} has no docs of {event}")),
    };
    HookInput::KNOWN.iter().copied().map(with_doc).collect()
}

/// The file that declares the methods of responses, and the events that have those with a bound.
const RESPONSES: &str = "crates/claude-agent-kit/src/hook/response.rs";
const CAPABILITIES: &str = "crates/claude-agent-kit/src/hook/capability.rs";

fn is_unobserved(doc: &str) -> bool {
    doc.contains("Not observed")
}

/// Returns the events that the pinned CLI was not observed to fire, according to their docs.
///
/// # Errors
///
/// Returns an error when the docs cannot be read.
pub fn unobserved() -> Result<BTreeSet<String>, String> {
    let unobserved = events()?.into_iter().filter(|(_, doc)| is_unobserved(doc));
    Ok(unobserved.map(|(event, _)| event.to_owned()).collect())
}

pub(super) fn table() -> Result<(String, String), String> {
    let source = |path| read(&workspace::root().join(path));
    let (responses, capabilities) = (source(RESPONSES)?, source(CAPABILITIES)?);
    let mut rows = Vec::new();
    for (event, doc) in events()? {
        let mut when = docs::without_links(docs::sentences(&doc).next().unwrap_or_default());
        if is_unobserved(&doc) {
            when += " (*not observed*)";
        }
        let own = methods(&responses, &capabilities, event).into_iter();
        let can: Vec<String> = own.map(|(_, name)| format!("`{name}`")).collect();
        let refusal = refusal(HookDenial::for_event(event)).to_owned();
        rows.push([format!("`{event}`"), when, can.join(", "), refusal]);
    }
    let titles = ["event", "when", "the response can", "a refusal"];
    Ok(("hook events".to_owned(), markdown(titles, &rows)))
}

fn refusal(refusal: HookDenial) -> &'static str {
    match refusal {
        HookDenial::Deny => "denies",
        HookDenial::Block => "blocks",
        HookDenial::End => "ends the turn",
        HookDenial::Decline => "declines",
        HookDenial::Hide => "hides the text",
        HookDenial::Impossible => "–",
    }
}

/// Returns the first paragraph of the doc comment above the line that starts with this name.
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

/// Returns the methods of `HookResponse` that only some events have, including this one: constructors first, then
/// those that change a response.
fn methods(responses: &str, capabilities: &str, event: &str) -> BTreeSet<(bool, String)> {
    let own = docs::functions(responses, &[&format!("impl HookResponse<{event}Input> {{")]);
    let shared = docs::functions(responses, &["impl<E: HookEvent> HookResponse<E> {"]);
    let shared = shared.into_iter().filter(|method| {
        let (_, bound) = method.declaration.split_once("where E: ").unwrap_or_default();
        events_with(capabilities, bound.trim_matches([' ', ','])).contains(&format!("{event}Input"))
    });
    own.into_iter()
        .chain(shared)
        .filter(|method| method.declaration.starts_with("pub fn "))
        .map(|method| (method.declaration.contains("self"), method.name))
        .collect()
}

/// Returns the inputs of the events that have a capability, from the list of `capability!`.
fn events_with(capabilities: &str, capability: &str) -> BTreeSet<String> {
    let lists = capabilities.split("\ncapability!(").skip(1).filter_map(|rest| {
        let (list, _) = rest.split_once(");")?;
        let name = list.trim_start().split([':', ' ']).next()?;
        (name == capability).then(|| list.rsplit_once(':'))?
    });
    let events = lists.flat_map(|(_, events)| events.split(','));
    events.map(|event| event.trim().to_owned()).filter(|event| !event.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_a_response_are_those_of_its_event_and_capabilities() {
        let responses = "impl<E: HookEvent> HookResponse<E> {\n    pub fn new() -> Self {\n    }\n    \
                         pub fn block(x: X) -> Self\n    where\n        E: CanBlock,\n    {\n    }\n    \
                         pub fn ask(self) -> Self\n    where\n        E: CanAsk,\n    {\n    }\n    \
                         fn inner(self) -> Self\n    where\n        E: CanBlock,\n    {\n    }\n}\n\
                         impl HookResponse<StopInput> {\n    pub fn own(mut self) -> Self {\n    }\n}\n";
        let capabilities = "\ncapability!(\n    CanBlock { fn x() -> Y }: StopInput,\n    \
                            SetupInput,\n);\n\ncapability!(CanAsk: SetupInput);\n";
        let methods = |event| {
            let methods = methods(responses, capabilities, event).into_iter();
            methods.map(|(_, name)| name).collect::<Vec<_>>()
        };
        assert_eq!(methods("Stop"), ["block", "own"]);
        assert_eq!(methods("Setup"), ["block", "ask"]);
        assert!(methods("SessionEnd").is_empty());
    }

    #[test]
    fn docs_of_an_event_are_above_its_name() {
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
