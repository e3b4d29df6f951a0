//! One record of the index: where an entry is, and what choosing the conversation needs of it.

use super::key::{Key, lower};

/// What the index keeps of one entry: 48 bytes.
///
/// All words have 32 bits, because a 64-bit field would pad the struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: Key,
    /// `parentUuid`; of a `last-prompt` entry its `leafUuid`.
    pub(crate) parent: ParentRef,
    /// Offset (44 bits), time in milliseconds (42 bits, plus one, zero for none), length (30 bits),
    /// hash of the agent (12 bits).
    place: [u32; 4],
    /// Two hashes of 48 bits, see [`Row::response`] and [`Row::tool`].
    hashes: [u32; 3],
    pub(crate) flags: Flags,
}

/// Where the key of a parent is. A parent is mostly one of the entries just before, so that its key
/// need not be kept a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParentRef(u32);

/// The places that a [`ParentRef`] can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentPlace {
    /// The ID of this row.
    Row(u32),
    /// The position in the index's list of other parents.
    Other(u32),
}

/// The number of rows that an index has at most: one bit of a [`ParentRef`] is taken.
pub(crate) const MAX_ROWS: u32 = 1 << 31;

impl ParentRef {
    pub(crate) fn new(place: ParentPlace) -> Self {
        match place {
            ParentPlace::Row(row) => Self(row),
            ParentPlace::Other(position) => Self(position | MAX_ROWS),
        }
    }

    pub(crate) fn place(self) -> ParentPlace {
        if self.0 < MAX_ROWS {
            ParentPlace::Row(self.0)
        } else {
            ParentPlace::Other(self.0 - MAX_ROWS)
        }
    }
}

const OFFSET_BITS: u32 = 44;
const TIME_BITS: u32 = 42;
const LENGTH_BITS: u32 = 30;

/// The longest entry that a row can describe.
pub(crate) const MAX_LENGTH: usize = (1 << LENGTH_BITS) - 1;

/// The parts of a row that are packed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packed {
    pub(crate) offset: u64,
    pub(crate) length: usize,
    pub(crate) time: Option<i64>,
    pub(crate) agent: u64,
    pub(crate) response: u64,
    pub(crate) tool: u64,
}

impl Row {
    /// Creates a row whose parent is set by the index.
    pub(crate) fn new(id: Key, packed: Packed, flags: Flags) -> Self {
        // Times outside of 1970 to 2109 count as absent; they only break ties.
        let time = packed.time.and_then(|time| u64::try_from(time).ok()).map_or(0, |time| time + 1);
        let time = if time >> TIME_BITS == 0 { time } else { 0 };
        let length = u64::try_from(packed.length.min(MAX_LENGTH)).unwrap_or_default();
        let place = u128::from(packed.offset & mask(OFFSET_BITS))
            | u128::from(time) << OFFSET_BITS
            | u128::from(length) << (OFFSET_BITS + TIME_BITS)
            | u128::from(packed.agent & mask(12)) << (OFFSET_BITS + TIME_BITS + LENGTH_BITS);
        let word = |at: u32| u32::try_from(place >> (32 * at) & 0xffff_ffff).unwrap_or_default();
        let (response, tool) = (packed.response, packed.tool);
        Self {
            id,
            parent: ParentRef::default(),
            place: [word(0), word(1), word(2), word(3)],
            hashes: [
                lower(response),
                lower(tool),
                lower((response >> 32 & 0xffff) | (tool >> 32 & 0xffff) << 16),
            ],
            flags,
        }
    }

    fn bits(&self, from: u32, count: u32) -> u64 {
        let place =
            self.place.iter().rev().fold(0_u128, |bits, word| bits << 32 | u128::from(*word));
        u64::try_from(place >> from & u128::from(mask(count))).unwrap_or_default()
    }

    pub(crate) fn offset(&self) -> u64 {
        self.bits(0, OFFSET_BITS)
    }

