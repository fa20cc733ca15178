//! Translations of programs: the operations that are left of them, and the sequences with a handler for all.

use paceline_compiler::ir::{BinaryOp, Type};
use paceline_isa::{Condition, Size, Width, assemble};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};

use super::form::translate;
use super::kind::{Kind, Reach, Source};
use super::sequence::{SEQUENCES, Sequence};

/// Where the packet is, and whether it has so many bytes.
const START: &str = "
    r3 = *(u32 *)(r1 + 4)
    r2 = *(u32 *)(r1 + 0)
    r4 = r2
    r4 += 40
    w0 = 1
    if r4 > r3 goto out
";

const END: &str = "
    w0 = 2
    out: exit
";

/// The sequences of a program.
fn sequences(text: &str) -> Vec<Sequence> {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let insns = assemble(text, &()).expect("assembles").encode().expect("encodes");
    let verified = verify(&ProgramSpec::new("test", kind, insns), &[], None, &Options::default());
    let operations = translate(&verified.expect("is accepted"), &[]).expect("is translated");
    let mut codes = operations.codes.iter().filter_map(|code| SEQUENCES.get(usize::from(*code)));
    std::iter::from_fn(|| {
        let sequence = *codes.next()?;
        codes.by_ref().take(sequence.len - 1).for_each(|_| {});
        Some(sequence)
    })
    .collect()
}

/// The results that a sequence stores.
fn kept(sequence: &Sequence) -> Vec<bool> {
    sequence.parts[..sequence.len].iter().map(|part| part.keeps).collect()
}

fn kinds(text: &str) -> Vec<Kind> {
    let parts =
        sequences(text).into_iter().flat_map(|sequence| sequence.parts.into_iter().take(sequence.len));
    parts.map(|part| part.kind).collect()
}

/// Operations of a program between the check of the packet's length and its end.
fn middle(text: &str) -> Vec<Kind> {
    let kinds = kinds(&format!("{START}{text}{END}"));
    assert_eq!(kinds[0], SHORTER);
    let middle = kinds.into_iter().skip(1).take_while(|kind| !matches!(kind, Kind::End(_)));
    middle.collect()
}

const SHORTER: Kind = Kind::JumpLen { shorter: true };

const fn load(size: Size, reach: Reach) -> Kind {
    Kind::Load { size, signed: false, reach }
}

const fn test(condition: Condition, holds: bool) -> Kind {
    Kind::JumpIf { width: Width::W32, condition, holds, src: Source::Imm }
}

const fn number(op: BinaryOp) -> Kind {
    Kind::Binary { ty: Type::I64, op, src: Source::Imm }
}

#[test]
fn a_check_of_the_length_is_one_operation() {
    let end = Kind::End(Source::Imm);
    assert_eq!(kinds(&format!("{START}{END}")), [SHORTER, end, end]);
}

#[test]
fn what_is_only_compared_is_not_stored() {
    let text = "
        r4 = *(u8 *)(r2 + 13)
        r5 = *(u8 *)(r2 + 12)
        w5 <<= 8
        w5 |= w4
        w5 &= 0xffff
        if w5 != 0x800 goto out";
    let found = sequences(&format!("{START}{text}{END}"));
    assert_eq!(kept(&found[0]), [true, false, true]);
    // A value that is used later is.
    let text = "r5 = *(u8 *)(r2 + 12)\nif w5 != 8 goto out\n*(u8 *)(r2 + 0) = r5";
    assert_eq!(kept(&sequences(&format!("{START}{text}{END}"))[0]), [true; 3]);
}

#[test]
fn bits_are_tested_without_a_register() {
    let found = middle("r5 = *(u16 *)(r2 + 20)\nif w5 & 0x1fff goto out");
    assert_eq!(found, [load(Size::H, Reach::Start), test(Condition::Set, true)]);
    let found = middle("r5 = *(u16 *)(r2 + 20)\nw5 &= 0x1fff\nif w5 == 0 goto out");
    assert_eq!(found, [load(Size::H, Reach::Start), test(Condition::Set, false)]);
}

#[test]
fn the_end_of_a_header_is_a_sum_and_a_check() {
    let text = "
        r4 = *(u8 *)(r2 + 14)
        r4 &= 0xf
        r4 <<= 2
        r5 = r2
        r5 += r4
        r1 = r5
        r1 += 18
        if r1 > r3 goto out
        r0 = *(u16 *)(r5 + 16)
        *(u16 *)(r5 + 0) = r0";
    let expected = [
        load(Size::B, Reach::Start),
        number(BinaryOp::And),
        number(BinaryOp::Shl),
        Kind::AddressSum,
        Kind::JumpEnd { before: true },
        load(Size::H, Reach::Packet),
        Kind::Store { size: Size::H, src: Source::Reg, reach: Reach::Packet },
    ];
    let found = middle(text);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    assert!(expected.iter().all(|kind| found.contains(kind)), "{found:?}");
}

#[test]
fn the_end_of_a_header_is_one_sequence_in_either_order() {
    for length in ["w4 &= 15\nw4 <<= 2", "w4 <<= 2\nw4 &= 60"] {
        let text = format!(
            "r4 = *(u8 *)(r2 + 14)\n{length}\nr5 = r2\nr5 += r4\nr1 = r5\nr1 += 18\nif r1 > r3 goto out\n\
             r0 = *(u16 *)(r5 + 16)\n*(u16 *)(r5 + 0) = r0"
        );
        let found = sequences(&format!("{START}{text}{END}"));
        assert_eq!(found[1].len, 5, "{found:?}");
        assert_eq!(found[1].parts[3].kind, Kind::AddressSum, "{found:?}");
    }
}

/// The packet moves between the loads of its ends and the comparison.
#[test]
fn stale_ends_of_the_packet_are_numbers() {
    let text = "
        r6 = *(u32 *)(r1 + 4)
        r7 = *(u32 *)(r1 + 0)
        r2 = 0
        call 44
        r7 += 14
        r0 = 1
        if r7 > r6 goto out
        r0 = 2
        out: exit";
    let found = kinds(text);
    let is_packet = |kind: &Kind| matches!(kind, Kind::JumpLen { .. } | Kind::JumpEnd { .. });
    assert!(!found.iter().any(is_packet), "{found:?}");
    let condition =
        Kind::JumpIf { width: Width::W64, condition: Condition::Gt, holds: true, src: Source::Reg };
    assert!(found.contains(&condition), "{found:?}");
}

#[test]
fn stores_of_numbers_need_no_register() {
    let store = |reach| Kind::Store { size: Size::W, src: Source::Imm, reach };
    assert_eq!(middle("*(u32 *)(r2 + 4) = 7"), [store(Reach::Start)]);
}
