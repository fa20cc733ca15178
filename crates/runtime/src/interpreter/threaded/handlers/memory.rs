//! Operations on memory, the context and the packet.

use std::sync::atomic::{Ordering, fence};

use crate::context;
use crate::host::Host;
use crate::memory;
use paceline_isa::{AtomicOp, Size, SwapOrder, Width, eval};
use paceline_spec::context::{Field, Place};

use super::dispatch::get;
use crate::interpreter::op::{DST, MORE, OTHER, Op, Packet, SRC};
use crate::interpreter::threaded::kind::Reach;

/// The address of an access, whose base is in a byte of the operation.
///
/// # Safety
/// Of all functions here: as of `operation`.
#[inline(always)]
pub(super) unsafe fn address(op: &Op, base: u8, reach: Reach, packet: Packet, window: *mut u64) -> u64 {
    match reach {
        Reach::Start => packet.start,
        // SAFETY: the byte holds a register.
        _ => unsafe { get(window, op.register(base)) },
    }
    .wrapping_add(op.imm() as u64)
}

/// The address of a store of the immediate.
#[inline(always)]
pub(super) unsafe fn address_beside(op: &Op, reach: Reach, packet: Packet, window: *mut u64) -> u64 {
    match reach {
        Reach::Start => packet.start,
        // SAFETY: the byte holds a register.
        _ => unsafe { get(window, op.register(DST)) },
    }
    .wrapping_add(op.offset() as u64)
}

/// A load from memory that the program may read; aligned unless it is in the packet.
#[inline(always)]
pub(super) unsafe fn load(address: u64, size: Size, reach: Reach) -> u64 {
    // SAFETY: the verifier has shown that the program may read there.
    unsafe {
        match reach {
            Reach::Start | Reach::Packet => memory::load_unshared(address, size),
            Reach::Aligned | Reach::Any => memory::load_aligned(address, size),
        }
    }
}

/// A store to memory that the program may write; aligned unless it is in the packet.
#[inline(always)]
pub(super) unsafe fn store(address: u64, size: Size, reach: Reach, value: u64) {
    // SAFETY: the verifier has shown that the program may write there.
    unsafe {
        match reach {
            Reach::Start | Reach::Packet => memory::store_unshared(address, size, value),
            Reach::Aligned | Reach::Any => memory::store_aligned(address, size, value),
        }
    }
}

#[inline(always)]
unsafe fn at(op: &Op, base: u8, window: *mut u64) -> u64 {
    // SAFETY: the byte holds a register.
    unsafe { get(window, op.register(base)) }.wrapping_add(op.imm() as u64)
}

#[inline(always)]
pub(super) unsafe fn load_acquire(op: &Op, window: *mut u64, size: Size) -> u64 {
    // SAFETY: the verifier has shown that the program may read there, and asks for alignment.
    let value = unsafe { memory::load_aligned(at(op, SRC, window), size) };
    fence(Ordering::Acquire);
    value
}

#[inline(always)]
pub(super) unsafe fn store_release(op: &Op, window: *mut u64, size: Size) {
    fence(Ordering::Release);
    // SAFETY: the verifier has shown that the program may write there, and asks for alignment.
    unsafe { memory::store_aligned(at(op, DST, window), size, get(window, op.register(SRC))) };
}

/// Returns the old value.
#[inline(always)]
pub(super) unsafe fn atomic(op: &Op, window: *mut u64, width: Width, atomic: AtomicOp) -> u64 {
    // SAFETY: the verifier has shown that the program may read and write there, and that it is aligned.
    unsafe {
        let (value, expected) = (get(window, op.register(SRC)), get(window, op.register(MORE)));
        memory::atomic(at(op, OTHER, window), width, atomic, value, expected)
    }
}

/// A member of the packet's frame.
#[inline(always)]
pub(super) unsafe fn load_frame(op: &Op, host: *mut Host, size: Size) -> u64 {
    // SAFETY: the immediate is the offset of a field of this size, and nothing else uses the frame while handlers run.
    unsafe { memory::load_unshared((*host).frame() as u64 + op.imm() as u64, size) }
}

#[inline(never)]
pub(super) unsafe fn load_context(op: &Op, host: *mut Host, field: u64, size: Size) -> u64 {
    // SAFETY: the second part holds the address of a field, and the frame is the run's.
    let (frame, field) = unsafe { (&*(*host).frame(), &*(field as *const Field)) };
    match field.place {
        Place::Computed(rule) => context::part(context::number(frame, rule), op.imm() as u64, size),
        _ => 0,
    }
}

/// The address of a member of the packet's own area, aligned to the access, as the rules for contexts require.
#[inline(always)]
unsafe fn area(op: &Op, host: *mut Host) -> u64 {
    // SAFETY: the host outlives the run.
    unsafe { (&raw const (*host).area.words) as u64 + op.offset() as u64 }
}

#[inline(always)]
pub(super) unsafe fn load_host(op: &Op, host: *mut Host, size: Size) -> u64 {
    // SAFETY: the offset is within the area.
    unsafe { memory::load_aligned(area(op, host), size) }
}

#[inline(always)]
pub(super) unsafe fn store_host(op: &Op, host: *mut Host, size: Size, value: u64) {
    // SAFETY: the offset is within the area.
    unsafe { memory::store_aligned(area(op, host), size, value) };
}

/// A legacy packet load; all ones outside of the packet, as for negative offsets.
#[inline(always)]
pub(super) unsafe fn load_packet(
    op: &Op,
    window: *mut u64,
    packet: Packet,
    size: Size,
    indexed: bool,
) -> u64 {
    // SAFETY: the byte holds a register.
    let index = if indexed { i64::from(unsafe { get(window, op.register(SRC)) } as i32) } else { 0 };
    match u64::try_from(index + i64::from(op.imm())) {
        Ok(offset) if offset + size.bytes() as u64 <= packet.len => {
            // SAFETY: the bytes are in the packet.
            let value = unsafe { memory::load_unshared(packet.start + offset, size) };
            eval::swap(SwapOrder::ToBe, size, value)
        }
        _ => u64::MAX,
    }
}

/// Zeroes words of the stack frame: bit 0 is the word below the frame pointer.
#[inline(always)]
pub(super) unsafe fn zero(host: *mut Host, mut words: u64) {
    // SAFETY: the words are the running function's.
    unsafe {
        let frame_pointer = (*host).machine.frame_pointer();
        while words != 0 {
            let below = u64::from(words.trailing_zeros() + 1) * 8;
            memory::store_aligned(frame_pointer - below, Size::Dw, 0);
            words &= words - 1;
        }
    }
}
