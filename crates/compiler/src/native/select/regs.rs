//! The registers: those of the allocator, in the order in which they are preferred, and the machine's.

use crate::codegen::lir::{Reg, RegSet};

use crate::native::x64::Gpr;

/// Caller-saved registers first: they cost nothing in a function that makes no calls.
const ORDER: [Gpr; 15] = [
    Gpr::Rax,
    Gpr::Rdi,
    Gpr::Rsi,
    Gpr::Rdx,
    Gpr::Rcx,
    Gpr::R8,
    Gpr::R9,
    Gpr::R10,
    Gpr::Rbx,
    Gpr::R13,
    Gpr::R14,
    Gpr::R15,
    Gpr::R12,
    Gpr::Rbp,
    SCRATCH,
];

/// The register that no value is ever in: for moves, and within an instruction.
pub(super) const SCRATCH: Gpr = Gpr::R11;
/// Number of registers that values can be in.
const COUNT: u8 = ORDER.len() as u8 - 1;

pub(super) const RAX: Reg = Reg(0);
pub(super) const RDX: Reg = Reg(3);
pub(super) const RCX: Reg = Reg(4);
/// `r1` to `r5` of the calling convention.
pub(super) const ARGUMENTS: [Reg; 5] = [Reg(1), Reg(2), RDX, RCX, Reg(5)];
/// The host, the sixth argument of programs, subprograms and helpers.
pub(super) const HOST: Reg = Reg(6);

/// The machine's register.
pub(super) fn gpr(reg: Reg) -> Gpr {
    ORDER.get(usize::from(reg.0)).copied().unwrap_or(SCRATCH)
}

/// The register of moves.
pub(super) const SCRATCH_REG: Reg = Reg(COUNT);

/// The registers that values can be in.
pub(super) const ALL: RegSet = first(COUNT);

/// Those that a call may overwrite (System V ABI, section 3.2.1).
pub(super) const CALLER_SAVED: RegSet = first(8);

const fn first(count: u8) -> RegSet {
    RegSet((1 << count) - 1)
}

/// Those that a function saves if it writes them.
pub(super) fn callee_saved(written: RegSet) -> impl Iterator<Item = Reg> {
    written.iter().filter(|reg| !CALLER_SAVED.has(*reg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_order() {
        let named = [(RAX, Gpr::Rax), (RDX, Gpr::Rdx), (RCX, Gpr::Rcx), (HOST, Gpr::R9)];
        named.into_iter().for_each(|(reg, expected)| assert_eq!(gpr(reg), expected));
        let arguments = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];
        assert_eq!(ARGUMENTS.map(gpr), arguments);
        let saved: Vec<Gpr> = callee_saved(ALL).map(gpr).collect();
        assert_eq!(saved, [Gpr::Rbx, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::Rbp]);
        assert!(!ALL.has(SCRATCH_REG) && gpr(SCRATCH_REG) == SCRATCH);
    }
}
