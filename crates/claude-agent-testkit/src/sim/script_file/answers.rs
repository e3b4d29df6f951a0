//! What the model answers.

use serde_json::json;

use super::cursor::{Cursor, Table};
use super::text::Text as _;
use super::{SECTIONS, ScriptError};
use crate::mock_api::Reply;

const ONE_OF_THE_STEPS: &str = "a step of an answer such as `say`, or `then`, or a section";

/// What a step adds to its answer.
#[derive(Clone, Copy, PartialEq)]
enum Adds {
    Content,
    /// How the answer is sent.
    Manner,
    /// In place of content.
    Error,
}

type Step = fn(Reply, &mut Cursor<'_>) -> Result<Reply, ScriptError>;

const STEPS: Table<(Adds, Step)> = &[
    ("say", (Adds::Content, |reply, cursor| Ok(reply.and_text(cursor.text()?)))),
    ("think", (Adds::Content, |reply, cursor| Ok(reply.and_thinking(cursor.text()?)))),
    ("call", (Adds::Content, call)),
    ("raw", (Adds::Content, |reply, cursor| Ok(reply.raw_text_json(&cursor.literal()?)))),
    ("nothing", (Adds::Content, |reply, _| Ok(reply))),
    ("error", (Adds::Error, error)),
    ("stop-reason", (Adds::Manner, stop_reason)),
    ("usage", (Adds::Manner, usage)),
    ("deltas-of", (Adds::Manner, deltas_of)),
    ("header", (Adds::Manner, header)),
    ("retry-after", (Adds::Manner, retry_after)),
    ("pause-before", (Adds::Manner, |reply, cursor| Ok(reply.pause_before(cursor.duration()?)))),
    ("pause-between", (Adds::Manner, |reply, cursor| Ok(reply.pause_between(cursor.duration()?)))),
    ("hold", (Adds::Manner, |reply, _| Ok(reply.hold()))),
    ("drop-after", (Adds::Manner, drop_after)),
];

/// Reads answers up to the next section.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Vec<Reply>, ScriptError> {
    let others: Vec<_> = SECTIONS.iter().map(|(word, _)| *word).chain(["then"]).collect();
    let mut answers = Vec::new();
    let mut answer = Answer::default();
    loop {
        if !cursor.more() || SECTIONS.iter().any(|(word, _)| *word == cursor.peek()) {
            answers.push(answer.finish(cursor)?);
            return Ok(answers);
        }
        if cursor.peek() == "then" {
            answers.push(std::mem::take(&mut answer).finish(cursor)?);
            cursor.take_word("then");
            continue;
        }
        let start = cursor.here();
        let (adds, step) = cursor.choose(STEPS, &others, ONE_OF_THE_STEPS)?;
        answer.check(adds).map_err(|expected| cursor.mistake(start, expected))?;
        answer.add(adds, step, cursor)?;
    }
}

/// One answer, while it is read.
#[derive(Default)]
struct Answer {
    reply: Reply,
    /// The most telling of its steps so far.
    holds: Option<Adds>,
}

impl Answer {
    /// Whether such a step may follow; if not, what was expected instead.
    fn check(&self, adds: Adds) -> Result<(), &'static str> {
        match (adds, self.holds) {
            (Adds::Content, Some(Adds::Error)) => Err("`then`, because an error has no content"),
            // An error starts the reply anew, so what came before it would be lost.
            (Adds::Error, Some(_)) => Err("`error` as the first step of its answer"),
            _ => Ok(()),
        }
    }

    fn add(&mut self, adds: Adds, step: Step, cursor: &mut Cursor<'_>) -> Result<(), ScriptError> {
        self.reply = step(std::mem::take(&mut self.reply), cursor)?;
        if adds != Adds::Manner || self.holds.is_none() {
            self.holds = Some(adds);
        }
        Ok(())
    }

    fn finish(self, cursor: &Cursor<'_>) -> Result<Reply, ScriptError> {
        match self.holds {
            Some(Adds::Content | Adds::Error) => Ok(self.reply),
            // A forgotten answer would otherwise be an empty message.
            Some(Adds::Manner) | None => {
                let expected = "content such as `say`, or `error`, or `nothing`";
                Err(cursor.mistake(cursor.here(), expected))
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
