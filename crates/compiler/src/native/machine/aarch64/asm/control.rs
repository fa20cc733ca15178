//! Branches and calls.

use super::assembler::{Assembler, GapKind, JUMP, sf};
use super::reg::{Cond, Gpr};
use crate::native::code::Label;
use crate::native::machine::operand::Width;

impl Assembler {
    /// `b label`
    pub fn b(&mut self, label: Label) {
        self.gap(GapKind::Far(label));
        self.put(JUMP);
    }

    /// `bl label`
    pub fn bl(&mut self, label: Label) {
        self.gap(GapKind::Far(label));
        self.put(0x9400_0000);
    }

    /// `b.cond label`
    pub fn b_cond(&mut self, cond: Cond, label: Label) {
        self.gap(GapKind::Near(label, 1));
        self.put(0x5400_0000 | cond as u32);
    }

    /// `cbz rt, label`
    pub fn cbz(&mut self, width: Width, rt: Gpr, label: Label) {
        self.compare_with_zero(0x3400_0000 | sf(width), rt, label);
    }

    /// `cbnz rt, label`
    pub fn cbnz(&mut self, width: Width, rt: Gpr, label: Label) {
        self.compare_with_zero(0x3500_0000 | sf(width), rt, label);
    }

    fn compare_with_zero(&mut self, base: u32, rt: Gpr, label: Label) {
        let rt = self.r(rt);
        self.gap(GapKind::Near(label, 1 << 24));
        self.put(base | rt);
    }

    /// `adr rd, label`. A label that is more than 1 MiB away takes four instructions, which overwrite `x16`; `rd` is another one.
    pub fn adr(&mut self, rd: Gpr, label: Label) {
        if rd == Gpr::X16 {
            return self.fail_operand();
        }
        let number = self.r(rd);
        self.gap(GapKind::Address(label, rd));
        self.put(0x1000_0000 | number);
    }

    /// `br rn`
    pub fn br(&mut self, rn: Gpr) {
        let rn = self.r(rn);
        self.put(0xd61f_0000 | rn << 5);
    }

    /// `blr rn`
    pub fn blr(&mut self, rn: Gpr) {
        let rn = self.r(rn);
        self.put(0xd63f_0000 | rn << 5);
    }

    /// `ret`
    pub fn ret(&mut self) {
        self.put(0xd65f_03c0);
    }
}
