//! The kinds of operations, each of which has a handler of its own.

use std::collections::HashMap;
use std::sync::LazyLock;

use paceline_isa::{AluOp, AtomicOp, Condition, Size, Width};
use paceline_spec::helper::Callback;

use super::packet_field::Anchor;

/// Where the second operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Reg,
    Imm,
}

/// What is known of the memory that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// The packet: at any address, and nobody else's.
    Packet,
    /// Aligned to the size of the access, and other workers may access it too.
    Aligned,
    /// Nothing.
    Any,
}

/// A kind of operation. Register numbers, offsets and immediates are operands of the [`Op`](super::op::Op).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Nothing; counts for instructions that were left out.
    Nop,
    Alu {
        width: Width,
        op: AluOp,
        src: Source,
    },
    Neg(Width),
    MovSx {
        width: Width,
        from: Size,
    },
    /// Reverses the low bytes, and zero-extends.
    Reverse(Size),
    /// `dst` = the 64 bits in the second part.
    LoadImm64,
    /// `dst` = the address of the function `imm` operations on.
    LoadFunction,
    Load {
        size: Size,
        signed: bool,
        reach: Reach,
    },
    Store {
        size: Size,
        src: Source,
        reach: Reach,
    },
    LoadAcquire(Size),
    StoreRelease(Size),
    Atomic {
        width: Width,
        op: AtomicOp,
    },
    /// `dst` = what the packet's frame has at byte `imm`.
    LoadFrame(Size),
    /// `dst` = a number that is made from the packet: the field in the second part, from byte `imm` on.
    LoadContext(Size),
    /// `dst` = what the packet's own area in the host has at byte `offset`.
    LoadHost(Size),
    StoreHost {
        size: Size,
        src: Source,
        /// Whether only numbers below the greatest of the size are stored.
        below_max: bool,
    },
    /// The legacy loads, at `imm` bytes, or as many more as `src` holds.
    LoadPacket {
        size: Size,
        indexed: bool,
    },
    /// Goes `imm` operations on.
    Goto,
    /// Goes `offset` operations on if it holds.
    JumpIf {
        width: Width,
        condition: Condition,
        src: Source,
    },
    /// Lets the `may_goto` of a function go on as often as they may, when it is entered.
    AllowRounds,
    /// Goes `offset` operations on if the function's `may_goto` have gone on as often as they may.
    MayGoto,
    /// Zeroes the words of the stack frame whose bits are set in the second part.
    Zero,
    /// Calls the function in the second part.
    CallHelper,
    /// `bpf_map_lookup_elem` in an array of `imm` elements; the second part has the first one and the stride.
    LookupArray,
    /// Calls the function `imm` operations on.
    CallSubprogram,
    /// A helper that calls a function of the program calls it for the first time, if at all. The function returns to
    /// the [`CalledBack`](Self::CalledBack) that follows; the helper to the operation after that.
    CallBack(Callback),
    /// The helper calls the function once more, or returns.
    CalledBack,
    TailCall,
    /// Returns from a subprogram.
    Exit,
    /// Ends the program.
    End,
    /// `dst = src + imm`
    Sum,
    /// `dst` = `imm` bytes from where the packet starts.
    Address,
    /// `dst` = a [`PacketField`](super::packet_field::PacketField) of the packet: its offset is `offset`, its register `src`, its mask `imm`; what it
    /// is shifted by is the second part's immediate.
    LoadPart {
        size: Size,
        anchor: Anchor,
        reversed: bool,
        shift: Option<Direction>,
    },
    /// `dst` = `imm` bytes from where the packet starts, and as many more as a byte says that is shifted and masked: the end
    /// of a header that tells its length. The second part has the mask and, as its immediate, what to shift by.
    AddressPart {
        anchor: Anchor,
        shift: Direction,
    },
    /// Goes `offset` operations on if the packet is shorter than `imm` bytes, or if it is not.
    JumpLen {
        shorter: bool,
    },
    /// Goes `offset` operations on if the packet ends before `src + imm`, or if it does not.
    JumpEnd {
        before: bool,
    },
    /// Goes on elsewhere if a part of the packet, from `offset` and `src` on, is or is not `imm`; the second part has the address
    /// of the operation there and, as its immediate, the mask.
    Test {
        size: Size,
        anchor: Anchor,
        masked: bool,
        equal: bool,
    },
    /// Ends the program with `imm`.
    Return(Width),
    /// Several operations in one go, which stay where they are (`fuse`).
    Fused(Fused),
}

