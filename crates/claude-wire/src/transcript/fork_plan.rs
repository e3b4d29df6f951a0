//! Which entries a fork copies.

use super::bits::Bits;
use super::error::TranscriptError;
use super::index::{Boundary, Preserved};
use super::key::Key;
use super::recover;
use super::row::{self, EntryRef};
use super::tree::Tree;
use crate::sort::sort_nodes;

/// The entries that a fork of a session copies, see [`Tree::fork`].
#[derive(Debug)]
pub struct ForkPlan<'i> {
    pub(super) tree: Tree<'i>,
    /// The rows to copy, in the order of the file; entries with one `uuid` more than once.
    pub(super) rows: Vec<u32>,
    /// The entry up to which the session is forked.
    pub(super) up_to: Option<Key>,
}

impl<'i> Tree<'i> {
    /// Chooses the entries that a fork copies: all of the main conversation and its branches, or
    /// those up to the message `up_to`, inclusive. A prompt that joined a running turn can be named
    /// by the id that the host sent it with.
    ///
    /// # Errors
    /// Returns [`TranscriptError::MessageNotFound`] if there is no such message, and
    /// [`TranscriptError::NoMessages`] if nothing is left to copy.
    pub fn fork(&self, up_to: Option<&str>) -> Result<ForkPlan<'i>, TranscriptError> {
        let mut rows: Vec<u32> = Vec::new();
        for at in self.cancel.rows(self.index) {
            if self.row(at).is_chain() && !self.row(at).has(row::SIDECHAIN) {
                rows.push(at);
            }
        }
        if rows.is_empty() {
            return Err(TranscriptError::NoMessages);
        }
        let mut end_id = None;
        if let Some(uuid) = up_to {
            let end = self
                .fork_end(uuid, &rows)
                .ok_or_else(|| TranscriptError::MessageNotFound(uuid.to_owned()))?;
            end_id = Some(self.row(end).id);
            rows.retain(|at| *at <= end);
            self.cut_trailing_compaction(&mut rows);
            self.leave_out_newer_branches(&mut rows, end_id);
        }
        if rows.iter().all(|at| self.row(*at).is(row::PROGRESS)) {
            return Err(TranscriptError::NoMessages);
        }
        let tree = self.part(&rows, end_id);
        Ok(ForkPlan { tree, rows, up_to: end_id })
    }

    /// The tree of these rows alone.
    fn part(&self, rows: &[u32], unlinked: Option<Key>) -> Tree<'i> {
        let mut left_out = Bits::new(self.index.row_count());
        let mut kept = rows.iter().peekable();
        for at in 0..self.index.row_count() {
            if kept.next_if(|kept| **kept == at).is_none() {
                left_out.add(at);
            }
        }
        Tree::without(self.index, Some(left_out), unlinked, self.cancel)
    }

    /// The first entry with this id, or the prompt that was sent with it.
    fn fork_end(&self, uuid: &str, rows: &[u32]) -> Option<u32> {
        let key = Key::of(uuid);
        if let Some(found) = rows.iter().find(|at| self.row(**at).id == key) {
            return Some(*found);
        }
        let is_sent_as = |node: &u32| {
            let row = self.row(*node);
            row.has(row::QUEUED) && row.has(row::HAS_SOURCE) && row.response() == key.prefix()
        };
        let (_, conversation) = self.chosen();
        let last = conversation.iter().map(|node| self.first(*node)).max();
        if let Some(node) = conversation.into_iter().find(is_sent_as) {
            return Some(self.first(node));
        }
        // One behind the conversation rather than one before.
        let mut before = None;
        for node in self.nodes() {
            if self.row(node).has(row::SIDECHAIN) || !is_sent_as(&node) {
                continue;
            }
            let first = self.first(node);
            if Some(first) > last {
                return Some(first);
            }
            before = before.or(Some(first));
        }
        before
    }

    /// A compaction at the very end would hide what was copied, because nothing follows it: it is
    /// cut off, with what came after the entries that it kept.
    fn cut_trailing_compaction(&self, rows: &mut Vec<u32>) {
        let last_message = rows.iter().rposition(|at| self.row(*at).is_message());
        let start = last_message.map_or(0, |at| at + 1);
        let Some(found) = rows[start..].iter().position(|at| self.is_compaction(*at)) else {
            return;
        };
        let cut = start + found;
        let Some(boundary) = self.boundary(rows[cut]) else { return };
        let mut kept = boundary.kept(self.row(rows[cut]).id);
        kept.sort_unstable();
        let before = &rows[..cut];
        let is_kept = |at: &u32| kept.binary_search(&self.row(*at).id).is_ok();
        let last_kept = before.iter().rposition(is_kept);
        let last_anchor = last_kept.and_then(|last| {
            let earlier = *before.iter().rfind(|at| self.row(**at).has(row::BOUNDARY))?;
            let earlier = self.boundary(earlier)?;
            let is_shared = earlier.kept(Key::default()).contains(&self.row(before[last]).id);
            let anchor = earlier.anchor().filter(|_| is_shared)?;
            before.iter().rposition(|at| self.row(*at).id == anchor)
        });
        let end = last_kept.max(last_anchor).map_or(cut, |last| last + 1);
        if rows[..end].iter().any(|at| !self.row(*at).is(row::PROGRESS)) {
            rows.truncate(end);
        }
    }

    fn is_compaction(&self, at: u32) -> bool {
        self.row(at).has(row::BOUNDARY)
    }

    /// Leaves out branches that are newer than the conversation that ends at the last row, and
    /// that would be chosen in its place.
    fn leave_out_newer_branches(&self, rows: &mut Vec<u32>, end_id: Option<Key>) {
        let Some(end) = rows.last().copied() else { return };
        let part = self.part(rows, end_id);
        let end = part.last(end);
        let mut seen = Bits::new(self.index.row_count());
        let Some(leaf) = part.nearest_message(end, &mut seen) else { return };
        let wanted = recover::parallel_results(&part, part.chain(leaf));
        let Some(start) = wanted.first().map(|node| part.first(*node)) else { return };
        let out = Bits::new(self.index.row_count());
        let mut branches = Branches { live: part.live(end, &wanted), start, part, out };
        branches.leave_out_boundaries(rows, end_id);
        let mut wanted = wanted;
        sort_nodes(&mut wanted, &|node| (node.into(), None));
        // Each round leaves out one branch at least.
        for round in 0.. {
            if self.cancel.is_set() {
                return;
            }
            rows.retain(|at| !branches.is_out(*at));
            let rest = self.part(rows, end_id);
            let Some((terminal, leaf)) = rest.leaf() else { return };
            let Some(terminal) = terminal.filter(|node| branches.is_removable(*node)) else {
                return;
            };
            let mut chosen = recover::parallel_results(&rest, rest.chain(leaf));
            sort_nodes(&mut chosen, &|node| (node.into(), None));
            if chosen == wanted {
                return;
            }
            let is_changed = if round < MAX_ROUNDS {
                branches.leave_out(&[terminal], rows)
            } else {
                branches.leave_out_all(rows)
            };
            if !is_changed {
                return;
            }
        }
    }

    /// The entries above these, along the parents in the file.
    fn live(&self, end: u32, nodes: &[u32]) -> Bits {
        let mut live = Bits::new(self.index.row_count());
        let nodes = nodes.iter().chain([&end]).take_while(|_| !self.cancel.is_set());
        for node in nodes {
            let mut next = Some(*node);
            while let Some(node) = next.filter(|node| live.add(*node)) {
                next = self.original_parent(node);
            }
        }
        live
    }
}

