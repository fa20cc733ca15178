//! Errors of the decoder. The kernel refuses the same instructions (`kernel/bpf/verifier.c`).

use paceline_isa::{
    AtomicOp, Callee, Code, DecodeError, EncodeError, FieldName, Imm64, Insn, Operand, RawInsn, Reg, RegSet,
    Size, SwapOrder, Width, decode, decode_at, encode,
};

/// A slot from its bytes in hexadecimal.
fn raw(text: &str) -> Vec<RawInsn> {
    let bytes: Vec<u8> = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    bytes.chunks(8).map(|slot| RawInsn::from_le_bytes(slot.try_into().unwrap())).collect()
}

fn error(text: &str) -> DecodeError {
    decode(&raw(text)).unwrap_err()
}

#[test]
fn unknown_opcodes() {
    for (bytes, opcode) in [
        ("00 00 00 00 00 00 00 00", 0x00),
        ("ff 00 00 00 00 00 00 00", 0xff),
        // Would be a sign-extending load of 64 bits, exit and call of 32 bits, a negation by register.
        ("99 00 00 00 00 00 00 00", 0x99),
        ("96 00 00 00 00 00 00 00", 0x96),
        ("86 00 00 00 00 00 00 00", 0x86),
        ("8f 00 00 00 00 00 00 00", 0x8f),
        ("df 00 00 00 10 00 00 00", 0xdf),
    ] {
        assert_eq!(error(bytes), DecodeError::Opcode { slot: 0, opcode });
    }
}

#[test]
fn selectors() {
    for (bytes, field, value) in [
        ("bc 12 20 00 00 00 00 00", FieldName::Offset, 32),
        ("bf 12 07 00 00 00 00 00", FieldName::Offset, 7),
        ("3f 12 02 00 00 00 00 00", FieldName::Offset, 2),
        ("d7 01 00 00 08 00 00 00", FieldName::Imm, 8),
        ("db 12 00 00 02 00 00 00", FieldName::Imm, 2),
        ("d3 12 00 00 00 00 00 00", FieldName::Imm, 0),
        ("85 30 00 00 00 00 00 00", FieldName::Src, 3),
        ("18 71 00 00 00 00 00 00 00 00 00 00 00 00 00 00", FieldName::Src, 7),
    ] {
        let opcode = raw(bytes)[0].opcode;
        assert_eq!(error(bytes), DecodeError::Selector { slot: 0, opcode, field, value });
    }
}

#[test]
fn reserved_fields() {
    for (bytes, field, value) in [
        ("95 01 00 00 00 00 00 00", FieldName::Dst, 1),
        ("95 10 00 00 00 00 00 00", FieldName::Src, 1),
        ("07 11 00 00 00 00 00 00", FieldName::Src, 1),
        ("0f 11 00 00 05 00 00 00", FieldName::Imm, 5),
        ("0f 11 ff ff 00 00 00 00", FieldName::Offset, -1),
        ("61 12 00 00 01 00 00 00", FieldName::Imm, 1),
        ("62 12 00 00 01 00 00 00", FieldName::Src, 1),
        ("05 00 00 00 01 00 00 00", FieldName::Imm, 1),
        ("06 00 01 00 00 00 00 00", FieldName::Offset, 1),
        ("85 00 01 00 00 00 00 00", FieldName::Offset, 1),
        ("20 01 00 00 00 00 00 00", FieldName::Dst, 1),
        ("18 11 01 00 00 00 00 00 00 00 00 00 00 00 00 00", FieldName::Offset, 1),
    ] {
        let opcode = raw(bytes)[0].opcode;
        assert_eq!(error(bytes), DecodeError::Reserved { slot: 0, opcode, field, value });
    }
}

#[test]
fn registers() {
    for (bytes, field, number) in [
        ("b7 0b 00 00 00 00 00 00", FieldName::Dst, 11),
        ("bf f1 00 00 00 00 00 00", FieldName::Src, 15),
        ("40 b0 00 00 00 00 00 00", FieldName::Src, 11),
    ] {
        assert_eq!(error(bytes), DecodeError::Register { slot: 0, field, number });
    }
}

#[test]
fn second_slots() {
    let exit = "95 00 00 00 00 00 00 00";
    let first = "18 01 00 00 05 00 00 00";
    assert_eq!(error(&format!("{exit} {first}")), DecodeError::SecondMissing { slot: 1 });
    assert_eq!(decode_at(&raw(first), 1), Err(DecodeError::PastEnd { slot: 1, len: 1 }));
    for (second, field, value) in [
        ("95 00 00 00 00 00 00 00", FieldName::Opcode, 0x95),
        ("00 01 00 00 00 00 00 00", FieldName::Dst, 1),
        ("00 10 00 00 00 00 00 00", FieldName::Src, 1),
        ("00 00 01 00 00 00 00 00", FieldName::Offset, 1),
    ] {
        let found = error(&format!("{exit} {first} {second}"));
        assert_eq!(found, DecodeError::SecondReserved { slot: 2, field, value });
    }
    // A map by descriptor has no operand in the second slot; a map value has its offset there.
    let map_fd = "18 11 00 00 05 00 00 00 00 00 00 00 01 00 00 00";
    assert_eq!(error(map_fd), DecodeError::SecondReserved { slot: 1, field: FieldName::Imm, value: 1 });
    let value = Imm64::MapValueFd { fd: 5, offset: 1 };
    let map_value = raw("18 21 00 00 05 00 00 00 00 00 00 00 01 00 00 00");
    assert_eq!(decode_at(&map_value, 0), Ok(Insn::LoadImm64 { dst: Reg::R1, value }));
}

