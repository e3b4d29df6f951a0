//! The pass over one record that finds what the index needs, and skips everything else.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::repair;
use crate::scalars::ignore_scalars;
use crate::schema::Key as Name;

/// What the index needs of one record. Texts are borrowed from the line unless they hold escapes.
#[derive(Debug, Default)]
pub(super) struct Facts<'a> {
    pub(super) kind: Option<Text<'a>>,
    has_kind: bool,
    pub(super) subtype: Option<Text<'a>>,
    pub(super) uuid: Option<Text<'a>>,
    pub(super) parent: Option<Text<'a>>,
    pub(super) logical_parent: Option<Text<'a>>,
    pub(super) agent: Option<Text<'a>>,
    pub(super) timestamp: Option<Text<'a>>,
    pub(super) source: Option<Text<'a>>,
    /// `leafUuid` of a checkpoint, which may be null.
    pub(super) leaf: Option<Text<'a>>,
    pub(super) has_leaf: bool,
    pub(super) is_sidechain: bool,
    pub(super) is_meta: bool,
    pub(super) has_team: bool,
    pub(super) is_compact_summary: bool,
    pub(super) is_explicit: bool,
    pub(super) has_prompt_source: bool,
    pub(super) has_session: bool,
    pub(super) has_parent_field: bool,
    /// `content` of a system entry is a string.
    pub(super) has_content: bool,
    pub(super) message: MessageFacts<'a>,
    pub(super) attachment: AttachmentFacts<'a>,
    /// The command that a folded voice call holds.
    pub(super) fold: Option<AttachmentFacts<'a>>,
    pub(super) has_fold: bool,
    pub(super) origin: OriginFacts<'a>,
    pub(super) compaction: CompactionFacts<'a>,
    pub(super) operation: Option<Text<'a>>,
    pub(super) reason: Option<Text<'a>>,
    pub(super) command: Option<Text<'a>>,
    pub(super) delivery: Option<Text<'a>>,
}

pub(super) type Text<'a> = Cow<'a, str>;

/// Reads the record that `bytes` begin with, and returns its length. Bytes after it are not read.
pub(super) fn read(bytes: &[u8]) -> Result<(Facts<'_>, usize), serde_json::Error> {
    let mut facts = Facts::default();
    let mut records = serde_json::Deserializer::from_slice(bytes);
    Walk(&mut facts).deserialize(ObjectOnly(&mut records))?;
    // `into_iter` gives the position behind what was read so far.
    let length = records.into_iter::<IgnoredAny>().byte_offset();
    Ok((facts, length))
}

/// Reads an object and nothing else.
struct ObjectOnly<'d, R>(&'d mut serde_json::Deserializer<R>);

impl<'de, R: serde_json::de::Read<'de>> Deserializer<'de> for ObjectOnly<'_, R> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[derive(Debug, Default)]
pub(super) struct MessageFacts<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) tool_calls: Vec<Text<'a>>,
    pub(super) tool_results: Vec<Text<'a>>,
    pub(super) has_tool_result: bool,
    /// The local command part of the last text.
    pub(super) local: Option<Local>,
    /// Number of blocks, and of those that say that the turn was interrupted.
    pub(super) blocks: usize,
    pub(super) interrupts: usize,
}

/// A part of a local command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Local {
    Caveat,
    Record,
    Output,
}

#[derive(Debug, Default)]
pub(super) struct AttachmentFacts<'a> {
    pub(super) kind: Option<Text<'a>>,
    pub(super) source: Option<Text<'a>>,
    pub(super) delivery: Option<Text<'a>>,
    pub(super) is_meta: bool,
    pub(super) is_forwarded: bool,
    pub(super) has_prompt: bool,
    pub(super) origin: OriginFacts<'a>,
}

#[derive(Debug, Default)]
pub(super) struct OriginFacts<'a> {
    pub(super) kind: Option<Text<'a>>,
}

impl OriginFacts<'_> {
    /// Whether meta entries of this origin are shown.
    pub(super) fn is_shown(&self) -> bool {
        const SHOWN: [&str; 6] =
            ["channel", "observer", "observer-activity", "slack-ping", "voice-call", "peer"];
        self.kind.as_deref().is_some_and(|kind| SHOWN.contains(&kind))
    }
}

#[derive(Debug, Default)]
pub(super) struct CompactionFacts<'a> {
    pub(super) messages: Option<PreservedFacts<'a>>,
    pub(super) segment: Option<PreservedFacts<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct PreservedFacts<'a> {
    pub(super) anchor: Option<Text<'a>>,
    pub(super) uuids: Vec<Text<'a>>,
    pub(super) head: Option<Text<'a>>,
    pub(super) tail: Option<Text<'a>>,
}

