//! The kinds of operations, each of which has a handler of its own.

use std::collections::HashMap;
use std::sync::LazyLock;

use paceline_isa::{AluOp, AtomicOp, Condition, Size, Width};

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
    /// `dst` = byte `offset` of the context's scratch area.
    LoadScratch(Size),
    StoreScratch {
        size: Size,
        src: Source,
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
    /// Zeroes the words of the stack frame whose bits are set in the second part.
    Zero,
    /// Calls the function in the second part.
    CallHelper,
    /// `bpf_map_lookup_elem` in an array of `imm` elements; the second part has the first one and the stride.
    LookupArray,
    /// Calls the function `imm` operations on.
    CallSubprogram,
    TailCall,
    /// Returns from a subprogram.
    Exit,
    /// Ends the program.
    End,
    /// Several operations in one go, which stay where they are (`fuse`).
    Fused(Fused),
}

/// Operations that follow each other often enough to have a handler together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fused {
    /// `dst = src; dst += imm`
    MovAdd,
    /// The same and `if dst > end goto`: whether the packet is long enough.
    Check,
    /// `dst += src; other += imm`
    AddAdd,
    /// Two pointers from the frame.
    LoadFrames,
    /// A byte of the packet, `dst <<= imm; dst &= imm`: the length of a header.
    LoadShiftMask(Width),
    /// Part of the packet, and whether it is `imm`.
    LoadJump { size: Size, condition: Condition },
    /// `dst &= imm`, and whether it is `imm`.
    MaskJump(Condition),
    /// Two bytes of the packet as one number: `a = byte; b = byte; b <<= 8; b |= a`, with `b &= imm` before or after
    /// the last one, and whether it is `imm`.
    Compose { masked: bool, truncated: bool, jump: Option<Condition> },
    /// `dst = imm; exit`
    Return(Width),
}

/// Room for kinds, and how many numbers [`each_code`](super::handlers) counts out.
pub(super) const MAX_KINDS: usize = 320;

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
            each!(src in SOURCES, add!(Kind::StoreScratch { size, src }));
            add!(Kind::LoadAcquire(size));
            add!(Kind::StoreRelease(size));
            add!(Kind::LoadScratch(size));
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
        Kind::Goto,
        Kind::Zero,
        Kind::CallHelper,
        Kind::LookupArray,
        Kind::CallSubprogram,
        Kind::TailCall,
        Kind::Exit,
        Kind::End,
    ];
    each!(kind in single, add!(kind));
    let equal = [Condition::Eq, Condition::Ne];
    macro_rules! fused {
        ($fused:expr) => {
            add!(Kind::Fused($fused))
        };
    }
    fused!(Fused::MovAdd);
    fused!(Fused::Check);
    fused!(Fused::AddAdd);
    fused!(Fused::LoadFrames);
    each!(
        width in WIDTHS,
        {
            fused!(Fused::LoadShiftMask(width));
            fused!(Fused::Return(width));
        }
    );
    each!(
        condition in equal,
        {
            fused!(Fused::MaskJump(condition));
            each!(size in [Size::B, Size::H, Size::W], fused!(Fused::LoadJump { size, condition }));
        }
    );
    each!(
        masked in [false, true],
        each!(
            truncated in [false, true],
            each!(
                jump in [None, Some(Condition::Eq), Some(Condition::Ne)],
                fused!(Fused::Compose { masked, truncated, jump })
            )
        )
    );
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
