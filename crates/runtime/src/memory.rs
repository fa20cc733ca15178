//! Loads and stores of programs, the only place where the engine in Rust touches memory by address.
//!
//! Map values are shared between workers, and programs may race on them as in the kernel. Every access here is atomic and
//! relaxed, so that such a race is not undefined behavior: whole if the address is aligned, in aligned
//! parts otherwise. On x86-64 an aligned access compiles to a plain move.
//!
//! Engines with a proof know which accesses are aligned, and need no test, and which are to the packet.
//! A packet's buffer belongs to one frame and thus to one thread: plain accesses at any address suffice.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use paceline_isa::{AtomicOp, Size, Width};

macro_rules! access {
    ($address:expr, $atomic:ty, $int:ty, load) => {{
        let pointer = $address as *mut $int;
        if pointer.is_aligned() {
            // SAFETY: the bytes are guaranteed by the caller, and the alignment was just checked.
            u64::from(unsafe { <$atomic>::from_ptr(pointer) }.load(Ordering::Relaxed))
        } else {
            // SAFETY: the bytes are guaranteed by the caller.
            unsafe { load_bytes::<{ size_of::<$int>() }>($address) }
        }
    }};
    ($address:expr, $atomic:ty, $int:ty, store $value:expr) => {{
        let pointer = $address as *mut $int;
        if pointer.is_aligned() {
            // SAFETY: the bytes are guaranteed by the caller, and the alignment was just checked.
            unsafe { <$atomic>::from_ptr(pointer) }.store($value as $int, Ordering::Relaxed);
        } else {
            // SAFETY: the bytes are guaranteed by the caller.
            unsafe { store_bytes::<{ size_of::<$int>() }>($address, $value) };
        }
    }};
}

/// Loads an integer in aligned parts. Out of line, because it is rare and would enlarge the callers.
#[cold]
#[inline(never)]
unsafe fn load_bytes<const SIZE: usize>(address: u64) -> u64 {
    let mut bytes = [0; 8];
    let range = if cfg!(target_endian = "big") { 8 - SIZE..8 } else { 0..SIZE };
    // SAFETY: SIZE bytes are guaranteed by the caller.
    unsafe { copy_from(&mut bytes[range], address) };
    u64::from_ne_bytes(bytes)
}

/// Stores the low bytes of an integer in aligned parts.
#[cold]
#[inline(never)]
unsafe fn store_bytes<const SIZE: usize>(address: u64, value: u64) {
    let range = if cfg!(target_endian = "big") { 8 - SIZE..8 } else { 0..SIZE };
    // SAFETY: SIZE bytes are guaranteed by the caller.
    unsafe { copy_to(address, &value.to_ne_bytes()[range]) };
}

/// Calls `$one` with each integer type and an offset, so that the integers are one after the other, each aligned at its address: small
/// ones to a multiple of eight, words of eight bytes, and the rest.
macro_rules! by_aligned_integers {
    ($address:ident, $len:ident, $one:ident) => {{
        let mut at = 0;
        if $address & 1 != 0 && $len - at >= 1 {
            $one!(AtomicU8, u8, at);
            at += 1;
        }
        if ($address + at as u64) & 2 != 0 && $len - at >= 2 {
            $one!(AtomicU16, u16, at);
            at += 2;
        }
        if ($address + at as u64) & 4 != 0 && $len - at >= 4 {
            $one!(AtomicU32, u32, at);
            at += 4;
        }
        // With eight bytes left the address is a multiple of eight, and with fewer it is one of each smaller size that follows.
        while $len - at >= 8 {
            $one!(AtomicU64, u64, at);
            at += 8;
        }
        if $len - at >= 4 {
            $one!(AtomicU32, u32, at);
            at += 4;
        }
        if $len - at >= 2 {
            $one!(AtomicU16, u16, at);
            at += 2;
        }
        if $len - at >= 1 {
            $one!(AtomicU8, u8, at);
        }
    }};
}

/// Copies bytes from an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be initialized memory that may be read.
#[inline]
pub unsafe fn copy_from(bytes: &mut [u8], address: u64) {
    let (len, to) = (bytes.len(), bytes.as_mut_ptr());
    macro_rules! one {
        ($atomic:ty, $int:ty, $at:ident) => {
            // SAFETY: the range is guaranteed by the caller, the integer lies in it and is aligned, and the bytes are as long.
            unsafe {
                let value = <$atomic>::from_ptr((address as *mut u8).add($at).cast()).load(Ordering::Relaxed);
                to.add($at).cast::<$int>().write_unaligned(value);
            }
        };
    }
    let at = 0;
    match len {
        // Keys and values of maps, mostly.
        4 if address.is_multiple_of(4) => one!(AtomicU32, u32, at),
        8 if address.is_multiple_of(8) => one!(AtomicU64, u64, at),
        _ => by_aligned_integers!(address, len, one),
    }
}

