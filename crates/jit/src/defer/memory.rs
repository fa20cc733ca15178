//! Loads that wait, and stores.

use paceline_frame::Frame;
use paceline_isa::{Insn, Operand, Reg, RegSet, Size, eval};
use paceline_spec::context::FieldKind;

use super::{Base, Bytes, Stored, Value};
use crate::alu::op_size;
use crate::context;
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::plan::{SCRATCH_2, accesses_context};
use crate::x64::{Alu, Mem, Width as NativeWidth};

impl Emitter<'_> {
    pub(crate) fn defer_load(&mut self, slot: usize, insn: &Insn, after: RegSet) -> Result<(), CompileError> {
        let Insn::Load { size, signed, dst, base, offset } = *insn else { return self.plainly(slot, insn) };
        if !after.contains(dst) {
            self.deferred.hold(dst, 64);
            return Ok(());
        }
        if accesses_context(self.source, slot) {
            return self.defer_context(slot, insn, size, signed, dst);
        }
        if signed {
            self.before_write(dst);
            let mem = self.deferred_address(base, offset);
            self.asm.load_sx(NativeWidth::Q64, op_size(size), self.plan.gpr(dst), mem);
            self.deferred.hold(dst, 64);
            return Ok(());
        }
        let (base, disp) = self.root_address(base, offset, dst);
        self.deferred.set(dst, Value::Bytes(Bytes::new(base, disp, size)));
        Ok(())
    }

    /// Fields that the frame has as they are can be loaded late as well.
    fn defer_context(
        &mut self,
        slot: usize,
        insn: &Insn,
        size: Size,
        signed: bool,
        dst: Reg,
    ) -> Result<(), CompileError> {
        let place = context::field(self.source, slot, insn)?;
        let whole = |offset: usize, size: Size| Some((offset, size));
        let found = match place.field.kind {
            FieldKind::PacketData => whole(Frame::OFFSET_DATA, Size::Dw),
            FieldKind::PacketEnd => whole(Frame::OFFSET_DATA_END, Size::Dw),
            FieldKind::PacketMeta => whole(Frame::OFFSET_DATA_META, Size::Dw),
            FieldKind::IngressIfindex if size == Size::W && !signed => {
                whole(Frame::OFFSET_INGRESS_IFINDEX, Size::W)
            }
            FieldKind::RxQueueIndex if size == Size::W && !signed => whole(Frame::OFFSET_RX_QUEUE, Size::H),
            _ => None,
        };
        let base = place.base;
        match found.and_then(|(at, size)| Some((i32::try_from(at).ok()?.checked_sub(place.moved)?, size))) {
            Some((disp, size)) if self.is_root_base(Base::Reg(base), dst) && base != Reg::R10 => {
                let (base, disp) = match self.deferred.get(base) {
                    Value::Sum(root, moved) => (root, disp.wrapping_add(moved)),
                    _ => (Base::Reg(base), disp),
                };
                self.deferred.set(dst, Value::Bytes(Bytes::new(base, disp, size)));
                Ok(())
            }
            _ => {
                self.materialize(base);
                self.before_write(dst);
                self.insn(slot, insn)?;
                self.deferred.hold(dst, 64);
                Ok(())
            }
        }
    }

    /// An address that a value of `dst` may be made from.
    fn root_address(&mut self, base: Reg, offset: i16, dst: Reg) -> (Base, i32) {
        let offset = i32::from(offset);
        match self.deferred.get(base) {
            Value::Sum(root, disp) if self.is_root_base(root, dst) => {
                if let Some(disp) = disp.checked_add(offset) {
                    return (root, disp);
                }
            }
            _ => {}
        }
        self.materialize(base);
        (Base::Reg(base), offset)
    }

    /// An address to be used now.
    pub(crate) fn deferred_address(&mut self, base: Reg, offset: i16) -> Mem {
        let offset = i32::from(offset);
        if let Value::Sum(root, disp) = self.deferred.get(base)
            && let Some(disp) = disp.checked_add(offset)
        {
            return self.place(root, disp);
        }
        self.materialize(base);
        self.place(Base::Reg(base), offset)
    }

    pub(crate) fn deferred_store(
        &mut self,
        slot: usize,
        insn: &Insn,
        after: RegSet,
    ) -> Result<(), CompileError> {
        let (size, base, offset, src) = match *insn {
            Insn::Store { size, base, offset, src } => (size, base, offset, src),
            Insn::StoreRelease { size, base, offset, src } => (size, base, offset, Operand::Reg(src)),
            _ => return self.plainly(slot, insn),
        };
        if accesses_context(self.source, slot) {
            return self.plainly(slot, insn);
        }
        self.deferred.stored = None;
        for reg in after.iter() {
            if matches!(self.deferred.get(reg), Value::Bytes(_)) {
                self.materialize(reg);
            }
        }
        if let Operand::Reg(reg) = src
            && self.add_in_memory(size, base, offset, reg, after)
        {
            return Ok(());
        }
        let constant = match src {
            Operand::Imm(imm) => Some(imm),
            Operand::Reg(reg) => match self.deferred.get(reg) {
                Value::Const(value) => immediate(size, value),
                _ => None,
            },
        };
        match (src, constant) {
            (_, Some(imm)) => {
                let mem = self.deferred_address(base, offset);
                self.asm.store_imm(op_size(size), mem, imm);
            }
            (Operand::Reg(reg), None) => {
                let src = if reg == Reg::R10 {
                    self.value(reg, SCRATCH_2)
                } else {
                    self.materialize(reg);
                    self.gpr(reg)
                };
                let mem = self.deferred_address(base, offset);
                self.asm.store(op_size(size), mem, src);
                if let (Some(disp), Size::W) = (self.stack_offset(base, offset), size) {
                    self.deferred.stored =
                        (reg != Reg::R10).then(|| Stored { disp, reg, bits: self.deferred.bits(reg) });
                }
            }
            (Operand::Imm(_), None) => {}
        }
        Ok(())
    }

    /// Where an address on the stack is from the frame pointer.
    fn stack_offset(&self, base: Reg, offset: i16) -> Option<i32> {
        match self.deferred.get(base) {
            Value::Sum(Base::Frame, disp) => disp.checked_add(i32::from(offset)),
            _ => None,
        }
    }

    /// A store of what was loaded from the same place with something added.
    fn add_in_memory(&mut self, size: Size, base: Reg, offset: i16, src: Reg, after: RegSet) -> bool {
        let Value::Bytes(bytes) = self.deferred.get(src) else { return false };
        let (Some((_, plus)), Some(shape)) = (bytes.plus, bytes.shape()) else { return false };
        if after.contains(src) || shape.size != size {
            return false;
        }
        let mem = self.deferred_address(base, offset);
        let same = self.deferred.get(src) == Value::Bytes(bytes) && mem == self.place(bytes.base, shape.disp);
        if same {
            self.asm.alu_mi(Alu::Add, op_size(size), mem, plus);
        }
        same
    }
}

/// The immediate that stores a number's low bytes.
fn immediate(size: Size, value: u64) -> Option<i32> {
    match size {
        Size::Dw => i32::try_from(value as i64).ok(),
        _ => Some(eval::sign_extend(size, value) as i32),
    }
}
