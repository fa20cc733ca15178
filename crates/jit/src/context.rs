//! Accesses to context fields, which become accesses to the packet's frame or to the host.

use paceline_frame::Frame;
use paceline_isa::{Insn, Operand, Reg, Size};
use paceline_spec::context::{Field, Permission, Place, Rule};

use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::materialized::alu::op_size;
use crate::plan::{SCRATCH, SCRATCH_2};
use crate::source::Source;
use crate::x64::{Alu, Cond, Gpr, Mem, Shift, Width};

/// A context field access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessed {
    pub(crate) field: &'static Field,
    /// Offset from the field's start in bytes.
    within: i32,
    /// The accessed part of the field's storage: the first byte and the access size. `None` if no stored byte is accessed.
    part: Option<(i32, Size)>,
    pub(crate) base: Reg,
    /// Offset of the base register from the context's start in bytes.
    pub(crate) moved: i32,
}

impl Accessed {
    /// Offset and size of the accessed part of the frame, if the field is stored there.
    pub(crate) fn in_frame(&self) -> Option<(i32, Size)> {
        let Place::Frame { offset, .. } = self.field.place else { return None };
        self.part.map(|(at, size)| (i32::from(offset) + at, size))
    }

    /// Offset and size in the packet's own area in the host, if the field is stored there.
    fn in_host(&self) -> Option<(i32, Size)> {
        let Place::Host { offset, .. } = self.field.place else { return None };
        self.part.map(|(at, size)| (i32::from(offset) + at, size))
    }
}

/// The field that an instruction accesses: a single one, as the verifier proved.
pub(crate) fn field(source: &Source<'_>, slot: usize, insn: &Insn) -> Result<Accessed, CompileError> {
    let refused = CompileError::Context { slot };
    let (size, base, offset, write) = match *insn {
        Insn::Load { size, base, offset, .. } => (size, base, offset, false),
        Insn::Store { size, base, offset, .. } => (size, base, offset, true),
        _ => return Err(refused),
    };
    let Some(memory) = source.fact(slot).memory else { return Err(refused) };
    let Ok(start) = u64::try_from(memory.min_offset) else { return Err(refused) };
    if memory.max_offset != memory.min_offset {
        return Err(refused);
    }
    let found = source.kind.context_field(start, size.bytes() as u64, write);
    let (Some(field), Ok(moved)) = (found, i32::try_from(memory.min_offset - i64::from(offset))) else {
        return Err(refused);
    };
    let (at, len) = field.part(start, size.bytes() as u64);
    let part = Size::from_bytes(len.into()).map(|len| (i32::from(at), len));
    Ok(Accessed { field, within: start as i32 - i32::from(field.offset), part, base, moved })
}

impl Emitter<'_> {
    pub(crate) fn load_context(
        &mut self,
        slot: usize,
        insn: &Insn,
        size: Size,
        signed: bool,
        dst: Gpr,
    ) -> Result<(), CompileError> {
        let place = field(self.source, slot, insn)?;
        let found = match place.field.place {
            Place::Frame { .. } => place.in_frame().map(|(at, len)| (self.frame_member(place, at), len)),
            Place::Host { .. } => place.in_host().map(|(at, len)| (self.area(at), len)),
            Place::Computed(rule) => {
                self.compute_rule(place, rule);
                self.take_part(place, size, signed, dst);
                return Ok(());
            }
            Place::Zero => None,
        };
        match found {
            Some((mem, Size::Dw)) => self.load_from(Size::Dw, false, dst, mem),
            Some((mem, len)) => self.load_from(len, signed && len == size, dst, mem),
            None => self.set(dst, 0),
        }
        Ok(())
    }

    /// A store to a field in the packet's own area in the host.
    pub(crate) fn store_context(
        &mut self,
        slot: usize,
        insn: &Insn,
        src: Operand,
    ) -> Result<(), CompileError> {
        let place = field(self.source, slot, insn)?;
        let Some((at, size)) = place.in_host() else { return Ok(()) };
        let mem = self.area(at);
        let most = (u64::MAX >> (64 - 8 * size.bytes())) as i64;
        let below_max = place.field.permission == Permission::WriteBelowMax;
        match src {
            Operand::Imm(imm) => {
                if !below_max || (0..most).contains(&i64::from(imm)) {
                    self.asm.store_imm(op_size(size), mem, imm);
                }
            }
            Operand::Reg(reg) => {
                let src = self.value(reg, SCRATCH_2);
                let skip = self.asm.new_label();
                if below_max {
                    self.asm.mov_ri(SCRATCH, most as u64);
                    self.asm.alu_rr(Alu::Cmp, Width::Q64, src, SCRATCH);
                    self.asm.jcc(Cond::Ae, skip);
                }
                self.asm.store(op_size(size), mem, src);
                self.asm.bind(skip);
            }
        }
        Ok(())
    }

    fn frame_member(&self, place: Accessed, offset: i32) -> Mem {
        Mem::at(self.gpr(place.base), offset.wrapping_sub(place.moved))
    }

    /// The memory operand for an offset in the packet's own area in the host.
    fn area(&self, offset: i32) -> Mem {
        Mem::at(self.plan.host, self.links.host.area + offset)
    }

    /// Computes the value of a computed field into the scratch register.
    fn compute_rule(&mut self, place: Accessed, rule: Rule) {
        if rule != Rule::PacketLen {
            let address = self.links.rules.get(rule as usize).copied().unwrap_or_default();
            return self.call_on_frame(place, address);
        }
        let start = self.frame_member(place, Frame::OFFSET_DATA as i32);
        let end = self.frame_member(place, Frame::OFFSET_DATA_END as i32);
        self.asm.load(crate::x64::OpSize::Q64, SCRATCH, end);
        self.asm.alu_rm(Alu::Sub, Width::Q64, SCRATCH, start);
    }

    /// Extracts the accessed part of the value in the scratch register.
    fn take_part(&mut self, place: Accessed, size: Size, signed: bool, dst: Gpr) {
        if place.within != 0 {
            self.asm.shift_ri(Shift::Shr, Width::D32, SCRATCH, 8 * place.within as u8);
        }
        if signed {
            self.asm.movsx_rr(Width::Q64, op_size(size), dst, SCRATCH);
        } else {
            self.asm.movzx_rr(op_size(size), dst, SCRATCH);
        }
    }

    /// Calls a function of the runtime with the frame. Preserves all registers but the scratch registers, the first of which
    /// receives the result.
    fn call_on_frame(&mut self, place: Accessed, address: u64) {
        const KEPT: [Gpr; 8] = [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi, Gpr::R8, Gpr::R9, SCRATCH];
        for gpr in KEPT {
            self.asm.push(gpr);
        }
        let base = self.gpr(place.base);
        self.asm.lea(Width::Q64, Gpr::Rdi, Mem::at(base, place.moved.wrapping_neg()));
        self.call_runtime(address);
        self.asm.mov_rr(Width::Q64, SCRATCH_2, Gpr::Rax);
        for gpr in KEPT.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.mov_rr(Width::Q64, SCRATCH, SCRATCH_2);
    }
}
