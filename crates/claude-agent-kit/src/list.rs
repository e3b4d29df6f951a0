//! Converts lists. Adaptors of iterators are compiled for each closure, this once for two types.

/// Converts every item.
pub(crate) fn map<T, U>(items: &[T], convert: &dyn Fn(&T) -> U) -> Vec<U> {
    let mut converted = Vec::with_capacity(items.len());
    for item in items {
        converted.push(convert(item));
    }
    converted
}
