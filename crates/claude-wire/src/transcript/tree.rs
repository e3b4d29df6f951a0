//! The tree of the entries, and the choice of the conversation.
//!
//! The rules are those of the TypeScript SDK: of entries with one `uuid` the last one counts, at
//! the position of the first one where order matters; entries that a compaction preserved are
//! linked again behind its summary; the conversation ends at the newest leaf and goes up to the
//! root; results of parallel tool calls, which fork the tree, are returned to their response.

use super::bits::Bits;
use super::cancel::{Cancel, RowPositions};
use super::index::{Boundary, Checkpoint, Index, Preserved};
use super::issue::{Issue, IssueKind, sort_issues};
use super::key::{Key, lower};
use super::recover;
use super::relink::Relinks;
use super::row::{self, EntryRef, ParentPlace, Row};
use crate::sort::sort_nodes;

/// The tree of an [`Index`].
///
/// A node is the last entry of a `uuid`, named by the index of its row.
#[derive(Debug)]
pub struct Tree<'i> {
    pub(super) index: &'i Index,
    /// The chain entries, sorted by key and then by position.
    order: Vec<u32>,
    /// Entries that share their `uuid` with another one.
    repeated: Bits,
    /// Parents that a compaction changed.
    pub(super) relinks: Relinks,
    /// The entries that are left out, for a tree of a part of the transcript.
    left_out: Option<Bits>,
    pub(super) cancel: Cancel<'i>,
}

impl<'i> Tree<'i> {
    pub(super) fn new(index: &'i Index, cancel: Cancel<'i>) -> Self {
        Self::without(index, None, None, cancel)
    }

    /// The tree of the entries that are not left out. Nothing is linked behind `unlinked`.
    pub(super) fn without(
        index: &'i Index,
        left_out: Option<Bits>,
        unlinked: Option<Key>,
        cancel: Cancel<'i>,
    ) -> Self {
        let count = index.row_count();
        let is_left_out = |at: u32| left_out.as_ref().is_some_and(|rows| rows.has(at));
        let is_part = |at: u32| index.rows[at].is_chain() && !is_left_out(at);
        let order = sorted_by_key(index, cancel, &is_part);
        let mut repeated = Bits::new(count);
        for pair in order.windows(2) {
            if index.rows[pair[0]].id == index.rows[pair[1]].id {
                repeated.add(pair[0]);
                repeated.add(pair[1]);
            }
        }
        let relinks = Relinks::default();
        let mut tree = Self { index, order, repeated, relinks, left_out, cancel };
        tree.relink(unlinked);
        tree
    }

    /// Returns the conversation that the TypeScript SDK would choose, from its first entry to its
    /// last, with the results of parallel tool calls in their places. Entries that are not shown
    /// are included; see [`messages`](Self::messages) for those that are.
    pub fn conversation(&self) -> Vec<EntryRef> {
        self.entries(self.chosen().1)
    }

    /// Returns the newest entry of each branch, in the order of the file. Branches of subagents
    /// are included. [`path`](Self::path) gives the entries of a branch.
    pub fn branches(&self) -> Vec<EntryRef> {
        let parents = self.parents_of(&|_| true);
        let mut branches = Vec::new();
        for node in self.nodes() {
            if !parents.has(node) {
                branches.push(self.index.entry(node));
            }
        }
        branches
    }

    /// Returns the entries from the root to `entry`, inclusive. A compaction ends the path, as in
    /// [`conversation`](Self::conversation); [`full_path`](Self::full_path) continues above it.
    pub fn path(&self, entry: EntryRef) -> Vec<EntryRef> {
        self.entries(self.chain(self.node(entry)))
    }

    /// Returns the entries from the start of the session to `entry`, inclusive, with everything
    /// that compactions removed from the context.
    pub fn full_path(&self, entry: EntryRef) -> Vec<EntryRef> {
        let mut path = self.chain(self.node(entry));
        self.prepend_compacted(&mut path);
        self.entries(path)
    }

    /// Returns the conversation with everything that compactions removed from the context.
    pub fn full_conversation(&self) -> Vec<EntryRef> {
        let mut conversation = self.chosen().1;
        self.prepend_compacted(&mut conversation);
        self.entries(conversation)
    }

