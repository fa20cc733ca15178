//! Accesses to memory.

use paceline_isa::Size;

use super::{Regs, X64, alu};
use crate::internal::Internal;
use crate::ir::expand::ArrayLink;
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::frame::{DATA, DATA_END};
use crate::native::machine::op::Op;
use crate::native::machine::operand::{Scale, Width};
use crate::native::machine::x64::asm::{Alu, Cond, Gpr, Mem, OpSize, Shift};
use crate::native::machine::x64::regs::SCRATCH;

impl X64<'_> {
    pub(super) fn memory(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        match op {
            Op::Load { size, signed, at } => {
                let (mem, last) = (self.mem(at, regs)?, regs.last()?);
                if signed {
                    self.asm.load_sx(Width::Q64, OpSize::of(size), last, mem);
                } else {
                    self.asm.load(OpSize::of(size), last, mem);
                }
            }
            Op::Store(size, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.store(OpSize::of(size), mem, regs.last()?);
            }
            Op::StoreImm(size, at, imm) => {
                let mem = self.mem(at, regs)?;
                self.asm.store_imm(OpSize::of(size), mem, imm);
            }
            Op::Update(op, size, at) => {
                let mem = self.mem(at, regs)?;
                self.asm.alu_mr(alu(op), OpSize::of(size), mem, regs.last()?);
            }
            Op::UpdateImm(op, size, at, imm) => {
                let mem = self.mem(at, regs)?;
                self.asm.alu_mi(alu(op), OpSize::of(size), mem, imm);
            }
            Op::StoreBelow(size, at, most) => {
                let (mem, last, skip) = (self.mem(at, regs)?, regs.last()?, self.asm.new_label());
                self.asm.mov_ri(SCRATCH, most);
                self.asm.alu_rr(Alu::Cmp, Width::Q64, last, SCRATCH);
                self.asm.jcc(Cond::Ae, skip);
                self.asm.store(OpSize::of(size), mem, last);
                self.asm.bind(skip);
            }
            Op::PacketLen => {
                let (frame, last) = (regs.get(0)?, regs.last()?);
                self.asm.load(OpSize::Q64, last, Mem::at(frame, DATA_END));
                self.asm.alu_rm(Alu::Sub, Width::Q64, last, Mem::at(frame, DATA));
            }
            Op::PacketLoad { size, indexed, offset } => self.load_packet(size, indexed, offset, regs)?,
            Op::LookUp(array, at) => {
                let host = regs.get(at.operands())?;
                let mem = self.mem(at, regs)?;
                self.look_up(&array, mem, host, regs.last()?);
            }
            Op::TellReadable(maps, count) => self.tell_readable(regs.get(0)?, (maps, count)),
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// The packet's start is in the scratch register, its length in the last operand.
    fn load_packet(
        &mut self,
        size: Size,
        indexed: bool,
        offset: i32,
        regs: Regs<'_>,
    ) -> Result<(), Internal> {
        let (frame, loaded, length) = (regs.get(0)?, regs.get(1 + usize::from(indexed))?, regs.last()?);
        let (outside, done) = (self.asm.new_label(), self.asm.new_label());
        let bytes = size.bytes() as i32;
        self.asm.load(OpSize::Q64, SCRATCH, Mem::at(frame, DATA));
        self.asm.load(OpSize::Q64, length, Mem::at(frame, DATA_END));
        self.asm.alu_rr(Alu::Sub, Width::Q64, length, SCRATCH);
        let mem = if indexed {
            self.asm.movsx_rr(Width::Q64, OpSize::D32, loaded, regs.get(1)?);
            self.asm.alu_ri(Alu::Add, Width::Q64, loaded, offset);
            self.asm.alu_ri(Alu::Sub, Width::Q64, length, bytes);
            self.asm.jcc(Cond::L, outside);
            // An unsigned comparison, in which negative offsets are too large.
            self.asm.alu_rr(Alu::Cmp, Width::Q64, loaded, length);
            self.asm.jcc(Cond::A, outside);
            Mem::indexed(SCRATCH, loaded, Scale::One, 0)
        } else if offset < 0 {
            self.asm.jmp(outside);
            Mem::at(SCRATCH, 0)
        } else {
            // Packets are far shorter than 2 GiB, so the comparison fails for a saturated sum too.
            self.asm.alu_ri(Alu::Cmp, Width::Q64, length, offset.saturating_add(bytes));
            self.asm.jcc(Cond::L, outside);
            Mem::at(SCRATCH, offset)
        };
        self.asm.load(OpSize::of(size), loaded, mem);
        match size {
            Size::B => {}
            Size::H => self.asm.shift_ri(Shift::Rol, OpSize::W16, loaded, 8),
            Size::W => self.asm.bswap(Width::D32, loaded),
            Size::Dw => self.asm.bswap(Width::Q64, loaded),
        }
        self.asm.jmp(done);
        self.asm.bind(outside);
        self.asm.mov_ri(loaded, u64::MAX);
        self.asm.bind(done);
        Ok(())
    }

    /// The address of an array's value, or 0.
    fn look_up(&mut self, array: &ArrayLink, key: Mem, host: Gpr, result: Gpr) {
        let missing = self.asm.new_label();
        self.asm.load(OpSize::D32, SCRATCH, key);
        self.set(result, 0);
        self.asm.alu_ri(Alu::Cmp, Width::D32, SCRATCH, array.entries.cast_signed());
        self.asm.jcc(Cond::Ae, missing);
        self.scale(array.stride);
        self.asm.mov_ri(result, array.base);
        self.asm.alu_rr(Alu::Add, Width::Q64, result, SCRATCH);
        if array.cpu_stride != 0 {
            self.load_lane(host, array.cpu_stride);
            self.asm.alu_rr(Alu::Add, Width::Q64, result, SCRATCH);
        }
        self.asm.bind(missing);
    }

    /// The distance of the host's CPU from CPU 0 to the scratch register.
    fn load_lane(&mut self, host: Gpr, stride: u64) {
        self.asm.load(OpSize::Q64, SCRATCH, Mem::at(host, self.links.host.cpu));
        self.scale(stride);
    }

    /// Multiplies the scratch register, by less than 2 GiB.
    fn scale(&mut self, stride: u64) {
        match stride {
            1 => {}
            stride if stride.is_power_of_two() => {
                self.asm.shift_ri(Shift::Shl, Width::Q64, SCRATCH, stride.trailing_zeros() as u8);
            }
            stride => self.asm.imul_rri(Width::Q64, SCRATCH, SCRATCH, stride as i32),
        }
    }

    /// Stores what helpers that are given any address may read into the host.
    fn tell_readable(&mut self, host: Gpr, (maps, count): (u64, i32)) {
        let start = self.links.host.readable;
        let place = |word: i32| Mem::at(host, start + 8 * word);
        self.asm.mov_ri(SCRATCH, maps);
        self.asm.store(OpSize::Q64, place(0), SCRATCH);
        self.asm.store_imm(OpSize::Q64, place(1), count);
        let end = self.stack(0);
        self.asm.lea(Width::Q64, SCRATCH, end);
        self.asm.store(OpSize::Q64, place(2), SCRATCH);
        self.asm.store_imm(OpSize::Q64, place(3), self.current.readable);
    }
}
