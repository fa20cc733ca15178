//! Prologues and epilogues: only what a function needs.

use crate::codegen::lir::Reg;
use crate::codegen::machine::Frame;
use paceline_spec::MAX_LOOPS;

use super::regs;
use super::{Arm64, regs::SCRATCH};
use crate::native::arm64::{Arith, Gpr, Size};
use crate::native::select::generator::Layout;
use crate::native::x64::Width;

/// Saved registers in pairs: a frame record first, if there is one; the last one alone is with zero, which is not loaded.
fn pairs(saved: &[Reg], calls: bool) -> Vec<[Gpr; 2]> {
    let record = calls.then_some([Gpr::X29, Gpr::X30]);
    let pair = |pair: &[Reg]| match *pair {
        [one, other] => [regs::gpr(one), regs::gpr(other)],
        [one] => [regs::gpr(one), Gpr::Zr],
        _ => [Gpr::Zr; 2],
    };
    record.into_iter().chain(saved.chunks(2).map(pair)).collect()
}

impl Arm64<'_> {
    /// Lays out the frame, from below: slots of the allocator, the counter of rounds, the function's stack, and saved registers, where
    /// the frame record comes first.
    pub(super) fn enter_function(&mut self, frame: &Frame) {
        let needs = self.current.needs;
        let saved: Vec<Reg> = regs::callee_saved(frame.written).collect();
        let pairs = pairs(&saved, needs.calls);
        let rounds = 8 * frame.slots;
        let below = rounds + 8 * u32::from(needs.rounds);
        // The stack pointer is always a multiple of 16.
        let room = (below + self.current.stack.next_multiple_of(8)).next_multiple_of(16);
        let above = 16 * pairs.len() as u32;
        let probes = self.probes(room + above);
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
    }

    /// Initializes what is in the frame at the start of a run.
    pub(super) fn prepare_stack(&mut self) {
        let words = self.current.stack.div_ceil(8);
        let zeroed = self.current.zeroed & u64::MAX.checked_shr(64 - words.min(64)).unwrap_or(0);
        let mut left = zeroed;
        while left != 0 {
            let word = left.trailing_zeros().cast_signed();
            left &= left - 1;
            let mem = self.stack(Size::X, -8 * (word + 1));
            self.asm.store(Size::X, Gpr::Zr, mem);
        }
        if self.current.needs.rounds {
            let counter = self.at(Size::X, Gpr::Sp, self.current.layout.rounds);
            self.asm.mov_imm(SCRATCH, MAX_LOOPS.into());
            self.asm.store(Size::X, SCRATCH, counter);
        }
    }

    /// Undoes the prologue. Preserves all registers but those that are restored and the address register.
    pub(super) fn epilogue(&mut self) {
        let pairs = pairs(&self.current.layout.saved, self.current.needs.calls);
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
    }
}
