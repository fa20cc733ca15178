//! The memory of a map: one zeroed block, cut into cells of equal size, one row of cells (a lane) per CPU where a
//! kind is per CPU. All unsafe code of the crate is here.
//!
//! Cells are slices of [`AtomicU64`], so the crate itself has no data races in Rust's sense: concurrent reads and writes are relaxed
//! 8-byte atomics. Programs get raw pointers and may access any width; such a race has the kernel's outcome, old bytes or new ones, at
//! least whole words.

use std::alloc::Layout;
#[cfg(not(feature = "guard"))]
use std::alloc::{alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64};

#[cfg(feature = "guard")]
use paceline_frame::guard::{alloc_zeroed, dealloc};

/// Bytes in a word, the unit of a cell.
pub(crate) const WORD: usize = 8;

const HALF_WORD: usize = WORD / 2;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Lanes start this far apart at least: two cache lines, because adjacent lines are prefetched in pairs.
const LANE_ALIGN: usize = 128;

/// Division of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Rows of cells.
    pub(crate) lanes: usize,
    /// Cells in a lane.
    pub(crate) cells: usize,
    /// Words in a cell.
    pub(crate) words: usize,
}

impl Shape {
    fn lane_bytes(self) -> Option<usize> {
        let bytes = self.cells.checked_mul(self.words)?.checked_mul(WORD)?;
        bytes.checked_next_multiple_of(LANE_ALIGN)
    }

    /// Bytes of the whole block, `None` where they cannot be counted.
    pub(crate) fn bytes(self) -> Option<usize> {
        self.lane_bytes()?.checked_mul(self.lanes)
    }
}

/// The allocator had no room for a block of this many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory {
    pub(crate) bytes: u64,
}

/// Bytes to align a block with. A guarded block is aligned, and ends with its last lane.
fn padding() -> usize {
    #[cfg(feature = "guard")]
    if paceline_frame::guard::is_on() {
        return 0;
    }
    LANE_ALIGN
}

/// A block of cells, zero at first. Its addresses never change and stay mapped until it is dropped.
pub(crate) struct Slab {
    shape: Shape,
    lane_bytes: usize,
    base: NonNull<u8>,
    allocation: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the block is plain memory owned by the slab, reached only through atomics or raw pointers.
unsafe impl Send for Slab {}
// SAFETY: as above; every access through `&Slab` is atomic.
unsafe impl Sync for Slab {}

impl Slab {
    pub(crate) fn new(shape: Shape) -> Result<Self, NoMemory> {
        let too_big = NoMemory { bytes: u64::MAX };
        let lane_bytes = shape.lane_bytes().ok_or(too_big)?;
        let bytes = shape.bytes().ok_or(too_big)?;
        // Aligned by hand: the system allocator leaves large blocks of small alignment to be zeroed by the kernel,
        // page by page as they are touched, but clears more strictly aligned ones at once.
        let padded = bytes.checked_add(padding()).ok_or(too_big)?.max(WORD);
        let layout = Layout::from_size_align(padded, WORD).map_err(|_| too_big)?;
        // SAFETY: the layout is not empty, it has at least a word.
        let allocation =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(NoMemory { bytes: bytes as u64 })?;
        let shift = allocation.addr().get().next_multiple_of(LANE_ALIGN) - allocation.addr().get();
        // SAFETY: shift is below LANE_ALIGN, the number of bytes allocated beyond `bytes`; in a guarded block of whole lanes it is 0.
        let base = unsafe { allocation.add(shift) };
        Ok(Self { shape, lane_bytes, base, allocation, layout })
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Bytes from a cell to the next.
    pub(crate) fn stride(&self) -> usize {
        self.shape.words * WORD
    }

    /// Bytes from a lane to the next.
    pub(crate) fn lane_stride(&self) -> usize {
        self.lane_bytes
    }

    /// Address of a cell, for programs; `None` outside the block.
    #[inline]
    pub(crate) fn cell(&self, lane: usize, cell: usize) -> Option<NonNull<u8>> {
        if lane >= self.shape.lanes || cell >= self.shape.cells {
            return None;
        }
        // SAFETY: lane and cell are in range, so the offset lies inside the block, whose size was computed without
        // overflow from the same shape.
        Some(unsafe { self.base.add(lane * self.lane_bytes + cell * self.stride()) })
    }

    /// The words of a cell; none outside the block.
    #[inline]
    pub(crate) fn words(&self, lane: usize, cell: usize) -> &[AtomicU64] {
        match self.cell(lane, cell) {
            // SAFETY: a cell is `words` whole words of the block: zeroed, so initialized; aligned to 8, for base
            // and strides are multiples of 8; alive as long as the slab. AtomicU64 allows shared mutation.
            Some(cell) => unsafe { slice::from_raw_parts(cell.cast().as_ptr(), self.shape.words) },
            None => &[],
        }
    }

    /// The words of a cell of a block with one lane.
    #[inline(always)]
    pub(crate) fn row(&self, cell: usize) -> Option<&[AtomicU64]> {
        if cell >= self.shape.cells || self.shape.lanes == 0 {
            return None;
        }
        // SAFETY: the cell is in the first lane, and there is one: as in `words`.
        Some(unsafe {
            slice::from_raw_parts(self.base.add(cell * self.stride()).cast().as_ptr(), self.shape.words)
        })
    }

    /// Four bytes at an offset of a cell; `None` outside of it, or if they are not aligned.
    pub(crate) fn half_word(&self, lane: usize, cell: usize, offset: usize) -> Option<&AtomicU32> {
        let start = self.cell(lane, cell)?;
        if !offset.is_multiple_of(HALF_WORD) || offset.checked_add(HALF_WORD)? > self.stride() {
            return None;
        }
        // SAFETY: the bytes lie inside the cell, which is initialized, aligned to 8, and lives as long as the slab. All
        // that touches them are atomic operations, by programs as well.
        Some(unsafe { AtomicU32::from_ptr(start.add(offset).cast().as_ptr()) })
    }

    /// The offset of an address inside its cell, where the address is in a cell at all.
    #[inline]
    pub(crate) fn offset_in_cell(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.base.addr().get())?;
        if offset >= self.lane_bytes * self.shape.lanes {
            return None;
        }
        let in_lane = offset % self.lane_bytes;
        (in_lane < self.shape.cells * self.stride()).then(|| in_lane % self.stride())
    }