#[test]
fn errors_read_well() {
    for (bytes, message) in [
        ("bc 12 20 00 00 00 00 00", "slot 0: offset 0x20 selects no instruction of opcode 0xbc"),
        ("95 01 00 00 00 00 00 00", "slot 0: dst is reserved in opcode 0x95 but holds 0x1"),
        ("b7 0b 00 00 00 00 00 00", "slot 0: dst names register 11, the last is 10"),
    ] {
        assert_eq!(error(bytes).to_string(), message);
    }
}

#[test]
fn programs_are_indexed_by_slot() {
    let code =
        decode(&raw("18 01 00 00 05 00 00 00 00 00 00 00 00 00 00 00 95 00 00 00 00 00 00 00")).unwrap();
    assert_eq!(code.len(), 3);
    assert!(matches!(code.get(0), Some(Insn::LoadImm64 { .. })));
    assert_eq!(code.get(1), None);
    assert_eq!(code.get(2), Some(&Insn::Exit));
    assert_eq!(code.get(3), None);
    assert_eq!(code.iter().map(|(slot, _)| slot).collect::<Vec<_>>(), [0, 2]);
    assert!(decode(&[]).unwrap().is_empty());
}

#[test]
fn what_can_be_said_but_does_not_exist_is_refused() {
    let (dst, src) = (Reg::R1, Reg::R2);
    for insn in [
        Insn::MovSx { width: Width::W32, from: Size::W, dst, src },
        Insn::MovSx { width: Width::W64, from: Size::Dw, dst, src },
        Insn::Swap { order: SwapOrder::ToBe, size: Size::B, dst },
        Insn::Load { size: Size::Dw, signed: true, dst, base: src, offset: 0 },
        Insn::LoadPacket { size: Size::Dw, index: None, offset: 0 },
    ] {
        assert_eq!(encode(&insn), Err(EncodeError::NoEncoding(insn)));
        assert!(!insn.to_string().is_empty());
    }
    assert!(Code::from_iter([Insn::Swap { order: SwapOrder::Always, size: Size::B, dst }]).encode().is_err());
}

#[test]
fn effects_on_registers() {
    use Reg::{R0, R1, R2, R3, R6};
    let set = |regs: &[Reg]| regs.iter().copied().collect::<RegSet>();
    let atomic = |op| Insn::Atomic { width: Width::W64, op, base: R1, offset: 0, src: R2 };
    for (insn, reads, writes) in [
        ("r1 += r2".parse().unwrap(), set(&[R1, R2]), set(&[R1])),
        ("r1 = r2".parse().unwrap(), set(&[R2]), set(&[R1])),
        ("r1 = 2".parse().unwrap(), set(&[]), set(&[R1])),
        ("w1 = -w1".parse().unwrap(), set(&[R1]), set(&[R1])),
        ("r1 = (s8)r2".parse().unwrap(), set(&[R2]), set(&[R1])),
        ("r1 = *(u8 *)(r2 + 0)".parse().unwrap(), set(&[R2]), set(&[R1])),
        ("*(u8 *)(r1 + 0) = r2".parse().unwrap(), set(&[R1, R2]), set(&[])),
        ("*(u8 *)(r1 + 0) = 2".parse().unwrap(), set(&[R1]), set(&[])),
        (atomic(AtomicOp::Add { fetch: false }), set(&[R1, R2]), set(&[])),
        (atomic(AtomicOp::Add { fetch: true }), set(&[R1, R2]), set(&[R2])),
        (atomic(AtomicOp::Xchg), set(&[R1, R2]), set(&[R2])),
        (atomic(AtomicOp::CmpXchg), set(&[R0, R1, R2]), set(&[R0])),
        ("r0 = *(u8 *)skb[r3]".parse().unwrap(), set(&[R3, R6]), RegSet::CALLER_SAVED),
        (Insn::Call(Callee::Helper(1)), RegSet::ARGUMENTS, RegSet::CALLER_SAVED),
        (Insn::CallReg(R6), RegSet::ARGUMENTS.with(R6), RegSet::CALLER_SAVED),
        (Insn::Exit, set(&[R0]), set(&[])),
        ("if r1 > r2 goto +1".parse().unwrap(), set(&[R1, R2]), set(&[])),
        ("r1 = 5 ll".parse().unwrap(), set(&[]), set(&[R1])),
    ] {
        assert_eq!((insn.reads(), insn.writes()), (reads, writes), "{insn}");
    }
    assert_eq!(Operand::Reg(R3).reg(), Some(R3));
    assert_eq!(RegSet::CALLER_SAVED.union(RegSet::CALLEE_SAVED).len(), 10);
}

#[test]
fn jumps_count_from_the_next_slot() {
    for (text, slot, target) in [
        ("goto +3", 5, Some(9)),
        ("goto -6", 5, Some(0)),
        ("goto -7", 5, Some(-1)),
        ("if r1 == 0 goto +0", 5, Some(6)),
        ("gotol +70000", 0, Some(70_001)),
        ("may_goto -1", 5, Some(5)),
        ("exit", 5, None),
        ("call pc+3", 5, None),
    ] {
        assert_eq!(text.parse::<Insn>().unwrap().jump_target(slot), target, "{text}");
    }
    assert_eq!("call pc-3".parse::<Insn>().unwrap().subprogram_target(5), Some(3));
    assert!("if r1 == 0 goto +0".parse::<Insn>().unwrap().falls_through());
    assert!(!"goto +0".parse::<Insn>().unwrap().falls_through());
}
