//! Operations on memory, the context and the packet.

use std::sync::atomic::{Ordering, fence};

use paceline_isa::{AtomicOp, Size, SwapOrder, Width, eval};
use paceline_runtime::context;
use paceline_runtime::host::Host;
use paceline_runtime::memory;
use paceline_spec::context::{Field, Place};

use super::{get, set};
use crate::threaded::kind::Reach;
use crate::threaded::op::Op;

/// # Safety
/// Of all functions here: as of [`operation`](super::operation).
#[inline(always)]
pub(super) unsafe fn load_address(op: &Op, host: *mut Host) -> u64 {
    // SAFETY: the source is a register.
    unsafe { get(host, op.src) }.wrapping_add(op.offset as u64)
}

#[inline(always)]
pub(super) unsafe fn store_address(op: &Op, host: *mut Host) -> u64 {
    // SAFETY: the destination is a register.
    unsafe { get(host, op.dst) }.wrapping_add(op.offset as u64)
}

/// A load from memory that the program may read; aligned unless it is in the packet.
#[inline(always)]
pub(super) unsafe fn load(address: u64, size: Size, reach: Reach) -> u64 {
    // SAFETY: the verifier has shown that the program may read there.
    unsafe {
        match reach {
            Reach::Packet => memory::load_unshared(address, size),
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
            Reach::Packet => memory::store_unshared(address, size, value),
            Reach::Aligned | Reach::Any => memory::store_aligned(address, size, value),
        }
    }
}

#[inline(always)]
pub(super) unsafe fn load_acquire(op: &Op, host: *mut Host, size: Size) {
    // SAFETY: the verifier has shown that the program may read there, and asks for alignment.
    unsafe {
        let value = memory::load_aligned(load_address(op, host), size);
        fence(Ordering::Acquire);
        set(host, op.dst, value);
    }
}

#[inline(always)]
pub(super) unsafe fn store_release(op: &Op, host: *mut Host, size: Size) {
    // SAFETY: the verifier has shown that the program may write there, and asks for alignment.
    unsafe {
        fence(Ordering::Release);
        memory::store_aligned(store_address(op, host), size, get(host, op.src));
    }
}

#[inline(always)]
pub(super) unsafe fn atomic(op: &Op, host: *mut Host, width: Width, atomic: AtomicOp) {
    // SAFETY: the verifier has shown that the program may read and write there, and that it is aligned.
    unsafe {
        let address = get(host, op.dst).wrapping_add(op.offset as u64);
        let old = memory::atomic(address, width, atomic, get(host, op.src), get(host, 0));
        match atomic {
            AtomicOp::CmpXchg => set(host, 0, old),
            AtomicOp::Xchg
            | AtomicOp::Add { fetch: true }
            | AtomicOp::Or { fetch: true }
            | AtomicOp::And { fetch: true }
            | AtomicOp::Xor { fetch: true } => set(host, op.src, old),
            _ => {}
        }
    }
}

/// A member of the packet's frame.
#[inline(always)]
pub(super) unsafe fn load_frame(op: &Op, host: *mut Host, size: Size) -> u64 {
    // SAFETY: `imm` is the offset of a field of this size, and nothing else uses the frame while handlers run.
    unsafe { memory::load_unshared((*host).frame as u64 + op.imm as u64, size) }
}

#[inline(never)]
pub(super) unsafe fn load_context(op: &Op, host: *mut Host, field: u64, size: Size) -> u64 {
    // SAFETY: the second part holds the address of a field, and the frame is the run's.
    let (frame, field) = unsafe { (&*(*host).frame, &*(field as *const Field)) };
    match field.place {
        Place::Computed(rule) => context::part(context::number(frame, rule), op.imm as u64, size),
        _ => 0,
    }
}

/// The address of a member of the packet's own area, aligned to the access, as the rules for contexts require.
#[inline(always)]
unsafe fn area(op: &Op, host: *mut Host) -> u64 {
    // SAFETY: the host outlives the run.
    unsafe { (&raw const (*host).area) as u64 + op.offset as u64 }
}

#[inline(always)]
pub(super) unsafe fn load_host(op: &Op, host: *mut Host, size: Size) -> u64 {
    // SAFETY: `offset` is within the area.
    unsafe { memory::load_aligned(area(op, host), size) }
}

#[inline(always)]
pub(super) unsafe fn store_host(op: &Op, host: *mut Host, size: Size, value: u64) {
    // SAFETY: `offset` is within the area.
    unsafe { memory::store_aligned(area(op, host), size, value) };
}

/// A legacy packet load; `None` outside of the packet, as for negative offsets.
#[inline(always)]
pub(super) unsafe fn load_packet(op: &Op, host: *mut Host, size: Size, indexed: bool) -> Option<u64> {
    // SAFETY: the frame is the run's, and the bytes are seen to be in the packet.
    unsafe {
        let frame = &*(*host).frame;
        let index = if indexed { i64::from(get(host, op.src) as i32) } else { 0 };
        let offset = u64::try_from(index + i64::from(op.imm)).ok()?;
        let (start, end) = (frame.data() as u64, frame.data_end() as u64);
        if offset + size.bytes() as u64 > end - start {
            return None;
        }
        Some(eval::swap(SwapOrder::ToBe, size, memory::load_unshared(start + offset, size)))
    }
}

/// Zeroes words of the stack frame: bit 0 is the word below the frame pointer.
#[inline(always)]
pub(super) unsafe fn zero(host: *mut Host, mut words: u64) {
    // SAFETY: the words are the running function's.
    unsafe {
        let frame_pointer = get(host, 10);
        while words != 0 {
            let below = u64::from(words.trailing_zeros() + 1) * 8;
            memory::store_aligned(frame_pointer - below, Size::Dw, 0);
            words &= words - 1;
        }
    }
}
