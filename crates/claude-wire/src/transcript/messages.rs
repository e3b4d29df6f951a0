//! The messages of a conversation: the entries that are shown, and the prompts that joined a
//! running turn.

use std::collections::BTreeSet;

use super::bits::Bits;
use super::index::Index;
use super::row::{self, EntryRef, Row};
use super::tree::Tree;
use crate::sort::{SortKey, sort_by, sort_nodes};

/// An entry that is shown as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageRef {
    /// The entry.
    pub entry: EntryRef,
    /// As what the entry is shown.
    pub role: MessageRole,
    /// Whether it is the record or the output of a local command, such as `/cost`.
    pub is_local_command: bool,
}

/// As what an entry is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageRole {
    /// A prompt or a tool result.
    User,
    /// One content block of a response of the model.
    Assistant,
    /// A system entry.
    System,
    /// A prompt that joined a running turn: the content is in the entry's attachment.
    QueuedPrompt,
}

/// Which entries are shown as messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageFilter {
    /// Whether system entries are shown. Default: false.
    pub include_system: bool,
    /// Whether the conversation continues above compactions. Default: false, as in the TypeScript
    /// SDK.
    pub include_compacted: bool,
}

impl MessageFilter {
    /// Shows system entries too.
    #[must_use]
    pub fn include_system(mut self, include: bool) -> Self {
        self.include_system = include;
        self
    }

    /// Shows what compactions removed from the context too.
    #[must_use]
    pub fn include_compacted(mut self, include: bool) -> Self {
        self.include_compacted = include;
        self
    }
}

/// The messages of a conversation in order, as positions in an [`Index`]: four bytes each.
#[derive(Clone, Debug)]
pub struct MessageList {
    nodes: Vec<u32>,
    /// The messages that belong to a local command, by their positions in `nodes`.
    locals: Bits,
}

impl MessageList {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Returns the message at this position. `index` must be the one that the list was made from;
    /// `None` beyond the end of either.
    pub fn get(&self, index: &Index, position: usize) -> Option<MessageRef> {
        let entry = index.get(*self.nodes.get(position)? as usize)?;
        let role = role_of(&entry.row)?;
        let is_local_command = u32::try_from(position).is_ok_and(|at| self.locals.has(at));
        Some(MessageRef { entry, role, is_local_command })
    }
}