    /// Returns the conversation that ends at a checkpoint of the CLI, which a rewind sets without
    /// writing a message: `None` if its entry is not in the transcript. The official SDKs ignore
    /// checkpoints.
    pub fn conversation_at(&self, checkpoint: Checkpoint) -> Option<Vec<EntryRef>> {
        let Some(leaf) = checkpoint.leaf else { return Some(Vec::new()) };
        let chain = self.chain(self.find(leaf)?);
        Some(self.entries(recover::parallel_results(self, chain)))
    }

    /// Returns the entry with this `uuid`; the last one, if there are several.
    pub fn get(&self, uuid: &str) -> Option<EntryRef> {
        self.find(Key::of(uuid)).map(|node| self.index.entry(node))
    }

    /// Returns the parent of an entry, after compactions were taken into account.
    pub fn parent(&self, entry: EntryRef) -> Option<EntryRef> {
        self.parent_of(entry.index).map(|node| self.index.entry(node))
    }

    /// Returns what is wrong with the transcript, in the order of the file: all of
    /// [`Index::issues`], the entries that are repeated, and those that are not part of the
    /// conversation. Entries of subagents are not reported as being outside of it.
    pub fn issues(&self) -> Vec<Issue> {
        let mut issues = self.index.issues();
        let mut report = |at: u32, kind| {
            let row = self.row(at);
            issues.push(Issue::new(row.offset(), row.length(), kind));
        };
        for at in self.order.iter().filter(|at| self.repeated.has(**at)) {
            if self.last(*at) != *at {
                report(*at, IssueKind::Repeated);
            }
        }
        self.outside(&mut report);
        sort_issues(&mut issues);
        issues
    }

    /// Reports the entries that are not part of the conversation.
    fn outside(&self, report: &mut dyn FnMut(u32, IssueKind)) {
        let conversation = self.chosen().1;
        let mut inside = Bits::new(self.index.row_count());
        for node in &conversation {
            inside.add(*node);
        }
        let mut full = conversation.clone();
        self.prepend_compacted(&mut full);
        let mut compacted = Bits::new(self.index.row_count());
        for node in full.into_iter().filter(|node| !inside.has(*node)) {
            compacted.add(node);
            report(node, IssueKind::BeforeCompaction);
        }
        if let Some(first) = conversation.first()
            && self.parent_key(*first).is_some()
        {
            report(*first, IssueKind::MissingParent);
        }
        let mut roots = Roots::new(self);
        for node in self.nodes().filter(|node| !inside.has(*node) && !compacted.has(*node)) {
            let row = self.row(node);
            if row.has(row::SIDECHAIN | row::TEAM) {
                continue;
            }
            match roots.of(node) {
                Root::Missing => report(node, IssueKind::MissingParent),
                Root::Cycle => report(node, IssueKind::Cycle),
                Root::Found if row.is_message() => report(node, IssueKind::OtherBranch),
                // Context that no message follows belongs to no branch of its own.
                Root::Found => {}
            }
        }
    }

    pub(super) fn entries(&self, nodes: Vec<u32>) -> Vec<EntryRef> {
        nodes.into_iter().map(|node| self.index.entry(node)).collect()
    }

