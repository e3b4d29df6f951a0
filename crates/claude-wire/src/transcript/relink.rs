//! Entries that compactions preserved are linked again behind their summaries.

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
        let mut children = Children::default();
        for row in &rows {
            if let Some(anchor) = self.boundary(*row).and_then(Boundary::anchor)
                && let Err(at) = children.find(anchor)
            {
                children.0.insert(at, (anchor, Vec::new()));
            }
        }
        if children.0.is_empty() {
            return;
        }
        for node in self.nodes() {
            if let Some(parent) = self.parent_key(node) {
                children.add(parent, node);
            }
        }
        for row in rows {
            if let Some(boundary) = self.boundary(row) {
                self.relink_one(boundary, &mut children);
            }
        }
    }

    fn relink_one(&mut self, boundary: &Boundary, children: &mut Children) {
        let (anchor, first, last) = match &boundary.preserved {
            Preserved::Nothing => return,
            Preserved::Messages { anchor, uuids } => {
                let mut nodes = Vec::with_capacity(uuids.len());
                for key in uuids {
                    let Some(node) = self.find(*key) else { return };
                    nodes.push(node);
                }
                let mut parent = *anchor;
                for (node, key) in nodes.into_iter().zip(uuids) {
                    self.set_parent(node, parent, children);
                    parent = *key;
                }
                (*anchor, uuids[0], parent)
            }
            Preserved::Segment { anchor, head, tail } => {
                if let Some(node) = self.find(*head) {
                    self.set_parent(node, *anchor, children);
                }
                (*anchor, *head, *tail)
            }
        };
        for node in children.of(anchor).to_vec() {
            if self.parent_key(node) == Some(anchor) && self.row(node).id != first {
                self.set_parent(node, last, children);
            }
        }
    }

    fn set_parent(&mut self, node: u32, parent: Key, children: &mut Children) {
        self.relinks.set(node, parent, self.index.rows.len());
        children.add(parent, node);
    }
}

/// The parents that compactions changed.
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

    fn set(&mut self, node: u32, parent: Key, row_count: usize) {
        self.places.resize(row_count, 0);
        let place = &mut self.places[node as usize];
        if *place == 0 {
            self.parents.push(parent);
            // No more than there are rows.
            *place = u32::try_from(self.parents.len()).unwrap_or_default();
        } else {
            self.parents[*place as usize - 1] = parent;
        }
    }
}

/// The children of the entries behind which a compaction preserved others. May list one that has
/// another parent by now. Sorted by parent.
#[derive(Default)]
struct Children(Vec<(Key, Vec<u32>)>);

impl Children {
    fn add(&mut self, parent: Key, node: u32) {
        if let Ok(at) = self.find(parent) {
            self.0[at].1.push(node);
        }
    }

    fn of(&self, parent: Key) -> &[u32] {
        self.find(parent).map_or(&[], |at| &self.0[at].1)
    }

    fn find(&self, parent: Key) -> Result<usize, usize> {
        self.0.binary_search_by_key(&parent, |(key, _)| *key)
    }
}
