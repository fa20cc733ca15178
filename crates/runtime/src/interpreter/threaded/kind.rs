//! Kinds of operations.

use paceline_compiler::ir::{BinaryOp, Type};
use paceline_isa::{AtomicOp, Condition, Size, Width};
use paceline_spec::helper::Callback;

use crate::interpreter::op::{DST, MORE, OTHER, SRC};

/// Source of the last operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Reg,
    Imm,
    /// The immediate of the second part, where the first one has a short one.
    Wide,
}

/// Where an access goes, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// The packet, by the distance from its start: unaligned, and not shared with other workers.
    Start,
    /// The packet, by an address.
    Packet,
    /// Aligned to the size of the access, and shared with other workers.
    Aligned,
    /// Nothing.
    Any,
}

/// A kind of operation. `dst`, `src`, `other` and `more` are the registers in bytes of the `Op`, the first two of which
/// are the result and an operand; the second operand is `other`, or the immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// `dst = src`
    Move,
    /// The word `imm` of the window is `src`.
    Spill,
    /// `dst` is the word `imm` of the window.
    Reload,
    /// `dst = imm`
    Number,
    /// `dst` = the 64 bits in the second part.
    Word,
    /// `dst` = the low half of `src`.
    Clear,
    Binary {
        ty: Type,
        op: BinaryOp,
        src: Source,
    },
    Neg(Width),
    SignExtend {
        width: Width,
        from: Size,
    },
    /// Reverses the low bytes, and zero-extends.
    Reverse(Size),
    Compare {
        width: Width,
        condition: Condition,
        src: Source,
    },
    /// `dst` = the address of the function at a distance of the second part's immediate.
    Function,
    /// `dst` = the memory at `src + imm`.
    Load {
        size: Size,
        signed: bool,
        reach: Reach,
    },
    /// Stores `src` at `dst + imm`, or `imm` at `dst + offset`.
    Store {
        size: Size,
        src: Source,
        reach: Reach,
    },
    LoadAcquire(Size),
    StoreRelease(Size),
    /// `dst` = the old value at `other + imm`; the operand is `src`, and what memory is compared with `more`.
    Atomic {
        width: Width,
        op: AtomicOp,
    },
    /// `dst` = the member of the packet's frame at byte `imm`.
    LoadFrame(Size),
    /// `dst` = a computed field of the context: the field in the second part, from byte `imm` on.
    LoadContext(Size),
    /// `dst` = the member of the packet's own area in the host at byte `offset`.
    LoadHost(Size),
    /// Stores `src` or `imm` there.
    StoreHost {
        size: Size,
        src: Source,
        /// Whether only numbers below the greatest of the size are stored.
        below_max: bool,
    },
    /// Legacy packet loads, at `imm` bytes, plus `src` if set; -1 outside of the packet.
    LoadPacket {
        size: Size,
        indexed: bool,
    },
    /// Jumps.
    Goto,
    /// Jumps if the condition holds, or does not, of `dst` and the second operand: `src`, or the short immediate.
    JumpIf {
        width: Width,
        condition: Condition,
        holds: bool,
        src: Source,
    },
    /// Ends the program with the immediate if the low half of `dst` is the short immediate, or is not: in place of a jump to that end.
    EndIf {
        equal: bool,
    },
    /// Jumps if the packet is shorter than so many bytes, or if it is not.
    JumpLen {
        shorter: bool,
    },
    /// Jumps if the packet ends before `dst` and so many bytes, or if it does not.
    JumpEnd {
        before: bool,
    },
    /// At the entry of a function, sets the iterations of its `may_goto` to the maximum.
    AllowRounds,
    /// Jumps if the function's `may_goto` have used up their iterations, or if they have not.
    MayGoto {
        exhausted: bool,
    },
    /// Zeroes the words of the function's stack whose bits are set in the second part.
    Zero,
    /// `dst` = the host's CPU.
    Cpu,
    /// `dst` = the packet's start plus `imm` bytes.
    Address,
    /// `dst` = the same plus `src`.
    AddressSum,
    /// `dst` = `src` times `imm` plus the 64 bits in the second part.
    Element,
    /// Calls the function in the second part.
    CallHelper,
    /// Calls the function at a distance of the second part's immediate; the other half is the size of the caller's window.
    CallFunction,
    /// Call of a helper that calls back: the first call of the function, if any. The function returns to
    /// the [`CalledBack`](Self::CalledBack) that follows, whose immediate is the size of the window; the helper to the operation after that.
    CallBack(Callback),
    /// The next call of the function, or the helper's return.
    CalledBack,
    TailCall,
    /// Returns `src` from a function.
    Exit(Source),
    /// Ends the program with `src`.
    End(Source),
}

