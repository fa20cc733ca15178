//! A memory file and its executable view. All mapping and unmapping of code is in this module.
//!
//! The view is readable and executable. Code is written to the file by `pwrite(2)`: no address of the process is ever both writable
//! and executable, and executable memory has no writable alias. This is stricter than a second, writable mapping, which every stray
//! write of the process could hit, and cheaper than one that is mapped for each write and unmapped after it, which interrupts the
//! CPUs of all workers.
//!
//! The file grows as code is installed. Accesses to the view after its end raise `SIGBUS`; before its end are only code and guard
//! bytes, because the file grows by writing guard bytes.

use std::fs::{File, read_to_string};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, fstat, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap};

use crate::exec::cache;
use crate::exec::error::ExecError;
use crate::exec::place;

/// Fills space around code and replaces freed code: a breakpoint (`int3`) on x86. On the other architectures of Linux zeros are an
/// invalid instruction, which traps as well.
pub const GUARD_BYTE: u8 = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) { 0xcc } else { 0 };

/// Granularity of the file's size in bytes, a multiple of every page size in use.
pub(crate) const CHUNK: usize = 64 << 10;

/// A memory file, mapped executable.
pub(crate) struct Memory {
    file: File,
    view: View,
}

impl Memory {
    /// Maps `capacity` bytes, a multiple of [`CHUNK`], as close to `anchor` as possible; commits none of them.
    pub(crate) fn new(capacity: usize, anchor: usize) -> Result<Self, ExecError> {
        let file = create_file().map_err(|errno| ExecError::Refused { call: "memfd_create", errno })?;
        let refused = |errno| ExecError::Refused { call: "mmap", errno };
        // default: without /proc no candidates are known, and the kernel chooses.
        let maps = read_to_string("/proc/self/maps").unwrap_or_default();
        for address in place::candidates(&maps, anchor, capacity) {
            match View::new(&file, address, capacity, MapFlags::FIXED_NOREPLACE) {
                Ok(view) if view.base.addr().get() == address => return Ok(Self { file, view }),
                // Kernels before 4.17 treat the address as a hint. Others report that another thread mapped it first (EEXIST), or
                // that the address is not allowed (EPERM below vm.mmap_min_addr).
                Ok(_) | Err(Errno::EXIST | Errno::PERM | Errno::INVAL | Errno::NOMEM) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
        let view = View::new(&file, 0, capacity, MapFlags::empty()).map_err(refused)?;
        Ok(Self { file, view })
    }

    /// Makes `perf` treat the view as anonymous memory, the only kind for which it looks up symbols in `/tmp/perf-PID.map`: `perf`
    /// records the last `mmap` of an address, but not mappings that `mremap` moves there.
    pub(crate) fn pass_for_anonymous(self) -> Result<Self, ExecError> {
        self.view
            .pass_for_anonymous(&self.file)
            .map_err(|errno| ExecError::Refused { call: "mmap", errno })?;
        Ok(self)
    }

    /// Address range of the view.
    pub(crate) fn range(&self) -> Range<usize> {
        let base = self.view.base.addr().get();
        base..base + self.view.capacity
    }

    /// The address of an offset in the view.
    ///
    /// # Panics
    /// If the offset is not within the view.
    pub(crate) fn pointer(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.view.capacity);
        // SAFETY: the offset was just checked to be within the mapping.
        unsafe { self.view.base.add(offset) }
    }

    /// Replaces the view by a private copy of the memory. The file remains the shared one, and must not be written any more. For a
    /// process that was just forked: takes no lock and no heap memory.
    pub(crate) fn copy(&self) -> Result<(), Errno> {
        let copy = create_file()?;
        let len = fstat(&self.file)?.st_size as u64;
        let mut offset = 0;
        while offset < len {
            // Copies from file to file, as the other process may be writing parts of it.
            let left = (len - offset) as usize;
            if sendfile(&copy, &self.file, Some(&mut offset), left)? == 0 {
                return Err(Errno::IO);
            }
        }
        let place = self.view.base.as_ptr().cast();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::EXEC, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: replaces the process's own view by one with the same bytes, except for bytes that are not code.
        unsafe { mmap(place, self.view.capacity, protection, flags, &copy, 0)? };
        Ok(())
    }

    /// Writes to the file, bypassing the view. The first write to a page commits it.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, offset as u64)?;
        cache::publish(self.pointer(offset).as_ptr(), bytes.len());
        #[cfg(feature = "emulated")]
        self.view.renew(&self.file, offset, bytes.len())?;
        Ok(())
    }
}

struct View {
    base: NonNull<u8>,
    capacity: usize,
}

// SAFETY: a view is memory that the process cannot write, at a fixed address.
unsafe impl Send for View {}
// SAFETY: as above; `&View` only provides the address.
unsafe impl Sync for View {}

impl View {
    fn new(file: &File, address: usize, capacity: usize, flags: MapFlags) -> Result<Self, Errno> {
        let hint = ptr::without_provenance_mut(address);
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: a new mapping, which replaces none: either the address is a hint, or FIXED_NOREPLACE fails if the range is in
        // use. No Rust reference to the memory is created.
        let base = unsafe { mmap(hint, capacity, protection, flags | MapFlags::SHARED, file, 0)? };
        NonNull::new(base.cast()).map(|base| Self { base, capacity }).ok_or(Errno::FAULT)
    }

    /// Maps the pages of a part of the view anew.
    #[cfg(feature = "emulated")]
    fn renew(&self, file: &File, offset: usize, len: usize) -> Result<(), Errno> {
        let page = rustix::param::page_size();
        let (start, end) = (offset / page * page, (offset + len).next_multiple_of(page).min(self.capacity));
        let place = self.base.as_ptr().wrapping_add(start).cast();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::EXEC, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: replaces a part of the process's own view by the same bytes.
        unsafe { mmap(place, end - start, protection, flags, file, start as u64)? };
        Ok(())
    }

    /// Replaces the view by anonymous memory, and that by another view of the file.
    fn pass_for_anonymous(&self, file: &File) -> Result<(), Errno> {
        let other = Self::new(file, 0, self.capacity, MapFlags::empty())?;
        let place = self.base.as_ptr().cast();
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: replaces the process's own view, which is not yet in use.
        unsafe { mmap_anonymous(place, self.capacity, protection, flags)? };
        let from = other.base.as_ptr().cast();
        // SAFETY: as above; the moved mapping is `other`, which nothing else refers to.
        unsafe { mremap_fixed(from, self.capacity, self.capacity, MremapFlags::MAYMOVE, place)? };
        // Its address range was moved away, and must not be unmapped.
        std::mem::forget(other);
        Ok(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped. Blocks keep the memory alive, so no code in it is in use. A failure would leak the
        // mapping, which is harmless.
        // default: a leak.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.capacity) };
    }
}

fn create_file() -> Result<File, Errno> {
    let create = |flags| memfd_create("paceline-code", flags);
    // If sysctl vm.memfd_noexec is 1, a file that is to be executed needs this flag. Kernels before 6.3 have neither the flag nor
    // the sysctl.
    match create(MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => create(MemfdFlags::CLOEXEC),
        result => result,
    }
    .map(File::from)
}
