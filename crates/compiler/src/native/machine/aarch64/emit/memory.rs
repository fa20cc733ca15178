//! Accesses to memory.

use paceline_isa as isa;

use super::{Aarch64, INDEXED, Regs, immediate, size_of, width_of};
use crate::internal::Internal;
use crate::ir::expand::ArrayLink;
use crate::native::machine::aarch64::asm::{Arith, Cond, Gpr, Mem, Shift, Size};
use crate::native::machine::aarch64::regs::{ADDRESS, SCRATCH, SECOND};
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::frame::{DATA, DATA_END};
use crate::native::machine::op::{At, Op};
use crate::native::machine::operand::Width;

impl Aarch64<'_> {
    pub(super) fn memory(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        match op {
            Op::Load { size, signed, at } => {
                let size = size_of(size);
                let (mem, last) = (self.mem(size, at, regs)?, regs.last()?);
                if signed {
                    self.asm.load_signed(size, last, mem);
                } else {
                    self.asm.load(size, last, mem);
                }
            }
            Op::Store(size, at) => {
                let mem = self.mem(size_of(size), at, regs)?;
                self.asm.store(size_of(size), regs.last()?, mem);
            }
            Op::StoreImm(size, at, imm) => {
                let mem = self.mem(size_of(size), at, regs)?;
                self.store_imm(size_of(size), mem, imm);
            }
            Op::Update(alu, size, at) => {
                let size = size_of(size);
                let mem = self.mem(size, at, regs)?;
                self.asm.load(size, SCRATCH, mem);
                self.alu(alu, width_of(size), SCRATCH, SCRATCH, regs.last()?);
                self.asm.store(size, SCRATCH, mem);
            }
            Op::UpdateImm(alu, size, at, imm) => {
                let size = size_of(size);
                let mem = self.mem(size, at, regs)?;
                self.asm.load(size, SCRATCH, mem);
                self.alu_imm(alu, width_of(size), SCRATCH, SCRATCH, imm);
                self.asm.store(size, SCRATCH, mem);
            }
            Op::StoreBelow(size, at, most) => {
                let (mem, last, skip) =
                    (self.mem(size_of(size), at, regs)?, regs.last()?, self.asm.new_label());
                self.asm.mov_imm(SCRATCH, most);
                self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, last, SCRATCH, 0);
                self.asm.b_cond(Cond::Hs, skip);
                self.asm.store(size_of(size), last, mem);
                self.asm.bind(skip);
            }
            Op::PacketLen => {
                let (frame, last) = (regs.get(0)?, regs.last()?);
                self.asm.load(Size::X, SCRATCH, Mem::At(frame, DATA));
                self.asm.load(Size::X, last, Mem::At(frame, DATA_END));
                self.asm.arith(Arith::Sub, Width::Q64, last, last, SCRATCH, 0);
            }
            Op::PacketLoad { size, indexed, offset } => self.load_packet(size, indexed, offset, regs)?,
            Op::LookUp(array, at) => {
                let host = regs.get(at.operands())?;
                let mem = self.mem(Size::W, at, regs)?;
                self.look_up(&array, mem, host, regs.last()?);
            }
            Op::TellReadable(maps, count) => self.tell_readable(regs.get(0)?, (maps, count)),
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// A place in memory, whose offset is in the address register if no instruction has it.
    pub(super) fn mem(&mut self, size: Size, at: At, regs: Regs<'_>) -> Result<Mem, Internal> {
        match at {
            At::Base(offset) => Ok(self.at(size, regs.get(0)?, offset)),
            At::Stack(offset) => Ok(self.stack(size, offset)),
            At::Indexed(..) => Err(INDEXED),
        }
    }

    /// A place in the function's stack, by its distance from the end.
    pub(super) fn stack(&mut self, size: Size, offset: i32) -> Mem {
        self.at(size, Gpr::Sp, self.current.layout.end.wrapping_add(offset))
    }

    /// A place at a distance from a base, as [`mem`](Self::mem).
    pub(crate) fn at(&mut self, size: Size, base: Gpr, offset: i32) -> Mem {
        if Mem::reaches(size, offset) {
            return Mem::At(base, offset);
        }
        self.asm.mov_imm(ADDRESS, immediate(Width::Q64, offset));
        Mem::Indexed(base, ADDRESS)
    }

    /// Stores a number, which overwrites the scratch register.
    pub(super) fn store_imm(&mut self, size: Size, mem: Mem, imm: i32) {
        if imm == 0 {
            return self.asm.store(size, Gpr::Zr, mem);
        }
        let number = immediate(width_of(size), imm);
        let low = match size {
            Size::B => number & 0xff,
            Size::H => number & 0xffff,
            Size::W | Size::X => number,
        };
        self.asm.mov_imm(SCRATCH, low);
        self.asm.store(size, SCRATCH, mem);
    }

    /// The packet's start is in the scratch register, its length in the last operand.
    fn load_packet(
        &mut self,
        size: isa::Size,
        indexed: bool,
        offset: i32,
        regs: Regs<'_>,
    ) -> Result<(), Internal> {
        let (frame, loaded, length) = (regs.get(0)?, regs.get(1 + usize::from(indexed))?, regs.last()?);
        let (outside, done) = (self.asm.new_label(), self.asm.new_label());
        let bytes = size.bytes() as i32;
        self.asm.load(Size::X, SCRATCH, Mem::At(frame, DATA));
        self.asm.load(Size::X, length, Mem::At(frame, DATA_END));
        self.asm.arith(Arith::Sub, Width::Q64, length, length, SCRATCH, 0);
        if indexed {
            self.asm.sign_extend(Width::Q64, loaded, regs.get(1)?, 32);
            self.add_imm(Width::Q64, loaded, loaded, offset);
        } else {
            self.asm.mov_imm(loaded, immediate(Width::Q64, offset));
        }
        self.asm.arith_imm(Arith::Subs, Width::Q64, length, length, bytes as u64);
        self.asm.b_cond(Cond::Lt, outside);
        // An unsigned comparison, in which negative offsets are too large.
        self.asm.arith(Arith::Subs, Width::Q64, Gpr::Zr, loaded, length, 0);
        self.asm.b_cond(Cond::Hi, outside);
        self.asm.load(size_of(size), loaded, Mem::Indexed(SCRATCH, loaded));
        if size != isa::Size::B {
            self.swap(size, loaded, loaded);
        }
        self.asm.b(done);
        self.asm.bind(outside);
        self.asm.mov_imm(loaded, u64::MAX);
        self.asm.bind(done);
        Ok(())
    }

    /// The address of an array's value, or 0.
    fn look_up(&mut self, array: &ArrayLink, key: Mem, host: Gpr, result: Gpr) {
        let missing = self.asm.new_label();
        self.asm.load(Size::W, SCRATCH, key);
        self.asm.mov_imm(result, 0);
        self.compare_imm(Width::D32, SCRATCH, array.entries.cast_signed());
        self.asm.b_cond(Cond::Hs, missing);
        self.scale(array.stride);
        self.asm.mov_imm(result, array.base);
        self.asm.arith(Arith::Add, Width::Q64, result, result, SCRATCH, 0);
        if array.cpu_stride != 0 {
            let cpu = self.at(Size::X, host, self.links.host.cpu);
            self.asm.load(Size::X, SCRATCH, cpu);
            self.scale(array.cpu_stride);
            self.asm.arith(Arith::Add, Width::Q64, result, result, SCRATCH, 0);
        }
        self.asm.bind(missing);
    }

    /// Multiplies the scratch register.
    fn scale(&mut self, stride: u64) {
        if stride.is_power_of_two() {
            let count = stride.trailing_zeros() as u8;
            return self.asm.shift_imm(Shift::Lsl, Width::Q64, SCRATCH, SCRATCH, count);
        }
        self.asm.mov_imm(SECOND, stride);
        self.asm.mul(Width::Q64, SCRATCH, SCRATCH, SECOND);
    }

    /// Stores what helpers that are given any address may read into the host.
    fn tell_readable(&mut self, host: Gpr, (maps, count): (u64, i32)) {
        let start = self.links.host.readable;
        let (end, readable) = (self.current.layout.end, self.current.readable);
        self.asm.mov_imm(SCRATCH, maps);
        self.store_member(host, start, SCRATCH);
        self.asm.mov_imm(SCRATCH, immediate(Width::Q64, count));
        self.store_member(host, start + 8, SCRATCH);
        self.add_imm(Width::Q64, SCRATCH, Gpr::Sp, end);
        self.store_member(host, start + 16, SCRATCH);
        self.asm.mov_imm(SCRATCH, immediate(Width::Q64, readable));
        self.store_member(host, start + 24, SCRATCH);
    }

    fn store_member(&mut self, host: Gpr, offset: i32, from: Gpr) {
        let mem = self.at(Size::X, host, offset);
        self.asm.store(Size::X, from, mem);
    }
}