    pub(super) fn row(&self, at: u32) -> &'i Row {
        &self.index.rows[at]
    }

    /// The nodes, in the order in which their ids first appear.
    pub(super) fn nodes(&self) -> Nodes<'_> {
        Nodes { tree: self, rows: self.cancel.rows(self.index) }
    }

    /// Whether an entry is part of the tree.
    pub(super) fn is_part(&self, at: u32) -> bool {
        self.row(at).is_chain() && !self.left_out.as_ref().is_some_and(|rows| rows.has(at))
    }

    fn node(&self, entry: EntryRef) -> u32 {
        self.last(entry.index)
    }

    /// The node with this key.
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        let end = self.order.partition_point(|at| self.row(*at).id <= key);
        let last = *self.order.get(end.checked_sub(1)?)?;
        (self.row(last).id == key).then_some(last)
    }

    /// The node with a key of this prefix.
    pub(super) fn find_prefix(&self, prefix: u64) -> Option<u32> {
        let end = self.order.partition_point(|at| self.row(*at).id.prefix() <= prefix);
        let last = *self.order.get(end.checked_sub(1)?)?;
        (self.row(last).id.prefix() == prefix).then_some(last)
    }

    /// The first entry with the id of this one.
    pub(super) fn first(&self, at: u32) -> u32 {
        if !self.repeated.has(at) {
            return at;
        }
        let start = self.order.partition_point(|other| self.row(*other).id < self.row(at).id);
        self.order[start]
    }

    pub(super) fn last(&self, at: u32) -> u32 {
        if self.repeated.has(at) { self.find(self.row(at).id).unwrap_or(at) } else { at }
    }

    pub(super) fn parent_key(&self, node: u32) -> Option<Key> {
        match self.relinks.get(node) {
            Some(parent) => Some(parent),
            None => self.index.parent_key(self.row(node)),
        }
    }

    /// The parent of a node. None if the caller is gone, so that every walk ends.
    pub(super) fn parent_of(&self, node: u32) -> Option<u32> {
        match self.relinks.get(node) {
            Some(parent) if !self.cancel.is_set() => self.find(parent),
            Some(_) => None,
            None => self.original_parent(node),
        }
    }

    /// The nodes from the root to this one.
    pub(super) fn chain(&self, node: u32) -> Vec<u32> {
        let mut seen = Bits::new(self.index.row_count());
        let mut length = 0;
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| seen.add(*node)) {
            length += 1;
            next = self.parent_of(node);
        }
        // Walked twice, because a vector that grows takes up to twice the memory.
        let mut chain = vec![node; length];
        let mut next = Some(node);
        for place in chain.iter_mut().rev() {
            *place = next.unwrap_or(node);
            next = self.parent_of(*place);
        }
        if self.cancel.is_set() {
            // The walks may have ended in different places.
            return Vec::new();
        }
        chain
    }

    /// The leaf of the conversation, and the conversation.
    pub(super) fn chosen(&self) -> (Option<u32>, Vec<u32>) {
        match self.leaf() {
            Some((_, leaf)) => (Some(leaf), recover::parallel_results(self, self.chain(leaf))),
            None => (None, Vec::new()),
        }
    }

    /// The nodes that have a child among those that count.
    fn parents_of(&self, counts: &dyn Fn(&Row) -> bool) -> Bits {
        let mut parents = Bits::new(self.index.row_count());
        for node in self.nodes().filter(|node| counts(self.row(*node))) {
            if let Some(parent) = self.parent_of(node) {
                parents.add(parent);
            }
        }
        parents
    }

    /// The last message of the conversation, and the entry behind which it was found.
    pub(super) fn leaf(&self) -> Option<(Option<u32>, u32)> {
        let is_candidate = |row: &Row| {
            !row.has(row::SIDECHAIN | row::TEAM | row::FORK_BRIEFING) && !row.is(row::PROGRESS)
        };
        let parents = self.parents_of(&is_candidate);
        let mut seen = Bits::new(self.index.row_count());
        for node in (0..self.index.row_count()).rev() {
            if self.cancel.is_set() {
                return None;
            }
            if !self.is_part(node) || self.last(node) != node {
                continue;
            }
            if is_candidate(self.row(node))
                && !parents.has(node)
                && let Some(leaf) = self.nearest_message(node, &mut seen)
            {
                return Some((Some(node), leaf));
            }
        }
        self.any_leaf().map(|leaf| (None, leaf))
    }

    /// The leaf if every branch is a subagent's, a team's, or a cycle.
    fn any_leaf(&self) -> Option<u32> {
        let parents = self.parents_of(&|_| true);
        let mut best: Option<(bool, u32)> = None;
        let mut seen = Bits::new(self.index.row_count());
        for node in self.nodes().filter(|node| !parents.has(*node)) {
            let Some(leaf) = self.nearest_message(node, &mut seen) else { continue };
            let is_main = !self.row(leaf).has(row::SIDECHAIN | row::TEAM | row::META);
            best = best.max(Some((is_main, leaf)));
        }
        best.map(|(_, leaf)| leaf)
    }

    /// Walks up to a user or assistant entry, past nodes that were not seen before.
    pub(super) fn nearest_message(&self, node: u32, seen: &mut Bits) -> Option<u32> {
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| !seen.has(*node)) {
            if self.row(node).is_message() {
                return Some(node);
            }
            seen.add(node);
            next = self.parent_of(node);
        }
        None
    }

    /// Puts what a compaction removed in front of a path that begins at one.
    pub(super) fn prepend_compacted(&self, path: &mut Vec<u32>) {
        let mut inside = Bits::new(self.index.row_count());
        for node in &*path {
            inside.add(*node);
        }
        let mut walked = Bits::new(self.index.row_count());
        // From the newest to the oldest; reversed at the end.
        let mut before = Vec::new();
        let mut oldest = path.first().copied();
        while let Some(boundary) = oldest.take() {
            let mut next = self.before(boundary);
            while let Some(node) = next.filter(|node| walked.add(*node)) {
                if !inside.has(node) {
                    before.push(node);
                }
                oldest = Some(node);
                // The entries that were preserved keep their old parents in the file.
                next = self.original_parent(node);
            }
        }
        before.reverse();
        path.splice(0..0, before);
    }

    /// The node that an entry names as its parent in the file. None if the caller is gone.
    pub(super) fn original_parent(&self, node: u32) -> Option<u32> {
        if self.cancel.is_set() {
            return None;
        }
        let row = self.row(node);
        let key = self.index.parent_key(row)?;
        match row.parent.place() {
            // Mostly just before, so that it need not be searched.
            ParentPlace::Row(at) if self.is_part(at) && !self.repeated.has(at) => Some(at),
            _ => self.find(key),
        }
    }

    /// The last entry before a compaction.
    fn before(&self, node: u32) -> Option<u32> {
        let key = self.boundary(node)?.logical_parent?;
        self.find(key)
    }

    pub(super) fn boundary(&self, node: u32) -> Option<&'i Boundary> {
        let boundaries = &self.index.boundaries;
        let found = boundaries.binary_search_by_key(&node, |boundary| boundary.row).ok()?;
        Some(&boundaries[found])
    }
}

