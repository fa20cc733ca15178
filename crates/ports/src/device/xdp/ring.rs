//! Rings that an AF_XDP socket shares with the kernel (`net/xdp/xsk_queue.h`): one side writes entries, the other reads them.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::xdp::{XdpRingFlags, XdpRingOffset};

use crate::device::mapping::Mapping;

/// A mapped ring of a power of two of entries.
struct Ring<T> {
    mapping: Mapping,
    offsets: XdpRingOffset,
    entries: u32,
    _entry: PhantomData<T>,
}

impl<T: Copy> Ring<T> {
    fn map(fd: BorrowedFd<'_>, place: u64, offsets: XdpRingOffset, entries: u32) -> Result<Self, Errno> {
        if !entries.is_power_of_two() {
            return Err(Errno::INVAL);
        }
        let len = offsets.desc as usize + entries as usize * size_of::<T>();
        Ok(Self { mapping: Mapping::shared(fd, place, len)?, offsets, entries, _entry: PhantomData })
    }

    fn index(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel gives offsets of aligned indices inside of the ring, which both sides access atomically.
        unsafe { AtomicU32::from_ptr(self.mapping.start().as_ptr().add(offset as usize).cast()) }
    }

    fn producer(&self) -> &AtomicU32 {
        self.index(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.index(self.offsets.consumer)
    }

    fn entry(&self, index: u32) -> *mut T {
        let place = (index & (self.entries - 1)) as usize;
        // SAFETY: the masked index is that of an entry inside of the mapping.
        unsafe { self.mapping.start().as_ptr().add(self.offsets.desc as usize).cast::<T>().add(place) }
    }

    /// Whether the kernel waits for a system call before it looks at the ring.
    fn needs_wakeup(&self) -> bool {
        let Some(offset) = self.offsets.flags else { return true };
        self.index(offset).load(Ordering::Relaxed) & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }
}

/// A ring that the process writes: fill and transmit.
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Index of the next entry, and the kernel's index as last read.
    next: u32,
    consumed: u32,
}

impl<T: Copy> Producer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        place: u64,
        offsets: XdpRingOffset,
        entries: u32,
    ) -> Result<Self, Errno> {
        Ok(Self { ring: Ring::map(fd, place, offsets, entries)?, next: 0, consumed: 0 })
    }

    /// Whether the ring has room for a number of entries.
    pub(super) fn has_room(&mut self, entries: u32) -> bool {
        let has_room =
            |ring: &Self| ring.next.wrapping_sub(ring.consumed).saturating_add(entries) <= ring.ring.entries;
        if !has_room(self) {
            self.consumed = self.ring.consumer().load(Ordering::Acquire);
        }
        has_room(self)
    }

    /// Writes an entry, which the kernel sees after [`submit`](Self::submit); false if the ring is full.
    pub(super) fn push(&mut self, entry: T) -> bool {
        if !self.has_room(1) {
            return false;
        }
        // SAFETY: the kernel does not read the entry before `submit`.
        unsafe { self.ring.entry(self.next).write(entry) };
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Shows the written entries to the kernel.
    pub(super) fn submit(&mut self) {
        self.ring.producer().store(self.next, Ordering::Release);
    }

    /// Number of submitted entries that the kernel has not taken yet.
    pub(super) fn waiting(&mut self) -> u32 {
        self.consumed = self.ring.consumer().load(Ordering::Acquire);
        self.next.wrapping_sub(self.consumed)
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.ring.needs_wakeup()
    }
}

/// A ring that the kernel writes: receive and completion.
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Index of the next entry, and the kernel's index as last read.
    next: u32,
    produced: u32,
}

impl<T: Copy> Consumer<T> {
    pub(super) fn map(
        fd: BorrowedFd<'_>,
        place: u64,
        offsets: XdpRingOffset,
        entries: u32,
    ) -> Result<Self, Errno> {
        Ok(Self { ring: Ring::map(fd, place, offsets, entries)?, next: 0, produced: 0 })
    }

    /// Reads the next entry, which is the kernel's again after [`release`](Self::release).
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.next == self.produced {
            self.produced = self.ring.producer().load(Ordering::Acquire);
            if self.next == self.produced {
                return None;
            }
        }
        // SAFETY: the kernel has written the entry, and does not write it again before `release`.
        let entry = unsafe { self.ring.entry(self.next).read() };
        self.next = self.next.wrapping_add(1);
        Some(entry)
    }

    /// Gives the read entries back.
    pub(super) fn release(&mut self) {
        self.ring.consumer().store(self.next, Ordering::Release);
    }
}
