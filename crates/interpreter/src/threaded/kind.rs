//! Kinds of operations, and sequences of them with a handler for all.

use std::collections::HashMap;
use std::sync::LazyLock;

use paceline_ir::{BinaryOp, Type};
use paceline_isa::{AtomicOp, Condition, Size, Width};
use paceline_spec::helper::Callback;

use super::op::{DST, MORE, OTHER, SRC};

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

/// A kind of operation. `dst`, `src`, `other` and `more` are the registers in bytes of the [`Op`](super::op::Op), the first two of which
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

/// Most operations of a sequence.
pub(super) const MOST: usize = 6;

/// A part of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Part {
    pub(super) kind: Kind,
    /// Whether its first operand, or the value that it stores, is the result of the last part before it that has one.
    pub(super) takes_last: bool,
    /// Whether its result, if it has one, is stored: later parts may have been the only ones to use it.
    pub(super) keeps: bool,
}

/// Operations in order with a handler for all, or one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sequence {
    pub(super) parts: [Part; MOST],
    pub(super) len: usize,
}

impl Sequence {
    const NONE: Self =
        Self { parts: [Part { kind: Kind::Move, takes_last: false, keeps: true }; MOST], len: 0 };

    pub(super) const fn of(kind: Kind) -> Self {
        Self::NONE.with(kind, false)
    }

    pub(super) const fn with(mut self, kind: Kind, takes_last: bool) -> Self {
        self.parts[self.len] = Part { kind, takes_last, keeps: true };
        self.len += 1;
        self
    }

    /// Without the result of the last operation.
    const fn dropped(mut self) -> Self {
        self.parts[self.len - 1].keeps = false;
        self
    }

    /// With all results.
    pub(super) fn keeping(mut self) -> Self {
        self.parts.iter_mut().for_each(|part| part.keeps = true);
        self
    }

    /// With an operation on the last result.
    const fn then(self, kind: Kind) -> Self {
        self.with(kind, true)
    }

    /// With an operation on other registers.
    const fn and(self, kind: Kind) -> Self {
        self.with(kind, false)
    }
}

/// Capacity of the handler tables, and number of codes that [`each_code`](super::handlers) expands.
pub(super) const MAX_KINDS: usize = 768;

/// The sequences by code; entries from [`COUNT`] on are unused.
pub(super) static SEQUENCES: [Sequence; MAX_KINDS] = all().0;

/// Number of sequences.
pub(super) const COUNT: usize = all().1;

static CODES: LazyLock<HashMap<Sequence, u16>> =
    LazyLock::new(|| (0..).zip(&SEQUENCES[..COUNT]).map(|(code, sequence)| (*sequence, code)).collect());

impl Sequence {
    /// Its number, if it has a handler.
    pub(super) fn code(&self) -> Option<u16> {
        CODES.get(self).copied()
    }
}

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const TYPES: [Type; 2] = [Type::I32, Type::I64];
const SOURCES: [Source; 2] = [Source::Reg, Source::Imm];
const COMPARED: [Source; 3] = [Source::Reg, Source::Imm, Source::Wide];
const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::Dw];
const SMALL_SIZES: [Size; 3] = [Size::B, Size::H, Size::W];
const REACHES: [Reach; 4] = [Reach::Start, Reach::Packet, Reach::Aligned, Reach::Any];
const BOTH: [bool; 2] = [false, true];

/// A part of a byte, such as a header's length in words, as a number of bytes: compilers shift and then mask, filters mask first.
const PARTS: [[BinaryOp; 2]; 4] = [
    [BinaryOp::Shl, BinaryOp::And],
    [BinaryOp::And, BinaryOp::Shl],
    [BinaryOp::Lshr, BinaryOp::And],
    [BinaryOp::And, BinaryOp::Lshr],
];
const FIELDS: [Reach; 2] = [Reach::Start, Reach::Packet];
const EQUAL: Kind = test(Condition::Eq, true);
const UNEQUAL: Kind = test(Condition::Ne, true);
const EQUALITIES: [Kind; 4] = [EQUAL, UNEQUAL, Kind::EndIf { equal: true }, Kind::EndIf { equal: false }];
const BITS: [Kind; 2] = [test(Condition::Set, true), test(Condition::Set, false)];

