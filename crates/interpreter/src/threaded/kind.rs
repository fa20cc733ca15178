//! Kinds of operations, each with a handler.

use std::collections::HashMap;
use std::sync::LazyLock;

use paceline_isa::{AluOp, AtomicOp, Condition, Size, Width};
use paceline_spec::helper::Callback;

use super::packet_field::Anchor;

/// Source of the second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Reg,
    Imm,
}

/// Facts about the accessed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// The packet: unaligned, and not shared with other workers.
    Packet,
    /// Aligned to the size of the access, and shared with other workers.
    Aligned,
    /// Nothing.
    Any,
}

/// A kind of operation. Register numbers, offsets and immediates are operands of the [`Op`](super::op::Op).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// No effect; counts for instructions that were left out.
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
    /// `dst` = the address of the function at a distance of `imm` operations.
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
    /// `dst` = the member of the packet's frame at byte `imm`.
    LoadFrame(Size),
    /// `dst` = a computed field of the context: the field in the second part, from byte `imm` on.
    LoadContext(Size),
    /// `dst` = the member of the packet's own area in the host at byte `offset`.
    LoadHost(Size),
    StoreHost {
        size: Size,
        src: Source,
        /// Whether only numbers below the greatest of the size are stored.
        below_max: bool,
    },
    /// Legacy packet loads, at `imm` bytes, plus `src` if set.
    LoadPacket {
        size: Size,
        indexed: bool,
    },
    /// Jumps by `imm` operations.
    Goto,
    /// Jumps by `offset` operations if the condition holds.
    JumpIf {
        width: Width,
        condition: Condition,
        src: Source,
    },
    /// At the entry of a function, sets the iterations of its `may_goto` to the maximum.
    AllowRounds,
    /// Jumps by `offset` operations if the function's `may_goto` have used up their iterations.
    MayGoto,
    /// Zeroes the words of the stack frame whose bits are set in the second part.
    Zero,
    /// Calls the function in the second part.
    CallHelper,
    /// `bpf_map_lookup_elem` in an array of `imm` elements; the second part has the first one and the stride.
    LookupArray,
    /// Calls the function at a distance of `imm` operations.
    CallSubprogram,
    /// Call of a helper that calls back: the first call of the function, if any. The function returns to
    /// the [`CalledBack`](Self::CalledBack) that follows; the helper to the operation after that.
    CallBack(Callback),
    /// The next call of the function, or the helper's return.
    CalledBack,
    TailCall,
    /// Returns from a subprogram.
    Exit,
    /// Ends the program.
    End,
    /// `dst = src + imm`
    Sum,
    /// `dst` = the packet's start plus `imm` bytes.
    Address,
    /// `dst` = a [`PacketField`](super::packet_field::PacketField) of the packet: its offset is `offset`, its register `src`, its mask `imm`; what it
    /// shift is the second part's immediate.
    LoadPart {
        size: Size,
        anchor: Anchor,
        reversed: bool,
        shift: Option<Direction>,
    },
    /// `dst` = the packet's start plus `imm` bytes plus a shifted and masked byte of the packet: the end
    /// of a header with a length field. The second part has the mask and, as its immediate, the shift.
    AddressPart {
        anchor: Anchor,
        shift: Direction,
    },
    /// Jumps by `offset` operations if the packet is shorter than `imm` bytes, or if it is not.
    JumpLen {
        shorter: bool,
    },
    /// Jumps by `offset` operations if the packet ends before `src + imm`, or if it does not.
    JumpEnd {
        before: bool,
    },
    /// Jumps if a field of the packet, at `offset` and `src`, is or is not `imm`; the second part has the address
    /// of the target and, as its immediate, the mask.
    Test {
        size: Size,
        anchor: Anchor,
        masked: bool,
        equal: bool,
    },
    /// Ends the program with `imm`.
    Return(Width),
    /// Fused operations, which keep their places (`fuse`).
    Fused(Fused),
}

/// Direction of a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    Left,
    Right,
}

/// Sequences of operations with a handler for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fused {
    /// `dst &= imm`, and a test for `imm`.
    MaskJump(Condition),
    /// A test of the packet's length, and a test of a field.
    LenTest { size: Size, masked: bool, equal: bool },
    /// Tests of one field for several numbers: all jump if equal but the last, which may jump if not.
    Switch { size: Size, anchor: Anchor, masked: bool, three: bool, last_equal: bool },
    /// A test of the packet's length, and two tests of fields.
    LenSwitch { size: Size, masked: bool, last_equal: bool },
    /// Tests of two fields.
    Tests { sizes: (Size, Size), anchor: Anchor, masked: bool, equal: (bool, bool) },
    /// A test of the packet's length at an address, and a test of a field from there on.
    EndTest { size: Size, masked: bool, equal: bool },
    /// The end of a header, and a test of the packet's length there.
    AddressEnd { anchor: Anchor, shift: Direction },
    /// The same after another address, such as that of the next-protocol field.
    AddressesEnd { anchor: Anchor, shift: Direction },
}

/// Capacity of the handler tables, and number of codes that [`each_code`](super::handlers) expands.
pub(super) const MAX_KINDS: usize = 512;

/// The kinds by code; entries from [`COUNT`] on are unused.
pub(super) const KINDS: [Kind; MAX_KINDS] = all().0;

/// Number of kinds.
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
/// Kinds of tests of two fields.
const SMALL_SIZES: [Size; 2] = [Size::B, Size::H];
const REACHES: [Reach; 3] = [Reach::Packet, Reach::Aligned, Reach::Any];

/// The list and its length.
const fn all() -> ([Kind; MAX_KINDS], usize) {
    let mut kinds = [Kind::Nop; MAX_KINDS];
    let mut count = 0;
    macro_rules! add {
        ($kind:expr) => {{
            kinds[count] = $kind;
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
    add!(Kind::Nop);
    each!(
        width in WIDTHS,
        {
            each!(op in AluOp::ALL, each!(src in SOURCES, add!(Kind::Alu { width, op, src })));
            each!(
                condition in Condition::ALL,
                each!(src in SOURCES, add!(Kind::JumpIf { width, condition, src }))
            );
            each!(op in AtomicOp::ALL, add!(Kind::Atomic { width, op }));
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
