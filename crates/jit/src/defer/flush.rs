//! Materialization of deferred values.

use paceline_isa::{Reg, RegSet, Size, Width};

use super::{Base, Bytes, Value};
use crate::emitter::Emitter;
use crate::materialized::alu::op_size;
use crate::plan::{SCRATCH, SCRATCH_2, native};
use crate::x64::{Alu, Gpr, Held, Mem, OpSize, Shift, Width as NativeWidth};

impl Emitter<'_> {
    /// Materializes registers.
    pub(crate) fn flush(&mut self, registers: RegSet) {
        for reg in registers.iter() {
            self.materialize(reg);
        }
    }

    /// Loads values that are still in memory, before the memory changes.
    pub(crate) fn flush_memory(&mut self) {
        for reg in self.deferred.live.iter() {
            if matches!(self.deferred.get(reg), Value::Bytes(_)) {
                self.materialize(reg);
            }
        }
    }

    /// Records that a native register holds the value of its BPF register, with an upper bound for its significant bits.
    pub(crate) fn hold(&mut self, reg: Reg, bits: u8) {
        let held = self.asm.hold(self.gpr(reg));
        self.deferred.hold(reg, held, bits);
    }

    /// The native register of a value that was materialized.
    pub(crate) fn home(&mut self, reg: Reg) -> Gpr {
        self.expect_held(reg);
        self.gpr(reg)
    }

    /// Checks that a value was materialized and its register not overwritten since.
    pub(crate) fn expect_held(&mut self, reg: Reg) {
        match self.deferred.held(reg) {
            Some(held) => {
                self.asm.held(held);
            }
            None if reg == Reg::R10 => {}
            None => self.dead_read = Some(reg),
        }
    }

    /// Before a native register is written: deferred values that depend on its contents are materialized, or dropped if they are
    /// dead.
    pub(crate) fn before_write(&mut self, written: Reg) {
        if self.deferred.stored.is_some_and(|stored| stored.is_of(written)) {
            self.end_store();
        }
        self.save_dependents(written);
    }

    /// The same, except for a deferred store of the register.
    pub(crate) fn save_dependents(&mut self, written: Reg) {
        for reg in self.deferred.dependents(written).iter() {
            // Materializing an earlier one may have materialized this one.
            if !self.deferred.get(reg).uses(written) {
                continue;
            }
            if self.deferred.live.contains(reg) {
                self.materialize(reg);
            } else {
                self.deferred.kill(reg);
            }
        }
    }

    /// Computes a value into its register. Clobbers the flags.
    pub(crate) fn materialize(&mut self, reg: Reg) {
        if let Some(held) = self.deferred.held(reg) {
            self.asm.held(held);
            return;
        }
        let value = self.deferred.get(reg);
        if matches!(value, Value::Dead) || reg == Reg::R10 {
            return self.expect_held(reg);
        }
        let bits = self.deferred.bits(reg);
        self.before_write(reg);
        let gpr = self.gpr(reg);
        self.compute(value, gpr);
        self.hold(reg, bits);
    }

    /// Computes a value into any native register.
    pub(crate) fn compute(&mut self, value: Value, gpr: Gpr) {
        match value {
            Value::Dead | Value::Held(_) => {}
            Value::Const(value) => self.set(gpr, value),
            Value::Sum(base, disp) => self.compute_sum(base, disp, gpr),
            Value::Bytes(bytes) => self.compute_bytes(&bytes, gpr),
            Value::Reversed(size, held) => {
                self.asm.held(held);
                self.reverse(size, gpr);
            }
            Value::Shifted(shifted) => self.compute_shifted(&shifted, gpr),
            Value::Function(start) => self.set_function(start, gpr),
        }
    }

    fn compute_sum(&mut self, base: Base, disp: i32, gpr: Gpr) {
        match self.place(base, disp) {
            Mem::Reg { base, index: None, disp } if base == gpr => {
                if disp != 0 {
                    self.asm.alu_ri(Alu::Add, NativeWidth::Q64, gpr, disp);
                }
            }
            Mem::Reg { base, index: None, disp: 0 } => self.asm.mov_rr(NativeWidth::Q64, gpr, base),
            mem => self.asm.lea(NativeWidth::Q64, gpr, mem),
        }
    }

    /// A memory operand relative to a base.
    pub(crate) fn place(&mut self, base: Base, disp: i32) -> Mem {
        match base {
            Base::Reg(_, held) | Base::Native(held) => Mem::at(self.asm.held(held), disp),
            Base::Frame => self.plan.stack(disp),
        }
    }

    fn reverse(&mut self, size: Size, gpr: Gpr) {
        match size {
            Size::B => {}
            Size::H => self.asm.shift_ri(Shift::Rol, OpSize::W16, gpr, 8),
            Size::W => self.asm.bswap(NativeWidth::D32, gpr),
            Size::Dw => self.asm.bswap(NativeWidth::Q64, gpr),
        }
    }

    /// Loads a number in memory order; the bytes above its size are unspecified.
    pub(crate) fn load_shape(&mut self, bytes: &Bytes, shape: &super::value::Shape, gpr: Gpr) {
        let mem = self.place(bytes.base, shape.disp);
        self.asm.load(op_size(shape.size), gpr, mem);
    }

    fn compute_bytes(&mut self, bytes: &Bytes, gpr: Gpr) {
        let Some(shape) = bytes.shape() else { return self.gather(bytes, gpr) };
        let size = op_size(shape.size);
        if shape.reversed && self.settings.features.movbe && size >= OpSize::D32 {
            let mem = self.place(bytes.base, shape.disp);
            self.asm.movbe_rm(size, gpr, mem);
        } else {
            self.load_shape(bytes, &shape, gpr);
            if shape.reversed {
                self.reverse(shape.size, gpr);
            }
        }
        if let Some(mask) = shape.mask {
            self.mask(gpr, mask);
        }
        if shape.shift != 0 {
            self.asm.shift_ri(Shift::Shl, NativeWidth::Q64, gpr, shape.shift);
        }
        if let Some((width, plus)) = bytes.plus {
            self.asm.alu_ri(Alu::Add, native(width), gpr, plus);
        }
    }

    /// Clears all bits outside of a mask.
    fn mask(&mut self, gpr: Gpr, mask: u64) {
        match (i32::try_from(mask), u32::try_from(mask)) {
            (Ok(0xff), _) => self.asm.movzx_rr(OpSize::B8, gpr, gpr),
            (Ok(0xffff), _) => self.asm.movzx_rr(OpSize::W16, gpr, gpr),
            (_, Ok(mask)) => self.asm.alu_ri(Alu::And, NativeWidth::D32, gpr, mask.cast_signed()),
            _ => match i32::try_from(mask as i64) {
                Ok(mask) => self.asm.alu_ri(Alu::And, NativeWidth::Q64, gpr, mask),
                Err(_) => {
                    self.asm.mov_ri(SCRATCH_2, mask);
                    self.asm.alu_rr(Alu::And, NativeWidth::Q64, gpr, SCRATCH_2);
                }
            },
        }
    }

    /// Assembles a number byte by byte, if no single load can produce it.
    fn gather(&mut self, bytes: &Bytes, gpr: Gpr) {
        self.set(SCRATCH, 0);
        for (disp, shift) in bytes.parts() {
            let mem = self.place(bytes.base, disp);
            self.asm.load(OpSize::B8, SCRATCH_2, mem);
            if shift != 0 {
                self.asm.shift_ri(Shift::Shl, NativeWidth::Q64, SCRATCH_2, shift);
            }
            self.asm.alu_rr(Alu::Or, NativeWidth::Q64, SCRATCH, SCRATCH_2);
        }
        self.mask(SCRATCH, bytes.mask());
        self.asm.mov_rr(NativeWidth::Q64, gpr, SCRATCH);
        if let Some((width, plus)) = bytes.plus {
            self.asm.alu_ri(Alu::Add, native(width), gpr, plus);
        }
    }

    /// A register with the value, for reading: its own, or a scratch register if the value is not read again.
    pub(crate) fn operand(&mut self, reg: Reg, again: RegSet, scratch: Gpr) -> Held {
        self.materialize_unless_alone(reg, again);
        let value = self.deferred.get(reg);
        let gpr = match value {
            _ if reg == Reg::R10 => self.value(reg, scratch),
            Value::Held(held) => return held,
            _ => {
                self.compute(value, scratch);
                scratch
            }
        };
        self.asm.hold(gpr)
    }

    /// Two such registers. Values whose computation needs scratch registers are materialized before a scratch register holds the
    /// other operand.
    pub(super) fn operands(&mut self, left: Reg, right: Reg, again: RegSet) -> (Gpr, Gpr) {
        self.materialize_unless_alone(right, again);
        self.materialize_unless_alone(left, again);
        let right = self.operand(right, again, SCRATCH_2);
        let left = self.operand(left, again, SCRATCH);
        (self.asm.held(left), self.asm.held(right))
    }

    /// Materializes a value that is read again, or whose computation needs more than one register.
    fn materialize_unless_alone(&mut self, reg: Reg, again: RegSet) {
        let alone = match self.deferred.get(reg) {
            Value::Sum(..) | Value::Const(_) | Value::Function(_) => true,
            Value::Bytes(bytes) => bytes.shape().is_some() && u32::try_from(bytes.mask()).is_ok(),
            // In its own register it needs no move.
            Value::Shifted(shifted) => shifted.base != reg,
            Value::Dead | Value::Held(_) | Value::Reversed(..) => false,
        };
        if !alone || again.contains(reg) {
            self.materialize(reg);
        }
    }

    /// Whether a value has no bits above a width.
    pub(crate) fn is_within(&self, reg: Reg, width: Width) -> bool {
        width == Width::W64 || reg != Reg::R10 && self.deferred.bits(reg) <= 32
    }
}
