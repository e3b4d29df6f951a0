//! The pass over one record that finds what the index needs, and skips everything else.

use std::borrow::Cow;

use crate::repair;
use crate::scan::{Result, ScanError, Scanner};

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

/// Reads the next record. Bytes after it are not read.
pub(super) fn read<'a>(scanner: &mut Scanner<'a>) -> Result<Facts<'a>> {
    let mut facts = Facts::default();
    fields(&mut facts, scanner)?;
    Ok(facts)
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
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()>;

    fn element(&mut self, scanner: &mut Scanner<'a>) -> Result<()> {
        scanner.skip()
    }

    /// Takes the value if it is a string: its contents, with escapes.
    fn text(&mut self, _: &[u8]) {}
}

/// Reads a value into what is wanted of it.
fn walk<'a>(wanted: &mut dyn Fields<'a>, scanner: &mut Scanner<'a>) -> Result<()> {
    match scanner.peek()? {
        b'{' => fields(wanted, scanner),
        b'[' => {
            let mut is_first = true;
            while scanner.item(is_first)? {
                wanted.element(scanner)?;
                is_first = false;
            }
            Ok(())
        }
        b'"' => {
            // Checked without resolving the escapes, which would copy the text.
            let (raw, has_escapes) = scanner.string()?;
            if std::str::from_utf8(raw).is_err() || (has_escapes && repair::repaired(raw).is_some())
            {
                return Err(ScanError::Syntax);
            }
            wanted.text(&raw[1..raw.len() - 1]);
            Ok(())
        }
        _ => scanner.skip(),
    }
}

/// Reads an object.
fn fields<'a>(wanted: &mut dyn Fields<'a>, scanner: &mut Scanner<'a>) -> Result<()> {
    let mut is_first = true;
    while let Some(name) = scanner.key(is_first)? {
        wanted.field(&name, scanner)?;
        is_first = false;
    }
    Ok(())
}

/// Returns the string, if the value is one.
fn text<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Text<'a>>> {
    if scanner.peek()? != b'"' {
        scanner.skip()?;
        return Ok(None);
    }
    let (raw, has_escapes) = scanner.string()?;
    let text = std::str::from_utf8(raw).map_err(|_| ScanError::Syntax)?;
    if !has_escapes {
        return Ok(Some(Cow::Borrowed(&text[1..text.len() - 1])));
    }
    Ok(serde_json::from_str(&repair::valid(raw)).ok().map(Cow::Owned))
}

/// A string that counts: an empty one is as good as none.
fn id<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Text<'a>>> {
    Ok(text(scanner)?.filter(|text| !text.is_empty()))
}

/// Whether JavaScript takes the value for true.
fn truthy(scanner: &mut Scanner<'_>) -> Result<bool> {
    Ok(!matches!(scanner.raw()?, b"false" | b"null" | b"0" | b"-0" | b"0.0" | b"\"\""))
}

impl<'a> Fields<'a> for Facts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            // Of several, the first one counts, as for `Entry::decode`.
            b"type" if self.has_kind => scanner.skip()?,
            b"type" => {
                self.has_kind = true;
                self.kind = text(scanner)?;
            }
            b"subtype" => self.subtype = text(scanner)?,
            b"uuid" => self.uuid = text(scanner)?,
            b"parentUuid" => {
                self.has_parent_field = true;
                self.parent = id(scanner)?;
            }
            b"logicalParentUuid" => self.logical_parent = id(scanner)?,
            b"agentId" => self.agent = text(scanner)?,
            b"timestamp" => self.timestamp = text(scanner)?,
            b"sourceToolAssistantUUID" => self.source = text(scanner)?,
            b"leafUuid" => {
                self.has_leaf = true;
                self.leaf = text(scanner)?;
            }
            b"isSidechain" => self.is_sidechain = truthy(scanner)?,
            b"isMeta" => self.is_meta = truthy(scanner)?,
            b"teamName" => self.has_team = truthy(scanner)?,
            b"isCompactSummary" => self.is_compact_summary = truthy(scanner)?,
            b"explicit" | b"rewound" => self.is_explicit |= truthy(scanner)?,
            b"promptSource" => {
                self.has_prompt_source = true;
                scanner.skip()?;
            }
            b"sessionId" => self.has_session = text(scanner)?.is_some(),
            b"content" => self.has_content = scanner.raw()?.starts_with(b"\""),
            b"message" => {
                self.message = MessageFacts::default();
                walk(&mut self.message, scanner)?;
            }
            _ => return self.rare_field(name, scanner),
        }
        Ok(())
    }
}

