//! Lines that rename or tag a session.

use super::error::TranscriptError;
use crate::json::Json;

/// Returns the line that gives a session a title, with its line break.
///
/// Append it in one write. If the transcript does not end with a line break, put one in front:
/// [`with_leading_newline`] does.
///
/// # Errors
/// Returns an error when the title is blank.
pub fn title_line(session_id: &str, title: &str) -> Result<Vec<u8>, TranscriptError> {
    let title = title.trim();
    if title.is_empty() {
        return Err(TranscriptError::EmptyTitle);
    }
    Ok(line(&[("type", "custom-title"), ("customTitle", title), ("sessionId", session_id)]))
}

/// Returns the line that sets the tag of a session, or removes it with `None`.
///
/// The tag is trimmed and loses control and format characters: zero-width characters, direction
/// marks, byte order marks, private use. It should be in Unicode normalization form KC before,
/// which needs tables that this crate does not have.
///
/// # Errors
/// Returns an error when nothing of the tag is left.
pub fn tag_line(session_id: &str, tag: Option<&str>) -> Result<Vec<u8>, TranscriptError> {
    let tag = tag.map(sanitize_tag);
    if tag.as_deref() == Some("") {
        return Err(TranscriptError::EmptyTag);
    }
    let tag = tag.unwrap_or_default();
    Ok(line(&[("type", "tag"), ("tag", &tag), ("sessionId", session_id)]))
}

/// Removes the characters from a tag that cannot be seen, and trims it.
pub fn sanitize_tag(tag: &str) -> String {
    tag.chars().filter(|character| !is_invisible(*character)).collect::<String>().trim().to_owned()
}

/// Puts a line break in front of `line` if the transcript ends with `last_byte` and that is not
/// one: otherwise the line would become a part of the torn one. `None` is an empty transcript.
pub fn with_leading_newline(line: &[u8], last_byte: Option<u8>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(line.len() + 1);
    if last_byte.is_some_and(|byte| byte != b'\n') {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(line);
    bytes
}

/// Writes the fields in this order, which the CLI and the official SDKs look for.
fn line(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut line = String::new();
    for (name, value) in fields {
        line.push(if line.is_empty() { '{' } else { ',' });
        line.push_str(Json::from(*name).text());
        line.push(':');
        line.push_str(Json::from(*value).text());
    }
    line.push_str("}\n");
    line.into_bytes()
}

/// Whether a character is a format character (Cf), for private use (Co), or never assigned.
fn is_invisible(character: char) -> bool {
    matches!(u32::from(character),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0x180e
        | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xe000..=0xf8ff
        | 0xfdd0..=0xfdef | 0xfeff | 0xfff0..=0xfffb | 0x110bd | 0x110cd | 0x13430..=0x1343f
        | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe00ff | 0xe01f0..=0x0010_ffff)
        || u32::from(character) & 0xfffe == 0xfffe
}
