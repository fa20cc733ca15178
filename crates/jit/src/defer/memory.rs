//! Deferred loads, and stores.

use paceline_isa::{Insn, Reg, RegSet, Size};
use paceline_spec::context::FieldKind;

use super::{Base, Bytes, Value};
use crate::context;
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::materialized::alu::op_size;
use crate::plan::accesses_context;
use crate::x64::{Mem, Width as NativeWidth};

impl Emitter<'_> {
    pub(crate) fn defer_load(&mut self, slot: usize, insn: &Insn, after: RegSet) -> Result<(), CompileError> {
        let Insn::Load { size, signed, dst, base, offset } = *insn else {
            return self.emit_materialized(slot, insn);
        };
        if !after.contains(dst) {
            self.deferred.kill(dst);
            return Ok(());
        }
        if accesses_context(self.source, slot) {
            return self.defer_context(slot, insn, signed, dst);
        }
        self.make_store_for(slot);
        if signed {
            self.before_write(dst);
            let mem = self.deferred_address(base, offset);
            self.asm.load_sx(NativeWidth::Q64, op_size(size), self.plan.gpr(dst), mem);
            self.hold(dst, 64);
            return Ok(());
        }
        let (base, disp) = self.root_address(base, i32::from(offset), dst);
        self.deferred.set(dst, Value::Bytes(Bytes::new(base, disp, size)));
        Ok(())
    }

    /// Loads of fields that the frame stores unchanged can be deferred as well.
    fn defer_context(
        &mut self,
        slot: usize,
        insn: &Insn,
        signed: bool,
        dst: Reg,
    ) -> Result<(), CompileError> {
        let place = context::field(self.source, slot, insn)?;
        let found = place.in_frame().filter(|_| !signed);
        let base = place.base;
        if let (FieldKind::PacketData, Some(start)) = (place.field.kind, self.packet_start()) {
            let start = self.asm.hold(start);
            self.deferred.set(dst, Value::Sum(Base::Native(start), 0));
            return Ok(());
        }
        let at = |(at, size): (i32, Size)| Some((at.checked_sub(place.moved)?, size));
        if let Some((at, size)) = found.and_then(at) {
            let (root, disp) = self.root_address(base, at, dst);
            self.deferred.set(dst, Value::Bytes(Bytes::new(root, disp, size)));
            return Ok(());
        }
        self.materialize(base);
        self.before_write(dst);
        self.expect_held(base);
        self.insn(slot, insn)?;
        self.hold(dst, 64);
        Ok(())
    }

    /// An address that a deferred value of `dst` may be based on.
    fn root_address(&mut self, base: Reg, offset: i32, dst: Reg) -> (Base, i32) {
        match self.deferred.get(base) {
            Value::Sum(root, disp) if self.is_root_base(root, dst) => {
                if let Some(disp) = disp.checked_add(offset) {
                    return (root, disp);
                }
            }
            _ => {}
        }
        (self.materialized(base), offset)
    }

    /// The base for a register's native register after its value is materialized.
    pub(super) fn materialized(&mut self, reg: Reg) -> Base {
        if reg == Reg::R10 {
            return Base::Frame;
        }
        self.materialize(reg);
        let held = self.asm.hold(self.gpr(reg));
        Base::Reg(reg, held)
    }

    /// A memory operand for immediate use.
    pub(crate) fn deferred_address(&mut self, base: Reg, offset: i16) -> Mem {
        let offset = i32::from(offset);
        if let Value::Sum(root, disp) = self.deferred.get(base)
            && let Some(disp) = disp.checked_add(offset)
        {
            return self.place(root, disp);
        }
        let base = self.materialized(base);
        self.place(base, offset)
    }
}
