//! The loop over a burst.

use crate::codegen::machine::Ways;

use super::{Regs, X64};
use crate::internal::Internal;
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::frame::{self, TO_REDIRECT};
use crate::native::machine::op::{Op, Verdict};
use crate::native::machine::operand::Width;
use crate::native::machine::x64::asm::{Alu, Cond, Gpr, Mem, OpSize};
use crate::native::machine::x64::entry;
use crate::native::machine::x64::regs::SCRATCH;

impl X64<'_> {
    pub(super) fn burst(&mut self, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        match op {
            Op::PrefetchFirst(distance) => {
                self.prefetch_first(distance, [regs.get(0)?, regs.get(1)?], [regs.get(2)?, regs.get(3)?]);
            }
            Op::Prefetch(distance) => {
                // Behind the end of the burst it is the current packet again.
                let (frame, end) = (regs.get(0)?, regs.get(1)?);
                self.asm.lea(Width::Q64, SCRATCH, Mem::at(frame, distance));
                self.asm.alu_rr(Alu::Cmp, Width::Q64, SCRATCH, end);
                self.asm.cmovcc(Cond::Ae, Width::Q64, SCRATCH, frame);
                self.prefetch(SCRATCH);
            }
            Op::EnterPacket(entered) => {
                let (frame, host) = (regs.get(0)?, regs.get(1)?);
                let offsets = self.links.host;
                if entered.frame {
                    self.asm.store(OpSize::Q64, Mem::at(host, offsets.frame), frame);
                }
                if entered.tail_calls {
                    self.asm.store_imm(OpSize::D32, Mem::at(host, offsets.tail_calls), 0);
                }
                entry::enter_area(&mut self.asm, self.links, host, entered.area, SCRATCH);
                self.prepare_stack();
            }
            Op::StoreVerdict { verdict, clears } => {
                self.store_verdict(verdict, regs)?;
                if clears {
                    self.clear_redirect(verdict, regs)?;
                }
            }
            Op::Count(counter) => {
                self.asm.load(OpSize::Q64, SCRATCH, Mem::at(regs.get(0)?, self.links.host.counts));
                self.asm.inc_m(OpSize::Q64, Mem::at(SCRATCH, 8 * counter));
            }
            Op::NextPacket => {
                self.asm.alu_rr(Alu::Cmp, Width::Q64, regs.get(0)?, regs.get(1)?);
                self.branch(Cond::Ne, ways)?;
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// Prefetches the packet of a frame.
    fn prefetch(&mut self, frame: Gpr) {
        self.asm.load(OpSize::Q64, SCRATCH, Mem::at(frame, frame::DATA));
        self.asm.prefetcht0(Mem::at(SCRATCH, 0));
    }

    /// Prefetches the packets of the first frames, of which there is one at least, up to a distance.
    fn prefetch_first(&mut self, distance: i32, [first, end]: [Gpr; 2], [next, last]: [Gpr; 2]) {
        let again = self.asm.new_label();
        self.asm.lea(Width::Q64, last, Mem::at(first, distance));
        self.asm.alu_rr(Alu::Cmp, Width::Q64, last, end);
        self.asm.cmovcc(Cond::A, Width::Q64, last, end);
        self.asm.mov_rr(Width::Q64, next, first);
        self.asm.bind(again);
        self.prefetch(next);
        self.asm.alu_ri(Alu::Add, Width::Q64, next, frame::SIZE);
        self.asm.alu_rr(Alu::Cmp, Width::Q64, next, last);
        self.asm.jcc(Cond::B, again);
    }

    /// Takes the redirect target from a frame unless its verdict is to redirect.
    fn clear_redirect(&mut self, verdict: Verdict, regs: Regs<'_>) -> Result<(), Internal> {
        let redirect = Mem::at(regs.get(0)?, frame::REDIRECT);
        match verdict {
            Verdict::Known(TO_REDIRECT) => {}
            Verdict::Known(_) => self.asm.store_imm(OpSize::D32, redirect, 0),
            Verdict::Value | Verdict::Action(_) => {
                let keep = self.asm.new_label();
                let verdict = Mem::at(regs.get(0)?, frame::VERDICT);
                self.asm.alu_mi(Alu::Cmp, OpSize::D32, verdict, TO_REDIRECT.cast_signed());
                self.asm.jcc(Cond::E, keep);
                self.asm.store_imm(OpSize::D32, redirect, 0);
                self.asm.bind(keep);
            }
        }
        Ok(())
    }

    fn store_verdict(&mut self, verdict: Verdict, regs: Regs<'_>) -> Result<(), Internal> {
        let (mem, value) = (Mem::at(regs.get(0)?, frame::VERDICT), regs.last()?);
        match verdict {
            Verdict::Known(code) => self.asm.store_imm(OpSize::D32, mem, code.cast_signed()),
            Verdict::Value => self.asm.store(OpSize::D32, mem, value),
            Verdict::Action(actions) => {
                self.asm.store_imm(OpSize::D32, mem, actions.other as i32);
                for action in actions.list.iter().filter(|action| action.verdict != actions.other) {
                    let other = self.asm.new_label();
                    self.asm.alu_ri(Alu::Cmp, Width::D32, value, action.value.cast_signed());
                    self.asm.jcc(Cond::Ne, other);
                    self.asm.store_imm(OpSize::D32, mem, action.verdict as i32);
                    self.asm.bind(other);
                }
            }
        }
        Ok(())
    }
}
