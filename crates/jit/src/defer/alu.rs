//! Arithmetic on deferred values.

use paceline_isa::{AluOp, Operand, Reg, Size, SwapOrder, Width, eval};

use super::{Base, Value};
use crate::emitter::Emitter;
use crate::plan::{SCRATCH, native};
use crate::x64::{Alu, Mem, OpSize, Scale, Width as NativeWidth};

impl Emitter<'_> {
    pub(crate) fn defer_alu(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) {
        let src = self.known(src);
        if let (AluOp::Mov, Operand::Reg(src)) = (op, src) {
            return self.defer_move(width, dst, src);
        }
        if let Some(value) = self.fold(width, op, dst, src).or_else(|| self.combine(width, op, dst, src)) {
            self.deferred.set(dst, value);
            return;
        }
        if self.rotate(width, op, dst, src) || self.defer_shift(width, op, dst, src) {
            return;
        }
        if op == AluOp::Add && width == Width::W64 && self.add_address(dst, src) {
            return;
        }
        if let (AluOp::And, Operand::Imm(imm)) = (op, src) {
            return self.deferred_and(width, dst, imm);
        }
        self.compute_alu(width, op, dst, src);
    }

    /// The operand, as an immediate if its value is known and fits 32 bits.
    fn known(&self, src: Operand) -> Operand {
        let Operand::Reg(reg) = src else { return src };
        match self.deferred.get(reg) {
            Value::Const(value) => i32::try_from(value as i64).map_or(src, Operand::Imm),
            _ => src,
        }
    }

    /// Constant folding of an operation.
    fn fold(&self, width: Width, op: AluOp, dst: Reg, src: Operand) -> Option<Value> {
        let src = match src {
            Operand::Imm(imm) => imm as u64,
            Operand::Reg(reg) => match self.deferred.get(reg) {
                Value::Const(value) => value,
                _ => return None,
            },
        };
        match (op, self.deferred.get(dst)) {
            (AluOp::Mov, _) => Some(Value::Const(eval::truncate(width, src))),
            (_, Value::Const(value)) => Some(Value::Const(eval::alu(width, op, value, src))),
            _ => None,
        }
    }

    /// An operation that only changes how the value is composed.
    fn combine(&self, width: Width, op: AluOp, dst: Reg, src: Operand) -> Option<Value> {
        let wide = width == Width::W64;
        match (op, self.deferred.get(dst), src) {
            (AluOp::Add | AluOp::Sub, value, Operand::Imm(imm)) => {
                let imm = if op == AluOp::Sub { imm.checked_neg()? } else { imm };
                match value {
                    Value::Held(held) if wide => Some(Value::Sum(Base::Reg(dst, held), imm)),
                    Value::Sum(base, disp) if wide => Some(Value::Sum(base, disp.checked_add(imm)?)),
                    // Counters: the sum is stored to the address that the value was loaded from.
                    Value::Bytes(mut bytes) if bytes.plus.is_none() => {
                        let shape = bytes.shape()?;
                        let fits = wide || shape.size <= Size::W;
                        if !fits || shape.reversed || shape.mask.is_some() || shape.shift != 0 {
                            return None;
                        }
                        bytes.plus = Some((width, imm));
                        Some(Value::Bytes(bytes))
                    }
                    _ => None,
                }
            }
            (AluOp::And, Value::Bytes(bytes), Operand::Imm(imm)) => {
                bytes.and(eval::truncate(width, imm as u64)).map(Value::Bytes)
            }
            (AluOp::Lsh, Value::Bytes(bytes), Operand::Imm(imm)) => {
                let bits = if wide { imm as u32 % 64 } else { imm as u32 % 32 };
                let shifted = bytes.shl(bits)?;
                Some(Value::Bytes(if wide { shifted } else { shifted.and(u64::from(u32::MAX))? }))
            }
            (AluOp::Rsh, Value::Bytes(bytes), Operand::Imm(imm)) if wide || bytes.bits() <= 32 => {
                bytes.shr(if wide { imm as u32 % 64 } else { imm as u32 % 32 }).map(Value::Bytes)
            }
            (AluOp::Or | AluOp::Add | AluOp::Xor, Value::Bytes(a), Operand::Reg(src)) => {
                let Value::Bytes(b) = self.deferred.get(src) else { return None };
                let both = a.or(b)?;
                (wide || both.bits() <= 32).then_some(Value::Bytes(both))
            }
            _ => None,
        }
    }

    fn defer_move(&mut self, width: Width, dst: Reg, src: Reg) {
        if !self.is_within(src, width) {
            if src != Reg::R10 && self.defer_low_half(dst, src) {
                return;
            }
            return self.compute_alu(width, AluOp::Mov, dst, Operand::Reg(src));
        }
        if dst == src {
            return;
        }
        match self.deferred.get(src) {
            Value::Sum(base, disp) if self.is_root_base(base, dst) => {
                self.deferred.set(dst, Value::Sum(base, disp));
            }
            Value::Const(value) => self.deferred.set(dst, Value::Const(value)),
            Value::Bytes(bytes) if !self.is_live_after(src) && self.is_root_base(bytes.base, dst) => {
                self.deferred.set(dst, Value::Bytes(bytes));
            }
            _ => {
                let base = self.materialized(src);
                self.deferred.set(dst, Value::Sum(base, 0));
            }
        }
    }

    /// Whether a deferred value of `dst` may be based on `base`.
    pub(super) fn is_root_base(&self, base: Base, dst: Reg) -> bool {
        match base {
            Base::Frame | Base::Native(_) => true,
            Base::Reg(reg, _) => reg == dst || self.deferred.is_root(reg),
        }
    }

    /// `dst + src` by `lea`.
    fn add_address(&mut self, dst: Reg, src: Operand) -> bool {
        let Operand::Reg(src) = src else { return false };
        if self.add_scaled(dst, src) {
            return true;
        }
        let Value::Sum(base @ (Base::Reg(_, held) | Base::Native(held)), disp) = self.deferred.get(dst)
        else {
            return false;
        };
        if base.is(dst) || src == Reg::R10 || src == dst {
            return false;
        }
        self.materialize(src);
        self.before_write(dst);
        // Materializing the second operand may have materialized the first.
        if self.deferred.get(dst) != Value::Sum(base, disp) {
            return false;
        }
        let (gpr, index, base) = (self.gpr(dst), self.home(src), self.asm.held(held));
        self.asm.lea(NativeWidth::Q64, gpr, Mem::indexed(base, index, Scale::One, disp));
        self.hold(dst, 64);
        true
    }

    /// The same where the second operand is an index times 2, 4 or 8 that is dead afterwards.
    fn add_scaled(&mut self, dst: Reg, src: Reg) -> bool {
        if self.is_live_after(src) || !self.is_index(src) {
            return false;
        }
        // This may materialize either operand: the base of the index may depend on the contents of `dst`.
        self.before_write(dst);
        let (base, disp) = match self.deferred.get(dst) {
            Value::Held(held) => (held, 0),
            Value::Sum(Base::Reg(_, held) | Base::Native(held), disp) => (held, disp),
            _ => return false,
        };
        let Value::Shifted(shifted) = self.deferred.get(src) else { return false };
        let Some((index, scale)) = shifted.index() else { return false };
        let mem = Mem::indexed(self.asm.held(base), self.asm.held(index), scale, disp);
        let gpr = self.gpr(dst);
        self.asm.lea(NativeWidth::Q64, gpr, mem);
        self.hold(dst, 64);
        true
    }

    /// Whether a value can be the scaled index of an address.
    fn is_index(&self, reg: Reg) -> bool {
        matches!(self.deferred.get(reg), Value::Shifted(shifted) if shifted.index().is_some())
    }

    fn deferred_and(&mut self, width: Width, dst: Reg, imm: i32) {
        let mask = eval::truncate(width, imm as u64);
        let bits = self.deferred.bits(dst);
        let keeps = bits < 64 && mask.trailing_ones() >= u32::from(bits);
        if keeps {
            return;
        }
        self.materialize(dst);
        self.before_write(dst);
        let gpr = self.home(dst);
        let left = 64 - mask.leading_zeros() as u8;
        match mask {
            0xff => self.asm.movzx_rr(OpSize::B8, gpr, gpr),
            0xffff => self.asm.movzx_rr(OpSize::W16, gpr, gpr),
            _ if u32::try_from(mask).is_ok() => self.asm.alu_ri(Alu::And, NativeWidth::D32, gpr, imm),
            _ => self.asm.alu_ri(Alu::And, NativeWidth::Q64, gpr, imm),
        }
        self.hold(dst, bits.min(left));
    }

    /// Computes an operation now; the second operand may be a memory operand.
    fn compute_alu(&mut self, width: Width, op: AluOp, dst: Reg, src: Operand) {
        let bits = self.result_bits(width, op, dst, src);
        let width = self.narrowed(width, op, dst, src, bits);
        if op != AluOp::Mov {
            self.materialize(dst);
        }
        let direct = match op {
            AluOp::Add => Some(Alu::Add),
            AluOp::Sub => Some(Alu::Sub),
            AluOp::Or => Some(Alu::Or),
            AluOp::And => Some(Alu::And),
            AluOp::Xor => Some(Alu::Xor),
            _ => None,
        };
        match (src, direct) {
            (Operand::Reg(reg), Some(op)) if reg != dst && !self.is_live_after(reg) => {
                self.before_write(dst);
                let gpr = self.home(dst);
                match self.memory_operand(reg, width) {
                    Some(mem) => self.asm.alu_rm(op, native(width), gpr, mem),
                    None => {
                        let src = self.operand(reg, self.after, SCRATCH);
                        let src = self.asm.held(src);
                        self.asm.alu_rr(op, native(width), gpr, src);
                    }
                }
                self.hold(dst, bits);
                return;
            }
            (Operand::Reg(reg), _) => self.materialize(reg),
            (Operand::Imm(_), _) => {}
        }
        self.before_write(dst);
        if let Operand::Reg(reg) = src {
            self.expect_held(reg);
        }
        if op != AluOp::Mov {
            self.expect_held(dst);
        }
        self.alu(width, op, dst, src);
        self.hold(dst, bits);
    }

    /// The 32-bit form, if the upper halves of operands and result are zero and do not affect the lower half.
    fn narrowed(&self, width: Width, op: AluOp, dst: Reg, src: Operand, bits: u8) -> Width {
        let low_only = match op {
            AluOp::Add | AluOp::Or | AluOp::And | AluOp::Xor | AluOp::Lsh | AluOp::Mul => true,
            AluOp::Div | AluOp::Mod => matches!(src, Operand::Imm(imm) if imm > 0),
            _ => false,
        };
        let narrow = low_only && bits <= 32 && self.deferred.bits(dst) <= 32;
        if narrow { Width::W32 } else { width }
    }

    /// The memory operand of a value that is still in memory, unmodified.
    pub(crate) fn memory_operand(&mut self, reg: Reg, width: Width) -> Option<Mem> {
        let Value::Bytes(bytes) = self.deferred.get(reg) else { return None };
        let shape = bytes.shape()?;
        let size = if width == Width::W64 { Size::Dw } else { Size::W };
        let plain = shape.size == size && !shape.reversed && shape.shift == 0 && shape.mask.is_none();
        (plain && bytes.plus.is_none()).then(|| self.place(bytes.base, shape.disp))
    }

    /// Upper bound for the number of significant bits of the result.
    pub(super) fn result_bits(&self, width: Width, op: AluOp, dst: Reg, src: Operand) -> u8 {
        let most = if width == Width::W64 { 64 } else { 32 };
        let a = self.deferred.bits(dst);
        let b = match src {
            Operand::Imm(imm) if imm >= 0 => 32 - imm.leading_zeros() as u8,
            Operand::Imm(_) => 64,
            Operand::Reg(reg) => self.deferred.bits(reg),
        };
        let count = |imm: i32| (imm as u32 % u32::from(most)) as u8;
        let bits = match (op, src) {
            (AluOp::Mov, _) => b,
            (AluOp::And, _) => a.min(b),
            (AluOp::Or | AluOp::Xor, _) => a.max(b),
            (AluOp::Add, _) => a.max(b).saturating_add(1),
            (AluOp::Lsh, Operand::Imm(imm)) => a.saturating_add(count(imm)),
            (AluOp::Rsh, Operand::Imm(imm)) => a.min(most).saturating_sub(count(imm)),
            (AluOp::Div | AluOp::Mod, _) => a,
            _ => 64,
        };
        bits.min(most)
    }

    pub(crate) fn is_live_after(&self, reg: Reg) -> bool {
        self.after.contains(reg)
    }

    pub(crate) fn defer_swap(&mut self, order: SwapOrder, size: Size, dst: Reg) {
        let all = eval::zero_extend(size, u64::MAX);
        let reversed = order != SwapOrder::ToLe;
        let value = match self.deferred.get(dst) {
            Value::Const(value) => Some(Value::Const(if reversed {
                eval::swap(SwapOrder::Always, size, value)
            } else {
                value & all
            })),
            Value::Bytes(bytes) if reversed => bytes.reverse(size).map(Value::Bytes),
            Value::Bytes(bytes) => bytes.and(all).map(Value::Bytes),
            Value::Reversed(of, held) if of == size && reversed => {
                self.asm.held(held);
                self.hold(dst, 8 * size.bytes() as u8);
                return;
            }
            _ => None,
        };
        if let Some(value) = value {
            self.deferred.set(dst, value);
            return;
        }
        self.materialize(dst);
        if self.deferred.bits(dst) <= 8 * size.bytes() as u8 {
            if reversed {
                let held = self.asm.hold(self.gpr(dst));
                self.deferred.set(dst, Value::Reversed(size, held));
            }
            return;
        }
        self.before_write(dst);
        self.expect_held(dst);
        self.swap(order, size, dst);
        self.hold(dst, 8 * size.bytes() as u8);
    }
}