/// Copies bytes to an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be memory that may be written.
#[inline]
pub unsafe fn copy_to(address: u64, bytes: &[u8]) {
    let (len, from) = (bytes.len(), bytes.as_ptr());
    macro_rules! one {
        ($atomic:ty, $int:ty, $at:ident) => {
            // SAFETY: the range is guaranteed by the caller, the integer lies in it and is aligned, and the bytes are as long.
            unsafe {
                let value = from.add($at).cast::<$int>().read_unaligned();
                <$atomic>::from_ptr((address as *mut u8).add($at).cast()).store(value, Ordering::Relaxed);
            }
        };
    }
    by_aligned_integers!(address, len, one);
}

/// The sum of bytes as 32-bit words in native order, the last one padded with zeros, on top of a sum.
///
/// # Safety
/// `len` bytes at `address` must be initialized memory that may be read.
#[inline]
pub unsafe fn sum_words(address: u64, len: usize, mut sum: u64) -> u64 {
    // An integer that begins in the middle of a word has its bytes in the places of two words, which a rotation gives.
    let rotated = |part: u32, at: usize| match 8 * (at as u32 % 4) {
        bits if cfg!(target_endian = "big") => part.rotate_right(bits),
        bits => part.rotate_left(bits),
    };
    macro_rules! one {
        (AtomicU64, u64, $at:ident) => {{
            let place = (address + $at as u64) as *mut u64;
            // SAFETY: the range is guaranteed by the caller, the integer lies in it and is aligned.
            let value = unsafe { AtomicU64::from_ptr(place) }.load(Ordering::Relaxed);
            sum += u64::from(rotated(value as u32, $at)) + u64::from(rotated((value >> 32) as u32, $at));
        }};
        ($atomic:ty, $int:ty, $at:ident) => {{
            let place = (address + $at as u64) as *mut $int;
            // SAFETY: as above.
            let value = unsafe { <$atomic>::from_ptr(place) }.load(Ordering::Relaxed);
            let above = if cfg!(target_endian = "big") { 32 - <$int>::BITS } else { 0 };
            sum += u64::from(rotated(u32::from(value) << above, $at));
        }};
    }
    // Short ones are headers that a program has just stored in parts: a load of several parts would wait for these.
    const SHORT: usize = 64;
    if len <= SHORT && address.is_multiple_of(4) {
        let words = len / 4;
        for at in (0..words).map(|word| 4 * word) {
            one!(AtomicU32, u32, at);
        }
        let mut at = 4 * words;
        while at < len {
            one!(AtomicU8, u8, at);
            at += 1;
        }
        return sum;
    }
    by_aligned_integers!(address, len, one);
    sum
}

/// Loads an integer in native byte order, zero-extended.
///
/// # Safety
/// `size` bytes at `address` must be initialized memory that may be read.
#[inline]
pub unsafe fn load(address: u64, size: Size) -> u64 {
    match size {
        Size::B => access!(address, AtomicU8, u8, load),
        Size::H => access!(address, AtomicU16, u16, load),
        Size::W => access!(address, AtomicU32, u32, load),
        Size::Dw => access!(address, AtomicU64, u64, load),
    }
}

/// Stores the low bytes of `value` in native byte order.
///
/// # Safety
/// `size` bytes at `address` must be memory that may be written.
#[inline]
pub unsafe fn store(address: u64, size: Size, value: u64) {
    match size {
        Size::B => access!(address, AtomicU8, u8, store value),
        Size::H => access!(address, AtomicU16, u16, store value),
        Size::W => access!(address, AtomicU32, u32, store value),
        Size::Dw => access!(address, AtomicU64, u64, store value),
    }
}

/// Loads an integer that is aligned to its size.
///
/// # Safety
/// As for [`load`], and the address must be a multiple of the size.
#[inline(always)]
pub unsafe fn load_aligned(address: u64, size: Size) -> u64 {
    // SAFETY: the bytes and their alignment are guaranteed by the caller.
    unsafe {
        match size {
            Size::B => u64::from(AtomicU8::from_ptr(address as *mut u8).load(Ordering::Relaxed)),
            Size::H => u64::from(AtomicU16::from_ptr(address as *mut u16).load(Ordering::Relaxed)),
            Size::W => u64::from(AtomicU32::from_ptr(address as *mut u32).load(Ordering::Relaxed)),
            Size::Dw => AtomicU64::from_ptr(address as *mut u64).load(Ordering::Relaxed),
        }
    }
}

/// Stores an integer to an address that is a multiple of its size.
///
/// # Safety
/// As for [`store`], and the address must be a multiple of the size.
#[inline(always)]
pub unsafe fn store_aligned(address: u64, size: Size, value: u64) {
    // SAFETY: the bytes and their alignment are guaranteed by the caller.
    unsafe {
        match size {
            Size::B => AtomicU8::from_ptr(address as *mut u8).store(value as u8, Ordering::Relaxed),
            Size::H => AtomicU16::from_ptr(address as *mut u16).store(value as u16, Ordering::Relaxed),
            Size::W => AtomicU32::from_ptr(address as *mut u32).store(value as u32, Ordering::Relaxed),
            Size::Dw => AtomicU64::from_ptr(address as *mut u64).store(value, Ordering::Relaxed),
        }
    }
}

