//! The executable mapping by which `perf record` notices a jitdump file: it records such mappings, and `perf inject`
//! looks for files of the right name among them. Nobody reads or runs what is mapped.

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

pub(crate) struct Marker(NonNull<u8>);

// SAFETY: nobody touches the memory; the address serves to unmap it.
unsafe impl Send for Marker {}

impl Marker {
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: a new mapping at a place that the kernel chooses; no reference is made to it.
        let base = unsafe { mmap(ptr::null_mut(), page_size(), protection, MapFlags::PRIVATE, file, 0)? };
        NonNull::new(base.cast()).map(Self).ok_or_else(|| io::Error::other("mapped at zero"))
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: the page that `new` mapped, which nobody uses. A failure would leave it, which harms nobody.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}
