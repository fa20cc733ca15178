//! Memory that is used again for the next function.

/// Empties a vector and reserves room for some items, with a margin for the next function.
pub(crate) fn empty<T>(items: &mut Vec<T>, room: usize) {
    items.clear();
    if items.capacity() < room {
        items.reserve(room + room / 4 + 8);
    }
}

/// The same with copies of an item.
pub(crate) fn filled<T: Clone>(items: &mut Vec<T>, item: T, count: usize) {
    empty(items, count);
    items.resize(count, item);
}
