//! Operands that all machines have.

use paceline_isa as isa;

/// Operand widths that all instructions support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Width {
    /// 32 bits. The upper half of a register is zeroed.
    D32,
    /// 64 bits. 32-bit immediates are sign-extended.
    Q64,
}

impl Width {
    /// The width of a BPF operation.
    #[must_use]
    pub const fn of(width: isa::Width) -> Width {
        match width {
            isa::Width::W32 => Width::D32,
            isa::Width::W64 => Width::Q64,
        }
    }

    /// Both widths.
    pub const ALL: [Width; 2] = [Width::D32, Width::Q64];
}

/// Scale factor of an index register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the numbers")]
pub enum Scale {
    One,
    Two,
    Four,
    Eight,
}

impl Scale {
    /// All scales, increasing.
    pub const ALL: [Scale; 4] = [Scale::One, Scale::Two, Scale::Four, Scale::Eight];
}