impl Tree<'_> {
    /// Returns the messages of the conversation in order, as `getSessionMessages` of the
    /// TypeScript SDK chooses them. Takes 60 bytes per message;
    /// [`message_list`](Self::message_list) takes four.
    pub fn messages(&self, filter: MessageFilter) -> Vec<MessageRef> {
        self.references(&self.message_list(filter))
    }

    /// Returns the messages of the conversation in order, as [`messages`](Self::messages) does.
    pub fn message_list(&self, filter: MessageFilter) -> MessageList {
        let (leaf, mut shown) = self.chosen();
        let trailing_from = shown.len();
        shown.extend(leaf.map(|leaf| self.trailing_prompts(leaf, &shown)).unwrap_or_default());
        let locals = self.local_commands(&shown);
        let prompts = self.shown_prompts(&shown, trailing_from, &locals);
        let mut before = Vec::new();
        if filter.include_compacted {
            before = self.compacted(&shown[..trailing_from], filter);
        }
        self.shown_messages(before, shown, &locals, &|at, row| role(row, prompts.has(at), filter))
    }

    /// The messages that compactions removed from a conversation.
    fn compacted(&self, conversation: &[u32], filter: MessageFilter) -> Vec<u32> {
        let mut full = conversation.to_vec();
        self.prepend_compacted(&mut full);
        full.truncate(full.len() - conversation.len());
        full.retain(|node| {
            let row = self.row(*node);
            role(row, row.has(row::QUEUED), filter).is_some()
        });
        full
    }

    /// Returns the messages of a subagent's transcript: its last message, and everything above it.
    pub fn subagent_messages(&self) -> Vec<MessageRef> {
        self.references(&self.subagent_message_list())
    }

    /// Returns the messages of a subagent's transcript, as
    /// [`subagent_messages`](Self::subagent_messages) does.
    pub fn subagent_message_list(&self) -> MessageList {
        let last = self.nodes().filter(|node| self.row(*node).is_message()).max();
        let chain = last.map(|last| self.chain(last)).unwrap_or_default();
        let locals = self.local_commands(&chain);
        let prompts = self.shown_prompts(&chain, chain.len(), &locals);
        self.shown_messages(Vec::new(), chain, &locals, &|at, row| {
            role_of(row).filter(|role| match role {
                MessageRole::User | MessageRole::Assistant => true,
                MessageRole::QueuedPrompt => prompts.has(at),
                MessageRole::System => false,
            })
        })
    }

    /// Returns the messages of `before`, and those entries of `shown` that have a role.
    fn shown_messages(
        &self,
        before: Vec<u32>,
        mut shown: Vec<u32>,
        locals: &Bits,
        role: &dyn Fn(u32, &Row) -> Option<MessageRole>,
    ) -> MessageList {
        let mut list_locals = Bits::new(to_u32(before.len() + shown.len()));
        // The vector of the conversation becomes that of the messages, to save memory.
        let mut kept = 0;
        for at in 0..shown.len() {
            if role(to_u32(at), self.row(shown[at])).is_some() {
                if locals.has(to_u32(at)) {
                    list_locals.add(to_u32(before.len() + kept));
                }
                shown[kept] = shown[at];
                kept += 1;
            }
        }
        shown.truncate(kept);
        let mut nodes = before;
        if nodes.is_empty() {
            nodes = shown;
        } else {
            nodes.extend(shown);
        }
        MessageList { nodes, locals: list_locals }
    }

    fn references(&self, list: &MessageList) -> Vec<MessageRef> {
        (0..list.len()).filter_map(|position| list.get(self.index, position)).collect()
    }

    /// Which entries are the record or the output of a local command. Such a command begins with
    /// a caveat for the model.
    fn local_commands(&self, shown: &[u32]) -> Bits {
        let mut locals = Bits::new(to_u32(shown.len()));
        // Whether a caveat came that waits for its record, and whether a record waits for its output.
        let (mut has_caveat, mut has_record) = (false, false);
        for (at, node) in shown.iter().enumerate() {
            let row = self.row(*node);
            if row.is(row::ASSISTANT) {
                (has_caveat, has_record) = (false, false);
            }
            if !row.is(row::USER) {
                continue;
            }
            if row.has(row::META) {
                has_caveat |= row.has(row::CAVEAT);
                continue;
            }
            let is_record = has_caveat && row.has(row::COMMAND_RECORD);
            let is_output = has_record && row.has(row::COMMAND_OUTPUT);
            (has_caveat, has_record) = (false, is_record || is_output);
            if has_record {
                locals.add(to_u32(at));
            }
        }
        locals
    }

    /// Which entries are prompts that joined a running turn and are shown: those that the CLI marks
    /// as absorbed, those that are followed by a reply, and those behind the leaf.
    fn shown_prompts(&self, shown: &[u32], trailing_from: usize, locals: &Bits) -> Bits {
        let mut prompts = Bits::new(to_u32(shown.len()));
        let mut is_reply = false;
        for (at, node) in shown.iter().enumerate().rev() {
            let row = self.row(*node);
            if row.has(row::QUEUED) && (is_reply || at >= trailing_from) {
                prompts.add(to_u32(at));
            }
            if row.is(row::ASSISTANT) || row.has(row::TOOL_RESULT | row::INTERRUPTED) {
                is_reply = true;
            } else if row.is(row::USER)
                && !row.has(row::META | row::COMPACT_SUMMARY)
                && !locals.has(to_u32(at))
            {
                is_reply = false;
            }
        }
        self.apply_absorbed(shown, &mut prompts);
        self.hide_repeated(shown, &mut prompts);
        prompts
    }

    /// Hides prompts that must not be shown. A prompt is shown under the id that it was sent with,
    /// unless that is in use.
    fn hide_repeated(&self, shown: &[u32], prompts: &mut Bits) {
        let is_shown = |prompts: &Bits, at: &usize| prompts.has(to_u32(*at));
        if !(0..shown.len()).any(|at| is_shown(prompts, &at)) {
            return;
        }
        let mut inside = Bits::new(self.index.row_count());
        for node in shown {
            inside.add(self.last(*node));
        }
        let mut used: BTreeSet<u64> = BTreeSet::new();
        for (at, node) in shown.iter().enumerate() {
            let row = self.row(*node);
            if !is_shown(prompts, &at) {
                continue;
            }
            if row.has(row::HIDDEN_PROMPT) {
                prompts.remove(to_u32(at));
            } else if row.has(row::HAS_SOURCE) && row.response() != row.id.prefix() {
                let source = row.response();
                let is_entry = self.find_prefix(source).is_some_and(|node| inside.has(node));
                if is_entry || !used.insert(source) {
                    prompts.remove(to_u32(at));
                }
            }
        }
    }

    /// Applies the CLI's records of prompts that were absorbed by a running turn: as many of
    /// the newest copies of a prompt are shown as it was absorbed times.
    fn apply_absorbed(&self, shown: &[u32], prompts: &mut Bits) {
        let rows = self.cancel.rows(self.index);
        let mut records: Vec<u32> = Vec::new();
        records.extend(rows.clone().filter(|at| self.row(*at).has(row::ABSORBED)));
        if records.is_empty() {
            return;
        }
        // All three are sorted by what they are counted by, so that they can be walked together.
        let key = |at: u32| delivery_key(self.row(at));
        sort_nodes(&mut records, &key);
        let is_counted = |at: &u32| {
            self.row(*at).has(row::QUEUED) && self.row(*at).has(row::HAS_DELIVERY | row::HAS_SOURCE)
        };
        let has_delivery = |at: u32| self.row(at).has(row::HAS_DELIVERY);
        // Deliveries are counted over the whole file, messages over the conversation.
        let mut copies: Vec<u32> = Vec::new();
        copies.extend(rows.filter(|at| self.is_part(*at) && is_counted(at) && has_delivery(*at)));
        copies.extend(shown.iter().filter(|at| is_counted(at) && !has_delivery(**at)));
        sort_nodes(&mut copies, &key);
        let mut places: Vec<u32> = Vec::new();
        let is_place = |place: &u32| is_counted(&shown[*place as usize]);
        places.extend((0..to_u32(shown.len())).filter(is_place));
        sort_nodes(&mut places, &|place| key(shown[place as usize]));
        let mut newest = Bits::new(self.index.row_count());
        for group in
            places.chunk_by(|one, other| key(shown[*one as usize]) == key(shown[*other as usize]))
        {
            let of = key(shown[group[0] as usize]);
            let absorbed = equal_range(&records, &key, of).len();
            if absorbed == 0 {
                continue;
            }
            let mut ids = equal_range(&copies, &key, of).to_vec();
            if has_delivery(shown[group[0] as usize]) {
                // Of copies with one id the first one has the place.
                ids.retain(|copy| newest.add(self.last(*copy)));
                for copy in &ids {
                    newest.remove(self.last(*copy));
                }
            }
            let ids = &ids[ids.len().saturating_sub(absorbed)..];
            for copy in ids {
                newest.add(self.last(*copy));
            }
            for place in group {
                if newest.has(self.last(shown[*place as usize])) {
                    prompts.add(*place);
                } else {
                    prompts.remove(*place);
                }
            }
            for copy in ids {
                newest.remove(self.last(*copy));
            }
        }
    }

    /// The prompts that were queued behind the leaf and did not start a branch of their own.
    fn trailing_prompts(&self, leaf: u32, conversation: &[u32]) -> Vec<u32> {
        let mut inside = Bits::new(self.index.row_count());
        for node in conversation {
            inside.add(*node);
        }
        let has_queued = self.index.rows.iter().any(|row| row.has(row::QUEUED));
        if !has_queued {
            return Vec::new();
        }
        let others = self.other_branches(&inside);
        let mut children: Vec<(u32, u32)> = Vec::new();
        // Every copy of an entry counts here, not only the last one.
        let rows = self.cancel.rows(self.index);
        for node in rows.filter(|at| self.is_part(*at) && !self.row(*at).is_message()) {
            let parents = [self.original_parent(node), self.parent_of(self.last(node))];
            let differs = parents[0] != parents[1];
            children.extend(parents[0].map(|parent| (parent, node)));
            children.extend(parents[1].filter(|_| differs).map(|parent| (parent, node)));
        }
        let key = |(parent, node): (u32, u32)| (parent, self.row(node).time());
        sort_by(&mut children, &|one, other| key(*one).cmp(&key(*other)));
        let mut found = Vec::new();
        let mut stack = vec![leaf];
        while let Some(copy) = stack.pop() {
            let node = self.last(copy);
            if copy != leaf {
                if !inside.add(node) {
                    continue;
                }
                if self.row(copy).has(row::QUEUED) && !others.has(node) {
                    found.push(copy);
                }
            }
            let start = children.partition_point(|(parent, _)| *parent < node);
            let next = stack.len();
            for (_, child) in children[start..].iter().take_while(|(parent, _)| *parent == node) {
                if !inside.has(self.last(*child)) {
                    stack.push(*child);
                }
            }
            // The first child is on top.
            stack[next..].reverse();
        }
        found
    }

    /// The entries above messages that are not part of the conversation.
    fn other_branches(&self, inside: &Bits) -> Bits {
        let mut others = Bits::new(self.index.row_count());
        for at in self.cancel.rows(self.index).filter(|at| self.is_part(*at)) {
            let row = self.row(at);
            let is_main = row.is_message() && !row.has(row::SIDECHAIN | row::TEAM);
            if !is_main || inside.has(self.last(at)) {
                continue;
            }
            let mut next = self.original_parent(at);
            while let Some(parent) = next.filter(|node| !inside.has(*node) && others.add(*node)) {
                next = self.original_parent(parent);
            }
        }
        others
    }
}

