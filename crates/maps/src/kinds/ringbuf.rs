//! Ring buffers as maps.

use paceline_spec::Errno;

use crate::create::{CreateErrorKind, NUMA_NODE, Request};
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::UpdateMode;
use crate::ringbuf::RingBuffer;

/// Pages of the kernel's sizes.
const PAGE: u32 = 4096;

pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
    request.check_flags(NUMA_NODE)?;
    let spec = &request.spec;
    if spec.key_size != 0 {
        return Err(CreateErrorKind::KeySize { size: spec.key_size, expected: 0 });
    }
    request.check_value_is_one_of(&[0])?;
    let entries = spec.max_entries;
    if !entries.is_power_of_two() || !entries.is_multiple_of(PAGE) {
        return Err(CreateErrorKind::RingSize { entries, page: PAGE });
    }
    request.check_memory(u64::try_from(RingBuffer::memory(entries)).ok())?;
    Ok(RingBuffer::boxed(entries)?)
}

impl MapOps for RingBuffer {
    fn contains(&self, address: usize, len: usize) -> bool {
        RingBuffer::contains(self, address, len)
    }

    fn user_value_size(&self) -> usize {
        0
    }

    fn get(&self, _key: &[u8], _out: &mut Vec<u8>) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn set(&self, _key: &[u8], _value: &[u8], _mode: UpdateMode) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn remove(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOTSUPP)
    }

    fn key_space(&self) -> KeySpace<'_> {
        // None, and asking for the next one fails as at the end of others.
        KeySpace::Indices(0)
    }

    fn ring_buffer(&self) -> Option<&RingBuffer> {
        Some(self)
    }
}