/// Where to shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Left,
    Right,
}

/// Operations that follow each other often enough to have a handler together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fused {
    /// `dst &= imm`, and whether it is `imm`.
    MaskJump(Condition),
    /// Whether the packet is long enough, and a test of a part of it.
    LenTest { size: Size, masked: bool, equal: bool },
    /// Tests of one part of the packet for several numbers: all lead away but the last, which may be for another number.
    Switch { size: Size, anchor: Anchor, masked: bool, three: bool, last_equal: bool },
    /// Whether the packet is long enough, and two such tests.
    LenSwitch { size: Size, masked: bool, last_equal: bool },
    /// Tests of two parts: what a parser that looks for one thing does, again and again.
    Tests { sizes: (Size, Size), anchor: Anchor, masked: bool, equal: (bool, bool) },
    /// Whether the packet ends before something behind an address, and a test of a part from there on.
    EndTest { size: Size, masked: bool, equal: bool },
    /// The end of a header, and whether the packet ends before something behind it.
    AddressEnd { anchor: Anchor, shift: Direction },
    /// The same after another address, such as that of a field that tells what follows the header.
    AddressesEnd { anchor: Anchor, shift: Direction },
}

/// Room for kinds, and how many numbers [`each_code`](super::handlers) counts out.
pub(super) const MAX_KINDS: usize = 512;

/// The kinds, each at its code; no operations from [`COUNT`] on.
pub(super) const KINDS: [Kind; MAX_KINDS] = all().0;

/// How many kinds there are.
pub(super) const COUNT: usize = all().1;

static CODES: LazyLock<HashMap<Kind, u16>> =
    LazyLock::new(|| (0..).zip(&KINDS[..COUNT]).map(|(code, kind)| (*kind, code)).collect());

impl Kind {
    /// Its number.
    pub(super) fn code(self) -> u16 {
        CODES.get(&self).copied().unwrap_or_else(|| unreachable!("{self:?} is in the list"))
    }
}

const WIDTHS: [Width; 2] = [Width::W32, Width::W64];
const SOURCES: [Source; 2] = [Source::Reg, Source::Imm];
const SIZES: [Size; 4] = [Size::B, Size::H, Size::W, Size::Dw];
const ANCHORS: [Anchor; 2] = [Anchor::Start, Anchor::Register];
const PART_SIZES: [Size; 3] = [Size::B, Size::H, Size::W];
/// Of parts that are tested in pairs.
const SMALL_SIZES: [Size; 2] = [Size::B, Size::H];
const REACHES: [Reach; 3] = [Reach::Packet, Reach::Aligned, Reach::Any];

const ALU_OPS: [AluOp; 14] = [
    AluOp::Add,
    AluOp::Sub,
    AluOp::Mul,
    AluOp::Div,
    AluOp::SDiv,
    AluOp::Mod,
    AluOp::SMod,
    AluOp::Or,
    AluOp::And,
    AluOp::Xor,
    AluOp::Lsh,
    AluOp::Rsh,
    AluOp::Arsh,
    AluOp::Mov,
];

const CONDITIONS: [Condition; 11] = [
    Condition::Eq,
    Condition::Ne,
    Condition::Gt,
    Condition::Ge,
    Condition::Lt,
    Condition::Le,
    Condition::Set,
    Condition::SGt,
    Condition::SGe,
    Condition::SLt,
    Condition::SLe,
];

const ATOMIC_OPS: [AtomicOp; 10] = [
    AtomicOp::Add { fetch: false },
    AtomicOp::Add { fetch: true },
    AtomicOp::Or { fetch: false },
    AtomicOp::Or { fetch: true },
    AtomicOp::And { fetch: false },
    AtomicOp::And { fetch: true },
    AtomicOp::Xor { fetch: false },
    AtomicOp::Xor { fetch: true },
    AtomicOp::Xchg,
    AtomicOp::CmpXchg,
];

