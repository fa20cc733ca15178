//! Registers that instructions read and write, and their successors.

use super::insn::{AluOp, AtomicOp, Callee, Imm64, Insn, Operand, Reg};

/// A set of registers, as bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RegSet(u16);

impl RegSet {
    /// The empty set.
    pub const EMPTY: Self = Self(0);

    /// All registers.
    pub const ALL: Self = Self((1 << Reg::ALL.len()) - 1);
    /// `r1` to `r5`: argument registers.
    pub const ARGUMENTS: Self = Self(0b11_1110);
    /// `r0` to `r5`: registers that a call may change.
    pub const CALLER_SAVED: Self = Self(0b11_1111);
    /// `r6` to `r9`: registers that a call preserves.
    pub const CALLEE_SAVED: Self = Self(0b11_1100_0000);

    /// The set of one register.
    #[must_use]
    #[inline]
    pub const fn of(reg: Reg) -> Self {
        Self(1 << reg.number())
    }

    /// The set with a register added.
    #[must_use]
    #[inline]
    pub const fn with(self, reg: Reg) -> Self {
        self.union(Self::of(reg))
    }

    /// The union.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The intersection.
    #[must_use]
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The difference: registers in `self` but not in `other`.
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

    /// Whether the set is empty.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of registers in the set.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The set as a bit mask, `r0` in bit 0.
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
    /// The register of a register operand.
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
    /// Registers that the instruction reads.
    ///
    /// A call is assumed to read all five arguments, because the number of its arguments depends on its prototype.
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

    /// Registers that the instruction changes or makes undefined.
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

    /// Target slot of a jump at `slot`; `None` for other instructions.
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

    /// Slot of the subprogram that the instruction at `slot` calls or loads the address of; `None` for other instructions.
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

    /// Whether the next instruction is a successor.
    #[must_use]
    pub const fn falls_through(&self) -> bool {
        !matches!(self, Self::Jump { .. } | Self::JumpLong { .. } | Self::Exit)
    }

    /// Whether this is a call of any kind.
    #[must_use]
    pub const fn is_call(&self) -> bool {
        matches!(self, Self::Call(_) | Self::CallReg(_))
    }

    /// Whether it is of a jump class: a jump, a call or an exit.
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
    /// Whether the old value is returned in a register.
    #[must_use]
    pub const fn fetches(self) -> bool {
        match self {
            Self::Add { fetch } | Self::Or { fetch } | Self::And { fetch } | Self::Xor { fetch } => fetch,
            Self::Xchg | Self::CmpXchg => true,
        }
    }
}

/// Offsets are relative to the slot after the (first) slot of the instruction.
fn relative(slot: usize, offset: i32) -> i64 {
    slot as i64 + 1 + i64::from(offset)
}
