//! Loads and stores of programs, the only place where the engine in Rust touches memory by address.
//!
//! Map values are shared between workers, and programs may race on them as in the kernel. Every access here is atomic and
//! relaxed, so that such a race is not undefined behavior: whole if the address is aligned, byte by byte
//! otherwise. On x86-64 an aligned access compiles to a plain move.
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

/// Loads an integer byte by byte. Out of line, because it is rare and would enlarge the callers.
#[cold]
#[inline(never)]
unsafe fn load_bytes<const SIZE: usize>(address: u64) -> u64 {
    let mut bytes = [0; 8];
    let range = if cfg!(target_endian = "big") { 8 - SIZE..8 } else { 0..SIZE };
    // SAFETY: SIZE bytes are guaranteed by the caller.
    unsafe { copy_from(&mut bytes[range], address) };
    u64::from_ne_bytes(bytes)
}

/// Stores the low bytes of an integer one by one.
#[cold]
#[inline(never)]
unsafe fn store_bytes<const SIZE: usize>(address: u64, value: u64) {
    let range = if cfg!(target_endian = "big") { 8 - SIZE..8 } else { 0..SIZE };
    // SAFETY: SIZE bytes are guaranteed by the caller.
    unsafe { copy_to(address, &value.to_ne_bytes()[range]) };
}

/// Copies bytes from an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be initialized memory that may be read.
#[inline]
pub unsafe fn copy_from(bytes: &mut [u8], address: u64) {
    let whole = if address.is_multiple_of(8) { bytes.len() / 8 } else { 0 };
    let (words, rest) = bytes.split_at_mut(8 * whole);
    for (i, word) in words.chunks_exact_mut(8).enumerate() {
        // SAFETY: the range is guaranteed by the caller; the address is a multiple of 8.
        let value = unsafe { AtomicU64::from_ptr((address as *mut u64).add(i)) }.load(Ordering::Relaxed);
        word.copy_from_slice(&value.to_ne_bytes());
    }
    for (i, byte) in (8 * whole..).zip(rest) {
        // SAFETY: the range is guaranteed by the caller; a byte is always aligned.
        *byte = unsafe { AtomicU8::from_ptr((address as *mut u8).add(i)) }.load(Ordering::Relaxed);
    }
}

/// Copies bytes to an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be memory that may be written.
pub unsafe fn copy_to(address: u64, bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        // SAFETY: the range is guaranteed by the caller; a byte is always aligned.
        unsafe { AtomicU8::from_ptr((address as *mut u8).add(i)) }.store(byte, Ordering::Relaxed);
    }
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