const fn field(size: Size, reach: Reach) -> Kind {
    Kind::Load { size, signed: false, reach }
}

const fn test(condition: Condition, holds: bool) -> Kind {
    Kind::JumpIf { width: Width::W32, condition, holds, src: Source::Imm }
}

const fn number(ty: Type, op: BinaryOp) -> Kind {
    Kind::Binary { ty, op, src: Source::Imm }
}

/// The list and its length.
const fn all() -> ([Sequence; MAX_KINDS], usize) {
    let mut list = [Sequence::NONE; MAX_KINDS];
    let mut count = 0;
    macro_rules! add {
        ($kind:expr) => {{
            list[count] = Sequence::of($kind);
            count += 1;
        }};
    }
    // Iterators cannot be used in constants.
    macro_rules! each {
        ($name:ident in $list:expr, $body:expr) => {{
            let mut i = 0;
            while i < $list.len() {
                let $name = $list[i];
                $body;
                i += 1;
            }
        }};
    }
    each!(
        ty in TYPES,
        each!(op in BinaryOp::NAMES, each!(src in SOURCES, add!(Kind::Binary { ty, op: op.0, src })))
    );
    each!(
        width in WIDTHS,
        {
            each!(
                condition in Condition::ALL,
                {
                    each!(src in COMPARED, add!(Kind::JumpIf { width, condition, holds: true, src }));
                    each!(src in SOURCES, add!(Kind::Compare { width, condition, src }));
                }
            );
            each!(
                src in COMPARED,
                add!(Kind::JumpIf { width, condition: Condition::Set, holds: false, src })
            );
            each!(op in AtomicOp::ALL, add!(Kind::Atomic { width, op }));
            add!(Kind::Neg(width));
            add!(Kind::SignExtend { width, from: Size::B });
            add!(Kind::SignExtend { width, from: Size::H });
        }
    );
    add!(Kind::SignExtend { width: Width::W64, from: Size::W });
    each!(
        size in SIZES,
        {
            each!(
                reach in REACHES,
                {
                    add!(Kind::Load { size, signed: false, reach });
                    each!(src in SOURCES, add!(Kind::Store { size, src, reach }));
                }
            );
            each!(
                src in SOURCES,
                each!(below_max in BOTH, add!(Kind::StoreHost { size, src, below_max }))
            );
            add!(Kind::LoadAcquire(size));
            add!(Kind::StoreRelease(size));
            add!(Kind::LoadHost(size));
            add!(Kind::LoadFrame(size));
            add!(Kind::LoadContext(size));
        }
    );
    each!(
        size in SMALL_SIZES,
        {
            each!(reach in REACHES, add!(Kind::Load { size, signed: true, reach }));
            each!(indexed in BOTH, add!(Kind::LoadPacket { size, indexed }));
        }
    );
    each!(size in [Size::H, Size::W, Size::Dw], add!(Kind::Reverse(size)));
    each!(
        truth in BOTH,
        {
            add!(Kind::JumpLen { shorter: truth });
            add!(Kind::JumpEnd { before: truth });
            add!(Kind::MayGoto { exhausted: truth });
            add!(Kind::EndIf { equal: truth });
        }
    );
    each!(
        src in SOURCES,
        {
            add!(Kind::Exit(src));
            add!(Kind::End(src));
        }
    );
    let single = [
        Kind::Move,
        Kind::Spill,
        Kind::Reload,
        Kind::Number,
        Kind::Word,
        Kind::Clear,
        Kind::Function,
        Kind::Goto,
        Kind::AllowRounds,
        Kind::Zero,
        Kind::Cpu,
        Kind::Address,
        Kind::AddressSum,
        Kind::Element,
        Kind::CallHelper,
        Kind::CallFunction,
        Kind::CallBack(Callback::Count),
        Kind::CallBack(Callback::Elements),
        Kind::CalledBack,
        Kind::TailCall,
    ];
    each!(kind in single, add!(kind));
    macro_rules! sequence {
        ($sequence:expr) => {{
            list[count] = $sequence;
            count += 1;
        }};
    }
    each!(
        size in SMALL_SIZES,
        {
            each!(
                reach in FIELDS,
                {
                    let kept = Sequence::of(field(size, reach));
                    let field = kept.dropped();
                    each!(
                        test in BITS,
                        {
                            sequence!(kept.then(test));
                            sequence!(field.then(test));
                        }
                    );
                    each!(
                        test in EQUALITIES,
                        {
                            sequence!(kept.then(test));
                            sequence!(field.then(test));
                            sequence!(field.then(EQUAL).then(test));
                            sequence!(field.then(EQUAL).then(EQUAL).then(test));
                        }
                    );
                }
            );
            let checked = Sequence::of(Kind::JumpLen { shorter: true }).and(field(size, Reach::Start));
            each!(
                test in BITS,
                {
                    sequence!(checked.then(test));
                    sequence!(checked.dropped().then(test));
                }
            );
            each!(
                test in EQUALITIES,
                {
                    sequence!(checked.then(test));
                    sequence!(checked.dropped().then(test));
                    sequence!(checked.dropped().then(EQUAL).then(test));
                }
            );
            let checked = Sequence::of(Kind::JumpEnd { before: true }).and(field(size, Reach::Packet));
            each!(test in EQUALITIES, sequence!(checked.dropped().then(test)));
        }
    );
    each!(
        reach in FIELDS,
        each!(
            size in [Size::B, Size::H],
            each!(
                other in [Size::B, Size::H],
                each!(
                    test in EQUALITIES,
                    each!(
                        last in EQUALITIES,
                        {
                            let first = Sequence::of(field(size, reach)).dropped().then(test);
                            sequence!(first.and(field(other, reach)).dropped().then(last));
                        }
                    )
                )
            )
        )
    );
    each!(
        ty in TYPES,
        {
            each!(
                ops in [PARTS[0], PARTS[1]],
                {
                    let length = Sequence::of(field(Size::B, Reach::Start)).dropped();
                    let length = length.then(number(ty, ops[0])).dropped().then(number(ty, ops[1]));
                    each!(
                        length in [length, length.dropped()],
                        {
                            let end = length.then(Kind::AddressSum);
                            sequence!(end);
                            sequence!(end.then(Kind::JumpEnd { before: true }));
                            sequence!(end.and(Kind::Address).then(Kind::JumpEnd { before: true }));
                        }
                    );
                }
            );
        }
    );
    each!(
        reach in FIELDS,
        {
            each!(
                ty in TYPES,
                each!(
                    ops in PARTS,
                    {
                        let part = Sequence::of(field(Size::B, reach)).dropped().then(number(ty, ops[0]));
                        let part = part.dropped().then(number(ty, ops[1]));
                        sequence!(part);
                        let sum = Kind::Binary { ty, op: BinaryOp::Add, src: Source::Reg };
                        sequence!(part.dropped().then(sum));
                    }
                )
            );
            each!(
                size in [Size::H, Size::W],
                {
                    let swapped = Sequence::of(field(size, reach)).dropped().then(Kind::Reverse(size));
                    sequence!(swapped);
                    each!(
                        condition in [Condition::Eq, Condition::Ne],
                        sequence!(swapped.dropped().then(Kind::JumpIf {
                            width: Width::W32,
                            condition,
                            holds: true,
                            src: Source::Reg
                        }))
                    );
                }
            );
        }
    );
    sequence!(Sequence::of(Kind::AddressSum).dropped().then(field(Size::B, Reach::Packet)));
    let value = Kind::Load { size: Size::Dw, signed: false, reach: Reach::Aligned };
    let stored = Kind::Store { size: Size::Dw, src: Source::Reg, reach: Reach::Aligned };
    each!(
        start in [Sequence::of(value), Sequence::of(Kind::Element).then(value)],
        sequence!(start.dropped().then(number(Type::I64, BinaryOp::Add)).dropped().then(stored))
    );
    (list, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sequence_has_one_code() {
        assert_eq!(CODES.len(), COUNT);
        for (code, sequence) in SEQUENCES[..COUNT].iter().enumerate() {
            assert_eq!(sequence.code().map(usize::from), Some(code), "{sequence:?}");
        }
    }
}
