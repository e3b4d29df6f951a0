//! Entries that compactions preserved are linked again behind their summaries.
//!
//! A compaction moves all children of an entry at once, and a crafted transcript has many of them that
//! move the same children to and fro. So children with one parent are one group, which is moved as a
//! whole: the cost does not depend on how many they are.

use super::index::{Boundary, Preserved};
use super::key::Key;
use super::tree::Tree;
use crate::sort::sort_nodes;

impl Tree<'_> {
    /// Links the entries that compactions preserved behind their summaries.
    pub(super) fn relink(&mut self, unlinked: Option<Key>) {
        let index = self.index;
        let mut rows: Vec<u32> = Vec::new();
        for boundary in &index.boundaries {
            let (row, is_linked) =
                (boundary.row, unlinked.is_none() || boundary.anchor() != unlinked);
            if is_linked && self.is_part(row) && self.last(row) == row {
                rows.push(row);
            }
        }
        sort_nodes(&mut rows, &|row| (self.first(row).into(), None));
        let anchors = rows.iter().filter_map(|row| self.boundary(*row)?.anchor()).collect();
        let mut groups = Groups::new(anchors, self.index.rows.len());
        if groups.anchors.is_empty() {
            return;
        }
        for node in self.nodes() {
            if let Some(parent) = self.parent_key(node) {
                groups.add(node, parent);
            }
        }
        for row in rows {
            if let Some(boundary) = self.boundary(row) {
                self.relink_one(boundary, &mut groups);
            }
        }
        self.relinks = groups.into_relinks();
    }

    fn relink_one(&self, boundary: &Boundary, groups: &mut Groups) {
        let (anchor, first, last) = match &boundary.preserved {
            Preserved::Nothing => return,
            Preserved::Messages { anchor, uuids } => {
                let mut nodes = Vec::with_capacity(uuids.len());
                for key in uuids {
                    let Some(node) = self.find(*key) else { return };
                    nodes.push(node);
                }
                let mut parent = *anchor;
                for (node, key) in nodes.iter().zip(uuids) {
                    groups.set_parent(*node, parent);
                    parent = *key;
                }
                (*anchor, nodes.first().copied(), parent)
            }
            Preserved::Segment { anchor, head, tail } => {
                let head = self.find(*head);
                if let Some(node) = head {
                    groups.set_parent(node, *anchor);
                }
                (*anchor, head, *tail)
            }
        };
        groups.move_children(anchor, first, last);
    }
}

/// The parents of entries that a compaction may have changed.
#[derive(Debug, Default)]
pub(super) struct Relinks {
    /// For each row the position of its parent, counted from one. Empty if no parent changed.
    places: Vec<u32>,
    parents: Vec<Key>,
}

impl Relinks {
    pub(super) fn get(&self, node: u32) -> Option<Key> {
        let place = self.places.get(node as usize)?.checked_sub(1)?;
        self.parents.get(place as usize).copied()
    }
}

/// Entries in groups with one parent each. Groups that were joined are a tree: the root has the parent.
struct Groups {
    /// For each row its group, counted from one.
    places: Vec<u32>,
    /// The group that each group was joined to; itself for a root.
    joined: Vec<u32>,
    /// The parent of each group. Counts for roots only.
    parents: Vec<Key>,
    /// The size of each root. One only if it has a single entry.
    sizes: Vec<u32>,
    /// The entries behind which a compaction preserved others, sorted, and the groups of their children.
    anchors: Vec<(Key, Option<u32>)>,
}

impl Groups {
    fn new(mut anchors: Vec<Key>, row_count: usize) -> Self {
        anchors.sort_unstable();
        anchors.dedup();
        let places = if anchors.is_empty() { Vec::new() } else { vec![0; row_count] };
        let anchors = anchors.into_iter().map(|anchor| (anchor, None)).collect();
        Self { places, joined: Vec::new(), parents: Vec::new(), sizes: Vec::new(), anchors }
    }

    /// Adds an entry to the children of its parent, if a compaction may move them.
    fn add(&mut self, node: u32, parent: Key) {
        let Ok(at) = self.find(parent) else { return };
        let group = self.anchors[at].1.unwrap_or_else(|| {
            let group = self.new_group(parent);
            // Not only the group of one entry.
            self.sizes[group as usize] = 2;
            group
        });
        self.anchors[at].1 = Some(group);
        self.places[node as usize] = group + 1;
    }

    /// Gives one entry another parent.
    fn set_parent(&mut self, node: u32, parent: Key) {
        let group = self.own_group(node).unwrap_or_else(|| self.new_group(parent));
        if let Ok(at) = self.find(self.parents[group as usize])
            && self.anchors[at].1 == Some(group)
        {
            self.anchors[at].1 = None;
        }
        self.parents[group as usize] = parent;
        self.places[node as usize] = group + 1;
        if let Ok(at) = self.find(parent) {
            self.join(group, at);
        }
    }

    /// Gives all children of an entry another parent, except for the first one that was preserved.
    fn move_children(&mut self, from: Key, first: Option<u32>, to: Key) {
        let Ok(at) = self.find(from) else { return };
        let Some(group) = self.anchors[at].1.take() else { return };
        if let Some(node) = first
            && let Some(of_first) = self.places[node as usize].checked_sub(1)
            && self.root(of_first) == group
        {
            if self.own_group(node) == Some(group) {
                // It is the only child.
                self.anchors[at].1 = Some(group);
                return;
            }
            self.set_parent(node, from);
        }
        self.parents[group as usize] = to;
        if let Ok(at) = self.find(to) {
            self.join(group, at);
        }
    }

    /// Joins a group with the children of an anchor.
    fn join(&mut self, group: u32, anchor: usize) {
        let (parent, other) = self.anchors[anchor];
        let Some(other) = other else {
            self.anchors[anchor].1 = Some(group);
            return;
        };
        let sizes = [group, other].map(|group| self.sizes[group as usize]);
        let (small, large) = if sizes[0] < sizes[1] { (group, other) } else { (other, group) };
        self.joined[small as usize] = large;
        self.sizes[large as usize] = sizes[0] + sizes[1];
        self.parents[large as usize] = parent;
        self.anchors[anchor].1 = Some(large);
    }

    /// The group that has this entry and no other one.
    fn own_group(&self, node: u32) -> Option<u32> {
        let group = self.places[node as usize].checked_sub(1)?;
        let is_own = self.joined[group as usize] == group && self.sizes[group as usize] == 1;
        is_own.then_some(group)
    }

    fn new_group(&mut self, parent: Key) -> u32 {
        // One for each anchor and for each entry that a boundary names: fewer than 2^32.
        let group = u32::try_from(self.parents.len()).unwrap_or(u32::MAX);
        self.parents.push(parent);
        self.joined.push(group);
        self.sizes.push(1);
        group
    }

    /// The group that a group is a part of. Small ones were joined to large ones, so it is near.
    fn root(&self, mut group: u32) -> u32 {
        while self.joined[group as usize] != group {
            group = self.joined[group as usize];
        }
        group
    }

    fn find(&self, anchor: Key) -> Result<usize, usize> {
        self.anchors.binary_search_by_key(&anchor, |(key, _)| *key)
    }

    fn into_relinks(mut self) -> Relinks {
        for group in 0..self.joined.len() {
            let root = self.root(self.joined[group]) as usize;
            self.parents[group] = self.parents[root];
        }
        Relinks { places: self.places, parents: self.parents }
    }
}
