//! The context: loads of its fields become loads from the packet's frame.

use paceline_frame::Frame;
use paceline_isa::{Insn, Reg, Size};
use paceline_spec::context::{Field, FieldKind};

use crate::alu::op_size;
use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::plan::SCRATCH;
use crate::source::Source;
use crate::x64::{Alu, Gpr, Mem, Shift, Width};

/// Bytes of a field that holds a number.
const NUMBER: i32 = 4;

/// What an instruction accesses in the context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) field: &'static Field,
    /// Bytes from the field's start.
    within: i32,
    pub(crate) base: Reg,
    /// Bytes from the context's start to where the base register points.
    pub(crate) moved: i32,
}

/// The field that an instruction accesses: always the same one, by what was proven.
pub(crate) fn field(source: &Source<'_>, slot: usize, insn: &Insn) -> Result<Place, CompileError> {
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
    Ok(Place { field, within: start as i32 - i32::from(field.offset), base, moved })
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
        let whole = |emitter: &mut Self, offset: usize| {
            let mem = emitter.frame_field(place, offset);
            emitter.load_from(Size::Dw, false, dst, mem);
        };
        match place.field.kind {
            FieldKind::PacketData => whole(self, Frame::OFFSET_DATA),
            FieldKind::PacketEnd => whole(self, Frame::OFFSET_DATA_END),
            FieldKind::PacketMeta => whole(self, Frame::OFFSET_DATA_META),
            FieldKind::Scratch => {
                let mem = self.scratch_field(slot, insn)?;
                self.load_from(size, signed, dst, mem);
            }
            FieldKind::IngressIfindex => {
                self.load_number(place, Frame::OFFSET_INGRESS_IFINDEX, NUMBER, size, signed, dst);
            }
            FieldKind::EgressIfindex => {
                self.load_number(place, Frame::OFFSET_EGRESS_IFINDEX, NUMBER, size, signed, dst);
            }
            FieldKind::RxQueueIndex => {
                self.load_number(place, Frame::OFFSET_RX_QUEUE, 2, size, signed, dst);
            }
            FieldKind::PacketLen => {
                let (start, end) = (
                    self.frame_field(place, Frame::OFFSET_DATA),
                    self.frame_field(place, Frame::OFFSET_DATA_END),
                );
                self.asm.load(crate::x64::OpSize::Q64, SCRATCH, end);
                self.asm.alu_rm(Alu::Sub, Width::Q64, SCRATCH, start);
                self.take_part(place, size, signed, dst);
            }
            FieldKind::PacketType => {
                self.call_on_frame(place, self.links.packet_type);
                self.take_part(place, size, signed, dst);
            }
            FieldKind::Protocol => {
                self.call_on_frame(place, self.links.protocol);
                self.take_part(place, size, signed, dst);
            }
            FieldKind::Zero => self.set(dst, 0),
        }
        Ok(())
    }

    fn frame_field(&self, place: Place, offset: usize) -> Mem {
        Mem::at(self.gpr(place.base), (offset as i32).wrapping_sub(place.moved))
    }

    /// The place in the host of a field of the scratch area.
    pub(crate) fn scratch_field(&self, slot: usize, insn: &Insn) -> Result<Mem, CompileError> {
        let place = field(self.source, slot, insn)?;
        Ok(Mem::at(self.plan.host, self.links.host.scratch + place.within))
    }

    /// Loads a part of a number of which the frame has the low `len` bytes.
    fn load_number(&mut self, place: Place, at: usize, len: i32, size: Size, signed: bool, dst: Gpr) {
        let there = (len - place.within).clamp(0, size.bytes() as i32);
        let Some(part) = [Size::B, Size::H, Size::W].into_iter().find(|s| s.bytes() as i32 == there) else {
            return self.set(dst, 0);
        };
        let mem = self.frame_field(place, at + place.within as usize);
        self.load_from(part, signed && part == size, dst, mem);
    }

    /// Takes the accessed part of the number in the scratch register.
    fn take_part(&mut self, place: Place, size: Size, signed: bool, dst: Gpr) {
        if place.within != 0 {
            self.asm.shift_ri(Shift::Shr, Width::D32, SCRATCH, 8 * place.within as u8);
        }
        if signed {
            self.asm.movsx_rr(Width::Q64, op_size(size), dst, SCRATCH);
        } else {
            self.asm.movzx_rr(op_size(size), dst, SCRATCH);
        }
    }

    /// Calls a function of the runtime with the frame, keeps all registers but the scratch registers, and leaves the
    /// result in the first of these.
    fn call_on_frame(&mut self, place: Place, address: u64) {
        const KEPT: [Gpr; 8] = [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi, Gpr::R8, Gpr::R9, SCRATCH];
        for gpr in KEPT {
            self.asm.push(gpr);
        }
        let base = self.gpr(place.base);
        self.asm.lea(Width::Q64, Gpr::Rdi, Mem::at(base, place.moved.wrapping_neg()));
        self.call_runtime(address);
        self.asm.mov_rr(Width::Q64, crate::plan::SCRATCH_2, Gpr::Rax);
        for gpr in KEPT.into_iter().rev() {
            self.asm.pop(gpr);
        }
        self.asm.mov_rr(Width::Q64, SCRATCH, crate::plan::SCRATCH_2);
    }
}
