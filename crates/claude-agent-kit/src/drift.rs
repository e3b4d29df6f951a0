//! What the CLI says that the types do not name, told once each.

use std::collections::BTreeSet;
use std::sync::Mutex;

use claude_wire::content::{Content, ContentBlock};
use claude_wire::message::SystemMessage;
use claude_wire::{Body, Extra, Message};

use crate::lock::lock;
use crate::warning::{Warning, WarningCode};

/// How much of each sort is told of in one run. A CLI that has more that is new is another CLI.
const MOST_TOLD: usize = 64;
/// How much of a name is told.
const MOST_OF_A_NAME: usize = 64;

/// What was told of already.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    /// Apart from the kinds: there may be many, and none of them may hide a kind.
    fields: Told,
    kinds: Told,
}

#[derive(Debug, Default)]
struct Told(Mutex<BTreeSet<String>>);

impl Told {
    fn is_first(&self, name: &str) -> bool {
        let mut told = lock(&self.0);
        told.len() < MOST_TOLD && !told.contains(name) && told.insert(name.to_owned())
    }
}

impl Drift {
    /// Warnings about kinds of things in a message that are not known. Fields without a name are
    /// told to `tracing` only: every CLI sends some that are not published. A message in which
    /// everything is known costs a few looks at what was decoded anyway.
    pub(crate) fn look_at(&self, message: &Message) -> Vec<Warning> {
        for (field, _) in message.body.extra().into_iter().flat_map(Extra::iter) {
            let field = format!("`{}` of `{}`", shown(field), shown(&full_kind(&message.body)));
            if self.fields.is_first(&field) {
                tracing::info!("the CLI sent a field that is not named: {field}");
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
                "the CLI sent something that this version does not know: {name}; it is passed on \
                 as it came"
            );
            let line = message.raw().clone();
            Warning::new(WarningCode::UnknownMessage, text).with(|facts| facts.line = Some(line))
        })
    }
}

/// The beginning of a name that the CLI chose: its first 64 characters.
pub(crate) fn shown(name: &str) -> String {
    name.chars().take(MOST_OF_A_NAME).collect()
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

    fn told(drift: &Drift, line: &'static str) -> Vec<String> {
        let warnings = drift.look_at(&Message::decode(line).unwrap());
        assert!(warnings.iter().all(|warning| warning.code() == WarningCode::UnknownMessage));
        assert!(warnings.iter().all(|warning| warning.line().unwrap() == line));
        warnings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_not_known_is_told_once() {
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
            let first = told(&drift, line);
            assert_eq!(first.len(), 1, "{first:?}");
            assert!(first[0].contains(name), "{first:?}");
            assert!(told(&drift, line).is_empty(), "a second time");
        }
    }

    #[test]
    fn a_field_without_a_name_is_noted_once_and_is_no_warning() {
        let drift = Drift::default();
        let noted = || drift.fields.0.lock().unwrap().iter().cloned().collect::<Vec<_>>();
        for _ in 0..2 {
            assert!(told(&drift, r#"{"type":"result","novel":1}"#).is_empty());
            assert!(told(&drift, r#"{"type":"system","subtype":"status","new":1}"#).is_empty());
        }
        assert_eq!(noted(), ["`new` of `system/status`", "`novel` of `result`"]);
    }

    #[test]
    fn what_is_known_is_not_told() {
        let drift = Drift::default();
        for line in [
            r#"{"type":"system"}"#,
            r#"{"type":"user","message":{"content":"hello"}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}"#,
            // That it cannot be made out stands in the message itself.
            r#"{"type":"assistant","message":7}"#,
        ] {
            assert!(told(&drift, line).is_empty(), "{line}");
        }
    }

    #[test]
    fn neither_the_number_nor_the_length_of_names_is_without_bounds() {
        let drift = Drift::default();
        let mut count = 0;
        for number in 0..1000 {
            let line = format!(r#"{{"type":"novel{number}{}"}}"#, "x".repeat(1000));
            let warnings = drift.look_at(&Message::decode(line).unwrap());
            count += warnings.len();
            assert!(warnings.iter().all(|warning| warning.to_string().len() < 300));
        }
        assert_eq!(count, MOST_TOLD);
    }

    #[test]
    fn no_number_of_fields_hides_a_kind() {
        let drift = Drift::default();
        for number in 0..2 * MOST_TOLD {
            let line = format!(r#"{{"type":"result","novel{number}":1}}"#);
            assert!(drift.look_at(&Message::decode(line).unwrap()).is_empty());
        }
        assert_eq!(drift.fields.0.lock().unwrap().len(), MOST_TOLD);
        assert_eq!(told(&drift, r#"{"type":"novel"}"#).len(), 1);
    }

    #[test]
    fn nothing_that_was_recorded_is_of_an_unknown_kind() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../claude-wire/tests/corpus/2.1.325");
        let mut all = 0;
        for entry in std::fs::read_dir(corpus).unwrap() {
            let text = std::fs::read(entry.unwrap().path()).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            for line in text.lines().filter(|line| line.starts_with("<<")) {
                let line = line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned();
                // Control frames are no messages, and never come here.
                if line.contains(r#""type":"control_"#) || line.contains(r#""type":"keep_alive""#) {
                    continue;
                }
                let Ok(message) = Message::decode(line) else { continue };
                if message.body.kind() == Some("transcript_mirror") {
                    continue;
                }
                all += 1;
                // A new one for each line: nothing was told of before.
                let new = Drift::default().look_at(&message);
                assert!(new.is_empty(), "{new:?}");
            }
        }
        assert!(all > 500, "{all}");
    }
}
