//! The check of a finished slice.

use paceline_isa::{Callee, Code, Insn, Reg};
use paceline_spec::helper::HelperId;

/// Whether a program changes nothing but its registers and its own stack, apart from what its look-ups do: all stores go through the frame
/// pointer, and the only calls are look-ups. Jumps go forward.
#[must_use]
pub fn is_quiet(code: &Code) -> bool {
    code.iter().all(|(slot, insn)| match *insn {
        Insn::Store { base, .. } => base == Reg::R10,
        Insn::Call(callee) => callee == Callee::Helper(HelperId::MapLookupElem.imm()),
        Insn::Jump { .. } | Insn::JumpIf { .. } => insn.jump_target(slot) > i64::try_from(slot).ok(),
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Swap { .. }
        | Insn::Load { .. }
        | Insn::LoadImm64 { .. }
        | Insn::Exit => true,
        Insn::AddrSpaceCast { .. }
        | Insn::Atomic { .. }
        | Insn::LoadAcquire { .. }
        | Insn::StoreRelease { .. }
        | Insn::LoadPacket { .. }
        | Insn::JumpLong { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg(_) => false,
    })
}
