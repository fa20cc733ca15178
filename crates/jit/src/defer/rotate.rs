//! Rotations, which BPF expresses as two shifts and an `or`: shifts by a constant are deferred until the other half follows.

use paceline_isa::{AluOp, Operand, Reg, Width};

use super::{Base, Shifted, Value, Way};
use crate::emitter::Emitter;
use crate::plan::native;
use crate::x64::{Gpr, Held, Shift, Width as NativeWidth};

impl Emitter<'_> {
    /// `dst op= imm` for a shift of a value in a register.
    pub(super) fn defer_shift(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) -> bool {
        let Operand::Imm(imm) = src else { return false };
        let way = match op {
            AluOp::Lsh => Way::Left,
            AluOp::Rsh => Way::Right,
            _ => return false,
        };
        let Some((base, held)) = self.shiftable(width, dst) else { return false };
        let count = (imm as u32 % if width == Width::W64 { 64 } else { 32 }) as u8;
        let bits = self.result_bits(width, op, dst, src);
        // The 32-bit form, if no bit comes from the upper half or moves there.
        let narrow = count < 32 && bits <= 32 && self.deferred.bits(dst) <= 32;
        let width = if narrow { Width::W32 } else { width };
        self.deferred.set(dst, Value::Shifted(Shifted { base, held, width, way, count, bits }));
        true
    }

    /// A 32-bit `dst = src` of a possibly longer value, which may begin a rotation.
    pub(super) fn defer_low_half(&mut self, dst: Reg, src: Reg) -> bool {
        let Some((base, held)) = self.shiftable(Width::W64, src) else { return false };
        if !self.is_root_base(Base::Reg(base, held), dst) {
            return false;
        }
        let low = Shifted { base, held, width: Width::W32, way: Way::Left, count: 0, bits: 32 };
        self.deferred.set(dst, Value::Shifted(low));
        true
    }

    /// The register whose native register holds a value, possibly with significant bits above the width.
    fn shiftable(&self, width: Width, reg: Reg) -> Option<(Reg, Held)> {
        match self.deferred.get(reg) {
            Value::Held(held) => Some((reg, held)),
            Value::Sum(Base::Reg(base, held), 0) => Some((base, held)),
            Value::Shifted(Shifted { base, held, width: Width::W32, count: 0, .. })
                if width == Width::W32 =>
            {
                Some((base, held))
            }
            _ => None,
        }
    }

    /// Merges both halves of a rotation.
    pub(super) fn rotate(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) -> bool {
        let (AluOp::Or | AluOp::Add | AluOp::Xor, Operand::Reg(src)) = (op, src) else { return false };
        let (Value::Shifted(a), Value::Shifted(b)) = (self.deferred.get(dst), self.deferred.get(src)) else {
            return false;
        };
        let Some(count) = a.rotation(&b).filter(|_| width == Width::W64 || a.width == Width::W32) else {
            return false;
        };
        if !self.is_live_after(src) {
            self.deferred.kill(src);
        }
        self.before_write(dst);
        let base = self.asm.held(a.held);
        let (gpr, width) = (self.gpr(dst), native(a.width));
        if gpr == base {
            self.asm.shift_ri(Shift::Rol, width, gpr, count);
        } else if self.settings.features.bmi2 {
            // A right rotation by the complement.
            self.asm.rorx(width, gpr, base, if a.width == Width::W64 { 64 } else { 32 } - count);
        } else {
            self.asm.mov_rr(width, gpr, base);
            self.asm.shift_ri(Shift::Rol, width, gpr, count);
        }
        self.hold(dst, if a.width == Width::W64 { 64 } else { 32 });
        true
    }

    pub(super) fn compute_shifted(&mut self, shifted: &Shifted, gpr: Gpr) {
        let base = self.asm.held(shifted.held);
        let width = native(shifted.width);
        if gpr != base || shifted.count == 0 && width == NativeWidth::D32 {
            self.asm.mov_rr(width, gpr, base);
        }
        if shifted.count != 0 {
            let shift = if shifted.way == Way::Left { Shift::Shl } else { Shift::Shr };
            self.asm.shift_ri(shift, width, gpr, shifted.count);
        }
    }
}
