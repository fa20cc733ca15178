//! Parameters that are memory. Every access is checked against the length in the argument, and copies by atomic operations: other
//! workers may change the memory meanwhile if it is a map value.

use std::marker::PhantomData;

use paceline_isa::Size;
use smallvec::{SmallVec, smallvec};

use super::argument::{Argument, Registers};
use super::class::Class;
use crate::memory;
use crate::stack::STACK_FRAME;

/// A copy of memory that a program passes. As many bytes as a program's stack has need no memory of the heap.
pub(super) type Bytes = SmallVec<[u8; STACK_FRAME]>;

/// Memory that a program passes: null, or so many bytes that can be read, and written where the class says so.
#[derive(Clone, Copy)]
pub(super) struct Mem<'a> {
    address: u64,
    len: usize,
    call: PhantomData<&'a ()>,
}

impl Mem<'_> {
    /// # Safety
    /// The address must be null, or `len` bytes at it must be readable during the call; if [`write`](Self::write) or
    /// [`write_at`](Self::write_at) is called, writable as well.
    #[inline]
    pub(super) unsafe fn new(address: u64, len: usize) -> Self {
        Self { address, len, call: PhantomData }
    }

    pub(super) fn is_null(&self) -> bool {
        self.address == 0
    }

    /// The length that the program passes, also for null.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The first bytes, at most `most`; none of null.
    pub(super) fn read_up_to(&self, most: usize) -> Bytes {
        let len = if self.is_null() { 0 } else { self.len.min(most) };
        let mut bytes: Bytes = smallvec![0; len];
        // SAFETY: so many bytes can be read.
        unsafe { memory::copy_from(&mut bytes, self.address) };
        bytes
    }

    /// Gives a copy of all bytes to `take`; of null it is empty. Of short ones there is no other copy, as an owned one would be.
    #[inline]
    pub(super) fn with<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        const SHORT: usize = 64;
        let len = if self.is_null() { 0 } else { self.len };
        if len > SHORT {
            return take(&self.read());
        }
        let mut bytes = [0; SHORT];
        // SAFETY: so many bytes can be read.
        unsafe { memory::copy_from(&mut bytes[..len], self.address) };
        take(&bytes[..len])
    }

    /// All bytes; none of null.
    pub(super) fn read(&self) -> Bytes {
        self.read_up_to(self.len)
    }

    /// Whether bytes lie in the memory: those of the packet may, in programs that are not verified.
    #[inline]
    fn overlaps(&self, bytes: &[u8]) -> bool {
        let start = bytes.as_ptr() as u64;
        start < self.address.saturating_add(self.len as u64) && self.address < start + bytes.len() as u64
    }

    /// Copies as many bytes as there are in both; none of null.
    #[inline]
    pub(super) fn copy_to(&self, bytes: &mut [u8]) {
        let len = if self.is_null() { 0 } else { self.len.min(bytes.len()) };
        if self.overlaps(bytes) {
            return bytes[..len].copy_from_slice(&self.read()[..len]);
        }
        // SAFETY: so many bytes can be read.
        unsafe { memory::copy_from(&mut bytes[..len], self.address) };
    }

    /// As of [`memory::sum_words`]; nothing of null.
    #[inline]
    pub(super) fn sum_words(&self, sum: u64) -> u64 {
        if self.is_null() {
            return sum;
        }
        // SAFETY: so many bytes can be read.
        unsafe { memory::sum_words(self.address, self.len, sum) }
    }

    /// Bytes at an offset; `None` where they are not all in the memory.
    pub(super) fn read_at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.has(offset, N).then(|| {
            // SAFETY: the bytes lie in the memory.
            unsafe { memory::copy_from(&mut bytes, self.address + offset as u64) };
            bytes
        })
    }

    /// Writes the first bytes, none to null.
    ///
    /// # Panics
    /// In builds with debug assertions, if there are more bytes than the memory has; otherwise these are left out.
    #[inline]
    pub(super) fn write(&self, bytes: &[u8]) {
        self.write_at(0, bytes);
    }

    /// Writes zeros to all of the memory, none to null.
    pub(super) fn clear(&self) {
        const ZEROS: [u8; 64] = [0; 64];
        for start in (0..self.len).step_by(ZEROS.len()) {
            self.write_at(start, &ZEROS[..ZEROS.len().min(self.len - start)]);
        }
    }

    /// Writes bytes at an offset, as [`write`](Self::write).
    #[inline]
    pub(super) fn write_at(&self, offset: usize, bytes: &[u8]) {
        debug_assert!(self.is_null() || self.has(offset, bytes.len()), "a helper writes past its argument");
        if !self.has(offset, bytes.len()) {
            return;
        }
        if self.overlaps(bytes) {
            return self.write_copy(offset, bytes);
        }
        // SAFETY: the bytes lie in the memory, and are others.
        unsafe { memory::copy_to(self.address + offset as u64, bytes) };
    }

    /// Writes bytes that lie in the memory themselves. Apart, because it is rare and its copy takes room on the stack.
    #[cold]
    #[inline(never)]
    fn write_copy(&self, offset: usize, bytes: &[u8]) {
        self.write_at(offset, &Bytes::from_slice(bytes));
    }

    fn has(&self, offset: usize, len: usize) -> bool {
        !self.is_null() && offset.checked_add(len).is_some_and(|end| end <= self.len)
    }
}

