//! Loads and stores.

use super::assembler::Assembler;
use super::reg::Gpr;

/// Size of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Size {
    /// 1 byte.
    B = 0,
    /// 2 bytes.
    H = 1,
    /// 4 bytes.
    W = 2,
    /// 8 bytes.
    X = 3,
}

impl Size {
    /// All sizes, increasing.
    pub const ALL: [Self; 4] = [Self::B, Self::H, Self::W, Self::X];
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mem {
    /// `[base, #offset]`; the base may be the stack pointer. See [`Mem::reaches`].
    At(Gpr, i32),
    /// `[base, index]`; the base may be the stack pointer.
    Indexed(Gpr, Gpr),
}

impl Mem {
    /// Whether an instruction can have the offset: up to 4095 times the size, or -256 to 255 bytes.
    #[must_use]
    pub const fn reaches(size: Size, offset: i32) -> bool {
        scaled(size, offset).is_some() || -256 <= offset && offset < 256
    }
}

/// The offset in multiples of the size.
const fn scaled(size: Size, offset: i32) -> Option<u32> {
    let shift = size as u32;
    let multiple = offset >> shift;
    if multiple << shift == offset && 0 <= multiple && multiple < 4096 {
        return Some(multiple as u32);
    }
    None
}

/// Fields of instructions by what they do.
const STORE: u32 = 0;
const LOAD: u32 = 1;
/// A load that extends the sign to 64 bits; of 8 bytes a prefetch.
const LOAD_SIGNED: u32 = 2;

impl Assembler {
    /// `ldrb`, `ldrh` or `ldr rt, mem`: zero-extended to 64 bits.
    pub fn load(&mut self, size: Size, rt: Gpr, mem: Mem) {
        let rt = self.r(rt);
        self.access(LOAD, size, rt, mem);
    }

    /// `ldrsb`, `ldrsh` or `ldrsw xt, mem`: sign-extended to 64 bits; of 8 bytes the same as [`load`](Self::load).
    pub fn load_signed(&mut self, size: Size, rt: Gpr, mem: Mem) {
        let rt = self.r(rt);
        let opc = if size == Size::X { LOAD } else { LOAD_SIGNED };
        self.access(opc, size, rt, mem);
    }

    /// `strb`, `strh` or `str rt, mem`
    pub fn store(&mut self, size: Size, rt: Gpr, mem: Mem) {
        let rt = self.r(rt);
        self.access(STORE, size, rt, mem);
    }

    /// `prfm pldl1keep, mem`
    pub fn prefetch(&mut self, mem: Mem) {
        self.access(LOAD_SIGNED, Size::X, 0, mem);
    }

    fn access(&mut self, opc: u32, size: Size, rt: u32, mem: Mem) {
        let head = (size as u32) << 30 | opc << 22 | rt;
        match mem {
            Mem::Indexed(base, index) => {
                let (base, index) = (self.s(base), self.r(index));
                self.put(head | 0x3820_6800 | index << 16 | base << 5);
            }
            Mem::At(base, offset) => {
                let base = self.s(base) << 5;
                match (scaled(size, offset), offset) {
                    (Some(multiple), _) => self.put(head | 0x3900_0000 | multiple << 10 | base),
                    (None, -256..256) => {
                        self.put(head | 0x3800_0000 | (offset as u32 & 0x1ff) << 12 | base);
                    }
                    _ => self.fail_operand(),
                }
            }
        }
    }

    /// `stp rt, rt2, [sp, #-bytes]!`; a multiple of 8 up to 512.
    pub fn push_pair(&mut self, rt: Gpr, rt2: Gpr, bytes: i32) {
        self.pair(0xa980_0000, rt, rt2, -bytes);
    }

    /// `ldp rt, rt2, [sp], #bytes`; a multiple of 8 up to 504.
    pub fn pop_pair(&mut self, rt: Gpr, rt2: Gpr, bytes: i32) {
        self.pair(0xa8c0_0000, rt, rt2, bytes);
    }

    /// `stp rt, rt2, [sp, #offset]`; a multiple of 8 from -512 to 504.
    pub fn store_pair(&mut self, rt: Gpr, rt2: Gpr, offset: i32) {
        self.pair(0xa900_0000, rt, rt2, offset);
    }

    /// `ldp rt, rt2, [sp, #offset]`; a multiple of 8 from -512 to 504.
    pub fn load_pair(&mut self, rt: Gpr, rt2: Gpr, offset: i32) {
        self.pair(0xa940_0000, rt, rt2, offset);
    }

    fn pair(&mut self, base: u32, rt: Gpr, rt2: Gpr, offset: i32) {
        let (rt, rt2) = (self.r(rt), self.r(rt2));
        if offset % 8 != 0 || !(-512..512).contains(&offset) {
            return self.fail_operand();
        }
        let field = ((offset / 8) as u32 & 0x7f) << 15;
        self.put(base | field | rt2 << 10 | Gpr::Sp.number() << 5 | rt);
    }
}
