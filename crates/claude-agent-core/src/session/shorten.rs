//! Limits the length of texts of the CLI in warnings, errors and responses.

use std::borrow::Cow;

use super::event::RunWarning;

/// The maximum length of a name in bytes: a subtype, a tool, an MCP server.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// The maximum length of a reason in bytes.
pub(super) const MAX_REASON_BYTES: usize = 4 * 1024;

/// Cuts `text` after `limit` bytes at a character boundary, and marks the cut with `…`.
pub(super) fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(format!("{}…", &text[..end]))
}

/// Cuts `text` in place like [`shorten`], and frees the rest.
pub(super) fn truncate(text: &mut String, limit: usize) {
    if let Cow::Owned(short) = shorten(text, limit) {
        *text = short;
    }
}

impl RunWarning {
    /// Cuts texts that may be as long as a line of the CLI.
    pub(super) fn shorten(&mut self) {
        match self {
            Self::Malformed(malformed) => truncate(&mut malformed.reason, MAX_REASON_BYTES),
            Self::OversizedLine { kind: Some(kind), .. } => truncate(kind, MAX_NAME_BYTES),
            Self::CallbackFailed { request, reason, .. }
            | Self::UnsupportedRequest { request, response: reason } => {
                truncate(request, MAX_NAME_BYTES);
                truncate(reason, MAX_REASON_BYTES);
            }
            Self::CallbackTimedOut { request, .. } | Self::CallbackOverload { request } => {
                truncate(request, MAX_NAME_BYTES);
            }
            Self::MirrorDegraded(reason) | Self::UnknownTranscript(reason) => {
                truncate(reason, MAX_REASON_BYTES);
            }
            Self::OversizedLine { kind: None, .. }
            | Self::IncompleteLastLine(_)
            | Self::ModeBypassesCallback(_)
            | Self::NonZeroExitAfterResult(_)
            | Self::StdoutHeldOpen
            | Self::StoppedAfterResult
            | Self::ExitWithoutResult
            | Self::MirrorRecovered
            | Self::EmptyOutput => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character_boundary() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("longer", 5), "longe…");
        assert_eq!(shorten("aé", 2), "a…");
        let mut text = "x".repeat(1000);
        truncate(&mut text, 10);
        assert_eq!((text.as_str(), text.capacity() < 100), ("xxxxxxxxxx…", true));
    }
}