/// A position in a conversation, which has no more entries than the index.
fn to_u32(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

/// What a prompt is counted by: its delivery if it has one, else the message that it was sent as.
fn delivery_key(row: &Row) -> SortKey {
    let has_delivery = row.has(row::HAS_DELIVERY);
    (if has_delivery { row.tool() } else { row.response() }, Some(has_delivery.into()))
}

/// The values of a sorted list that have this key.
fn equal_range<'l>(sorted: &'l [u32], key: &dyn Fn(u32) -> SortKey, of: SortKey) -> &'l [u32] {
    let start = sorted.partition_point(|value| key(*value) < of);
    let end = start + sorted[start..].partition_point(|value| key(*value) == of);
    &sorted[start..end]
}

/// As what an entry is shown, if it is.
fn role(row: &Row, is_shown_prompt: bool, filter: MessageFilter) -> Option<MessageRole> {
    if row.has(row::SIDECHAIN | row::TEAM) || (row.has(row::QUEUED) && !is_shown_prompt) {
        return None;
    }
    if row.has(row::META) && !row.has(row::SHOWN_ORIGIN | row::QUEUED) {
        return None;
    }
    role_of(row).filter(|role| *role != MessageRole::System || filter.include_system)
}

/// As what an entry is shown if nothing hides it.
fn role_of(row: &Row) -> Option<MessageRole> {
    match row.kind() {
        _ if row.has(row::QUEUED) => Some(MessageRole::QueuedPrompt),
        row::USER => Some(MessageRole::User),
        row::ASSISTANT => Some(MessageRole::Assistant),
        row::SYSTEM => Some(MessageRole::System),
        _ => None,
    }
}