/// Memory that the helper reads, with the size in the next register.
#[derive(Clone, Copy)]
pub(super) struct ReadMem<'a>(Mem<'a>);

/// Memory that the helper writes, with the size in the next register.
#[derive(Clone, Copy)]
pub(super) struct WriteMem<'a>(Mem<'a>);

/// Memory that the helper reads and writes, with the size in the next register; `LEAST` bytes exist whatever the size is.
#[derive(Clone, Copy)]
pub(super) struct ReadWriteMem<'a, const LEAST: usize = 0>(Mem<'a>);

/// The memory of an address in a register and a size of 32 bits in the next one.
///
/// # Safety
/// As of [`Mem::new`].
#[inline(always)]
unsafe fn sized<'a>(registers: &Registers, index: usize) -> Mem<'a> {
    // SAFETY: the memory is guaranteed by the caller.
    unsafe { Mem::new(registers[index], registers[index + 1] as u32 as usize) }
}

// SAFETY: as many bytes as the size says can be read, and nothing here writes them.
unsafe impl<'a> Argument<'a> for ReadMem<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::READ_MEM], &[Class::SIZE]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the registers hold such an address and its size.
        Self(unsafe { sized(registers, index) })
    }
}

// SAFETY: as many bytes as the size says can be written.
unsafe impl<'a> Argument<'a> for WriteMem<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::WRITE_MEM], &[Class::SIZE]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the registers hold such an address and its size.
        Self(unsafe { sized(registers, index) })
    }
}

// SAFETY: as many bytes as the size says can be read and written.
unsafe impl<'a, const LEAST: usize> Argument<'a> for ReadWriteMem<'a, LEAST> {
    const REGISTERS: &'static [&'static [Class]] =
        &[&[Class::READ_WRITE_MEM], &[Class::size_of_at_least(LEAST)]];

    #[inline(always)]
    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        // SAFETY: the registers hold such an address and its size.
        Self(unsafe { sized(registers, index) })
    }
}

impl ReadMem<'_> {
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// As of [`Mem::len`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// As of [`Mem::read`].
    pub(super) fn read(&self) -> Bytes {
        self.0.read()
    }

    /// As of [`Mem::with`].
    #[inline]
    pub(super) fn with<R>(&self, take: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with(take)
    }

    /// As of [`Mem::copy_to`].
    #[inline]
    pub(super) fn copy_to(&self, bytes: &mut [u8]) {
        self.0.copy_to(bytes);
    }

    /// As of [`Mem::sum_words`].
    #[inline]
    pub(super) fn sum_words(&self, sum: u64) -> u64 {
        self.0.sum_words(sum)
    }

    /// As of [`Mem::read_up_to`].
    pub(super) fn read_up_to(&self, most: usize) -> Bytes {
        self.0.read_up_to(most)
    }
}

impl WriteMem<'_> {
    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// As of [`Mem::len`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// As of [`Mem::write`].
    #[inline]
    pub(super) fn write(&self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// As of [`Mem::clear`].
    pub(super) fn clear(&self) {
        self.0.clear();
    }
}

