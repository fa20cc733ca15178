//! Several operations in one go.

use paceline_isa::{AluOp, Condition, Size, Width, eval};

use super::{Dispatch, get, memory, set};
use crate::memory::load_unshared;
use crate::threaded::kind::Fused;
use crate::threaded::machine::Machine;
use crate::threaded::op::Op;

/// Executes the operations from `ip` on that are fused.
///
/// # Safety
/// As of [`operation`](super::operation).
#[inline(always)]
pub(super) unsafe fn run<D: Dispatch>(fused: Fused, ip: *const Op, machine: *mut Machine) -> *const Op {
    // SAFETY: as the caller's; `fuse` has seen that the operations are these.
    unsafe {
        let (first, second) = (&*ip, &*ip.add(1));
        match fused {
            Fused::MovAdd => {
                mov_add(first, second, machine);
                D::go(ip.add(2), machine)
            }
            Fused::Check => {
                let pointer = mov_add(first, second, machine);
                let end = get(machine, (*ip.add(2)).src);
                jump::<D>(pointer > end, ip.add(2), machine)
            }
            Fused::AddAdd => {
                set(machine, first.dst, get(machine, first.dst).wrapping_add(get(machine, first.src)));
                set(machine, second.dst, get(machine, second.dst).wrapping_add(second.imm as u64));
                D::go(ip.add(2), machine)
            }
            Fused::LoadFrames => {
                set(machine, first.dst, memory::load_frame(first, machine, Size::Dw));
                set(machine, second.dst, memory::load_frame(second, machine, Size::Dw));
                D::go(ip.add(2), machine)
            }
            Fused::LoadShiftMask(width) => {
                let byte = load_unshared(memory::load_address(first, machine), Size::B);
                let shifted = eval::alu(width, AluOp::Lsh, byte, second.imm as u64);
                let mask = (*ip.add(2)).imm as u64;
                set(machine, first.dst, eval::alu(width, AluOp::And, shifted, mask));
                D::go(ip.add(3), machine)
            }
            Fused::LoadJump { size, condition } => {
                let value = load_unshared(memory::load_address(first, machine), size);
                set(machine, first.dst, value);
                jump_if::<D>(condition, value, ip.add(1), machine)
            }
            Fused::MaskJump(condition) => {
                let value = eval::alu(Width::W32, AluOp::And, get(machine, first.dst), first.imm as u64);
                set(machine, first.dst, value);
                jump_if::<D>(condition, value, ip.add(1), machine)
            }
            Fused::Compose { masked, truncated, jump } => {
                let low = load_unshared(memory::load_address(first, machine), Size::B);
                set(machine, first.dst, low);
                // The second load may be by the register that the first one changed.
                let mut value = load_unshared(memory::load_address(second, machine), Size::B) << 8;
                let mut last = ip.add(2);
                if masked {
                    last = last.add(1);
                    value &= (*last).imm as u64;
                }
                value |= low;
                last = last.add(1);
                if truncated {
                    last = last.add(1);
                    value &= (*last).imm as u64;
                }
                set(machine, second.dst, value);
                match jump {
                    Some(condition) => jump_if::<D>(condition, value, last.add(1), machine),
                    None => D::go(last.add(1), machine),
                }
            }
            Fused::Return(width) => {
                set(machine, 0, eval::truncate(width, first.imm as u64));
                std::ptr::null()
            }
        }
    }
}

#[inline(always)]
unsafe fn mov_add(first: &Op, second: &Op, machine: *mut Machine) -> u64 {
    // SAFETY: as the caller's.
    unsafe {
        let sum = get(machine, first.src).wrapping_add(second.imm as u64);
        set(machine, first.dst, sum);
        sum
    }
}

/// The conditional jump at `ip`, whose operand is known.
#[inline(always)]
unsafe fn jump_if<D: Dispatch>(
    condition: Condition,
    value: u64,
    ip: *const Op,
    machine: *mut Machine,
) -> *const Op {
    // SAFETY: as the caller's.
    unsafe {
        let holds = eval::compare(Width::W32, condition, value, (*ip).imm as u64);
        jump::<D>(holds, ip, machine)
    }
}

#[inline(always)]
unsafe fn jump<D: Dispatch>(holds: bool, ip: *const Op, machine: *mut Machine) -> *const Op {
    // SAFETY: as the caller's.
    unsafe {
        if holds {
            return D::go(ip.offset((*ip).offset as isize), machine);
        }
        D::go(ip.add(1), machine)
    }
}
