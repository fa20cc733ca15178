//! One memory file and the executable view of it. The only place that maps and unmaps.
//!
//! The view is readable and executable. Writing goes through the file with `pwrite(2)`: no address of the process is
//! ever both writable and executable, nor is there a writable address for what another address executes. That is
//! stricter than a second, writable mapping, which would stand open to every stray write of the process, and costs
//! less than one that is mapped for each write and unmapped after it, which interrupts the CPUs of all workers.
//!
//! The file grows as code does. Behind its end the view gives `SIGBUS`; before its end there are code and guard
//! bytes only, because the file grows by writing guard bytes.

use std::fs::{File, read_to_string};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, fstat, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap, mmap_anonymous, mremap_fixed, munmap};

use crate::error::ExecError;
use crate::place;

/// What lies around code and where code was: a breakpoint (`int3`) on x86. The other machines that Linux runs on
/// take zeros for no instruction and trap as well.
pub const GUARD_BYTE: u8 = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) { 0xcc } else { 0 };

/// Bytes by which the file grows, a multiple of every page size in use.
pub(crate) const CHUNK: usize = 64 << 10;

/// A file in memory, mapped executable.
pub(crate) struct Memory {
    file: File,
    view: View,
}

impl Memory {
    /// Maps `capacity` bytes, a multiple of [`CHUNK`], as near to `anchor` as there is room; commits none of them.
    pub(crate) fn new(capacity: usize, anchor: usize) -> Result<Self, ExecError> {
        let file = create_file().map_err(|errno| ExecError::Refused { call: "memfd_create", errno })?;
        let refused = |errno| ExecError::Refused { call: "mmap", errno };
        // Without /proc there is nothing to choose by, and anywhere is as good.
        let maps = read_to_string("/proc/self/maps").unwrap_or_default();
        for address in place::candidates(&maps, anchor, capacity) {
            match View::new(&file, address, capacity, MapFlags::FIXED_NOREPLACE) {
                Ok(view) if view.base.addr().get() == address => return Ok(Self { file, view }),
                // A kernel before 4.17 takes the address for a hint. Others say that a thread was faster (EEXIST),
                // or that the address is not for us (EPERM below vm.mmap_min_addr).
                Ok(_) | Err(Errno::EXIST | Errno::PERM | Errno::INVAL | Errno::NOMEM) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
        let view = View::new(&file, 0, capacity, MapFlags::empty()).map_err(refused)?;
        Ok(Self { file, view })
    }

    /// Lets `perf` take the view for anonymous memory, the only one whose names it looks up in `/tmp/perf-PID.map`: what
    /// it records of an address is the last `mmap` there, and not what `mremap` moves there.
    pub(crate) fn pass_for_anonymous(self) -> Result<Self, ExecError> {
        self.view
            .pass_for_anonymous(&self.file)
            .map_err(|errno| ExecError::Refused { call: "mmap", errno })?;
        Ok(self)
    }

    /// Addresses of the view.
    pub(crate) fn range(&self) -> Range<usize> {
        let base = self.view.base.addr().get();
        base..base + self.view.capacity
    }

    /// The address of a place in the view.
    ///
    /// # Panics
    /// If the offset is not in the view.
    pub(crate) fn pointer(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.view.capacity);
        // SAFETY: just checked to lie in the mapping.
        unsafe { self.view.base.add(offset) }
    }

    /// Puts a copy of the memory into the place of the view, which this process then shares with nobody. The file stays the
    /// other one, and must not be written any more. For a process that was just forked: takes no lock and no memory of the heap.
    pub(crate) fn copy(&self) -> Result<(), Errno> {
        let copy = create_file()?;
        let len = fstat(&self.file)?.st_size as u64;
        let mut offset = 0;
        while offset < len {
            // From file to file: whoever has the other may be writing to parts of it.
            let left = (len - offset) as usize;
            if sendfile(&copy, &self.file, Some(&mut offset), left)? == 0 {
                return Err(Errno::IO);
            }
        }
        let place = self.view.base.as_ptr().cast();
        let (protection, flags) = (ProtFlags::READ | ProtFlags::EXEC, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: replaces our own view by one of the same bytes, but for those that are no code.
        unsafe { mmap(place, self.view.capacity, protection, flags, &copy, 0)? };
        Ok(())
    }

    /// Writes behind the view's back. The first write to a page commits it.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, offset as u64)
    }
}

struct View {
    base: NonNull<u8>,
    capacity: usize,
}

// SAFETY: a view is plain memory that the process cannot write, and it never changes place.
unsafe impl Send for View {}
// SAFETY: as above; nothing is done through `&View` but asking for its address.
unsafe impl Sync for View {}

impl View {
    fn new(file: &File, address: usize, capacity: usize, flags: MapFlags) -> Result<Self, Errno> {
        let hint = ptr::without_provenance_mut(address);
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        // SAFETY: a new mapping, which replaces none: either the address is a hint, or FIXED_NOREPLACE fails where
        // anything is mapped. No Rust reference is made to the memory.
        let base = unsafe { mmap(hint, capacity, protection, flags | MapFlags::SHARED, file, 0)? };
        NonNull::new(base.cast()).map(|base| Self { base, capacity }).ok_or(Errno::FAULT)
    }

    /// Puts anonymous memory in the place of the view, and another view of the file over that.
    fn pass_for_anonymous(&self, file: &File) -> Result<(), Errno> {
        let other = Self::new(file, 0, self.capacity, MapFlags::empty())?;
        let place = self.base.as_ptr().cast();
        let protection = ProtFlags::READ | ProtFlags::EXEC;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: replaces our own view, which nobody uses yet.
        unsafe { mmap_anonymous(place, self.capacity, protection, flags)? };
        let from = other.base.as_ptr().cast();
        // SAFETY: as above; what moves away is `other`, of which nobody else knows.
        unsafe { mremap_fixed(from, self.capacity, self.capacity, MremapFlags::MAYMOVE, place)? };
        // Its addresses are no longer its own.
        std::mem::forget(other);
        Ok(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped. Blocks hold the memory alive, so that no code in it is in use.
        // A failure would leave the mapping, which harms nobody.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.capacity) };
    }
}

fn create_file() -> Result<File, Errno> {
    let create = |flags| memfd_create("paceline-code", flags);
    // Where sysctl vm.memfd_noexec is 1 a file that is to be executed has to say so. Kernels before 6.3 do not know
    // the flag, nor the sysctl.
    match create(MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => create(MemfdFlags::CLOEXEC),
        result => result,
    }
    .map(File::from)
}
