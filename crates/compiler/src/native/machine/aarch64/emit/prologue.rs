//! Prologues and epilogues: only what a function needs.

use crate::codegen::lir::Reg;
use crate::codegen::machine::Frame;
use paceline_spec::MAX_LOOPS;

use super::Aarch64;
use crate::internal::Internal;
use crate::native::machine::aarch64::asm::{Arith, Assembler, Gpr, Size};
use crate::native::machine::aarch64::regs::SCRATCH;
use crate::native::machine::generator::Layout;
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;

/// Saved registers in pairs: a frame record first, if there is one; the last one alone is with zero, which is not loaded.
fn pairs(saved: &[Reg], calls: bool) -> Result<Vec<[Gpr; 2]>, Internal> {
    let mut pairs: Vec<[Gpr; 2]> = calls.then_some([Gpr::X29, Gpr::X30]).into_iter().collect();
    let (whole, rest) = saved.as_chunks();
    for [one, other] in whole {
        pairs.push([Assembler::gpr(*one)?, Assembler::gpr(*other)?]);
    }
    for one in rest {
        pairs.push([Assembler::gpr(*one)?, Gpr::Zr]);
    }
    Ok(pairs)
}

impl Aarch64<'_> {
    /// Lays out the frame, from below: slots of the allocator, the counter of rounds, the function's stack, and saved registers, where
    /// the frame record comes first.
    pub(crate) fn prologue(&mut self, frame: &Frame) -> Result<(), Internal> {
        let needs = self.current.needs;
        let saved = Assembler::callee_saved(frame.written);
        let pairs = pairs(&saved, needs.calls)?;
        let rounds = 8 * frame.slots;
        let below = rounds + 8 * u32::from(needs.rounds);
        // The stack pointer is always a multiple of 16.
        let room = (below + self.current.stack.next_multiple_of(8)).next_multiple_of(16);
        let above = 16 * pairs.len() as u32;
        let probes = self.probes(room + above)?;
        let end = room.cast_signed();
        self.current.layout = Layout { saved, room: end, end, slots: 0, rounds: rounds.cast_signed() };
        for (at, [one, other]) in pairs.iter().enumerate() {
            match at {
                0 => self.asm.push_pair(*one, *other, above.cast_signed()),
                _ => self.asm.store_pair(*one, *other, 16 * at as i32),
            }
        }
        if needs.calls {
            self.asm.arith_imm(Arith::Add, Width::Q64, Gpr::X29, Gpr::Sp, 0);
        }
        for distance in probes {
            let probed = self.at(Size::W, Gpr::Sp, -distance);
            self.asm.load(Size::W, SCRATCH, probed);
        }
        if room != 0 {
            self.add_imm(Width::Q64, Gpr::Sp, Gpr::Sp, -end);
        }
        if self.current.burst.is_none() {
            self.prepare_stack();
        }
        Ok(())
    }

    /// Initializes what is in the frame at the start of a run.
    pub(super) fn prepare_stack(&mut self) {
        for offset in self.zeroed() {
            let mem = self.stack(Size::X, offset);
            self.asm.store(Size::X, Gpr::Zr, mem);
        }
        if self.current.needs.rounds {
            let counter = self.at(Size::X, Gpr::Sp, self.current.layout.rounds);
            self.asm.mov_imm(SCRATCH, MAX_LOOPS.into());
            self.asm.store(Size::X, SCRATCH, counter);
        }
    }

    /// Undoes the prologue. Preserves all registers but those that are restored and the address register.
    pub(super) fn epilogue(&mut self) -> Result<(), Internal> {
        let pairs = pairs(&self.current.layout.saved, self.current.needs.calls)?;
        if self.current.layout.room != 0 {
            self.add_imm(Width::Q64, Gpr::Sp, Gpr::Sp, self.current.layout.room);
        }
        for (at, [one, other]) in pairs.iter().enumerate().rev() {
            // A load to zero is one of nothing.
            match at {
                0 => self.asm.pop_pair(*one, *other, 16 * pairs.len() as i32),
                _ => self.asm.load_pair(*one, *other, 16 * at as i32),
            }
        }
        Ok(())
    }
}
