//! Memory mappings that end with their value.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A readable and writable mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<c_void>,
    len: usize,
}

// SAFETY: a mapping has no thread affinity, and the value gives addresses only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed private memory.
    pub(crate) fn anonymous(len: usize) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses an unused place.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)?
        };
        Self::new(start, len)
    }

    /// Zeroed private memory in huge pages where the system has some free, which take fewer entries of the TLB.
    pub(crate) fn huge(len: usize) -> Result<Self, Errno> {
        let mapping = Self::anonymous(len)?;
        // SAFETY: the range is that of the mapping, whose content does not change. Without huge pages the advice is refused.
        let _ = unsafe { madvise(mapping.start.as_ptr(), len, Advice::LinuxHugepage) };
        Ok(mapping)
    }

    /// Memory of a socket, shared with the kernel and populated.
    pub(crate) fn shared(fd: BorrowedFd<'_>, offset: u64, len: usize) -> Result<Self, Errno> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses an unused place.
        let start =
            unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags, fd, offset)? };
        Self::new(start, len)
    }

    /// Memory of a file, shared with whoever has the file.
    pub(crate) fn of_file(fd: BorrowedFd<'_>, len: usize) -> Result<Self, Errno> {
        // SAFETY: the kernel chooses an unused place.
        let start = unsafe {
            mmap(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, fd, 0)?
        };
        Self::new(start, len)
    }

    fn new(start: *mut c_void, len: usize) -> Result<Self, Errno> {
        NonNull::new(start).map(|start| Self { start, len }).ok_or(Errno::NOMEM)
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`'s callers with this length; users of the addresses hold the value.
        let _ = unsafe { munmap(self.start.as_ptr(), self.len) };
    }
}