    pub(crate) fn time(&self) -> Option<i64> {
        let time = self.bits(OFFSET_BITS, TIME_BITS).checked_sub(1)?;
        i64::try_from(time).ok()
    }

    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.bits(OFFSET_BITS + TIME_BITS, LENGTH_BITS)).unwrap_or_default()
    }

    /// Hash of `agentId`; zero for none.
    pub(crate) fn agent(&self) -> u64 {
        self.bits(OFFSET_BITS + TIME_BITS + LENGTH_BITS, 12)
    }

    /// Hash of the API response (`message.id`) of an assistant entry. The prefix of the key of the
    /// assistant entry that a tool result names, and of the message that a queued prompt was sent
    /// as.
    pub(crate) fn response(&self) -> u64 {
        u64::from(self.hashes[0]) | u64::from(self.hashes[2] & 0xffff) << 32
    }

    /// Hash of the first tool call of an entry, or of the first tool call whose result it has; of
    /// the delivery of a queued prompt.
    pub(crate) fn tool(&self) -> u64 {
        u64::from(self.hashes[1]) | u64::from(self.hashes[2] >> 16) << 32
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags.0 & flag != 0
    }

    pub(crate) fn kind(&self) -> u8 {
        u8::try_from(self.flags.0 & KIND_MASK).unwrap_or_default()
    }

    pub(crate) fn is(&self, kind: u8) -> bool {
        self.kind() == kind
    }

    /// Whether the entry counts as a message: a user or assistant entry.
    pub(crate) fn is_message(&self) -> bool {
        self.is(USER) || self.is(ASSISTANT)
    }
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// The kind of an entry and its flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u32);

impl Flags {
    pub(crate) fn set(&mut self, flag: u32, value: bool) {
        if value {
            self.0 |= flag;
        }
    }
}

const KIND_MASK: u32 = 0xf;

pub(crate) const OTHER: u8 = 0;
pub(crate) const USER: u8 = 1;
pub(crate) const ASSISTANT: u8 = 2;
pub(crate) const SYSTEM: u8 = 3;
pub(crate) const ATTACHMENT: u8 = 4;
pub(crate) const PROGRESS: u8 = 5;
pub(crate) const LAST_PROMPT: u8 = 6;
pub(crate) const QUEUE_OPERATION: u8 = 7;
/// State entries that a fork carries over.
pub(crate) const CARRIED: u8 = 8;

/// `parentUuid` is a non-empty string.
pub(crate) const HAS_PARENT: u32 = 1 << 4;
pub(crate) const HAS_ID: u32 = 1 << 5;
pub(crate) const SIDECHAIN: u32 = 1 << 6;
pub(crate) const META: u32 = 1 << 7;
pub(crate) const TEAM: u32 = 1 << 8;
pub(crate) const COMPACT_SUMMARY: u32 = 1 << 9;
pub(crate) const BOUNDARY: u32 = 1 << 10;
pub(crate) const FORK_BRIEFING: u32 = 1 << 11;
/// A prompt that joined a running turn.
pub(crate) const QUEUED: u32 = 1 << 12;
pub(crate) const TOOL_RESULT: u32 = 1 << 13;
/// A `queue-operation` for a prompt that was absorbed by the running turn.
pub(crate) const ABSORBED: u32 = 1 << 14;
/// Shown although it is meta, because of where it comes from.
pub(crate) const SHOWN_ORIGIN: u32 = 1 << 15;
/// A queued prompt that must not be shown as a message.
pub(crate) const HIDDEN_PROMPT: u32 = 1 << 16;
/// A user entry that marks an interrupted turn.
pub(crate) const INTERRUPTED: u32 = 1 << 17;
/// The three parts of a local command: its caveat, its record, its output.
pub(crate) const CAVEAT: u32 = 1 << 18;
pub(crate) const COMMAND_RECORD: u32 = 1 << 19;
pub(crate) const COMMAND_OUTPUT: u32 = 1 << 20;
/// More tool calls than one: the others are in a list beside the rows.
pub(crate) const MORE_TOOLS: u32 = 1 << 21;
/// Salvaged from a line that was not one whole record.
pub(crate) const SPLICED: u32 = 1 << 22;
pub(crate) const NUL_PREFIXED: u32 = 1 << 23;
/// A checkpoint that was set on purpose, by a rewind or a clear.
pub(crate) const EXPLICIT: u32 = 1 << 24;
/// [`Row::response`] is the prefix of a key.
pub(crate) const HAS_SOURCE: u32 = 1 << 25;
/// Broken characters were replaced to read it.
pub(crate) const REPAIRED: u32 = 1 << 26;
/// A queued prompt with a delivery id.
pub(crate) const HAS_DELIVERY: u32 = 1 << 27;
/// A checkpoint that names a leaf, or none with `null`.
pub(crate) const HAS_LEAF: u32 = 1 << 28;

impl Row {
    /// Whether the entry is a link of the tree: one of the five chain types, with an id.
    pub(crate) fn is_chain(&self) -> bool {
        self.has(HAS_ID) && (USER..=PROGRESS).contains(&self.kind())
    }
}