impl<const LEAST: usize> ReadWriteMem<'_, LEAST> {
    pub(super) fn address(&self) -> u64 {
        self.0.address
    }

    pub(super) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// As of [`Mem::len`].
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// As of [`Mem::read_up_to`].
    pub(super) fn read_up_to(&self, most: usize) -> Bytes {
        self.0.read_up_to(most)
    }

    /// As of [`Mem::read_at`].
    pub(super) fn read_at<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.0.read_at(offset)
    }

    /// As of [`Mem::write_at`], also past the size in the least number of bytes.
    pub(super) fn write_at(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the least number of bytes exists whatever the size is.
        unsafe { Mem::new(self.0.address, self.0.len.max(LEAST)) }.write_at(offset, bytes);
    }
}

/// Pointer to `N` bytes that the helper reads.
#[derive(Clone, Copy)]
pub(super) struct ReadBytes<'a, const N: usize>(&'a u64);

// SAFETY: so many bytes can be read during the call.
unsafe impl<'a, const N: usize> Argument<'a> for ReadBytes<'a, N> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::read_bytes(N)]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl<const N: usize> ReadBytes<'_, N> {
    pub(super) fn read(&self) -> [u8; N] {
        let mut bytes = [0; N];
        // SAFETY: so many bytes can be read.
        unsafe { memory::copy_from(&mut bytes, *self.0) };
        bytes
    }
}

/// Pointer to an integer of 64 bits that the helper writes, at a multiple of its size.
#[derive(Clone, Copy)]
pub(super) struct WriteU64<'a>(&'a u64);

// SAFETY: eight bytes can be written during the call.
unsafe impl<'a> Argument<'a> for WriteU64<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::write_bytes(8)]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl WriteU64<'_> {
    pub(super) fn store(&self, value: u64) {
        // SAFETY: eight bytes at the address can be written.
        unsafe { memory::store(*self.0, Size::Dw, value) };
    }
}

/// Pointer to an integer of 32 bits that the helper reads and writes, at a multiple of its size.
#[derive(Clone, Copy)]
pub(super) struct ReadWriteU32<'a>(&'a u64);

// SAFETY: four bytes can be read and written during the call.
unsafe impl<'a> Argument<'a> for ReadWriteU32<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::read_write_bytes(4)]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl ReadWriteU32<'_> {
    pub(super) fn load(&self) -> u32 {
        // SAFETY: four bytes at the address can be read.
        unsafe { memory::load(*self.0, Size::W) as u32 }
    }

    pub(super) fn store(&self, value: u32) {
        // SAFETY: four bytes at the address can be written.
        unsafe { memory::store(*self.0, Size::W, u64::from(value)) };
    }
}

/// Pointer to `N` bytes that the function writes.
#[derive(Clone, Copy)]
pub(super) struct WriteBytes<'a, const N: usize>(&'a u64);

// SAFETY: so many bytes can be written during the call.
unsafe impl<'a, const N: usize> Argument<'a> for WriteBytes<'a, N> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::write_bytes(N)]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl<const N: usize> WriteBytes<'_, N> {
    pub(super) fn write(&self, bytes: [u8; N]) {
        // SAFETY: so many bytes can be written.
        unsafe { memory::copy_to(*self.0, &bytes) };
    }
}

/// Pointer to text that ends in a zero byte.
#[derive(Clone, Copy)]
pub(super) struct Text<'a>(&'a u64);

// SAFETY: all bytes up to the first zero can be read during the call, and nobody changes them.
unsafe impl<'a> Argument<'a> for Text<'a> {
    const REGISTERS: &'static [&'static [Class]] = &[&[Class::TEXT]];

    unsafe fn from_registers(registers: &'a Registers, index: usize) -> Self {
        Self(&registers[index])
    }
}

impl Text<'_> {
    /// The text with its zero byte.
    pub(super) fn read(&self) -> Bytes {
        let mut text = Bytes::new();
        loop {
            let mut byte = [0];
            // SAFETY: no byte before was zero.
            unsafe { memory::copy_from(&mut byte, *self.0 + text.len() as u64) };
            text.push(byte[0]);
            if byte == [0] {
                return text;
            }
        }
    }
}