/// The nodes of a tree. A type of its own, because adaptors around a chain of closures take more code
/// in each function that goes through the nodes.
pub(super) struct Nodes<'t> {
    tree: &'t Tree<'t>,
    rows: RowPositions<'t>,
}

impl Iterator for Nodes<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let tree = self.tree;
        let first = self.rows.find(|at| tree.is_part(*at) && tree.first(*at) == *at)?;
        Some(tree.last(first))
    }
}

impl Boundary {
    pub(super) fn anchor(&self) -> Option<Key> {
        match self.preserved {
            Preserved::Nothing => None,
            Preserved::Messages { anchor, .. } | Preserved::Segment { anchor, .. } => Some(anchor),
        }
    }
}

/// Sorts entries that are part of a tree by key and then by position.
fn sorted_by_key(index: &Index, cancel: Cancel<'_>, is_part: &dyn Fn(u32) -> bool) -> Vec<u32> {
    let rows = cancel.rows(index);
    // Sorted with a part of the key, because looking up a row for each comparison takes most of the
    // time. This memory is free again when the conversation is chosen.
    let mut keys: Vec<u64> = Vec::with_capacity(rows.clone().filter(|at| is_part(*at)).count());
    for at in rows {
        if is_part(at) {
            keys.push(u64::from(index.rows[at].id.first_word()) << 32 | u64::from(at));
        }
    }
    keys.sort_unstable();
    let mut order: Vec<u32> = Vec::with_capacity(keys.len());
    for group in keys.chunk_by(|one, other| one >> 32 == other >> 32) {
        let start = order.len();
        for key in group {
            order.push(lower(*key));
        }
        if group.len() > 1 {
            sort_nodes(&mut order[start..], &|at| (index.rows[at].id.last_words(), None));
        }
    }
    order
}

/// Where the chains of parents end.
struct Roots<'t, 'i> {
    tree: &'t Tree<'i>,
    known: Vec<Option<Root>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Root {
    Found,
    Missing,
    Cycle,
}

impl<'t, 'i> Roots<'t, 'i> {
    fn new(tree: &'t Tree<'i>) -> Self {
        Self { tree, known: vec![None; tree.index.rows.len()] }
    }

    fn of(&mut self, node: u32) -> Root {
        let mut path = Vec::new();
        let mut at = node;
        let root = loop {
            if let Some(root) = self.known[at as usize] {
                break root;
            }
            // Until its end is known, a node on the path marks a cycle.
            self.known[at as usize] = Some(Root::Cycle);
            path.push(at);
            match self.tree.parent_of(at) {
                Some(parent) => at = parent,
                None if self.tree.parent_key(at).is_some() => break Root::Missing,
                None => break Root::Found,
            }
        };
        for node in path {
            self.known[node as usize] = Some(root);
        }
        root
    }
}
