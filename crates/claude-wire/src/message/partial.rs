//! Assembles partial answers, so that no text appears twice.

use crate::content::ContentBlock;
use crate::id::ToolUseId;
use crate::message::{AssistantMessage, Body, Delta, StreamEvent, StreamEventMessage};

/// A change of the answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// Text was appended to a block.
    Text(BlockPlace, String),
    /// Thinking was appended to a block.
    Thinking(BlockPlace, String),
    /// JSON text was appended to the input of a tool call.
    Input(BlockPlace, String),
    /// A block is complete. Text that was reported in parts is not repeated before this.
    Block(BlockPlace, ContentBlock),
    /// This block and the following ones are invalid, because the answer was interrupted and is
    /// requested again.
    Abandoned(BlockPlace),
}

/// Identifies a block of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct BlockPlace {
    /// The tool call that started the subagent.
    pub parent: Option<ToolUseId>,
    /// The message of the Messages API.
    pub message: String,
    /// The index of the block.
    pub index: u64,
}

/// Turns messages into [`Update`]s.
///
/// Takes every message of a session in order, with or without partial messages: a complete block
/// without deltas yields its text at once. Displayed text is then valid text, except for
/// [`Update::Abandoned`].
#[derive(Debug, Default)]
pub struct Accumulator {
    /// The answers that are being written, of the main conversation and of each subagent, sorted.
    answers: Vec<(Option<ToolUseId>, Answer)>,
}

#[derive(Debug, Default)]
struct Answer {
    message: String,
    /// The reported text or thinking, sorted by block.
    reported: Vec<(u64, String)>,
    /// The number of complete blocks.
    whole: u64,
}

impl Accumulator {
    /// Creates an empty accumulator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next message.
    pub fn push(&mut self, body: &Body) -> Vec<Update> {
        match body {
            Body::StreamEvent(event) => self.event(event),
            Body::Assistant(assistant) => self.whole(assistant),
            Body::Result(_) => {
                // The turn is over; nothing of it can grow any more.
                self.answers.clear();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Returns where the answer of a conversation is, or belongs.
    fn find(&self, parent: Option<&ToolUseId>) -> Result<usize, usize> {
        self.answers.binary_search_by(|(other, _)| other.as_ref().cmp(&parent))
    }

    /// Returns the answer of a conversation, a new one if there is none.
    fn answer(&mut self, parent: Option<&ToolUseId>) -> &mut Answer {
        let at = self.find(parent).unwrap_or_else(|at| {
            self.answers.insert(at, (parent.cloned(), Answer::default()));
            at
        });
        &mut self.answers[at].1
    }

    fn event(&mut self, message: &StreamEventMessage) -> Vec<Update> {
        let parent = message.parent_tool_use_id.clone();
        match &message.event {
            Some(StreamEvent::MessageStart(start)) => {
                let id = start.message.as_ref().and_then(|message| message.id.clone());
                let answer = Answer { message: id.unwrap_or_default(), ..Answer::default() };
                *self.answer(parent.as_ref()) = answer;
                Vec::new()
            }
            Some(StreamEvent::ContentBlockDelta(delta)) => {
                let index = delta.index.as_ref().and_then(crate::Number::as_u64).unwrap_or(0);
                let answer = self.answer(parent.as_ref());
                let place = answer.place(parent.as_ref(), index);
                delta
                    .delta
                    .as_ref()
                    .and_then(|delta| answer.grow(place, delta))
                    .into_iter()
                    .collect()
            }
            Some(StreamEvent::MessageStop(_)) => self.abandoned(message),
            _ => Vec::new(),
        }
    }

    /// Handles the end of a message, which can invalidate some of its blocks.
    fn abandoned(&mut self, message: &StreamEventMessage) -> Vec<Update> {
        let parent = message.parent_tool_use_id.clone();
        let Ok(at) = self.find(parent.as_ref()) else { return Vec::new() };
        let answer = &self.answers[at].1;
        let marks: Option<Marks> =
            message.extra.get("abandoned_blocks").and_then(|json| json.deserialize().ok());
        let Some(from) = marks.and_then(|marks| marks.from_block_index) else { return Vec::new() };
        let index = from.as_u64().unwrap_or(0);
        // Only reported blocks that were not completed are abandoned.
        let mut blocks = answer.reported.iter().map(|(block, _)| *block);
        let first = blocks.find(|block| *block >= index.max(answer.whole));
        let place = first.map(|first| answer.place(parent.as_ref(), first));
        self.answers.remove(at);
        place.map(Update::Abandoned).into_iter().collect()
    }

    /// Handles complete blocks: the CLI sends them one by one, in order, with the message ID of the API.
    fn whole(&mut self, assistant: &AssistantMessage) -> Vec<Update> {
        let parent = assistant.parent_tool_use_id.clone();
        let id = assistant.message.as_ref().and_then(|message| message.id.clone());
        let id = id.unwrap_or_default();
        let answer = self.answer(parent.as_ref());
        if answer.message != id {
            *answer = Answer { message: id, ..Answer::default() };
        }
        let mut updates = Vec::new();
        for block in assistant.content() {
            let place = answer.place(parent.as_ref(), answer.whole);
            answer.whole += 1;
            updates.extend(answer.remainder(&place, block));
            updates.push(Update::Block(place, block.clone()));
        }
        updates
    }
}

wire_struct! {
    /// The invalidated blocks.
    #[derive(Default)]
    pub(crate) struct Marks {
        /// The first of them.
        from_block_index: Option<crate::Number>,
    }
}

impl Answer {
    fn place(&self, parent: Option<&ToolUseId>, index: u64) -> BlockPlace {
        BlockPlace { parent: parent.cloned(), message: self.message.clone(), index }
    }

    /// Returns where the reported text of a block is, or belongs.
    fn find(&self, index: u64) -> Result<usize, usize> {
        self.reported.binary_search_by_key(&index, |(block, _)| *block)
    }

    fn grow(&mut self, place: BlockPlace, delta: &Delta) -> Option<Update> {
        let (text, update): (&str, fn(BlockPlace, String) -> Update) = match delta {
            Delta::Text(delta) => (&delta.text, Update::Text),
            Delta::Thinking(delta) => (&delta.thinking, Update::Thinking),
            Delta::InputJson(delta) => (&delta.partial_json, Update::Input),
            _ => return None,
        };
        if text.is_empty() {
            return None;
        }
        match self.find(place.index) {
            Ok(at) => self.reported[at].1.push_str(text),
            Err(at) => self.reported.insert(at, (place.index, text.to_owned())),
        }
        Some(update(place, text.to_owned()))
    }

    /// Returns the part of a complete block that was not reported yet.
    fn remainder(&mut self, place: &BlockPlace, block: &ContentBlock) -> Vec<Update> {
        let (text, update): (&str, fn(BlockPlace, String) -> Update) = match block {
            ContentBlock::Text(block) => (&block.text, Update::Text),
            ContentBlock::Thinking(block) => (&block.thinking, Update::Thinking),
            // The block itself has the arguments.
            _ => return Vec::new(),
        };
        let found = self.find(place.index).ok();
        let reported = found.map(|at| self.reported.remove(at).1).unwrap_or_default();
        match text.strip_prefix(reported.as_str()) {
            Some("") => Vec::new(),
            Some(rest) => vec![update(place.clone(), rest.to_owned())],
            // The block does not start with the reported text, so that text is invalid.
            None => {
                vec![Update::Abandoned(place.clone()), update(place.clone(), text.to_owned())]
            }
        }
    }
}