/// How many branches a fork leaves out one by one, each of which takes as long as choosing a
/// conversation. If there are more, all that compete with the conversation are left out at once.
const MAX_ROUNDS: usize = 8;
/// How often the entries are searched for children of those that are left out. One time finds all that
/// come after their parents.
const MAX_PASSES: usize = 4;

struct Branches<'i> {
    part: Tree<'i>,
    live: Bits,
    /// Where the conversation starts: what is before it does not compete with it.
    start: u32,
    /// The nodes that are left out.
    out: Bits,
}

impl Branches<'_> {
    fn is_out(&self, at: u32) -> bool {
        self.out.has(self.part.last(at))
    }

    fn is_removable(&self, node: u32) -> bool {
        !self.live.has(node) && self.part.first(node) >= self.start
    }

    /// Leaves out compactions of other branches, whose links would change this one.
    fn leave_out_boundaries(&mut self, rows: &[u32], end_id: Option<Key>) {
        let mut kept = Bits::new(self.part.index.row_count());
        let (mut rounds, mut rest) = (0, Vec::new());
        for at in rows {
            let node = self.part.last(*at);
            let is_known = kept.has(node) || (rounds == MAX_ROUNDS && self.out.has(node));
            if !self.part.row(*at).has(row::BOUNDARY) || is_known || !self.is_removable(node) {
                continue;
            }
            if self.keeps_live(node, end_id) {
                kept.add(node);
            } else if rounds < MAX_ROUNDS {
                rounds += 1;
                self.leave_out(&[node], rows);
            } else {
                self.out.add(node);
                rest.extend(self.part.original_parent(node));
                rest.push(node);
            }
        }
        self.leave_out(&rest, rows);
    }

    /// Whether a compaction kept entries of the conversation.
    fn keeps_live(&self, node: u32, end_id: Option<Key>) -> bool {
        self.part.boundary(node).is_some_and(|boundary| {
            let kept = boundary.kept(Key::default());
            let is_live = |key: &Key| self.part.find(*key).is_some_and(|node| self.live.has(node));
            let is_linked = end_id.is_none() || boundary.anchor() != end_id;
            is_linked && kept.iter().any(is_live)
        })
    }

    /// Leaves out branches: from each node upwards as far as nothing else needs it, and everything
    /// below. Returns whether anything changed.
    fn leave_out(&mut self, nodes: &[u32], rows: &[u32]) -> bool {
        let mut is_changed = false;
        for node in nodes {
            let mut next = Some(*node);
            while let Some(node) =
                next.filter(|node| self.is_removable(*node) && self.out.add(*node))
            {
                is_changed = true;
                next = self.part.original_parent(node);
            }
        }
        for _ in 0..nodes.len().min(MAX_PASSES) {
            if !self.leave_out_children(rows) {
                break;
            }
            is_changed = true;
        }
        is_changed
    }

    fn leave_out_children(&mut self, rows: &[u32]) -> bool {
        let mut is_changed = false;
        for at in rows.iter().take_while(|_| !self.part.cancel.is_set()) {
            let parent = self.part.original_parent(*at);
            if parent.is_some_and(|parent| self.out.has(parent)) {
                is_changed |= self.out.add(self.part.last(*at));
            }
        }
        is_changed
    }

    /// Leaves out everything that competes with the conversation.
    fn leave_out_all(&mut self, rows: &[u32]) -> bool {
        let mut is_changed = false;
        for at in rows {
            let node = self.part.last(*at);
            if self.is_removable(node) {
                is_changed |= self.out.add(node);
            }
        }
        is_changed
    }
}

