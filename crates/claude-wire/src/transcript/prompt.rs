//! The first prompt of a session, as lists of sessions show it.

use serde_json::Value;

/// The longest prompt that is shown, in UTF-16 units.
const MAX_PROMPT: usize = 200;

/// The search for the first prompt, entry by entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FirstPrompt {
    /// The name of the first slash command, shown if there is no prompt.
    pub(super) command: String,
}

impl FirstPrompt {
    /// Returns the prompt of an entry, if it is one that can be shown.
    pub(super) fn of(&mut self, entry: &Value) -> Option<String> {
        let is_hidden = entry["isMeta"] == true || entry["isCompactSummary"] == true;
        if entry["type"] != "user" || is_hidden {
            return None;
        }
        texts(&entry["message"]["content"])?.into_iter().find_map(|text| self.shown(text))
    }

    fn shown(&mut self, text: &str) -> Option<String> {
        let text = without_paste_tags(text).replace('\n', " ");
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if let Some(command) = between(text, "<command-name>", "</command-name>") {
            if self.command.is_empty() {
                command.clone_into(&mut self.command);
            }
            return None;
        }
        if let Some(input) = between(text, "<bash-input>", "</bash-input>") {
            return Some(format!("! {}", input.trim()));
        }
        if is_inserted(text) {
            return None;
        }
        Some(shortened(text))
    }
}

/// What a prompt without text is called, if it has an attachment.
pub(super) fn attachment_prompt(entry: &Value) -> Option<&'static str> {
    let is_hidden = entry["isMeta"] == true || entry["isCompactSummary"] == true;
    if entry["type"] != "user" || is_hidden {
        return None;
    }
    let blocks = entry["message"]["content"].as_array()?;
    let has = |kind: &str| blocks.iter().any(|block| block["type"] == kind);
    match () {
        () if has("tool_result") => None,
        () if has("image") => Some("Image"),
        () if has("document") => Some("Document"),
        () => None,
    }
}

/// The texts of a message; `None` if it has the result of a tool call.
fn texts(content: &Value) -> Option<Vec<&str>> {
    if let Some(text) = content.as_str() {
        return Some(vec![text]);
    }
    let mut texts = Vec::new();
    for block in content.as_array()? {
        match block["type"].as_str() {
            Some("tool_result") => return None,
            Some("text") => texts.extend(block["text"].as_str()),
            _ => {}
        }
    }
    Some(texts)
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// Whether the CLI inserted a text: one that begins with a tag, or states that a turn was
/// interrupted.
fn is_inserted(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix("[Request interrupted by user") {
        return rest.contains(']');
    }
    let Some(tag) = text.trim_start().strip_prefix('<') else { return false };
    let name = tag.len()
        - tag.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-').len();
    tag.starts_with(|c: char| c.is_ascii_lowercase())
        && tag[name..].starts_with(|c: char| c.is_whitespace() || c == '>')
}

/// Cuts a text to 200 UTF-16 units without splitting a character.
pub(super) fn shortened(text: &str) -> String {
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        if units > MAX_PROMPT {
            return format!("{}…", text[..at].trim());
        }
    }
    text.to_owned()
}

/// Replaces `<pasted_content id="….">` blocks by their contents, with up to two line breaks around
/// them.
fn without_paste_tags(text: &str) -> String {
    const START: &str = "<pasted_content id=\"";
    let mut shown = String::new();
    let mut rest = text;
    let mut searched = 0;
    while let Some(found) = rest[searched..].find(START) {
        let start = searched + found;
        searched = start + START.len();
        let id: String = rest[searched..].chars().take(4).collect();
        let is_id = id.len() == 4 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let Some(body) = rest[searched..].strip_prefix(&format!("{id}\">\n")).filter(|_| is_id)
        else {
            continue;
        };
        // The line break before an empty body is the one after the opening tag.
        let body_at = rest.len() - body.len();
        let end_tag = format!("\n</pasted_content id=\"{id}\">");
        let Some(end) = rest[body_at - 1..].find(&end_tag) else { break };
        let end = body_at - 1 + end;
        shown.push_str(trim_breaks_end(&rest[..start]));
        shown.push_str(&rest[body_at.min(end)..end]);
        let after = &rest[end + end_tag.len()..];
        rest = after.strip_prefix("\n\n").or_else(|| after.strip_prefix('\n')).unwrap_or(after);
        searched = 0;
    }
    shown.push_str(rest);
    shown
}

fn trim_breaks_end(text: &str) -> &str {
    text.strip_suffix("\n\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}
