//! Parses the answers of the model.

use serde_json::json;

use super::cursor::{Cursor, Table};
use super::values::ReadValue as _;
use super::{SECTIONS, ScriptError};
use crate::mock_api::Reply;

const ONE_OF_THE_STEPS: &str = "a step of an answer such as `say`, or `then`, or a section";

/// What a step contributes to its answer.
#[derive(Clone, Copy, PartialEq)]
enum StepKind {
    Content,
    /// How the answer is sent.
    Delivery,
    /// An error instead of content.
    Error,
}

type StepParser = fn(Reply, &mut Cursor<'_>) -> Result<Reply, ScriptError>;

const STEPS: Table<(StepKind, StepParser)> = &[
    ("say", (StepKind::Content, |reply, cursor| Ok(reply.and_text(cursor.text()?)))),
    ("think", (StepKind::Content, |reply, cursor| Ok(reply.and_thinking(cursor.text()?)))),
    ("call", (StepKind::Content, call)),
    ("raw", (StepKind::Content, |reply, cursor| Ok(reply.raw_text_json(&cursor.literal()?)))),
    ("nothing", (StepKind::Content, |reply, _| Ok(reply))),
    ("error", (StepKind::Error, error)),
    ("stop-reason", (StepKind::Delivery, stop_reason)),
    ("usage", (StepKind::Delivery, usage)),
    ("deltas-of", (StepKind::Delivery, deltas_of)),
    ("header", (StepKind::Delivery, header)),
    ("retry-after", (StepKind::Delivery, retry_after)),
    (
        "pause-before",
        (StepKind::Delivery, |reply, cursor| Ok(reply.pause_before(cursor.duration()?))),
    ),
    (
        "pause-between",
        (StepKind::Delivery, |reply, cursor| Ok(reply.pause_between(cursor.duration()?))),
    ),
    ("hold", (StepKind::Delivery, |reply, _| Ok(reply.hold()))),
    ("drop-after", (StepKind::Delivery, drop_after)),
];

/// Parses answers up to the next section.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<Reply>, ScriptError> {
    let others: Vec<_> = SECTIONS.iter().map(|(word, _)| *word).chain(["then"]).collect();
    let mut answers = Vec::new();
    let mut answer = AnswerBuilder::default();
    loop {
        if !cursor.has_more() || SECTIONS.iter().any(|(word, _)| *word == cursor.peek()) {
            answers.push(answer.finish(cursor)?);
            return Ok(answers);
        }
        if cursor.peek() == "then" {
            answers.push(std::mem::take(&mut answer).finish(cursor)?);
            cursor.take_word("then");
            continue;
        }
        let start = cursor.position();
        let (kind, step) = cursor.choose(STEPS, &others, ONE_OF_THE_STEPS)?;
        answer.check(kind).map_err(|expected| cursor.error_at(start, expected))?;
        answer.add(kind, step, cursor)?;
    }
}

/// An answer that is being parsed.
#[derive(Default)]
struct AnswerBuilder {
    reply: Reply,
    /// The kind of the steps so far; `Content` and `Error` take precedence over `Delivery`.
    content_kind: Option<StepKind>,
}

impl AnswerBuilder {
    /// Checks whether a step of this kind may follow; if not, returns what was expected instead.
    fn check(&self, kind: StepKind) -> Result<(), &'static str> {
        match (kind, self.content_kind) {
            (StepKind::Content, Some(StepKind::Error)) => {
                Err("`then`, because an error has no content")
            }
            // An error replaces the reply, so earlier steps would be lost.
            (StepKind::Error, Some(_)) => Err("`error` as the first step of the answer"),
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        kind: StepKind,
        step: StepParser,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), ScriptError> {
        self.reply = step(std::mem::take(&mut self.reply), cursor)?;
        if kind != StepKind::Delivery || self.content_kind.is_none() {
            self.content_kind = Some(kind);
        }
        Ok(())
    }

    fn finish(self, cursor: &Cursor<'_>) -> Result<Reply, ScriptError> {
        match self.content_kind {
            Some(StepKind::Content | StepKind::Error) => Ok(self.reply),
            // Otherwise a forgotten answer would be an empty message.
            Some(StepKind::Delivery) | None => {
                let expected = "content such as `say`, or `error`, or `nothing`";
                Err(cursor.error_at(cursor.position(), expected))
            }
        }
    }
}

fn call(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    let name = cursor.name("the name of a tool")?;
    let input = cursor.object()?.unwrap_or_else(|| json!({}));
    Ok(reply.and_tool(name, input))
}

fn error(_: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    let status = cursor.number(400..=599, "a status from 400 to 599")?;
    let kind = cursor.name("a kind of error such as `overloaded_error`")?;
    Ok(Reply::error(status, &kind, &cursor.text()?))
}

fn stop_reason(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    Ok(reply.stop_reason(cursor.name("a stop reason such as `max_tokens`")?))
}

fn usage(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    let input = cursor.number(.., "a number of input tokens")?;
    let output = cursor.number(.., "a number of output tokens")?;
    Ok(reply.usage(input, output))
}

fn deltas_of(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    Ok(reply.deltas_of(cursor.number(1.., "a number of characters from 1")?))
}

fn header(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    let name = cursor.name("the name of a header")?;
    Ok(reply.header(name, cursor.text()?))
}

fn retry_after(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    Ok(reply.retry_after(cursor.number(.., "a number of seconds")?))
}

fn drop_after(reply: Reply, cursor: &mut Cursor<'_>) -> Result<Reply, ScriptError> {
    Ok(reply.drop_after_events(cursor.number(.., "a number of events")?))
}
