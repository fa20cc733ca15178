//! A cursor over possibly hostile bytes.

use super::error::BtfError;
use crate::types::ByteOrder;

/// Reads integers in one byte order; every read out of bounds is an error with its offset.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    order: ByteOrder,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, at: 0, order }
    }

    /// Offset of the next read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], BtfError> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(BtfError::Truncated { offset: self.at })?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BtfError> {
        let at = self.at;
        self.take(N)?.try_into().map_err(|_| BtfError::Truncated { offset: at })
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BtfError> {
        let bytes = self.array()?;
        Ok(match self.order {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        })
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BtfError> {
        let bytes = self.array()?;
        Ok(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    /// Maximum number of records of `size` bytes in the remaining bytes: counts in the bytes are checked against it before memory
    /// is allocated.
    pub(crate) fn room_for(&self, size: usize) -> usize {
        (self.bytes.len() - self.at.min(self.bytes.len())) / size
    }
}
