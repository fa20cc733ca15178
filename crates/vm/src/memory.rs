//! Loads and stores of programs, the only place where the engine in Rust touches memory by address.
//!
//! Map values are shared between workers, and programs may race on them as in the kernel. So that such a race is
//! no undefined behavior, every access here is atomic and relaxed: whole where the address is aligned, byte by byte
//! where it is not. On x86-64 an aligned access compiles to a plain move.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use paceline_isa::{AtomicOp, Size, Width, eval};

macro_rules! access {
    ($address:expr, $atomic:ty, $int:ty, load) => {{
        let pointer = $address as *mut $int;
        if pointer.is_aligned() {
            // SAFETY: the caller vouches for the bytes, and the alignment was just checked.
            u64::from(unsafe { <$atomic>::from_ptr(pointer) }.load(Ordering::Relaxed))
        } else {
            let mut bytes = [0; size_of::<$int>()];
            // SAFETY: the caller vouches for the bytes.
            unsafe { copy_from(&mut bytes, $address) };
            u64::from(<$int>::from_ne_bytes(bytes))
        }
    }};
    ($address:expr, $atomic:ty, $int:ty, store $value:expr) => {{
        let pointer = $address as *mut $int;
        if pointer.is_aligned() {
            // SAFETY: the caller vouches for the bytes, and the alignment was just checked.
            unsafe { <$atomic>::from_ptr(pointer) }.store($value as $int, Ordering::Relaxed);
        } else {
            // SAFETY: the caller vouches for the bytes.
            unsafe { copy_to($address, &($value as $int).to_ne_bytes()) };
        }
    }};
}

/// Copies bytes from an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be initialized memory that may be read.
pub(crate) unsafe fn copy_from(bytes: &mut [u8], address: u64) {
    for (i, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the caller vouches for the range; a byte is always aligned.
        *byte = unsafe { AtomicU8::from_ptr((address as *mut u8).add(i)) }.load(Ordering::Relaxed);
    }
}

/// Copies bytes to an address.
///
/// # Safety
/// `bytes.len()` bytes at `address` must be memory that may be written.
pub(crate) unsafe fn copy_to(address: u64, bytes: &[u8]) {
    for (i, &byte) in bytes.iter().enumerate() {
        // SAFETY: the caller vouches for the range; a byte is always aligned.
        unsafe { AtomicU8::from_ptr((address as *mut u8).add(i)) }.store(byte, Ordering::Relaxed);
    }
}

/// Copies as many of the bytes at an address as there are, whatever is there; tells how many. The kernel looks, so that
/// an address of nothing is no fault.
pub(crate) fn probe(bytes: &mut [u8], address: u64) -> usize {
    const PAGE: u64 = 4096;
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let Some(at) = address.checked_add(done as u64) else { break };
        // The kernel copies all of a piece or nothing; readable memory ends where a page does.
        let len = rest.len().min((PAGE - at % PAGE) as usize);
        let to = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: len };
        let from = libc::iovec { iov_base: at as *mut _, iov_len: len };
        // SAFETY: `to` is `len` bytes of the slice; the other address is the kernel's to judge.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0) };
        if usize::try_from(copied) != Ok(len) {
            break;
        }
        done += len;
    }
    done
}

/// Loads an integer in native byte order, zero-extended.
///
/// # Safety
/// `size` bytes at `address` must be initialized memory that may be read.
#[inline]
pub(crate) unsafe fn load(address: u64, size: Size) -> u64 {
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
pub(crate) unsafe fn store(address: u64, size: Size, value: u64) {
    match size {
        Size::B => access!(address, AtomicU8, u8, store value),
        Size::H => access!(address, AtomicU16, u16, store value),
        Size::W => access!(address, AtomicU32, u32, store value),
        Size::Dw => access!(address, AtomicU64, u64, store value),
    }
}

/// Applies an atomic operation and returns the old value, zero-extended. All are fully ordered, as the kernel's
/// operations that return a value are.
///
/// # Safety
/// The bytes at `address` must be initialized memory that may be read and written, aligned to the width.
pub(crate) unsafe fn atomic(address: u64, width: Width, op: AtomicOp, src: u64, r0: u64) -> u64 {
    macro_rules! update {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the caller vouches for the bytes and their alignment.
            let cell = unsafe { <$atomic>::from_ptr(address as *mut $int) };
            let new = |old: $int| Some(eval::atomic(width, op, u64::from(old), src, r0) as $int);
            match cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new) {
                Ok(old) | Err(old) => u64::from(old),
            }
        }};
    }
    match width {
        Width::W32 => update!(AtomicU32, u32),
        Width::W64 => update!(AtomicU64, u64),
    }
}
