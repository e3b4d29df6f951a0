//! Sorts of entries. The standard sort is compiled for each type of closure, these once.

/// What entries are sorted by: a number, and then a time or another number.
pub(super) type SortKey = (u64, Option<i64>);

/// Sorts entries by a key. Those with the same key keep their order.
pub(super) fn sort_nodes(nodes: &mut [u32], key: &dyn Fn(u32) -> SortKey) {
    nodes.sort_by_key(|node| key(*node));
}

/// Sorts pairs of entries by a key. Those with the same key keep their order.
pub(super) fn sort_pairs(pairs: &mut [(u32, u32)], key: &dyn Fn(u32, u32) -> SortKey) {
    pairs.sort_by_key(|(one, other)| key(*one, *other));
}
