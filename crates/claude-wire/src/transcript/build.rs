//! From the facts of a record to its row.

use super::facts::{AttachmentFacts, Facts, Local, PreservedFacts};
use super::index::{Boundary, Preserved};
use super::key::{Key, short_hash};
use super::row::{self, Flags, Packed, Row};
use super::time::parse_timestamp;

/// State entries that a fork carries over.
const CARRIED: [&str; 8] = [
    "history-suppression",
    "content-replacement",
    "atis-latch",
    "tools-used",
    "data-flow-records",
    "data-flow-incomplete",
    "derived-from",
    "relocated",
];

/// The row of a record, and what is not kept in it.
pub(super) struct Built {
    /// Without its parent.
    pub(super) row: Row,
    pub(super) parent: Option<Key>,
    /// The tool calls beyond the first.
    pub(super) more_tools: Vec<u64>,
}

/// Builds the row of a record.
pub(super) fn row(facts: &Facts<'_>, offset: u64, length: usize, found: u32) -> Built {
    let queued = queued_prompt(facts);
    let kind = kind(facts, queued.is_some());
    let mut flags = Flags(found | u32::from(kind));
    let mut packed = Packed { offset, length, ..Packed::default() };
    packed.time = facts.timestamp.as_deref().and_then(parse_timestamp);
    packed.agent = facts.agent.as_deref().map_or(0, |agent| (short_hash(agent) & 0xfff).max(1));
    flags.set(row::HAS_ID, facts.uuid.is_some());
    flags.set(row::SIDECHAIN, facts.is_sidechain);
    flags.set(row::TEAM, facts.has_team);
    flags.set(row::META, facts.is_meta);
    flags.set(row::SHOWN_ORIGIN, facts.origin.is_shown());
    flags.set(row::COMPACT_SUMMARY, facts.is_compact_summary);
    let mut parent = facts.parent.as_deref();
    let mut tools = Vec::new();
    match kind {
        row::USER => tools = user(facts, &mut flags, &mut packed),
        row::ASSISTANT => {
            let id = facts.message.id.as_deref().filter(|id| !id.is_empty());
            packed.response = id.map_or(0, short_hash);
            tools = facts.message.tool_calls.iter().map(|id| short_hash(id)).collect();
        }
        row::SYSTEM => {
            flags.set(row::BOUNDARY, facts.subtype.as_deref() == Some("compact_boundary"));
        }
        row::ATTACHMENT => {
            if let Some(prompt) = queued {
                queued_flags(prompt, facts, &mut flags, &mut packed);
            }
            let kind = facts.attachment.kind.as_deref();
            flags.set(row::FORK_BRIEFING, kind == Some("fork_briefing"));
        }
        row::LAST_PROMPT => {
            parent = facts.leaf.as_deref();
            flags.set(row::HAS_LEAF, facts.has_leaf);
            flags.set(row::EXPLICIT, facts.is_explicit);
        }
        row::QUEUE_OPERATION => queue_operation(facts, &mut flags, &mut packed),
        _ => {}
    }
    flags.set(row::HAS_PARENT, parent.is_some());
    if !tools.is_empty() {
        packed.tool = tools.remove(0);
    }
    flags.set(row::MORE_TOOLS, !tools.is_empty());
    let id = facts.uuid.as_deref().map(Key::of).unwrap_or_default();
    let row = Row::new(id, packed, flags);
    Built { row, parent: parent.map(Key::of), more_tools: tools }
}

fn kind(facts: &Facts<'_>, is_queued_prompt: bool) -> u8 {
    match facts.kind.as_deref().unwrap_or_default() {
        "user" => row::USER,
        "assistant" => row::ASSISTANT,
        "attachment" => row::ATTACHMENT,
        "progress" => row::PROGRESS,
        "last-prompt" => row::LAST_PROMPT,
        "queue-operation" => row::QUEUE_OPERATION,
        // The text of a voice call is written as a system entry, and read as a prompt.
        "system" if is_queued_prompt => row::ATTACHMENT,
        "system" if is_voice_call(facts) && !facts.has_fold => row::USER,
        "system" => row::SYSTEM,
        kind if CARRIED.contains(&kind) => row::CARRIED,
        _ => row::OTHER,
    }
}

