//! The legacy packet loads (`BPF_ABS`, `BPF_IND`): big-endian; a load out of bounds ends the function with 0.

use paceline_frame::Frame;
use paceline_isa::{Reg, Size};

use crate::emitter::Emitter;
use crate::materialized::alu::op_size;
use crate::plan::{SCRATCH, SCRATCH_2};
use crate::x64::{Alu, Cond, Gpr, Label, Mem, OpSize, Scale, Shift, Width};

impl Emitter<'_> {
    pub(crate) fn load_packet(&mut self, slot: usize, size: Size, index: Option<Reg>, offset: i32) {
        if self.settings.checked {
            // The runtime receives `r0` to `r5` only, so the index is passed in a scratch register.
            if let Some(index) = index {
                let value = self.value(index, SCRATCH);
                self.asm.mov_rr(Width::Q64, SCRATCH, value);
            }
            return self.execute(slot);
        }
        let (outside, done) = (self.asm.new_label(), self.asm.new_label());
        let bytes = size.bytes() as i32;
        let frame = self.gpr(Reg::R6);
        let field = |offset: usize| Mem::at(frame, offset as i32);
        if index.is_none() && offset < 0 {
            self.set(Gpr::Rax, 0);
            return self.exit();
        }
        // Start and length of the packet.
        self.asm.load(OpSize::Q64, SCRATCH, field(Frame::OFFSET_DATA));
        self.asm.load(OpSize::Q64, SCRATCH_2, field(Frame::OFFSET_DATA_END));
        self.asm.alu_rr(Alu::Sub, Width::Q64, SCRATCH_2, SCRATCH);
        let mem = match index {
            None => {
                // Packets are far shorter than 2 GiB, so the comparison fails for a saturated sum too.
                self.asm.alu_ri(Alu::Cmp, Width::Q64, SCRATCH_2, offset.saturating_add(bytes));
                self.asm.jcc(Cond::L, outside);
                Mem::at(SCRATCH, offset)
            }
            Some(index) => self.indirect(index, offset, bytes, outside),
        };
        self.asm.load(op_size(size), Gpr::Rax, mem);
        match size {
            Size::B => {}
            Size::H => {
                self.asm.shift_ri(Shift::Rol, OpSize::W16, Gpr::Rax, 8);
            }
            Size::W => self.asm.bswap(Width::D32, Gpr::Rax),
            Size::Dw => self.asm.bswap(Width::Q64, Gpr::Rax),
        }
        self.asm.jmp(done);
        self.asm.bind(outside);
        self.set(Gpr::Rax, 0);
        self.exit();
        self.asm.bind(done);
    }

    /// Bounds check for a variable offset, against the packet length in the second scratch register.
    fn indirect(&mut self, index: Reg, offset: i32, bytes: i32, outside: Label) -> Mem {
        let index = self.value(index, Gpr::Rax);
        self.asm.movsx_rr(Width::Q64, OpSize::D32, Gpr::Rax, index);
        self.asm.alu_ri(Alu::Add, Width::Q64, Gpr::Rax, offset);
        self.asm.alu_ri(Alu::Sub, Width::Q64, SCRATCH_2, bytes);
        self.asm.jcc(Cond::L, outside);
        // An unsigned comparison, in which negative offsets are too large.
        self.asm.alu_rr(Alu::Cmp, Width::Q64, Gpr::Rax, SCRATCH_2);
        self.asm.jcc(Cond::A, outside);
        Mem::indexed(SCRATCH, Gpr::Rax, Scale::One, 0)
    }
}
