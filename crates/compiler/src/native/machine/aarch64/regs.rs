//! The registers of arm64: those of the allocator, in the order in which they are preferred, and the scratch registers.

use crate::codegen::lir::{Reg, RegSet};

use crate::native::machine::aarch64::asm::Gpr;

/// Caller-saved registers first: they cost nothing in a function that makes no calls. `x18` is the platform's; frame pointer and link
/// register hold no values.
pub(super) const ORDER: [Gpr; 26] = [
    Gpr::X0,
    Gpr::X1,
    Gpr::X2,
    Gpr::X3,
    Gpr::X4,
    Gpr::X5,
    Gpr::X6,
    Gpr::X7,
    Gpr::X8,
    Gpr::X9,
    Gpr::X10,
    Gpr::X11,
    Gpr::X12,
    Gpr::X13,
    Gpr::X14,
    Gpr::X19,
    Gpr::X20,
    Gpr::X21,
    Gpr::X22,
    Gpr::X23,
    Gpr::X24,
    Gpr::X25,
    Gpr::X26,
    Gpr::X27,
    Gpr::X28,
    SCRATCH,
];

/// The register of moves, and of an operand or result within an instruction.
pub(super) const SCRATCH: Gpr = Gpr::X16;
/// An address or offset within an instruction.
pub(super) const ADDRESS: Gpr = Gpr::X17;
/// A second operand within an instruction, and the status of an exclusive store.
pub(super) const SECOND: Gpr = Gpr::X15;

/// Registers that a call may overwrite (AAPCS64, section 6.1.1).
pub(super) const CALLER_SAVED: RegSet = RegSet::first_ones(15);
pub(super) const ARGUMENTS: [Reg; 5] = [Reg(0), Reg(1), Reg(2), Reg(3), Reg(4)];
pub(super) const HOST: Reg = Reg(5);
pub(super) const RESULT: Reg = Reg(0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::machine::aarch64::asm::Assembler;
    use crate::native::machine::target::Target;

    fn gpr(reg: Reg) -> Gpr {
        Assembler::gpr(reg).expect("a register")
    }

    #[test]
    fn registers_are_those_of_the_calling_convention() {
        assert_eq!(ARGUMENTS.map(gpr), [Gpr::X0, Gpr::X1, Gpr::X2, Gpr::X3, Gpr::X4]);
        assert_eq!((gpr(HOST), gpr(RESULT)), (Gpr::X5, Gpr::X0));
        let saved: Vec<Gpr> = Assembler::callee_saved(Assembler::REGISTERS).into_iter().map(gpr).collect();
        assert_eq!((saved.first(), saved.last(), saved.len()), (Some(&Gpr::X19), Some(&Gpr::X28), 10));
        assert!(!Assembler::REGISTERS.has(Assembler::SCRATCH) && gpr(Assembler::SCRATCH) == SCRATCH);
        for unused in [ADDRESS, SECOND, Gpr::X18, Gpr::X29, Gpr::X30] {
            assert!(!ORDER.contains(&unused), "{unused:?}");
        }
    }
}
