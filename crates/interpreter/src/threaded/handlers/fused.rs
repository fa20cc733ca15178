//! Operations that `fuse` has fused: one handler for several.
//!
//! Fused operations keep their places and operands: the handler of the first reads the operands of the others behind it.

use paceline_isa::{AluOp, Width, eval};
use paceline_runtime::host::Host;

use super::packet_field::{
    TEST, address_end, ends_before, is_shorter, jump, leave, leave_test, switch, test, tested,
};
use super::{Dispatch, get, set};
use crate::threaded::kind::Fused;
use crate::threaded::op::{Op, Packet};
use crate::threaded::packet_field::Anchor;

/// Executes the fused operations from `ip` on.
///
/// # Safety
/// As of [`operation`](super::operation); `fuse` has seen that the operations are these.
#[inline(always)]
pub(super) unsafe fn run<D: Dispatch>(fused: Fused, ip: *const Op, host: *mut Host, packet: Packet) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        match fused {
            Fused::MaskJump(condition) => {
                let op = &*ip;
                let value = eval::alu(Width::W32, AluOp::And, get(host, op.dst), op.imm as u64);
                set(host, op.dst, value);
                let holds = eval::compare(Width::W32, condition, value, (*ip.add(1)).imm as u64);
                jump::<D>(holds, ip.add(1), host, packet)
            }
            Fused::LenTest { size, masked, equal } => {
                if is_shorter(&*ip, packet) {
                    return leave::<D>(ip, host, packet);
                }
                test::<D>(size, Anchor::Start, masked, equal, ip.add(1), host, packet)
            }
            Fused::Switch { size, anchor, masked, three, last_equal } => {
                switch::<D>(size, anchor, masked, three, last_equal, ip, host, packet)
            }
            Fused::LenSwitch { size, masked, last_equal } => {
                if is_shorter(&*ip, packet) {
                    return leave::<D>(ip, host, packet);
                }
                switch::<D>(size, Anchor::Start, masked, false, last_equal, ip.add(1), host, packet)
            }
            Fused::Tests { sizes, anchor, masked, equal } => {
                let value = tested(ip, sizes.0, anchor, masked, host, packet);
                if (value == (*ip).imm as u32) == equal.0 {
                    return leave_test::<D>(ip, host, packet);
                }
                test::<D>(sizes.1, anchor, masked, equal.1, ip.add(TEST), host, packet)
            }
            Fused::EndTest { size, masked, equal } => {
                if ends_before(get(host, (*ip).src), &*ip, packet) {
                    return leave::<D>(ip, host, packet);
                }
                test::<D>(size, Anchor::Register, masked, equal, ip.add(1), host, packet)
            }
            Fused::AddressEnd { anchor, shift } => address_end::<D>(anchor, shift, ip, host, packet),
            Fused::AddressesEnd { anchor, shift } => {
                set(host, (*ip).dst, packet.start.wrapping_add((*ip).imm as u64));
                address_end::<D>(anchor, shift, ip.add(1), host, packet)
            }
        }
    }
}