fn is_voice_call(facts: &Facts<'_>) -> bool {
    facts.subtype.as_deref() == Some("voice_call_talk")
        && facts.has_content
        && facts.origin.kind.as_deref() == Some("voice-call")
}

/// The prompt that joined a running turn, if the record is one.
fn queued_prompt<'f, 'a>(facts: &'f Facts<'a>) -> Option<&'f AttachmentFacts<'a>> {
    match facts.kind.as_deref()? {
        "attachment" => {
            let is_queued = facts.attachment.kind.as_deref() == Some("queued_command");
            is_queued.then_some(&facts.attachment)
        }
        "system" if is_voice_call(facts) => facts.fold.as_ref(),
        _ => None,
    }
}

fn user(facts: &Facts<'_>, flags: &mut Flags, packed: &mut Packed) -> Vec<u64> {
    let message = &facts.message;
    flags.set(row::TOOL_RESULT, message.has_tool_result);
    flags.set(row::INTERRUPTED, message.blocks > 0 && message.interrupts == message.blocks);
    if !facts.has_prompt_source {
        flags.set(row::CAVEAT, message.local == Some(Local::Caveat));
        flags.set(row::COMMAND_RECORD, message.local == Some(Local::Record));
        flags.set(row::COMMAND_OUTPUT, message.local == Some(Local::Output));
    }
    // Nearly always the parent, which needs no second lookup.
    if let Some(source) = facts.source.as_deref().filter(|id| Some(*id) != facts.parent.as_deref())
    {
        flags.set(row::HAS_SOURCE, true);
        packed.response = Key::of(source).prefix();
    }
    message.tool_results.iter().map(|id| short_hash(id)).collect()
}

fn queued_flags(
    prompt: &AttachmentFacts<'_>,
    facts: &Facts<'_>,
    flags: &mut Flags,
    packed: &mut Packed,
) {
    let is_voice = facts.fold.is_some();
    let is_shown = is_voice || prompt.origin.is_shown();
    flags.set(row::QUEUED, true);
    let has_prompt = prompt.has_prompt || is_voice;
    let is_hidden = prompt.is_forwarded || !has_prompt || (prompt.is_meta && !is_shown);
    flags.set(row::HIDDEN_PROMPT, is_hidden);
    flags.set(row::HAS_DELIVERY, prompt.delivery.is_some());
    flags.set(row::HAS_SOURCE, prompt.source.is_some());
    packed.response = prompt.source.as_deref().map_or(0, |source| Key::of(source).prefix());
    packed.tool = prompt.delivery.as_deref().map_or(0, short_hash);
}

fn queue_operation(facts: &Facts<'_>, flags: &mut Flags, packed: &mut Packed) {
    let is_absorbed = facts.operation.as_deref() == Some("remove")
        && facts.reason.as_deref() == Some("absorbed_mid_turn");
    let delivery = facts.delivery.as_deref().filter(|delivery| !delivery.is_empty());
    flags.set(row::ABSORBED, is_absorbed && (delivery.is_some() || facts.command.is_some()));
    flags.set(row::HAS_DELIVERY, delivery.is_some());
    packed.tool = delivery.map_or(0, short_hash);
    packed.response = facts.command.as_deref().map_or(0, |command| Key::of(command).prefix());
}

pub(super) fn boundary(facts: &Facts<'_>, row: u32) -> Boundary {
    let logical_parent = facts.logical_parent.as_deref().map(Key::of);
    Boundary { row, logical_parent, preserved: preserved(facts) }
}

fn preserved(facts: &Facts<'_>) -> Preserved {
    let key = |text: &Option<_>| text.as_ref().map(|text: &super::facts::Text<'_>| Key::of(text));
    if let Some(PreservedFacts { anchor, uuids, .. }) = &facts.compaction.messages {
        let uuids: Box<[Key]> = uuids.iter().map(|uuid| Key::of(uuid)).collect();
        return match key(anchor) {
            Some(anchor) if !uuids.is_empty() => Preserved::Messages { anchor, uuids },
            _ => Preserved::Nothing,
        };
    }
    let Some(PreservedFacts { anchor, head, tail, .. }) = &facts.compaction.segment else {
        return Preserved::Nothing;
    };
    match (key(anchor), key(head), key(tail)) {
        (Some(anchor), Some(head), Some(tail)) => Preserved::Segment { anchor, head, tail },
        _ => Preserved::Nothing,
    }
}