/// Where an entry is in its transcript, and what the index knows of it. Small and `Copy`: read the
/// bytes at [`offset`](Self::offset) and give them to [`Entry::decode`](super::Entry::decode).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef {
    pub(crate) index: u32,
    pub(crate) row: Row,
}

impl EntryRef {
    /// Returns the position of the entry among all entries of the transcript, from zero.
    pub fn index(&self) -> usize {
        self.index as usize
    }

    /// Returns the offset of the entry's first byte.
    pub fn offset(&self) -> u64 {
        self.row.offset()
    }

    /// Returns the length of the entry in bytes, without its line break. Never zero.
    #[expect(clippy::len_without_is_empty, reason = "an entry has at least the braces")]
    pub fn len(&self) -> usize {
        self.row.length()
    }

    /// Returns the kind of the entry, as far as the index distinguishes it.
    pub fn kind(&self) -> EntryKind {
        match self.row.kind() {
            USER => EntryKind::User,
            ASSISTANT => EntryKind::Assistant,
            SYSTEM => EntryKind::System,
            ATTACHMENT => EntryKind::Attachment,
            PROGRESS => EntryKind::Progress,
            _ => EntryKind::State,
        }
    }

    /// Returns the timestamp in milliseconds since the Unix epoch; `None` if there is none or it
    /// is not between 1970 and 2109.
    pub fn timestamp_millis(&self) -> Option<i64> {
        self.row.time()
    }

    /// Returns whether the entry belongs to a subagent.
    pub fn is_sidechain(&self) -> bool {
        self.row.has(SIDECHAIN)
    }

    /// Returns whether the entry was inserted by the CLI and is not meant to be shown.
    pub fn is_meta(&self) -> bool {
        self.row.has(META)
    }

    /// Returns whether the entry is the summary that a compaction wrote.
    pub fn is_compact_summary(&self) -> bool {
        self.row.has(COMPACT_SUMMARY)
    }

    /// Returns whether the entry marks a compaction.
    pub fn is_compact_boundary(&self) -> bool {
        self.row.has(BOUNDARY)
    }

    /// Returns whether the entry is a prompt that joined a running turn.
    pub fn is_queued_prompt(&self) -> bool {
        self.row.has(QUEUED)
    }

    /// Returns whether the entry holds results of tool calls.
    pub fn has_tool_result(&self) -> bool {
        self.row.has(TOOL_RESULT)
    }
}

/// The kind of an entry, as far as the index distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A prompt, a tool result, or text that the CLI inserted.
    User,
    /// One content block of a response of the model.
    Assistant,
    /// A system entry, such as a compaction.
    System,
    /// Context that the CLI attached, or a prompt that joined a running turn.
    Attachment,
    /// Progress of a tool, written by older versions of the CLI.
    Progress,
    /// Any other entry: titles, tags, checkpoints, unknown types.
    State,
}

#[cfg(test)]
mod tests {
    use super::{Flags, Key, MAX_LENGTH, Packed, ParentPlace, ParentRef, Row};

    #[test]
    fn a_row_has_48_bytes_and_keeps_its_parts() {
        assert_eq!(size_of::<Row>(), 48);
        for (offset, length, time) in [
            (0, 0, None),
            ((1 << 44) - 1, MAX_LENGTH, Some((1 << 42) - 2)),
            (123_456_789_012, 7_654_321, Some(1_769_860_800_000)),
            (1, 2, Some(0)),
        ] {
            let packed = Packed {
                offset,
                length,
                time,
                agent: 0xabc,
                response: 0x1234_5678_9abc,
                tool: 0xfedc_ba98_7654,
            };
            let row = Row::new(Key::of("a"), packed, Flags(7));
            assert_eq!((row.offset(), row.length(), row.time()), (offset, length, time));
            assert_eq!((row.agent(), row.response()), (0xabc, 0x1234_5678_9abc));
            assert_eq!(row.tool(), 0xfedc_ba98_7654);
        }
    }

    #[test]
    fn places_of_parents_are_kept() {
        for position in [0, 1, (1 << 31) - 1] {
            for place in [ParentPlace::Row(position), ParentPlace::Other(position)] {
                assert_eq!(ParentRef::new(place).place(), place);
            }
        }
    }

    #[test]
    fn a_time_that_does_not_fit_counts_as_absent() {
        for time in [-1, 1 << 42, i64::MAX] {
            let packed = Packed { time: Some(time), ..Packed::default() };
            assert_eq!(Row::new(Key::of(""), packed, Flags(0)).time(), None);
        }
    }
}
