//! Byte order of captures.

/// Byte order of a capture's numbers: that of the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// The byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The 32-bit number at `at`; its bounds checks are eliminated when inlined with a constant.
    #[inline(always)]
    pub(crate) fn u32<const N: usize>(self, bytes: &[u8; N], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Little => u32::from_le_bytes(field),
            Self::Big => u32::from_be_bytes(field),
        }
    }

    /// The 16-bit number at `at`, like [`u32`](Self::u32).
    #[inline(always)]
    pub(crate) fn u16<const N: usize>(self, bytes: &[u8; N], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        match self {
            Self::Little => u16::from_le_bytes(field),
            Self::Big => u16::from_be_bytes(field),
        }
    }

    /// The bytes of a 32-bit number.
    #[inline]
    pub(crate) fn bytes(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// The bytes of a 16-bit number.
    pub(crate) fn bytes16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    /// The signed 64-bit number in these bytes.
    pub(crate) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(bytes),
            Self::Big => i64::from_be_bytes(bytes),
        }
    }
}