/// An integer at any address: a field of a packed structure is read and written whole, where `read_unaligned` has
/// checks in builds with debug assertions.
#[repr(C, packed)]
struct Unaligned<T>(T);

/// Loads an integer from memory that no other thread writes to.
///
/// # Safety
/// As for [`load`], and no other thread may write to the bytes meanwhile.
#[inline(always)]
pub unsafe fn load_unshared(address: u64, size: Size) -> u64 {
    // SAFETY: the bytes are guaranteed by the caller.
    unsafe {
        match size {
            Size::B => u64::from(*(address as *const u8)),
            Size::H => u64::from((*(address as *const Unaligned<u16>)).0),
            Size::W => u64::from((*(address as *const Unaligned<u32>)).0),
            Size::Dw => (*(address as *const Unaligned<u64>)).0,
        }
    }
}

/// Stores an integer to memory that no other thread uses.
///
/// # Safety
/// As for [`store`], and no other thread may use the bytes meanwhile.
#[inline(always)]
pub unsafe fn store_unshared(address: u64, size: Size, value: u64) {
    // SAFETY: the bytes are guaranteed by the caller.
    unsafe {
        match size {
            Size::B => *(address as *mut u8) = value as u8,
            Size::H => (*(address as *mut Unaligned<u16>)).0 = value as u16,
            Size::W => (*(address as *mut Unaligned<u32>)).0 = value as u32,
            Size::Dw => (*(address as *mut Unaligned<u64>)).0 = value,
        }
    }
}

/// Applies an atomic operation and returns the old value, zero-extended. All are fully ordered, as the kernel's
/// operations that return a value are.
///
/// # Safety
/// The bytes at `address` must be initialized memory that may be read and written, aligned to the width.
#[inline]
pub unsafe fn atomic(address: u64, width: Width, op: AtomicOp, src: u64, r0: u64) -> u64 {
    const ALL: Ordering = Ordering::SeqCst;
    macro_rules! update {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the bytes and their alignment are guaranteed by the caller.
            let cell = unsafe { <$atomic>::from_ptr(address as *mut $int) };
            let src = src as $int;
            u64::from(match op {
                AtomicOp::Add { .. } => cell.fetch_add(src, ALL),
                AtomicOp::Or { .. } => cell.fetch_or(src, ALL),
                AtomicOp::And { .. } => cell.fetch_and(src, ALL),
                AtomicOp::Xor { .. } => cell.fetch_xor(src, ALL),
                AtomicOp::Xchg => cell.swap(src, ALL),
                AtomicOp::CmpXchg => {
                    cell.compare_exchange(r0 as $int, src, ALL, ALL).unwrap_or_else(|old| old)
                }
            })
        }};
    }
    match width {
        Width::W32 => update!(AtomicU32, u32),
        Width::W64 => update!(AtomicU64, u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each start and each length within a few words.
    fn ranges() -> impl Iterator<Item = (usize, usize)> {
        (0..16).flat_map(|start| (0..80).map(move |len| (start, len)))
    }

    #[repr(align(16))]
    struct Aligned([u8; 128]);

    fn bytes() -> Aligned {
        Aligned(std::array::from_fn(|index| (index as u8).wrapping_mul(37) ^ 0xa5))
    }

    #[test]
    fn copies_have_all_bytes_and_no_others() {
        let from = bytes();
        for (start, len) in ranges() {
            let expected = &from.0[start..start + len];
            let mut copy = vec![0; len];
            // SAFETY: the bytes lie in the array.
            unsafe { copy_from(&mut copy, from.0[start..].as_ptr() as u64) };
            assert_eq!(copy, expected, "{len} bytes from {start}");
            let mut to = Aligned([0; 128]);
            // SAFETY: the bytes lie in the array.
            unsafe { copy_to(to.0[start..].as_mut_ptr() as u64, expected) };
            let mut all = [0; 128];
            all[start..start + len].copy_from_slice(expected);
            assert_eq!(to.0, all, "{len} bytes to {start}");
        }
    }

    #[test]
    fn sums_are_those_of_words_padded_with_zeros() {
        let from = bytes();
        for (start, len) in ranges() {
            let expected: u64 = from.0[start..start + len]
                .chunks(4)
                .map(|chunk| {
                    let mut word = [0; 4];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from(u32::from_ne_bytes(word))
                })
                .sum();
            // SAFETY: the bytes lie in the array.
            let sum = unsafe { sum_words(from.0[start..].as_ptr() as u64, len, 7) };
            assert_eq!(sum, expected + 7, "{len} bytes from {start}");
        }
    }
}
