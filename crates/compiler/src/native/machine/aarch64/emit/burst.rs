//! The loop over a burst.

use crate::codegen::machine::Ways;

use super::{Aarch64, Regs};
use crate::internal::Internal;
use crate::native::machine::aarch64::asm::{Arith, Cond, Gpr, Mem, Size};
use crate::native::machine::aarch64::regs::{SCRATCH, SECOND};
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::frame::{self, TO_REDIRECT};
use crate::native::machine::op::{Op, Verdict};
use crate::native::machine::operand::Width;

impl Aarch64<'_> {
    pub(super) fn burst(&mut self, op: Op, regs: Regs<'_>, ways: Ways<'_>) -> Result<(), Internal> {
        match op {
            Op::PrefetchFirst(distance) => {
                self.prefetch_first(distance, [regs.get(0)?, regs.get(1)?], [regs.get(2)?, regs.get(3)?]);
            }
            Op::Prefetch(distance) => {
                // Behind the end of the burst it is the current packet again.
                let (frame, end) = (regs.get(0)?, regs.get(1)?);
                self.add_imm(Width::Q64, SCRATCH, frame, distance);
                self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, SCRATCH, end, 0);
                self.asm.csel(Cond::Hs, Width::Q64, SCRATCH, frame, SCRATCH);
                self.prefetch(SCRATCH);
            }
            Op::EnterPacket(entered) => {
                let (frame, host) = (regs.get(0)?, regs.get(1)?);
                let offsets = self.links.host;
                if entered.frame {
                    let mem = self.at(Size::X, host, offsets.frame);
                    self.asm.store(Size::X, frame, mem);
                }
                if entered.tail_calls {
                    let mem = self.at(Size::W, host, offsets.tail_calls);
                    self.asm.store(Size::W, Gpr::Zr, mem);
                }
                for offset in entered.area.words().map(|word| 8 * i32::from(word)) {
                    let arriving = self.at(Size::X, host, offsets.arriving + offset);
                    self.asm.load(Size::X, SCRATCH, arriving);
                    let word = self.at(Size::X, host, offsets.area + offset);
                    self.asm.store(Size::X, SCRATCH, word);
                }
                self.prepare_stack();
            }
            Op::StoreVerdict { verdict, clears } => {
                self.store_verdict(verdict, regs)?;
                if clears {
                    self.clear_redirect(verdict, regs)?;
                }
            }
            Op::Count(counter) => {
                let counts = self.at(Size::X, regs.get(0)?, self.links.host.counts);
                self.asm.load(Size::X, SCRATCH, counts);
                let counter = self.at(Size::X, SCRATCH, 8 * counter);
                self.asm.load(Size::X, SECOND, counter);
                self.asm.arith_imm(Arith::Add, Width::Q64, SECOND, SECOND, 1);
                self.asm.store(Size::X, SECOND, counter);
            }
            Op::NextPacket => {
                self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, regs.get(0)?, regs.get(1)?, 0);
                self.branch(Cond::Ne, ways)?;
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// Prefetches the packet of a frame.
    fn prefetch(&mut self, frame: Gpr) {
        self.asm.load(Size::X, SCRATCH, Mem::At(frame, frame::DATA));
        self.asm.prefetch(Mem::At(SCRATCH, 0));
    }

    /// Prefetches the packets of the first frames, of which there is one at least, up to a distance.
    fn prefetch_first(&mut self, distance: i32, [first, end]: [Gpr; 2], [next, last]: [Gpr; 2]) {
        let again = self.asm.new_label();
        self.add_imm(Width::Q64, last, first, distance);
        self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, last, end, 0);
        self.asm.csel(Cond::Hi, Width::Q64, last, end, last);
        self.asm.mov(Width::Q64, next, first);
        self.asm.bind(again);
        self.prefetch(next);
        self.add_imm(Width::Q64, next, next, frame::SIZE);
        self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, next, last, 0);
        self.asm.b_cond(Cond::Lo, again);
    }

    /// Takes the redirect target from a frame unless its verdict is to redirect.
    fn clear_redirect(&mut self, verdict: Verdict, regs: Regs<'_>) -> Result<(), Internal> {
        let redirect = Mem::At(regs.get(0)?, frame::REDIRECT);
        match verdict {
            Verdict::Known(TO_REDIRECT) => {}
            Verdict::Known(_) => self.asm.store(Size::W, Gpr::Zr, redirect),
            Verdict::Value | Verdict::Action(_) => {
                let keep = self.asm.new_label();
                self.asm.load(Size::W, SCRATCH, Mem::At(regs.get(0)?, frame::VERDICT));
                self.compare_imm(Width::D32, SCRATCH, TO_REDIRECT.cast_signed());
                self.asm.b_cond(Cond::Eq, keep);
                self.asm.store(Size::W, Gpr::Zr, redirect);
                self.asm.bind(keep);
            }
        }
        Ok(())
    }

    fn store_verdict(&mut self, verdict: Verdict, regs: Regs<'_>) -> Result<(), Internal> {
        let (mem, value) = (Mem::At(regs.get(0)?, frame::VERDICT), regs.last()?);
        match verdict {
            Verdict::Known(code) => self.store_imm(Size::W, mem, code.cast_signed()),
            Verdict::Value => self.asm.store(Size::W, value, mem),
            Verdict::Action(actions) => {
                self.store_imm(Size::W, mem, actions.other as i32);
                for action in actions.list.iter().filter(|action| action.verdict != actions.other) {
                    let other = self.asm.new_label();
                    self.compare_imm(Width::D32, value, action.value.cast_signed());
                    self.asm.b_cond(Cond::Ne, other);
                    self.store_imm(Size::W, mem, action.verdict as i32);
                    self.asm.bind(other);
                }
            }
        }
        Ok(())
    }
}