    /// The number in its lane of the cell that an address lies in.
    pub(crate) fn index_of(&self, address: usize) -> Option<usize> {
        let offset = self.offset_in_cell(address)?;
        let in_lane = (address - offset).checked_sub(self.base.addr().get())? % self.lane_bytes;
        Some(in_lane / self.stride())
    }

    /// Whether `len` bytes at `address` lie inside bytes `start..end` of one and the same cell.
    #[inline]
    pub(crate) fn holds(&self, address: usize, len: usize, start: usize, end: usize) -> bool {
        self.offset_in_cell(address)
            .is_some_and(|offset| offset >= start && offset.checked_add(len).is_some_and(|stop| stop <= end))
    }
}

#[cfg(all(test, not(loom)))]
thread_local! {
    /// The addresses of this thread's prefetches, which have no other trace.
    pub(crate) static PREFETCHED: std::cell::RefCell<Vec<usize>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Brings the cache line of an address closer, if it is memory at all. No other effect.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    #[cfg(all(test, not(loom)))]
    PREFETCHED.with_borrow_mut(|addresses| addresses.push(address));
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch of any address has no effect that a program sees.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Brings up to two lines with the first bytes of something closer.
#[inline(always)]
pub(crate) fn prefetch_bytes(address: usize, bytes: usize) {
    prefetch(address);
    let last = address.wrapping_add(bytes.min(LINE) - usize::from(bytes != 0));
    if (address ^ last) & !(LINE - 1) != 0 {
        prefetch(last);
    }
}

/// Types made of atomics alone.
///
/// # Safety
/// All of it must be atomics, for which zeros are a value, without padding that is read; its size a multiple of a word's, and its
/// alignment at most [`LANE_ALIGN`].
#[cfg_attr(loom, allow(dead_code))]
pub(crate) unsafe trait Atomics: Sync {}

// SAFETY: an atomic, of a word.
#[cfg(not(loom))]
unsafe impl Atomics for AtomicU64 {}

/// Zeroed values side by side, committed when they are first written.
#[cfg(not(loom))]
pub(crate) struct Zeroed<T> {
    slab: Slab,
    values: std::marker::PhantomData<T>,
}

#[cfg(not(loom))]
impl<T: Atomics> Zeroed<T> {
    pub(crate) fn new(count: usize) -> Result<Self, NoMemory> {
        const { assert!(size_of::<T>().is_multiple_of(WORD) && align_of::<T>() <= LANE_ALIGN) };
        let slab = Slab::new(Shape { lanes: 1, cells: count, words: size_of::<T>() / WORD })?;
        Ok(Self { slab, values: std::marker::PhantomData })
    }
}

#[cfg(not(loom))]
impl<T: Atomics> std::ops::Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the block is as many values, zeroed, aligned to LANE_ALIGN, and alive as long as this. They are atomics.
        unsafe { slice::from_raw_parts(self.slab.base.cast().as_ptr(), self.slab.shape.cells) }
    }
}

/// The model checker's atomics are no plain memory.
#[cfg(loom)]
pub(crate) struct Zeroed<T>(Box<[T]>);

#[cfg(loom)]
impl<T: Default> Zeroed<T> {
    pub(crate) fn new(count: usize) -> Result<Self, NoMemory> {
        Ok(Self(std::iter::repeat_with(T::default).take(count).collect()))
    }
}

#[cfg(loom)]
impl<T> std::ops::Deref for Zeroed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout, and freed only here.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) }
    }
}
