//! What an instruction reads and writes, and where it goes next.

use crate::{AluOp, AtomicOp, Callee, Imm64, Insn, Operand, Reg};

/// A set of registers, as bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegSet(u16);

impl RegSet {
    /// No register.
    pub const EMPTY: Self = Self(0);

    /// All registers.
    pub const ALL: Self = Self((1 << Reg::ALL.len()) - 1);
    /// `r1` to `r5`: arguments of a call.
    pub const ARGUMENTS: Self = Self(0b11_1110);
    /// `r0` to `r5`: what a call may change.
    pub const CALLER_SAVED: Self = Self(0b11_1111);
    /// `r6` to `r9`: what a call keeps.
    pub const CALLEE_SAVED: Self = Self(0b11_1100_0000);

    /// The set of one register.
    #[must_use]
    #[inline]
    pub const fn of(reg: Reg) -> Self {
        Self(1 << reg.number())
    }

    /// The set with one register more.
    #[must_use]
    #[inline]
    pub const fn with(self, reg: Reg) -> Self {
        self.union(Self::of(reg))
    }

    /// What is in either.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both.
    #[must_use]
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// What is in `self` but not in `other`.
    #[must_use]
    #[inline]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether a register is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, reg: Reg) -> bool {
        self.0 & Self::of(reg).0 != 0
    }

    /// Whether the set has no register.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many registers are in the set.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The set as bits, `r0` in bit 0.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The registers in order of their numbers.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let reg = *Reg::ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(reg)
        })
    }
}

impl FromIterator<Reg> for RegSet {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Reg>>(regs: I) -> Self {
        regs.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl std::fmt::Debug for RegSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Operand {
    /// The register, if the operand is one.
    #[must_use]
    pub const fn reg(self) -> Option<Reg> {
        match self {
            Self::Reg(reg) => Some(reg),
            Self::Imm(_) => None,
        }
    }

    fn reads(self) -> RegSet {
        self.reg().map_or(RegSet::EMPTY, RegSet::of)
    }
}

impl Insn {
    /// Registers whose value the instruction needs.
    ///
    /// A call is taken to read all five arguments: how many it has is known to its prototype, not to the instruction.
    #[must_use]
    pub fn reads(&self) -> RegSet {
        match *self {
            Self::Alu { op: AluOp::Mov, src, .. } => src.reads(),
            Self::Alu { dst, src, .. } | Self::JumpIf { dst, src, .. } => src.reads().with(dst),
            Self::Neg { dst, .. } | Self::Swap { dst, .. } => RegSet::of(dst),
            Self::MovSx { src, .. } | Self::AddrSpaceCast { src, .. } => RegSet::of(src),
            Self::Load { base, .. } | Self::LoadAcquire { base, .. } => RegSet::of(base),
            Self::Store { base, src, .. } => src.reads().with(base),
            Self::Atomic { op: AtomicOp::CmpXchg, base, src, .. } => RegSet::of(base).with(src).with(Reg::R0),
            Self::Atomic { base, src, .. } | Self::StoreRelease { base, src, .. } => {
                RegSet::of(base).with(src)
            }
            // The context is an implicit operand (RFC 9669 section 5.5 leaves it to the platform; Linux has it in r6).
            Self::LoadPacket { index, .. } => index.map_or(RegSet::EMPTY, RegSet::of).with(Reg::R6),
            Self::Call(_) => RegSet::ARGUMENTS,
            Self::CallReg(target) => RegSet::ARGUMENTS.with(target),
            Self::Exit => RegSet::of(Reg::R0),
            Self::LoadImm64 { .. } | Self::Jump { .. } | Self::JumpLong { .. } | Self::MayGoto { .. } => {
                RegSet::EMPTY
            }
        }
    }

    /// Registers whose value the instruction changes or makes unknown.
    #[must_use]
    pub fn writes(&self) -> RegSet {
        match *self {
            Self::Alu { dst, .. }
            | Self::Neg { dst, .. }
            | Self::MovSx { dst, .. }
            | Self::AddrSpaceCast { dst, .. }
            | Self::Swap { dst, .. }
            | Self::Load { dst, .. }
            | Self::LoadAcquire { dst, .. }
            | Self::LoadImm64 { dst, .. } => RegSet::of(dst),
            Self::Atomic { op: AtomicOp::CmpXchg, .. } => RegSet::of(Reg::R0),
            Self::Atomic { op, src, .. } if op.fetches() => RegSet::of(src),
            Self::Call(_) | Self::CallReg(_) | Self::LoadPacket { .. } => RegSet::CALLER_SAVED,
            Self::Atomic { .. }
            | Self::Store { .. }
            | Self::StoreRelease { .. }
            | Self::Jump { .. }
            | Self::JumpLong { .. }
            | Self::JumpIf { .. }
            | Self::MayGoto { .. }
            | Self::Exit => RegSet::EMPTY,
        }
    }

    /// The slot a jump at `slot` goes to when it is taken; `None` if this is no jump.
    ///
    /// The target may lie outside the program or in the second half of a 64-bit immediate load.
    #[must_use]
    pub fn jump_target(&self, slot: usize) -> Option<i64> {
        let offset = match *self {
            Self::Jump { offset } | Self::JumpIf { offset, .. } | Self::MayGoto { offset } => {
                i32::from(offset)
            }
            Self::JumpLong { offset } => offset,
            _ => return None,
        };
        Some(relative(slot, offset))
    }

    /// The slot of the subprogram that is called, or whose address is loaded, at `slot`; `None` if this is neither.
    ///
    /// It may lie outside the program.
    #[must_use]
    pub fn subprogram_target(&self, slot: usize) -> Option<i64> {
        match *self {
            Self::Call(Callee::Subprogram(offset))
            | Self::LoadImm64 { value: Imm64::Code { offset }, .. } => Some(relative(slot, offset)),
            _ => None,
        }
    }

    /// Whether the instruction that follows may run next.
    #[must_use]
    pub const fn falls_through(&self) -> bool {
        !matches!(self, Self::Jump { .. } | Self::JumpLong { .. } | Self::Exit)
    }

    /// Whether this is a call of any kind.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::CallReg(_))
    }

    /// Whether it is of a jump class: a jump, a call or a return.
    #[must_use]
    pub const fn is_jump(&self) -> bool {
        let jumps = matches!(
            self,
            Self::Jump { .. }
                | Self::JumpLong { .. }
                | Self::JumpIf { .. }
                | Self::MayGoto { .. }
                | Self::Exit
        );
        jumps || self.is_call()
    }
}

impl AtomicOp {
    /// Whether the old value goes to a register.
    #[must_use]
    pub const fn fetches(self) -> bool {
        match self {
            Self::Add { fetch } | Self::Or { fetch } | Self::And { fetch } | Self::Xor { fetch } => fetch,
            Self::Xchg | Self::CmpXchg => true,
        }
    }
}

/// Offsets count from the slot after the (first) slot of the instruction.
fn relative(slot: usize, offset: i32) -> i64 {
    slot as i64 + 1 + i64::from(offset)
}