/// An object of which some fields are read. Values that are not objects or arrays are skipped.
trait Fields<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;

    fn element<S: SeqAccess<'a>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        Ok(seq.next_element::<IgnoredAny>()?.is_some())
    }

    /// Takes the value if it is a string.
    fn text(&mut self, _: &str) {}
}

struct Walk<'v, V>(&'v mut V);

impl<'a, V: Fields<'a>> DeserializeSeed<'a> for Walk<'_, V> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a, V: Fields<'a>> Visitor<'a> for Walk<'_, V> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Name<'a>>()? {
            self.0.field(name.as_str(), &mut map)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while self.0.element(&mut seq)? {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.text(text);
        Ok(())
    }

    ignore_scalars!();
}

fn skip<'a, A: MapAccess<'a>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

/// Returns the string that a JSON text represents, if it is a string.
fn string(raw: &RawValue) -> Option<Text<'_>> {
    let text = raw.get();
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let repaired = repair::repaired(text.as_bytes());
    serde_json::from_slice(repaired.as_deref().unwrap_or(text.as_bytes())).ok().map(Cow::Owned)
}

fn text<'a, A: MapAccess<'a>>(map: &mut A) -> Result<Option<Text<'a>>, A::Error> {
    Ok(string(map.next_value()?))
}

/// A string that counts: an empty one is as good as none.
fn id<'a, A: MapAccess<'a>>(map: &mut A) -> Result<Option<Text<'a>>, A::Error> {
    Ok(text(map)?.filter(|text| !text.is_empty()))
}

/// Whether JavaScript takes the value for true.
fn truthy<'a, A: MapAccess<'a>>(map: &mut A) -> Result<bool, A::Error> {
    let raw: &RawValue = map.next_value()?;
    Ok(!matches!(raw.get(), "false" | "null" | "0" | "-0" | "0.0" | "\"\""))
}

impl<'a> Fields<'a> for Facts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            // Of several, the first one counts, as for `Entry::decode`.
            "type" if self.has_kind => skip(map)?,
            "type" => {
                self.has_kind = true;
                self.kind = text(map)?;
            }
            "subtype" => self.subtype = text(map)?,
            "uuid" => self.uuid = text(map)?,
            "parentUuid" => {
                self.has_parent_field = true;
                self.parent = id(map)?;
            }
            "logicalParentUuid" => self.logical_parent = id(map)?,
            "agentId" => self.agent = text(map)?,
            "timestamp" => self.timestamp = text(map)?,
            "sourceToolAssistantUUID" => self.source = text(map)?,
            "leafUuid" => {
                self.has_leaf = true;
                self.leaf = text(map)?;
            }
            "isSidechain" => self.is_sidechain = truthy(map)?,
            "isMeta" => self.is_meta = truthy(map)?,
            "teamName" => self.has_team = truthy(map)?,
            "isCompactSummary" => self.is_compact_summary = truthy(map)?,
            "explicit" | "rewound" => self.is_explicit |= truthy(map)?,
            "promptSource" => {
                self.has_prompt_source = true;
                skip(map)?;
            }
            "sessionId" => self.has_session = text(map)?.is_some(),
            "content" => self.has_content = map.next_value::<&RawValue>()?.get().starts_with('"'),
            "message" => {
                self.message = MessageFacts::default();
                map.next_value_seed(Walk(&mut self.message))?;
            }
            _ => return self.rare_field(name, map),
        }
        Ok(())
    }
}

impl<'a> Facts<'a> {
    fn rare_field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "attachment" => {
                self.attachment = AttachmentFacts::default();
                map.next_value_seed(Walk(&mut self.attachment))?;
            }
            "origin" => {
                self.origin = OriginFacts::default();
                map.next_value_seed(Walk(&mut self.origin))?;
            }
            "compactMetadata" => {
                self.compaction = CompactionFacts::default();
                map.next_value_seed(Walk(&mut self.compaction))?;
            }
            "fold" => {
                let mut fold = FoldFacts::default();
                map.next_value_seed(Walk(&mut fold))?;
                self.fold = fold.command;
                self.has_fold = true;
            }
            "operation" => self.operation = text(map)?,
            "reason" => self.reason = text(map)?,
            "commandUuid" => self.command = text(map)?,
            "deliveryId" => self.delivery = text(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for MessageFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "id" => self.id = text(map)?,
            "content" => map.next_value_seed(Walk(&mut ContentFacts(self)))?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

/// The content of a message: a string, or a list of blocks.
struct ContentFacts<'m, 'a>(&'m mut MessageFacts<'a>);

impl<'a> Fields<'a> for ContentFacts<'_, 'a> {
    fn field<A: MapAccess<'a>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        skip(map)
    }

    fn text(&mut self, text: &str) {
        self.0.blocks = 1;
        self.0.interrupts = usize::from(is_interrupt(text));
        self.0.local = local(text);
    }

    fn element<S: SeqAccess<'a>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        let mut block = BlockFacts::default();
        if seq.next_element_seed(Walk(&mut block))?.is_none() {
            return Ok(false);
        }
        self.0.blocks += 1;
        match block.kind.as_deref() {
            Some("tool_use") => self.0.tool_calls.extend(block.id),
            Some("tool_result") => {
                self.0.has_tool_result = true;
                self.0.tool_results.extend(block.tool_use_id);
                self.0.interrupts += usize::from(block.is_error && block.is_interrupt);
            }
            Some("text") => {
                self.0.local = block.local;
                self.0.interrupts += usize::from(block.is_interrupt);
            }
            _ => {}
        }
        Ok(true)
    }
}

