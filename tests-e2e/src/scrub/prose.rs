//! Shortens texts that the CLI ships: descriptions of commands, agents, models, skills and tools, and instructions to
//! the model. Only their shape matters here.

use serde_json::Value;

/// The maximum length of strings where the CLI describes itself.
const DESCRIPTION: usize = 60;

/// The maximum length of strings elsewhere. Scenarios use shorter ones.
const TEXT: usize = 300;

/// Shortens the strings of a line.
pub(super) fn shorten(line: &str) -> String {
    cut_strings(line, if describes_itself(line) { DESCRIPTION } else { TEXT })
}

/// Shortens the strings of an entry of a transcript. The parts of the system prompt and the tools are
/// in attachments and in records of requests.
pub(super) fn shorten_entry(line: &str) -> String {
    let kind = serde_json::from_str::<Value>(line).map(|entry| entry["type"].clone());
    let kind = kind.ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
    let describes_itself = kind == "attachment" || kind.starts_with("api-request");
    cut_strings(line, if describes_itself { DESCRIPTION } else { TEXT })
}

/// Removes the source code that the CLI prints with an internal error from a line of stderr.
pub(super) fn without_code(line: &str) -> String {
    // The path of the bundle, in a file system inside the executable, looks like a home directory.
    let line = line.replace("/$bunfs/root/", "/$bunfs/");
    match line.split_once(" | ") {
        Some((before, _)) if before.ends_with(|c: char| c.is_ascii_digit()) => {
            format!("{before} | …")
        }
        _ => line,
    }
}

fn describes_itself(line: &str) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(line) else { return false };
    match value["type"].as_str().unwrap_or_default() {
        "control_response" => value["response"]["subtype"] == "success",
        // Contains the descriptions of the tools.
        "transcript_mirror" => true,
        "system" => matches!(value["subtype"].as_str(), Some("init" | "commands_changed")),
        _ => false,
    }
}

/// Cuts every string value of more than `limit` characters to `limit - 3` characters and `…`.
fn cut_strings(line: &str, limit: usize) -> String {
    let mut cut = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find('"') {
        let (before, string) = rest.split_at(start + 1);
        let end = string_end(string);
        let is_key = string.get(end + 1..).is_some_and(|after| after.trim_start().starts_with(':'));
        cut.push_str(before);
        match boundary(&string[..end], limit) {
            Some(keep) if !is_key => {
                cut.push_str(&string[..keep]);
                cut.push('…');
            }
            _ => cut.push_str(&string[..end]),
        }
        // Copies the closing quote, unless the line ends inside the string.
        let quote = string.len().min(end + 1);
        cut.push_str(&string[end..quote]);
        rest = &string[quote..];
    }
    cut + rest
}

/// Returns where the string ends: at its closing quote, or at the end of the line.
fn string_end(string: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in string.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index,
            _ => {}
        }
    }
    string.len()
}

/// Returns where to cut a string of more than `limit` characters; an escape counts as one.
fn boundary(string: &str, limit: usize) -> Option<usize> {
    let mut starts = Vec::new();
    let mut index = 0;
    while index < string.len() {
        starts.push(index);
        let rest = &string[index..];
        index += if rest.starts_with("\\u") {
            6
        } else if rest.starts_with('\\') {
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
    }
    (starts.len() > limit).then(|| starts[limit - 3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_and_all_other_bytes_are_kept() {
        #[track_caller]
        fn check(line: &str, expected: &str) {
            assert_eq!(cut_strings(line, 6), expected);
        }
        check(r#"{"a": "123456",  "b":1.50}"#, r#"{"a": "123456",  "b":1.50}"#);
        check(r#"{"a":"1234567"}"#, r#"{"a":"123…"}"#);
        check(r#"{"a_long_key":["1234567"]}"#, r#"{"a_long_key":["123…"]}"#);
        check(r#"{"a":"äöüäöüä"}"#, r#"{"a":"äöü…"}"#);
        check(r#"{"a":"\"\\\n456"}"#, r#"{"a":"\"\\\n456"}"#);
        check(r#"{"a":"\"\\\n4567"}"#, r#"{"a":"\"\\\n…"}"#);
        check(r#"{"a":"\ud83d\ude00345678"}"#, r#"{"a":"\ud83d\ude003…"}"#);
        check(r#"{"a":"never ends"#, r#"{"a":"nev…"#);
        check("no strings", "no strings");
    }

    #[test]
    fn source_code_in_errors_is_removed() {
        assert_eq!(without_code(" 6 | import{a}from b"), " 6 | …");
        assert_eq!(without_code("Error in hook:  6 | import"), "Error in hook:  6 | …");
        assert_eq!(without_code("a | b"), "a | b");
        assert_eq!(without_code("at f (/$bunfs/root/c.js:8:1)"), "at f (/$bunfs/c.js:8:1)");
    }

    #[test]
    fn only_self_descriptions_are_cut_short() {
        let text = "x".repeat(100);
        let short = format!("{}…", "x".repeat(57));
        let line =
            |kind: &str| format!(r#"{{"type":"system","subtype":"{kind}","text":"{text}"}}"#);
        assert_eq!(shorten(&line("init")), line("init").replace(&text, &short));
        assert_eq!(shorten(&line("status")), line("status"));
    }
}
