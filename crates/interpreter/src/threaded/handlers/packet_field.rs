//! Operations on fields of the packet and on its length.

use paceline_isa::{Size, SwapOrder, eval};
use paceline_runtime::host::Host;
use paceline_runtime::memory::load_unshared;

use super::{Dispatch, get, second, set};
use crate::threaded::kind::Direction;
use crate::threaded::op::{Op, Packet};
use crate::threaded::packet_field::Anchor;

/// Number of operations of a test, with its second part.
pub(super) const TEST: usize = 2;

/// Whether the packet is shorter than the operation's immediate.
#[inline(always)]
pub(super) fn is_shorter(op: &Op, packet: Packet) -> bool {
    (packet.len as i64) < i64::from(op.imm)
}

/// Whether the packet ends before an address plus the operation's immediate.
#[inline(always)]
pub(super) fn ends_before(address: u64, op: &Op, packet: Packet) -> bool {
    address.wrapping_add(op.imm as u64) > packet.start.wrapping_add(packet.len)
}

/// The bytes of a field, as this machine loads them.
///
/// # Safety
/// Of all functions here: as of [`operation`](super::operation).
#[inline(always)]
unsafe fn bytes(op: &Op, size: Size, anchor: Anchor, host: *mut Host, packet: Packet) -> u64 {
    // SAFETY: the verifier has shown that a load from there is within the packet, and that no store is in between
    // was seen in `known`.
    unsafe {
        let anchor = match anchor {
            Anchor::Start => packet.start,
            Anchor::Register => get(host, op.src),
        };
        load_unshared(anchor.wrapping_add(op.offset as u64), size)
    }
}

#[inline(always)]
fn shifted(value: u64, direction: Direction, by: i32) -> u64 {
    match direction {
        Direction::Left => value << (by & 31),
        Direction::Right => value >> (by & 31),
    }
}

#[inline(always)]
pub(super) unsafe fn load(
    ip: *const Op,
    size: Size,
    anchor: Anchor,
    reversed: bool,
    shift: Option<Direction>,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let mut value = bytes(&*ip, size, anchor, host, packet);
        if reversed {
            value = eval::swap(SwapOrder::Always, size, value);
        }
        if let Some(direction) = shift {
            value = shifted(value, direction, second(ip).imm);
        }
        value & u64::from((*ip).imm as u32)
    }
}

#[inline(always)]
pub(super) unsafe fn address(
    ip: *const Op,
    anchor: Anchor,
    shift: Direction,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let (op, second) = (&*ip, second(ip));
        let byte = shifted(bytes(op, Size::B, anchor, host, packet), shift, second.imm);
        packet.start.wrapping_add(op.imm as u64).wrapping_add(byte & second.head.word)
    }
}

/// The end of a header, and a test of the packet's length there.
#[inline(always)]
pub(super) unsafe fn address_end<D: Dispatch>(
    anchor: Anchor,
    shift: Direction,
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let address = address(ip, anchor, shift, host, packet);
        set(host, (*ip).dst, address);
        let check = ip.add(2);
        jump::<D>(ends_before(address, &*check, packet), check, host, packet)
    }
}

/// The comparison of a test.
#[inline(always)]
pub(super) unsafe fn tested(
    ip: *const Op,
    size: Size,
    anchor: Anchor,
    masked: bool,
    host: *mut Host,
    packet: Packet,
) -> u32 {
    // SAFETY: as the caller's.
    unsafe {
        let value = bytes(&*ip, size, anchor, host, packet) as u32;
        if masked { value & second(ip).imm as u32 } else { value }
    }
}

#[inline(always)]
pub(super) unsafe fn test<D: Dispatch>(
    size: Size,
    anchor: Anchor,
    masked: bool,
    equal: bool,
    ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let value = tested(ip, size, anchor, masked, host, packet);
        if (value == (*ip).imm as u32) == equal {
            return leave_test::<D>(ip, host, packet);
        }
        D::go(ip.add(TEST), host, packet)
    }
}

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "most of them are constants")]
pub(super) unsafe fn switch<D: Dispatch>(
    size: Size,
    anchor: Anchor,
    masked: bool,
    three: bool,
    last_equal: bool,
    mut ip: *const Op,
    host: *mut Host,
    packet: Packet,
) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let value = tested(ip, size, anchor, masked, host, packet);
        if value == (*ip).imm as u32 {
            return leave_test::<D>(ip, host, packet);
        }
        ip = ip.add(TEST);
        if three {
            if value == (*ip).imm as u32 {
                return leave_test::<D>(ip, host, packet);
            }
            ip = ip.add(TEST);
        }
        if (value == (*ip).imm as u32) == last_equal {
            return leave_test::<D>(ip, host, packet);
        }
        D::go(ip.add(TEST), host, packet)
    }
}

/// The target of a test.
#[inline(always)]
pub(super) unsafe fn leave_test<D: Dispatch>(ip: *const Op, host: *mut Host, packet: Packet) -> u64 {
    // SAFETY: as the caller's.
    unsafe { D::go(second(ip).head.word as *const Op, host, packet) }
}

/// The target of a jump.
#[inline(always)]
pub(super) unsafe fn leave<D: Dispatch>(ip: *const Op, host: *mut Host, packet: Packet) -> u64 {
    // SAFETY: as the caller's.
    unsafe { D::go(ip.offset((*ip).offset as isize), host, packet) }
}

#[inline(always)]
pub(super) unsafe fn jump<D: Dispatch>(holds: bool, ip: *const Op, host: *mut Host, packet: Packet) -> u64 {
    // SAFETY: as the caller's.
    unsafe { if holds { leave::<D>(ip, host, packet) } else { D::go(ip.add(1), host, packet) } }
}
