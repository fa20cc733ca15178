//! Sequences of operations with a handler for all.

use std::collections::HashMap;
use std::sync::LazyLock;

use paceline_compiler::ir::{BinaryOp, Type};
use paceline_isa::{AtomicOp, Condition, Size, Width};
use paceline_spec::helper::Callback;

use super::kind::{EQUAL, Kind, Reach, Source, UNEQUAL, test};

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
const EQUALITIES: [Kind; 4] = [EQUAL, UNEQUAL, Kind::EndIf { equal: true }, Kind::EndIf { equal: false }];
const BITS: [Kind; 2] = [test(Condition::Set, true), test(Condition::Set, false)];

const fn field(size: Size, reach: Reach) -> Kind {
    Kind::Load { size, signed: false, reach }
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
