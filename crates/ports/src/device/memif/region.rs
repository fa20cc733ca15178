//! Memory that both sides of a connection write.
//!
//! The peer may change each byte at any time, also while it is read here. Bytes are therefore only copied, and only the copies are looked at;
//! indices are loaded and stored atomically. No reference to the memory exists besides those to atomic integers.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU16, AtomicU64};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::Errno;

use super::channel::End;
use crate::device::mapping::Mapping;

/// Size in bytes up to which offsets of 32 bits reach.
pub(super) const LARGEST: u64 = 1 << 32;

/// A memory, mapped.
pub(super) struct Region {
    mapping: Mapping,
    len: usize,
}

impl Region {
    /// Zeroed memory whose size is sealed, and its descriptor.
    pub(super) fn create(len: usize) -> Result<(Self, OwnedFd), Errno> {
        let fd = memfd_create("paceline-memif", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, len as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self { mapping: Mapping::of_file(fd.as_fd(), len)?, len }, fd))
    }

    /// Maps the memory of a peer. The descriptor must be that of a memory file that cannot shrink: an access behind the end of a file
    /// would end the process, and other files may be slow, or wait for ever.
    pub(super) fn open(fd: &OwnedFd, size: u64) -> Result<Self, End> {
        if size == 0 || size > LARGEST {
            return Err(End::Broken("invalid region size"));
        }
        // Only memory files have seals. One that a peer did not seal is sealed here, if it permits that.
        let _ = fcntl_add_seals(fd, SealFlags::SHRINK);
        if !fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(End::Broken("region is no memory file sealed with F_SEAL_SHRINK"));
        }
        // Afterwards it is not shorter.
        if (fstat(fd)?.st_size.cast_unsigned()) < size {
            return Err(End::Broken("region is larger than its file"));
        }
        let len = usize::try_from(size).map_err(|_| End::Broken("invalid region size"))?;
        Ok(Self { mapping: Mapping::of_file(fd.as_fd(), len)?, len })
    }

    /// Whether the memory has these bytes.
    #[inline]
    pub(super) fn has(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// Copies bytes out; false, and nothing is copied, if they are not all inside of the memory.
    #[inline]
    pub(super) fn read(&self, offset: usize, to: &mut [u8]) -> bool {
        if !self.has(offset, to.len()) {
            return false;
        }
        // SAFETY: the range is inside of the mapping, which no reference refers to, and the own buffer is not part of it. The peer, or
        // another worker if the peer lets buffers overlap, may write it meanwhile: the copied bytes are then arbitrary, as each may be.
        unsafe {
            let from = self.mapping.start().as_ptr().add(offset);
            from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len());
        }
        true
    }

    /// Copies bytes in; false, and nothing is copied, if they would not all be inside of the memory.
    #[inline]
    pub(super) fn write(&self, offset: usize, from: &[u8]) -> bool {
        if !self.has(offset, from.len()) {
            return false;
        }
        // SAFETY: as in `read`.
        unsafe {
            let to = self.mapping.start().as_ptr().add(offset);
            to.copy_from_nonoverlapping(from.as_ptr(), from.len());
        }
        true
    }

    /// An index; `None` if it is outside of the memory or not aligned.
    pub(super) fn index(&self, offset: usize) -> Option<&AtomicU16> {
        if !self.has(offset, 2) || !offset.is_multiple_of(2) {
            return None;
        }
        // SAFETY: the place is inside of the mapping, which is aligned to a page, and both sides access it atomically.
        Some(unsafe { AtomicU16::from_ptr(self.mapping.start().as_ptr().add(offset).cast()) })
    }

    /// A word of 8 bytes; `None` if it is outside of the memory or not aligned.
    pub(super) fn word(&self, offset: usize) -> Option<&AtomicU64> {
        if !self.has(offset, 8) || !offset.is_multiple_of(8) {
            return None;
        }
        // SAFETY: as in `index`; a peer's wider or narrower access makes the loaded value arbitrary, as each may be.
        Some(unsafe { AtomicU64::from_ptr(self.mapping.start().as_ptr().add(offset).cast()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_stay_inside() {
        let (region, fd) = Region::create(4096).expect("memory");
        assert!(region.write(4090, &[1, 2, 3, 4, 5, 6]) && !region.write(4090, &[0; 7]));
        let mut bytes = [0; 6];
        assert!(region.read(4090, &mut bytes) && !region.read(usize::MAX, &mut bytes));
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6]);
        assert!(region.index(4094).is_some() && region.index(4095).is_none() && region.index(4096).is_none());
        assert!(
            region.word(4088).is_some() && region.word(4092).is_none() && region.word(usize::MAX).is_none()
        );
        // The other side has the same memory.
        let other = Region::open(&fd, 4096).expect("memory");
        assert!(other.read(4090, &mut bytes) && bytes == [1, 2, 3, 4, 5, 6]);
        assert!(ftruncate(&fd, 0).is_err(), "it is sealed");
    }

    #[test]
    fn memory_that_may_vanish_is_refused() {
        let open = |fd: &OwnedFd, size| match Region::open(fd, size) {
            Err(End::Broken(why)) => why,
            _ => panic!("it is accepted"),
        };
        let (_, fd) = Region::create(4096).expect("memory");
        assert_eq!(open(&fd, 4097), "region is larger than its file");
        assert_eq!(open(&fd, 0), "invalid region size");
        assert_eq!(open(&fd, LARGEST + 1), "invalid region size");
        let file = OwnedFd::from(std::fs::File::open("/dev/zero").expect("a file"));
        assert!(open(&file, 4096).contains("F_SEAL_SHRINK"));
        let unsealable = memfd_create("test", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&unsealable, 4096).expect("a size");
        assert!(open(&unsealable, 4096).contains("F_SEAL_SHRINK"));
        let unsealed = memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("a file");
        ftruncate(&unsealed, 4096).expect("a size");
        assert!(Region::open(&unsealed, 4096).is_ok());
        assert!(ftruncate(&unsealed, 0).is_err(), "it is sealed");
    }
}