impl<'a> Facts<'a> {
    fn rare_field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"attachment" => {
                self.attachment = AttachmentFacts::default();
                walk(&mut self.attachment, scanner)?;
            }
            b"origin" => {
                self.origin = OriginFacts::default();
                walk(&mut self.origin, scanner)?;
            }
            b"compactMetadata" => {
                self.compaction = CompactionFacts::default();
                walk(&mut self.compaction, scanner)?;
            }
            b"fold" => {
                let mut fold = FoldFacts::default();
                walk(&mut fold, scanner)?;
                self.fold = fold.command;
                self.has_fold = true;
            }
            b"operation" => self.operation = text(scanner)?,
            b"reason" => self.reason = text(scanner)?,
            b"commandUuid" => self.command = text(scanner)?,
            b"deliveryId" => self.delivery = text(scanner)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for MessageFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"id" => self.id = text(scanner)?,
            b"content" => walk(&mut ContentFacts(self), scanner)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

/// The content of a message: a string, or a list of blocks.
struct ContentFacts<'m, 'a>(&'m mut MessageFacts<'a>);

impl<'a> Fields<'a> for ContentFacts<'_, 'a> {
    fn field(&mut self, _: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        scanner.skip()
    }

    fn text(&mut self, text: &[u8]) {
        self.0.blocks = 1;
        self.0.interrupts = usize::from(is_interrupt(text));
        self.0.local = local(text);
    }

    fn element(&mut self, scanner: &mut Scanner<'a>) -> Result<()> {
        let mut block = BlockFacts::default();
        walk(&mut block, scanner)?;
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
        Ok(())
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
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"type" => self.kind = text(scanner)?,
            b"id" => self.id = text(scanner)?,
            b"tool_use_id" => self.tool_use_id = text(scanner)?,
            b"is_error" => self.is_error = truthy(scanner)?,
            b"text" | b"content" => {
                // The beginning is enough.
                let raw = scanner.raw()?;
                std::str::from_utf8(raw).map_err(|_| ScanError::Syntax)?;
                let start = raw.strip_prefix(b"\"").unwrap_or_default();
                self.is_interrupt = is_interrupt(start);
                self.local = local(start);
            }
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for AttachmentFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"type" => self.kind = text(scanner)?,
            b"source_uuid" => self.source = id(scanner)?,
            b"delivery_id" => self.delivery = id(scanner)?,
            b"isMeta" => self.is_meta = truthy(scanner)?,
            b"forwardedIntent" => {
                self.is_forwarded = scanner.raw()? != b"null";
            }
            b"prompt" => {
                self.has_prompt = matches!(scanner.raw()?.first(), Some(b'"' | b'['));
            }
            b"origin" => walk(&mut self.origin, scanner)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

#[derive(Default)]
struct FoldFacts<'a> {
    command: Option<AttachmentFacts<'a>>,
}

impl<'a> Fields<'a> for FoldFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        if name != b"command" {
            return scanner.skip();
        }
        walk(self.command.insert(AttachmentFacts::default()), scanner)
    }
}

impl<'a> Fields<'a> for OriginFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"kind" => self.kind = text(scanner)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

impl<'a> Fields<'a> for CompactionFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        let slot = match name {
            b"preservedMessages" => &mut self.messages,
            b"preservedSegment" => &mut self.segment,
            _ => return scanner.skip(),
        };
        let mut preserved = PreservedFacts::default();
        walk(&mut preserved, scanner)?;
        let is_present = preserved.anchor.is_some() || !preserved.uuids.is_empty();
        *slot = is_present.then_some(preserved);
        Ok(())
    }
}

impl<'a> Fields<'a> for PreservedFacts<'a> {
    fn field(&mut self, name: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        match name {
            b"anchorUuid" => self.anchor = id(scanner)?,
            b"headUuid" => self.head = id(scanner)?,
            b"tailUuid" => self.tail = id(scanner)?,
            b"uuids" => walk(&mut Uuids(&mut self.uuids), scanner)?,
            _ => scanner.skip()?,
        }
        Ok(())
    }
}

struct Uuids<'v, 'a>(&'v mut Vec<Text<'a>>);

impl<'a> Fields<'a> for Uuids<'_, 'a> {
    fn field(&mut self, _: &[u8], scanner: &mut Scanner<'a>) -> Result<()> {
        scanner.skip()
    }

    fn element(&mut self, scanner: &mut Scanner<'a>) -> Result<()> {
        // A value that is not a string names no entry, as does an empty one.
        self.0.push(text(scanner)?.unwrap_or_default());
        Ok(())
    }
}

/// Whether a text is what the CLI writes when a turn or a tool call was cut short.
fn is_interrupt(text: &[u8]) -> bool {
    const STARTS: [&[u8]; 3] =
        [b"[Request interrupted", b"[Agent call interrupted", b"[Tool call "];
    STARTS.iter().any(|start| text.starts_with(start))
}

fn local(text: &[u8]) -> Option<Local> {
    const TAGS: [(&str, Local); 4] = [
        ("<command-name>", Local::Record),
        ("<local-command-stdout>", Local::Output),
        ("<local-command-stderr>", Local::Output),
        ("<local-command-caveat>", Local::Caveat),
    ];
    TAGS.iter().find(|(tag, _)| text.starts_with(tag.as_bytes())).map(|(_, part)| *part)
}
