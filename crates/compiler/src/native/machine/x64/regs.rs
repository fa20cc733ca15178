//! The registers of x86-64 in the order in which the allocator prefers them.

use crate::codegen::lir::{Reg, RegSet};

use crate::native::machine::x64::asm::Gpr;

/// Caller-saved registers first: they cost nothing in a function that makes no calls.
pub(super) const ORDER: [Gpr; 15] = [
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
pub(super) const RAX: Reg = Reg(0);
pub(super) const RDX: Reg = Reg(3);
pub(super) const RCX: Reg = Reg(4);
/// `r1` to `r5` of the calling convention.
pub(super) const ARGUMENTS: [Reg; 5] = [Reg(1), Reg(2), RDX, RCX, Reg(5)];
/// The host, the sixth argument of programs, subprograms and helpers.
pub(super) const HOST: Reg = Reg(6);

/// Registers that a call may overwrite (System V ABI, section 3.2.1).
pub(super) const CALLER_SAVED: RegSet = RegSet::first_ones(8);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::machine::target::Target;
    use crate::native::machine::x64::asm::Assembler;

    fn gpr(reg: Reg) -> Gpr {
        Assembler::gpr(reg).expect("a register")
    }

    #[test]
    fn names_are_those_of_the_order() {
        let named = [(RAX, Gpr::Rax), (RDX, Gpr::Rdx), (RCX, Gpr::Rcx), (HOST, Gpr::R9)];
        named.into_iter().for_each(|(reg, expected)| assert_eq!(gpr(reg), expected));
        let arguments = [Gpr::Rdi, Gpr::Rsi, Gpr::Rdx, Gpr::Rcx, Gpr::R8];
        assert_eq!(ARGUMENTS.map(gpr), arguments);
        let saved: Vec<Gpr> = Assembler::callee_saved(Assembler::REGISTERS).into_iter().map(gpr).collect();
        assert_eq!(saved, [Gpr::Rbx, Gpr::R13, Gpr::R14, Gpr::R15, Gpr::R12, Gpr::Rbp]);
        assert!(!Assembler::REGISTERS.has(Assembler::SCRATCH) && gpr(Assembler::SCRATCH) == SCRATCH);
    }
}
