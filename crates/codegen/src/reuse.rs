//! Memory that is used again for the next function.

/// Empties a vector, which has room for some items then, and for a few more of the next function.
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