impl Boundary {
    /// The entries that a compaction kept, and the last one before it. None if it is `own` that
    /// they follow: then nothing was removed before it.
    fn kept(&self, own: Key) -> Vec<Key> {
        if self.anchor() == Some(own) {
            return Vec::new();
        }
        let mut kept: Vec<Key> = match &self.preserved {
            Preserved::Nothing => Vec::new(),
            Preserved::Messages { uuids, .. } => uuids.to_vec(),
            Preserved::Segment { head, tail, .. } => vec![*head, *tail],
        };
        if own != Key::default() {
            kept.extend(self.logical_parent);
        }
        kept
    }
}

impl ForkPlan<'_> {
    /// Returns the entries to copy, in order. Pass the bytes of each to
    /// [`Fork::entry`](super::Fork::entry).
    pub fn entries(&self) -> Vec<EntryRef> {
        let copied = self.rows.iter().filter(|at| !self.tree.row(**at).is(row::PROGRESS));
        copied.map(|at| self.tree.index.entry(*at)).collect()
    }

    /// Returns the messages that are not copied, in order. Pass the bytes of each to [`Fork::note`](super::Fork::note) if
    /// it [needs them](super::Fork::needs_all_entries).
    pub fn left_out_entries(&self) -> Vec<EntryRef> {
        let mut rows = self.rows.iter().peekable();
        let mut is_copied = |entry: &EntryRef| {
            rows.next_if(|at| **at == entry.index).is_some() && !entry.row.is(row::PROGRESS)
        };
        let messages = self.tree.index.entries().filter(|entry| entry.row.is_chain());
        messages.filter(|entry| !is_copied(entry)).collect()
    }

    /// Returns the state entries that a fork carries over, in order. Pass the bytes of each to
    /// [`Fork::carry`](super::Fork::carry) before anything else.
    pub fn state_entries(&self) -> Vec<EntryRef> {
        let index = self.tree.index;
        index.entries().filter(|entry| entry.row.is(row::CARRIED)).collect()
    }
}
