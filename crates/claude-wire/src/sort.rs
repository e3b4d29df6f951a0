//! Sorts of lists of any type. The standard sort is compiled for each type and each closure, this one once.

use std::cmp::Ordering;

/// What entries are sorted by: a number, and then a time or another number.
pub(crate) type SortKey = (u64, Option<i64>);

/// Sorts entries by a key. Those with the same key keep their order.
pub(crate) fn sort_nodes(nodes: &mut [u32], key: &dyn Fn(u32) -> SortKey) {
    sort_positions(nodes, &|one, other| key(one).cmp(&key(other)));
}

/// Sorts positions. Those that compare as equal keep their order.
pub(crate) fn sort_positions(positions: &mut [u32], compare: &dyn Fn(u32, u32) -> Ordering) {
    positions.sort_by(|one, other| compare(*one, *other));
}

/// Sorts a list. Values that compare as equal keep their order.
pub(crate) fn sort_by<T: Copy>(values: &mut [T], compare: &dyn Fn(&T, &T) -> Ordering) {
    let order = sorted_order(values.len(), &|one, other| {
        compare(&values[one as usize], &values[other as usize])
    });
    let Some(order) = order else { return };
    let unsorted = values.to_vec();
    for (value, at) in values.iter_mut().zip(order) {
        *value = unsorted[at as usize];
    }
}

/// The sorted positions of a list; `None` if it is in order, because most lists are and sorting takes
/// memory.
fn sorted_order(count: usize, compare: &dyn Fn(u32, u32) -> Ordering) -> Option<Vec<u32>> {
    // No list has more than 2^32 values.
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if (1..count).all(|at| compare(at - 1, at).is_le()) {
        return None;
    }
    let mut order: Vec<u32> = (0..count).collect();
    sort_positions(&mut order, compare);
    Some(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::sort_by;

    proptest! {
        #[test]
        fn lists_are_sorted_like_by_the_standard_library(keys: Vec<u8>) {
            let mut values: Vec<(u8, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = values.clone();
            expected.sort_by_key(|(key, _)| *key);
            sort_by(&mut values, &|(one, _), (other, _)| one.cmp(other));
            prop_assert_eq!(values, expected);
        }
    }
}
