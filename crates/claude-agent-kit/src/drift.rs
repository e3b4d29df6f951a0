//! Reports each unknown field and message of the CLI once.

use std::sync::Mutex;

use claude_wire::content::{Content, ContentBlock};
use claude_wire::message::SystemMessage;
use claude_wire::{Body, Message};

use crate::lock::lock;
use crate::warning::{Warning, WarningCode};

/// The maximum number of reports of each kind in one run.
const MAX_REPORTS: usize = 64;
/// The maximum length of a reported name, in bytes.
const MAX_NAME_CHARS: usize = 64;

/// The names that were already reported.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    /// Separate from the kinds: many unknown fields must not hide an unknown kind.
    fields: ReportedNames,
    kinds: ReportedNames,
}

#[derive(Debug, Default)]
struct ReportedNames(Mutex<Vec<String>>);

impl ReportedNames {
    fn is_first(&self, name: &str) -> bool {
        let mut reported = lock(&self.0);
        let is_first =
            reported.len() < MAX_REPORTS && !reported.iter().any(|reported| reported == name);
        if is_first {
            reported.push(name.to_owned());
        }
        is_first
    }
}

impl Drift {
    /// Returns warnings about unknown kinds in a message. Unknown fields are reported to `tracing` only:
    /// every CLI sends some that are not documented. A message without unknown parts costs little.
    pub(crate) fn look_at(&self, message: &Message) -> Vec<Warning> {
        if let Some(extra) = message.body.extra() {
            for (field, _) in extra.iter() {
                let field = format!("`{}` of `{}`", shown(field), shown(&full_kind(&message.body)));
                if self.fields.is_first(&field) {
                    tracing::info!("the CLI sent a field that is not named: {field}");
                }
            }
        }
        let mut warnings = Vec::new();
        match &message.body {
            Body::Unknown(unknown) => {
                warnings.extend(self.warning(&format!("type `{}`", shown(&unknown.kind)), message));
            }
            Body::System(SystemMessage::Unknown(unknown)) if !unknown.kind.is_empty() => {
                let name = format!("type `system` and subtype `{}`", shown(&unknown.kind));
                warnings.extend(self.warning(&name, message));
            }
            _ => {}
        }
        for block in blocks(&message.body) {
            if let ContentBlock::Unknown(unknown) = block {
                let name = format!("content of type `{}`", shown(&unknown.kind));
                warnings.extend(self.warning(&name, message));
            }
        }
        warnings
    }

    fn warning(&self, name: &str, message: &Message) -> Option<Warning> {
        self.kinds.is_first(name).then(|| {
            let text = format!(
                "the CLI sent a message that this version of the SDK does not know ({name}); it is \
                 passed on unchanged; help: check for a newer version of this crate"
            );
            let line = message.raw().clone();
            Warning::new(WarningCode::UnknownMessage, text).with(|facts| facts.line = Some(line))
        })
    }
}

/// Returns the first 64 characters of a name that the CLI chose, and `…` if there are more.
pub(crate) fn shown(name: &str) -> String {
    let mut rest = name.chars();
    let mut shown: String = rest.by_ref().take(MAX_NAME_CHARS).collect();
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

fn full_kind(body: &Body) -> String {
    let kind = body.kind().unwrap_or_default();
    match body {
        Body::System(system) => format!("{kind}/{}", system.kind().unwrap_or_default()),
        _ => kind.to_owned(),
    }
}

fn blocks(body: &Body) -> &[ContentBlock] {
    match body {
        Body::Assistant(message) => message.content(),
        Body::User(message) => message.content().map(Content::blocks).unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(drift: &Drift, line: &'static str) -> Vec<String> {
        let warnings = drift.look_at(&Message::decode(line).unwrap());
        assert!(warnings.iter().all(|warning| warning.code() == WarningCode::UnknownMessage));
        assert!(warnings.iter().all(|warning| warning.line().unwrap() == line));
        warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unknown_kinds_are_reported_once() {
        let drift = Drift::default();
        for (line, name) in [
            (r#"{"type":"novel","a":1}"#, "type `novel`"),
            (r#"{"type":"system","subtype":"novel"}"#, "type `system` and subtype `novel`"),
            (
                r#"{"type":"assistant","message":{"content":[{"type":"song","text":"la"}]}}"#,
                "content of type `song`",
            ),
            (
                r#"{"type":"user","message":{"content":[{"type":"dance"}]}}"#,
                "content of type `dance`",
            ),
        ] {
            let first = reported(&drift, line);
            assert_eq!(first.len(), 1, "{first:?}");
            assert!(first[0].contains(name), "{first:?}");
            assert!(reported(&drift, line).is_empty(), "a second time");
        }
    }

    #[test]
    fn an_unknown_field_is_logged_once_without_a_warning() {
        let drift = Drift::default();
        let noted = || drift.fields.0.lock().unwrap().iter().cloned().collect::<Vec<_>>();
        for _ in 0..2 {
            assert!(reported(&drift, r#"{"type":"result","novel":1}"#).is_empty());
            assert!(reported(&drift, r#"{"type":"system","subtype":"status","new":1}"#).is_empty());
        }
        assert_eq!(noted(), ["`novel` of `result`", "`new` of `system/status`"]);
    }

    #[test]
    fn known_fields_are_not_reported() {
        let drift = Drift::default();
        for line in [
            r#"{"type":"system"}"#,
            r#"{"type":"user","message":{"content":"hello"}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}"#,
            // The message itself contains the decoding error.
            r#"{"type":"assistant","message":7}"#,
        ] {
            assert!(reported(&drift, line).is_empty(), "{line}");
        }
    }

    #[test]
    fn number_and_length_of_reported_names_are_limited() {
        let drift = Drift::default();
        let mut count = 0;
        for number in 0..1000 {
            let line = format!(r#"{{"type":"novel{number}{}"}}"#, "x".repeat(1000));
            let warnings = drift.look_at(&Message::decode(line).unwrap());
            count += warnings.len();
            assert!(warnings.iter().all(|warning| warning.to_string().len() < 300));
        }
        assert_eq!(count, MAX_REPORTS);
    }

    #[test]
    fn unknown_fields_do_not_hide_an_unknown_kind() {
        let drift = Drift::default();
        for number in 0..2 * MAX_REPORTS {
            let line = format!(r#"{{"type":"result","novel{number}":1}}"#);
            assert!(drift.look_at(&Message::decode(line).unwrap()).is_empty());
        }
        assert_eq!(drift.fields.0.lock().unwrap().len(), MAX_REPORTS);
        assert_eq!(reported(&drift, r#"{"type":"novel"}"#).len(), 1);
    }

    #[test]
    fn the_corpus_contains_no_unknown_kind() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../claude-wire/tests/corpus/2.1.326");
        let mut all = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let text = std::fs::read(entry.unwrap().path()).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            for line in text.lines().filter(|line| line.starts_with("<<")) {
                let line = line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
                // Control frames are not messages and do not reach this code.
                if line.contains(r#""type":"control_"#) || line.contains(r#""type":"keep_alive""#) {
                    continue;
                }
                let Ok(message) = Message::decode(line) else { continue };
                if message.body.kind() == Some("transcript_mirror") {
                    continue;
                }
                all += 1;
                // A new one for each line: nothing was reported before.
                let new = Drift::default().look_at(&message);
                assert!(new.is_empty(), "{new:?}");
            }
        }
        assert!(all > 500, "{all}");
    }
}
