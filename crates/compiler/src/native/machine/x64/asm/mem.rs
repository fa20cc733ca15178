use super::bytes::Bytes;
use super::reg::Gpr;
use crate::native::code::Label;
use crate::native::machine::operand::Scale;

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mem {
    /// `[base + index * scale + disp]`
    Reg {
        /// Any register.
        base: Gpr,
        /// Any register but `rsp`, which cannot be encoded as an index.
        index: Option<(Gpr, Scale)>,
        /// Displacement in bytes.
        disp: i32,
    },
    /// `[rip + (label - rip)]`
    Label(Label),
}

impl Mem {
    /// `[base + disp]`
    #[inline]
    pub const fn at(base: Gpr, disp: i32) -> Mem {
        Mem::Reg { base, index: None, disp }
    }

    /// `[base + index * scale + disp]`
    #[inline]
    pub const fn indexed(base: Gpr, index: Gpr, scale: Scale, disp: i32) -> Mem {
        Mem::Reg { base, index: Some((index, scale)), disp }
    }

    #[inline]
    pub(super) fn has_rsp_index(&self) -> bool {
        matches!(self, Mem::Reg { index: Some((Gpr::Rsp, _)), .. })
    }

    /// The ModRM byte with `reg` in its middle, a SIB byte if needed, and the displacement.
    #[inline]
    pub(super) fn encode(&self, reg: u8) -> EncodedMem {
        let reg = (reg & 7) << 3;
        let (base, index, disp) = match *self {
            Mem::Reg { base, index, disp } => (base, index, disp),
            Mem::Label(_) => {
                return EncodedMem { rex: 0, modrm_sib: Bytes::byte(reg | 5), disp: Bytes::dword(0) };
            }
        };
        // Without a displacement the encodings of rbp and r13 as base mean rip-relative, or no base.
        let (mode, disp) = if disp == 0 && base.low() != Gpr::Rbp.low() {
            (0b00, Bytes::NONE)
        } else if let Ok(disp) = i8::try_from(disp) {
            (0b01, Bytes::byte(disp as u8))
        } else {
            (0b10, Bytes::dword(disp as u32))
        };
        let modrm = mode << 6 | reg;
        match index {
            // The encodings of rsp and r12 in ModRM.rm announce a SIB byte, so these bases need one; its index 4 means no index.
            None if base.low() == Gpr::Rsp.low() => {
                EncodedMem { rex: base.high(), modrm_sib: Bytes::pair(modrm | 4, 4 << 3 | 4), disp }
            }
            None => EncodedMem { rex: base.high(), modrm_sib: Bytes::byte(modrm | base.low()), disp },
            Some((index, scale)) => EncodedMem {
                rex: index.high() << 1 | base.high(),
                modrm_sib: Bytes::pair(modrm | 4, (scale as u8) << 6 | index.low() << 3 | base.low()),
                disp,
            },
        }
    }
}

pub(super) struct EncodedMem {
    /// The bits X and B of REX.
    pub(super) rex: u8,
    pub(super) modrm_sib: Bytes,
    pub(super) disp: Bytes,
}
