//! Conditional jumps on deferred values.

use paceline_isa::{Condition, Insn, Operand, Reg, Size, SwapOrder, Width, eval};

use super::Value;
use super::value::Shape;
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::materialized::alu::op_size;
use crate::materialized::branch::cond;
use crate::plan::{SCRATCH, native};
use crate::x64::{Alu, Gpr, Mem, OpSize, Width as NativeWidth};

/// A comparison with a constant.
#[derive(Clone, Copy)]
struct Test {
    condition: Condition,
    /// Truncated to the width of the comparison.
    number: u64,
}

impl Test {
    /// Whether the constant can be byte-swapped instead of the value.
    fn ignores_order(self) -> bool {
        matches!(self.condition, Condition::Eq | Condition::Ne | Condition::Set)
    }

    fn is_signed(self) -> bool {
        matches!(self.condition, Condition::SGt | Condition::SGe | Condition::SLt | Condition::SLe)
    }

    fn turned(self, size: Size) -> Self {
        Self { number: eval::swap(SwapOrder::Always, size, self.number), ..self }
    }
}

impl Emitter<'_> {
    pub(crate) fn deferred_jump_if(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let Insn::JumpIf { width, condition, dst, src, .. } = *insn else {
            return self.emit_materialized(slot, insn);
        };
        let fact = self.source.fact(slot);
        if !fact.may_jump {
            return Ok(());
        }
        let target = match self.known_exit(slot, insn) {
            Some(exit) => exit,
            None => self.target(slot, insn.jump_target(slot))?,
        };
        // Live registers of the target are materialized before the comparison, because that changes the flags.
        let flushed = self.flush_before_jump(slot, insn, self.liveness.at_target(slot, insn));
        self.make_store();
        if fact.may_fall_through {
            self.deferred_compare(width, condition, dst, src);
            flushed.iter().for_each(|reg| self.expect_held(reg));
            self.asm.jcc(cond(condition), target);
        } else {
            self.asm.jmp(target);
        }
        Ok(())
    }

    fn deferred_compare(&mut self, width: Width, condition: Condition, dst: Reg, src: Operand) {
        let number = match src {
            Operand::Imm(imm) => Some(imm as u64),
            Operand::Reg(reg) => match self.deferred.get(reg) {
                Value::Const(value) => Some(value),
                _ => None,
            },
        };
        if let Some(number) = number
            && dst != Reg::R10
            && self.is_within(dst, width)
        {
            let test = Test { condition, number: eval::truncate(width, number) };
            if self.compare_in_order_of_memory(dst, test) {
                return;
            }
        }
        self.compare_registers(width, condition, dst, src);
    }

    /// Compares without byte-swapping the value, if possible.
    fn compare_in_order_of_memory(&mut self, dst: Reg, test: Test) -> bool {
        match self.deferred.get(dst) {
            Value::Reversed(size, held) if test.ignores_order() && fits(size, test.number) => {
                let gpr = self.asm.held(held);
                self.compare_number(gpr, size, test.turned(size))
            }
            Value::Bytes(bytes) => {
                let Some(shape) = bytes.shape() else { return false };
                let simple = bytes.plus.is_none() && shape.shift == 0 && fits(shape.size, test.number);
                if !simple || shape.reversed && !test.ignores_order() {
                    return false;
                }
                if !self.is_live_after(dst) {
                    let mem = self.place(bytes.base, shape.disp);
                    return self.compare_memory(mem, &shape, test);
                }
                if !shape.reversed || shape.mask.is_some() {
                    return false;
                }
                self.before_write(dst);
                let gpr = self.gpr(dst);
                self.load_shape(&bytes, &shape, gpr);
                let held = self.asm.hold(gpr);
                self.deferred.set(dst, Value::Reversed(shape.size, held));
                self.compare_number(gpr, shape.size, test.turned(shape.size))
            }
            _ => false,
        }
    }

    /// Compares a memory operand with a constant of the same size.
    fn compare_memory(&mut self, mem: Mem, shape: &Shape, test: Test) -> bool {
        let size = shape.size;
        let test = if shape.reversed { test.turned(size) } else { test };
        let mask = shape
            .mask
            .map(|mask| if shape.reversed { eval::swap(SwapOrder::Always, size, mask) } else { mask });
        let is_bits = test.condition == Condition::Set;
        let bits = match mask {
            Some(mask) if is_bits => Some(mask & test.number),
            Some(mask) if test.number == 0 && test.ignores_order() => Some(mask),
            Some(_) => return false,
            None => is_bits.then_some(test.number),
        };
        if test.is_signed() && size != Size::Dw {
            return false;
        }
        let number = bits.unwrap_or(test.number);
        let imm = match size {
            Size::Dw => match i32::try_from(number as i64) {
                Ok(imm) => imm,
                Err(_) => return false,
            },
            _ => eval::sign_extend(size, number) as i32,
        };
        // A 16-bit immediate stalls the decoder (length-changing prefix), which costs more than an extra instruction.
        let in_register = size == Size::H && (bits.is_some() || i8::try_from(imm).is_err());
        match (in_register, bits) {
            (true, _) => {
                self.asm.load(OpSize::W16, SCRATCH, mem);
                let imm = number as i32;
                if bits.is_some() {
                    self.asm.test_ri(OpSize::D32, SCRATCH, imm);
                } else {
                    self.asm.alu_ri(Alu::Cmp, OpSize::D32, SCRATCH, imm);
                }
            }
            (false, Some(_)) => self.asm.test_mi(op_size(size), mem, imm),
            (false, None) => self.asm.alu_mi(Alu::Cmp, op_size(size), mem, imm),
        }
        true
    }

    /// Compares a register that is zero-extended from a size.
    fn compare_number(&mut self, gpr: Gpr, size: Size, test: Test) -> bool {
        let is_bits = test.condition == Condition::Set;
        if size == Size::Dw {
            self.asm.mov_ri(SCRATCH, test.number);
            if is_bits {
                self.asm.test_rr(OpSize::Q64, gpr, SCRATCH);
            } else {
                self.asm.alu_rr(Alu::Cmp, OpSize::Q64, gpr, SCRATCH);
            }
        } else if is_bits {
            self.asm.test_ri(OpSize::D32, gpr, test.number as u32 as i32);
        } else if test.number == 0 {
            self.asm.test_rr(OpSize::D32, gpr, gpr);
        } else {
            self.asm.alu_ri(Alu::Cmp, OpSize::D32, gpr, test.number as u32 as i32);
        }
        true
    }

    fn compare_registers(&mut self, width: Width, condition: Condition, dst: Reg, src: Operand) {
        let again = self.after;
        let imm = match src {
            Operand::Imm(imm) => Some(imm),
            Operand::Reg(reg) => match self.deferred.get(reg) {
                Value::Const(value) => i32::try_from(value as i64).ok(),
                _ => None,
            },
        };
        let small = imm.is_some_and(|imm| imm >= 0) && dst != Reg::R10 && self.deferred.bits(dst) <= 31;
        let narrow = if small { NativeWidth::D32 } else { native(width) };
        match (src, imm) {
            (_, Some(imm)) => {
                let a = self.operand(dst, again, SCRATCH);
                let a = self.asm.held(a);
                match imm {
                    _ if condition == Condition::Set => self.asm.test_ri(narrow, a, imm),
                    0 => self.asm.test_rr(narrow, a, a),
                    _ => self.asm.alu_ri(Alu::Cmp, narrow, a, imm),
                }
            }
            (Operand::Reg(src), None) => {
                let width_of = native(width);
                let in_memory = (!self.is_live_after(src) && condition != Condition::Set)
                    .then(|| self.memory_operand(src, width))
                    .flatten();
                if let Some(mem) = in_memory
                    && let Value::Held(a) = self.deferred.get(dst)
                {
                    let a = self.asm.held(a);
                    return self.asm.alu_rm(Alu::Cmp, width_of, a, mem);
                }
                let (a, b) = self.operands(dst, src, again);
                if condition == Condition::Set {
                    self.asm.test_rr(width_of, a, b);
                } else {
                    self.asm.alu_rr(Alu::Cmp, width_of, a, b);
                }
            }
            (Operand::Imm(_), None) => {}
        }
    }
}

/// Whether a constant fits a size.
fn fits(size: Size, number: u64) -> bool {
    number <= eval::zero_extend(size, u64::MAX)
}
