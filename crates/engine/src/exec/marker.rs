//! The executable mapping by which `perf record` detects a jitdump file: it records such mappings, and `perf inject` searches them
//! for files with the right name. The mapped memory is neither read nor executed.

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

pub(crate) struct Marker(NonNull<u8>);

// SAFETY: the memory is never accessed; the address is only used to unmap it.
unsafe impl Send for Marker {}

impl Marker {
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: a new mapping at an address that the kernel chooses; no reference to it is created.
        let base = unsafe { mmap(ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE, file, 0)? };
        NonNull::new(base.cast()).map(Self).ok_or_else(|| io::Error::other("mapped at zero"))
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: the page that `new` mapped, which nothing uses. A failure would leak it, which is harmless.
        // default: a leak.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}
