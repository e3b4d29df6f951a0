//! Pieces of answers put together, so that no text appears twice.

use std::collections::BTreeMap;

use crate::content::ContentBlock;
use crate::id::ToolUseId;
use crate::message::{AssistantMessage, Body, Delta, StreamEvent, StreamEventMessage};

/// What a message adds to what is known of the answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// A block has more text.
    Text(BlockPlace, String),
    /// A block has more thinking.
    Thinking(BlockPlace, String),
    /// A tool call has more of the JSON text of its arguments.
    Input(BlockPlace, String),
    /// A block is whole. What was told of it piece by piece is not told again before.
    Block(BlockPlace, ContentBlock),
    /// What was told of this block and those behind it does not count any more: the answer broke
    /// off and is asked for again.
    Abandoned(BlockPlace),
}

/// Which block of which answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct BlockPlace {
    /// The tool call inside which a subagent answers.
    pub parent: Option<ToolUseId>,
    /// The API's message.
    pub message: String,
    /// The block's place in it.
    pub index: u64,
}

/// Turns messages into [`Update`]s.
///
/// Takes every message of a session in order, with partial messages or without: where no pieces
/// came, a whole block gives its text as one piece. Text that was shown is then text that counts,
/// but for what is [`Update::Abandoned`].
#[derive(Debug, Default)]
pub struct Accumulator {
    /// The answer that is being written, for the main conversation and for each subagent.
    answers: BTreeMap<Option<ToolUseId>, Answer>,
}

#[derive(Debug, Default)]
struct Answer {
    message: String,
    /// The text or thinking that was told, by block.
    told: BTreeMap<u64, String>,
    /// How many whole blocks came.
    whole: u64,
}

impl Accumulator {
    /// An accumulator that has seen nothing.
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

    fn event(&mut self, message: &StreamEventMessage) -> Vec<Update> {
        let parent = message.parent_tool_use_id.clone();
        match &message.event {
            Some(StreamEvent::MessageStart(start)) => {
                let id = start.message.as_ref().and_then(|message| message.id.clone());
                let answer = Answer { message: id.unwrap_or_default(), ..Answer::default() };
                self.answers.insert(parent, answer);
                Vec::new()
            }
            Some(StreamEvent::ContentBlockDelta(delta)) => {
                let index = delta.index.as_ref().and_then(crate::Number::as_u64).unwrap_or(0);
                let answer = self.answers.entry(parent.clone()).or_default();
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

    /// The CLI says with the end of a message which of its blocks do not count.
    fn abandoned(&mut self, message: &StreamEventMessage) -> Vec<Update> {
        let parent = message.parent_tool_use_id.clone();
        let Some(answer) = self.answers.get(&parent) else { return Vec::new() };
        let marks: Option<Marks> =
            message.extra.get("abandoned_blocks").and_then(|json| json.deserialize().ok());
        let Some(from) = marks.and_then(|marks| marks.from_block_index) else { return Vec::new() };
        let index = from.as_u64().unwrap_or(0);
        // Only what was told and did not become whole is taken back.
        let first = answer.told.keys().copied().find(|told| *told >= index.max(answer.whole));
        let place = first.map(|first| answer.place(parent.as_ref(), first));
        self.answers.remove(&parent);
        place.map(Update::Abandoned).into_iter().collect()
    }

    /// Whole blocks: the CLI sends them one by one, in order, under the API's message id.
    fn whole(&mut self, assistant: &AssistantMessage) -> Vec<Update> {
        let parent = assistant.parent_tool_use_id.clone();
        let id = assistant.message.as_ref().and_then(|message| message.id.clone());
        let id = id.unwrap_or_default();
        let answer = self.answers.entry(parent.clone()).or_default();
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
    /// What the CLI says of blocks that do not count.
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
        self.told.entry(place.index).or_default().push_str(text);
        Some(update(place, text.to_owned()))
    }

    /// What of a whole block was not told yet.
    fn remainder(&mut self, place: &BlockPlace, block: &ContentBlock) -> Vec<Update> {
        let (text, update): (&str, fn(BlockPlace, String) -> Update) = match block {
            ContentBlock::Text(block) => (&block.text, Update::Text),
            ContentBlock::Thinking(block) => (&block.thinking, Update::Thinking),
            // The block itself has the arguments.
            _ => return Vec::new(),
        };
        let told = self.told.remove(&place.index).unwrap_or_default();
        match text.strip_prefix(told.as_str()) {
            Some("") => Vec::new(),
            Some(rest) => vec![update(place.clone(), rest.to_owned())],
            // What was told is not how the block begins, so it does not count.
            None => {
                vec![Update::Abandoned(place.clone()), update(place.clone(), text.to_owned())]
            }
        }
    }
}
