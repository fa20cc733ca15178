//! Arbitrary instructions, generated from the enums alone, independently of the table.

use paceline_isa::{AluOp, AtomicOp, Callee, Condition, Imm64, Insn, Operand, Reg, Size, SwapOrder, Width};
use proptest::prelude::*;
use proptest::sample::select;

fn reg() -> impl Strategy<Value = Reg> {
    select(Reg::ALL.to_vec())
}

fn width() -> impl Strategy<Value = Width> {
    select(vec![Width::W32, Width::W64])
}

fn size() -> impl Strategy<Value = Size> {
    select(vec![Size::B, Size::H, Size::W, Size::Dw])
}

fn up_to_word() -> impl Strategy<Value = Size> {
    select(vec![Size::B, Size::H, Size::W])
}

fn imm() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), -9..10, select(vec![i32::MIN, i32::MAX])]
}

fn offset() -> impl Strategy<Value = i16> {
    prop_oneof![any::<i16>(), -9i16..10, select(vec![i16::MIN, i16::MAX])]
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![reg().prop_map(Operand::Reg), imm().prop_map(Operand::Imm)]
}

fn alu_op() -> impl Strategy<Value = AluOp> {
    use AluOp::*;
    select(vec![Add, Sub, Mul, Div, SDiv, Mod, SMod, Or, And, Xor, Lsh, Rsh, Arsh, Mov])
}

fn condition() -> impl Strategy<Value = Condition> {
    use Condition::*;
    select(vec![Eq, Ne, Gt, Ge, Lt, Le, Set, SGt, SGe, SLt, SLe])
}

fn atomic_op() -> impl Strategy<Value = AtomicOp> {
    (0..6, any::<bool>()).prop_map(|(op, fetch)| match op {
        0 => AtomicOp::Add { fetch },
        1 => AtomicOp::Or { fetch },
        2 => AtomicOp::And { fetch },
        3 => AtomicOp::Xor { fetch },
        4 => AtomicOp::Xchg,
        _ => AtomicOp::CmpXchg,
    })
}

fn imm64() -> impl Strategy<Value = Imm64> {
    prop_oneof![
        any::<u64>().prop_map(Imm64::Value),
        imm().prop_map(Imm64::MapFd),
        (imm(), any::<u32>()).prop_map(|(fd, offset)| Imm64::MapValueFd { fd, offset }),
        (imm(), imm()).prop_map(|(btf_id, btf_fd)| Imm64::Variable { btf_id, btf_fd }),
        imm().prop_map(|offset| Imm64::Code { offset }),
        imm().prop_map(Imm64::MapIndex),
        (imm(), any::<u32>()).prop_map(|(index, offset)| Imm64::MapValueIndex { index, offset }),
    ]
}

fn callee() -> impl Strategy<Value = Callee> {
    prop_oneof![
        imm().prop_map(Callee::Helper),
        imm().prop_map(Callee::Subprogram),
        (imm(), offset()).prop_map(|(btf_id, module)| Callee::Kfunc { btf_id, module }),
    ]
}

fn mov_sx() -> impl Strategy<Value = Insn> {
    let widths = vec![
        (Width::W32, Size::B),
        (Width::W32, Size::H),
        (Width::W64, Size::B),
        (Width::W64, Size::H),
        (Width::W64, Size::W),
    ];
    (select(widths), reg(), reg()).prop_map(|((width, from), dst, src)| Insn::MovSx { width, from, dst, src })
}

fn swap() -> impl Strategy<Value = Insn> {
    let order = select(vec![SwapOrder::ToLe, SwapOrder::ToBe, SwapOrder::Always]);
    let size = select(vec![Size::H, Size::W, Size::Dw]);
    (order, size, reg()).prop_map(|(order, size, dst)| Insn::Swap { order, size, dst })
}

fn arithmetic() -> impl Strategy<Value = Insn> {
    prop_oneof![
        (width(), alu_op(), reg(), operand()).prop_map(|(width, op, dst, src)| Insn::Alu {
            width,
            op,
            dst,
            src
        }),
        (width(), reg()).prop_map(|(width, dst)| Insn::Neg { width, dst }),
        mov_sx(),
        swap(),
        (reg(), reg(), any::<u16>(), any::<u16>()).prop_map(|(dst, src, to, from)| Insn::AddrSpaceCast {
            dst,
            src,
            to,
            from
        }),
        (reg(), imm64()).prop_map(|(dst, value)| Insn::LoadImm64 { dst, value }),
    ]
}

fn memory() -> impl Strategy<Value = Insn> {
    prop_oneof![
        (size(), reg(), reg(), offset()).prop_map(|(size, dst, base, offset)| Insn::Load {
            size,
            signed: false,
            dst,
            base,
            offset
        }),
        (up_to_word(), reg(), reg(), offset()).prop_map(|(size, dst, base, offset)| Insn::Load {
            size,
            signed: true,
            dst,
            base,
            offset
        }),
        (size(), reg(), offset(), operand()).prop_map(|(size, base, offset, src)| Insn::Store {
            size,
            base,
            offset,
            src
        }),
        (width(), atomic_op(), reg(), offset(), reg())
            .prop_map(|(width, op, base, offset, src)| Insn::Atomic { width, op, base, offset, src }),
        (size(), reg(), reg(), offset()).prop_map(|(size, dst, base, offset)| Insn::LoadAcquire {
            size,
            dst,
            base,
            offset
        }),
        (size(), reg(), offset(), reg()).prop_map(|(size, base, offset, src)| Insn::StoreRelease {
            size,
            base,
            offset,
            src
        }),
        (up_to_word(), proptest::option::of(reg()), imm())
            .prop_map(|(size, index, offset)| Insn::LoadPacket { size, index, offset }),
    ]
}

fn control() -> impl Strategy<Value = Insn> {
    prop_oneof![
        offset().prop_map(|offset| Insn::Jump { offset }),
        imm().prop_map(|offset| Insn::JumpLong { offset }),
        (width(), condition(), reg(), operand(), offset()).prop_map(
            |(width, condition, dst, src, offset)| { Insn::JumpIf { width, condition, dst, src, offset } }
        ),
        offset().prop_map(|offset| Insn::MayGoto { offset }),
        callee().prop_map(Insn::Call),
        reg().prop_map(Insn::CallReg),
        Just(Insn::Exit),
    ]
}

/// Any instruction that has an encoding.
pub(crate) fn insn() -> impl Strategy<Value = Insn> {
    prop_oneof![arithmetic(), memory(), control()]
}