/// The list, and how long it is.
const fn all() -> ([Kind; MAX_KINDS], usize) {
    let mut kinds = [Kind::Nop; MAX_KINDS];
    let mut count = 0;
    macro_rules! add {
        ($kind:expr) => {{
            kinds[count] = $kind;
            count += 1;
        }};
    }
    // Iterators are not for constants.
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
    add!(Kind::Nop);
    each!(
        width in WIDTHS,
        {
            each!(op in ALU_OPS, each!(src in SOURCES, add!(Kind::Alu { width, op, src })));
            each!(
                condition in CONDITIONS,
                each!(src in SOURCES, add!(Kind::JumpIf { width, condition, src }))
            );
            each!(op in ATOMIC_OPS, add!(Kind::Atomic { width, op }));
            add!(Kind::Neg(width));
            add!(Kind::MovSx { width, from: Size::B });
            add!(Kind::MovSx { width, from: Size::H });
        }
    );
    add!(Kind::MovSx { width: Width::W64, from: Size::W });
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
            each!(src in SOURCES, add!(Kind::StoreHost { size, src, below_max: false }));
            each!(src in SOURCES, add!(Kind::StoreHost { size, src, below_max: true }));
            add!(Kind::LoadAcquire(size));
            add!(Kind::StoreRelease(size));
            add!(Kind::LoadHost(size));
            add!(Kind::LoadFrame(size));
        }
    );
    each!(
        size in [Size::B, Size::H, Size::W],
        {
            each!(reach in REACHES, add!(Kind::Load { size, signed: true, reach }));
            each!(indexed in [false, true], add!(Kind::LoadPacket { size, indexed }));
            add!(Kind::LoadContext(size));
        }
    );
    each!(size in [Size::H, Size::W, Size::Dw], add!(Kind::Reverse(size)));
    let single = [
        Kind::LoadImm64,
        Kind::LoadFunction,
        Kind::Goto,
        Kind::AllowRounds,
        Kind::MayGoto,
        Kind::Zero,
        Kind::CallHelper,
        Kind::LookupArray,
        Kind::CallSubprogram,
        Kind::CallBack(Callback::Count),
        Kind::CallBack(Callback::Elements),
        Kind::CalledBack,
        Kind::TailCall,
        Kind::Exit,
        Kind::End,
        Kind::Sum,
        Kind::Address,
    ];
    each!(kind in single, add!(kind));
    each!(
        size in PART_SIZES,
        each!(
            anchor in ANCHORS,
            each!(
                reversed in [false, true],
                each!(
                    shift in [None, Some(Direction::Left), Some(Direction::Right)],
                    add!(Kind::LoadPart { size, anchor, reversed, shift })
                )
            )
        )
    );
    each!(width in WIDTHS, add!(Kind::Return(width)));
    each!(
        anchor in ANCHORS,
        each!(
            shift in [Direction::Left, Direction::Right],
            {
                add!(Kind::AddressPart { anchor, shift });
                add!(Kind::Fused(Fused::AddressEnd { anchor, shift }));
                add!(Kind::Fused(Fused::AddressesEnd { anchor, shift }));
            }
        )
    );
    each!(
        truth in [false, true],
        {
            add!(Kind::JumpLen { shorter: truth });
            add!(Kind::JumpEnd { before: truth });
        }
    );
    each!(
        size in PART_SIZES,
        each!(
            masked in [false, true],
            each!(
                equal in [false, true],
                {
                    add!(Kind::Fused(Fused::LenTest { size, masked, equal }));
                    add!(Kind::Fused(Fused::LenSwitch { size, masked, last_equal: equal }));
                    add!(Kind::Fused(Fused::EndTest { size, masked, equal }));
                    each!(
                        anchor in ANCHORS,
                        {
                            add!(Kind::Test { size, anchor, masked, equal });
                            each!(
                                three in [false, true],
                                add!(Kind::Fused(Fused::Switch { size, anchor, masked, three, last_equal: equal }))
                            );
                        }
                    );
                }
            )
        )
    );
    each!(
        first in SMALL_SIZES,
        each!(
            second in SMALL_SIZES,
            each!(
                anchor in ANCHORS,
                each!(
                    masked in [false, true],
                    each!(
                        equal in [(false, false), (false, true), (true, false), (true, true)],
                        add!(Kind::Fused(Fused::Tests { sizes: (first, second), anchor, masked, equal }))
                    )
                )
            )
        )
    );
    each!(condition in [Condition::Eq, Condition::Ne], add!(Kind::Fused(Fused::MaskJump(condition))));
    (kinds, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_code() {
        assert_eq!(CODES.len(), COUNT);
        for (code, kind) in KINDS[..COUNT].iter().enumerate() {
            assert_eq!(usize::from(kind.code()), code, "{kind:?}");
        }
    }
}
