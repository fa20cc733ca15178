//! For tests: blocks of memory that end, or start, at a page which nothing may touch, so that an access outside of one is a
//! `SIGSEGV`, by generated code too, which AddressSanitizer does not see.
//!
//! The crates that hand memory to programs allocate through here if they are built with their feature `guard`. Until
//! [`enable`] is called, the functions are those of [`std::alloc`].

use std::alloc::{self, Layout};
use std::ptr;
use std::sync::OnceLock;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// On which side of a block the page lies that touches it. Before the block and after it there is one in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The block starts right after it.
    Start,
    /// The block ends right before it, or before the next multiple of its alignment.
    End,
}

static SIDE: OnceLock<Option<Side>> = OnceLock::new();

fn side() -> Option<Side> {
    *SIDE.get_or_init(|| None)
}

/// Guards all blocks from now on, for the life of the process. False if it is too late: something was allocated already.
#[must_use]
pub fn enable(chosen: Side) -> bool {
    *SIDE.get_or_init(|| Some(chosen)) == Some(chosen)
}

/// Whether blocks are guarded.
#[must_use]
pub fn is_on() -> bool {
    side().is_some()
}

/// Bytes of whole pages for a block, and of those with a page before and after; `None` if they cannot be counted.
fn lengths(layout: Layout) -> Option<(usize, usize)> {
    let page = rustix::param::page_size();
    let inside = layout.size().checked_next_multiple_of(page)?;
    Some((inside, inside.checked_add(2 * page)?))
}

/// Bytes from the first accessible page to the block.
fn shift(side: Side, inside: usize, layout: Layout) -> usize {
    match side {
        Side::Start => 0,
        Side::End => (inside - layout.size()) / layout.align() * layout.align(),
    }
}

/// As [`std::alloc::alloc_zeroed`], for alignments of at most a page.
///
/// # Safety
/// The size of the layout is not zero.
#[must_use]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let Some(side) = side() else {
        // SAFETY: the caller's.
        return unsafe { alloc::alloc_zeroed(layout) };
    };
    let page = rustix::param::page_size();
    let Some((inside, whole)) = lengths(layout) else { return ptr::null_mut() };
    if layout.align() > page {
        return ptr::null_mut();
    }
    // SAFETY: a new mapping, of which only the pages between the first and the last become accessible.
    unsafe {
        let Ok(mapping) = mmap_anonymous(ptr::null_mut(), whole, ProtFlags::empty(), MapFlags::PRIVATE)
        else {
            return ptr::null_mut();
        };
        let first = mapping.cast::<u8>().add(page);
        if mprotect(first.cast(), inside, MprotectFlags::READ | MprotectFlags::WRITE).is_err() {
            let _unmapped = munmap(mapping, whole);
            return ptr::null_mut();
        }
        first.add(shift(side, inside, layout))
    }
}

/// As [`std::alloc::dealloc`].
///
/// # Safety
/// The block is from [`alloc_zeroed`], with this layout, and no reference to it remains.
pub unsafe fn dealloc(block: *mut u8, layout: Layout) {
    match (side(), lengths(layout)) {
        // SAFETY: the caller's.
        (None, _) => unsafe { alloc::dealloc(block, layout) },
        // SAFETY: the mapping that `alloc_zeroed` made for this layout starts a page before the block's pages.
        (Some(side), Some((inside, whole))) => unsafe {
            let mapping = block.sub(shift(side, inside, layout) + rustix::param::page_size());
            let _unmapped = munmap(mapping.cast(), whole);
        },
        // There was no such block.
        (Some(_), None) => {}
    }
}