impl Kind {
    /// The bytes of the operation that its operands are in, in the order that they have for the code generator: the result is the last one.
    pub(super) const fn places(self) -> &'static [u8] {
        match self {
            Self::Binary { src: Source::Reg, .. } | Self::Compare { src: Source::Reg, .. } => {
                &[SRC, OTHER, DST]
            }
            Self::Store { .. }
            | Self::StoreRelease(_)
            | Self::JumpIf { .. }
            | Self::EndIf { .. }
            | Self::JumpEnd { .. } => &[DST, SRC],
            Self::Atomic { op: AtomicOp::CmpXchg, .. } => &[OTHER, SRC, MORE, DST],
            Self::Atomic { .. } => &[OTHER, SRC, DST],
            Self::Number
            | Self::Word
            | Self::Function
            | Self::LoadFrame(_)
            | Self::LoadContext(_)
            | Self::LoadHost(_)
            | Self::LoadPacket { indexed: false, .. }
            | Self::Cpu
            | Self::Address => &[DST],
            _ => &[SRC, DST],
        }
    }

    /// Whether its immediate is the distance of a jump, from where its sequence starts.
    pub(super) const fn jumps(self) -> bool {
        matches!(
            self,
            Self::Goto
                | Self::JumpIf { .. }
                | Self::JumpLen { .. }
                | Self::JumpEnd { .. }
                | Self::MayGoto { .. }
        )
    }

    /// The same for a jump to the end of the program, if there is such an operation.
    pub(super) const fn ending(self) -> Option<Self> {
        match self {
            EQUAL => Some(Self::EndIf { equal: true }),
            UNEQUAL => Some(Self::EndIf { equal: false }),
            _ => None,
        }
    }

    /// The jump of the opposite condition.
    pub(super) const fn opposite(self) -> Self {
        match self {
            Self::JumpIf { width, condition, holds, src } => match condition.opposite() {
                Some(condition) => Self::JumpIf { width, condition, holds, src },
                None => Self::JumpIf { width, condition, holds: !holds, src },
            },
            Self::JumpLen { shorter } => Self::JumpLen { shorter: !shorter },
            Self::JumpEnd { before } => Self::JumpEnd { before: !before },
            Self::MayGoto { exhausted } => Self::MayGoto { exhausted: !exhausted },
            other => other,
        }
    }

    /// Number of operations that it takes.
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Word
            | Self::Function
            | Self::LoadContext(_)
            | Self::Zero
            | Self::Element
            | Self::CallHelper
            | Self::CallFunction
            | Self::JumpIf { src: Source::Wide, .. } => 2,
            _ => 1,
        }
    }
}

/// Jump if the low half of a register is the immediate.
pub(super) const EQUAL: Kind = test(Condition::Eq, true);
/// Jump if it is not.
pub(super) const UNEQUAL: Kind = test(Condition::Ne, true);

/// A jump by a comparison of the low half of a register with the immediate.
pub(super) const fn test(condition: Condition, holds: bool) -> Kind {
    Kind::JumpIf { width: Width::W32, condition, holds, src: Source::Imm }
}