#[derive(Default)]
struct BlockFacts<'a> {
    kind: Option<Text<'a>>,
    id: Option<Text<'a>>,
    tool_use_id: Option<Text<'a>>,
    is_error: bool,
    is_interrupt: bool,
    local: Option<Local>,
}

impl<'a> Fields<'a> for BlockFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = text(map)?,
            "id" => self.id = text(map)?,
            "tool_use_id" => self.tool_use_id = text(map)?,
            "is_error" => self.is_error = truthy(map)?,
            "text" | "content" => {
                // The beginning is enough, and needs no escapes resolved.
                let raw = map.next_value::<&RawValue>()?.get();
                let start = raw.strip_prefix('"').unwrap_or_default();
                self.is_interrupt = is_interrupt(start);
                self.local = local(start);
            }
            _ => skip(map)?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for AttachmentFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "type" => self.kind = text(map)?,
            "source_uuid" => self.source = id(map)?,
            "delivery_id" => self.delivery = id(map)?,
            "isMeta" => self.is_meta = truthy(map)?,
            "forwardedIntent" => {
                self.is_forwarded = map.next_value::<&RawValue>()?.get() != "null";
            }
            "prompt" => {
                self.has_prompt = map.next_value::<&RawValue>()?.get().starts_with(['"', '[']);
            }
            "origin" => map.next_value_seed(Walk(&mut self.origin))?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct FoldFacts<'a> {
    command: Option<AttachmentFacts<'a>>,
}

impl<'a> Fields<'a> for FoldFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        if name != "command" {
            return skip(map);
        }
        map.next_value_seed(Walk(self.command.insert(AttachmentFacts::default())))
    }
}

impl<'a> Fields<'a> for OriginFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "kind" => self.kind = text(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for CompactionFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let slot = match name {
            "preservedMessages" => &mut self.messages,
            "preservedSegment" => &mut self.segment,
            _ => return skip(map),
        };
        let mut preserved = PreservedFacts::default();
        map.next_value_seed(Walk(&mut preserved))?;
        let is_present = preserved.anchor.is_some() || !preserved.uuids.is_empty();
        *slot = is_present.then_some(preserved);
        Ok(())
    }
}

impl<'a> Fields<'a> for PreservedFacts<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "anchorUuid" => self.anchor = id(map)?,
            "headUuid" => self.head = id(map)?,
            "tailUuid" => self.tail = id(map)?,
            "uuids" => map.next_value_seed(Walk(&mut Uuids(&mut self.uuids)))?,
            _ => skip(map)?,
        }
        Ok(())
    }
}

struct Uuids<'v, 'a>(&'v mut Vec<Text<'a>>);

impl<'a> Fields<'a> for Uuids<'_, 'a> {
    fn field<A: MapAccess<'a>>(&mut self, _: &str, map: &mut A) -> Result<(), A::Error> {
        skip(map)
    }

    fn element<S: SeqAccess<'a>>(&mut self, seq: &mut S) -> Result<bool, S::Error> {
        let Some(raw) = seq.next_element::<&'a RawValue>()? else { return Ok(false) };
        // A value that is not a string names no entry, as does an empty one.
        self.0.push(string(raw).unwrap_or_default());
        Ok(true)
    }
}

/// Whether a text is what the CLI writes when a turn or a tool call was cut short.
fn is_interrupt(text: &str) -> bool {
    const STARTS: [&str; 3] = ["[Request interrupted", "[Agent call interrupted", "[Tool call "];
    STARTS.iter().any(|start| text.starts_with(start))
}

fn local(text: &str) -> Option<Local> {
    const TAGS: [(&str, Local); 4] = [
        ("<command-name>", Local::Record),
        ("<local-command-stdout>", Local::Output),
        ("<local-command-stderr>", Local::Output),
        ("<local-command-caveat>", Local::Caveat),
    ];
    TAGS.iter().find(|(tag, _)| text.starts_with(tag)).map(|(_, part)| *part)
}
