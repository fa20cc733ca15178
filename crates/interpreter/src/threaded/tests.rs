//! Translations of programs: the shapes that are fused, and the operations that are left.

use paceline_isa::{Condition, Size, Width, assemble};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};

use super::kind::{Direction, Fused, KINDS, Kind};
use super::packet_field::Anchor;
use super::translate::translate;

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

/// The kinds of the operations that a program becomes, and how many instructions they stand for.
fn operations(text: &str) -> (Vec<Kind>, u32) {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let insns = assemble(text, &()).expect("assembles").encode().expect("encodes");
    let spec = ProgramSpec::new("test", kind, insns);
    let operations = translate(&verify(&spec, &[], None, &Options::default()).expect("is accepted"), &[]);
    let kinds = operations.notes.iter().filter_map(|note| Some(KINDS[usize::from(note.code()?)]));
    (kinds.collect(), operations.notes.iter().map(|note| note.weight).sum())
}

/// Operations between the check of the packet's length and the ends of the program.
fn middle(text: &str) -> Vec<Kind> {
    let (kinds, _) = operations(&format!("{START}{text}{END}"));
    let check = kinds.iter().position(|kind| *kind == Kind::JumpLen { shorter: true }).expect("checks");
    let end = kinds.iter().position(|kind| matches!(kind, Kind::Return(_))).expect("returns");
    assert!(kinds[end..].iter().all(|kind| matches!(kind, Kind::Return(_) | Kind::End)), "{kinds:?}");
    kinds[check + 1..end].to_vec()
}

const fn test(size: Size, anchor: Anchor, masked: bool, equal: bool) -> Kind {
    Kind::Test { size, anchor, masked, equal }
}

#[test]
fn a_check_of_the_length_is_one_operation() {
    let (kinds, weight) = operations(&format!("{START}{END}"));
    let (shorter, end) = (Kind::JumpLen { shorter: true }, Kind::Return(Width::W32));
    assert_eq!(kinds[..3], [shorter, end, end], "{kinds:?}");
    // The end is there twice, and after the last one there is one that nothing comes to.
    assert_eq!(weight, 8 + 1 + 1);
}

#[test]
fn a_check_and_a_test_are_one() {
    let fused = Fused::LenTest { size: Size::H, masked: false, equal: false };
    let (kinds, _) = operations(&format!(
        "{START}
        r4 = *(u8 *)(r2 + 13)
        r5 = *(u8 *)(r2 + 12)
        w5 <<= 8
        w5 |= w4
        w5 &= 0xffff
        if w5 != 0x800 goto out
        {END}"
    ));
    assert_eq!(kinds[0], Kind::Fused(fused), "{kinds:?}");
    assert_eq!(kinds[1], test(Size::H, Anchor::Start, false, false), "{kinds:?}");
}

#[test]
fn a_check_and_a_switch_of_two_are_one() {
    let (kinds, _) = operations(&format!(
        "{START}
        r5 = *(u16 *)(r2 + 12)
        r5 = be16 r5
        if w5 == 0x86dd goto out
        if w5 != 0x800 goto out
        {END}"
    ));
    let fused = Fused::LenSwitch { size: Size::H, masked: false, last_equal: false };
    assert_eq!(kinds[0], Kind::Fused(fused), "{kinds:?}");
}

#[test]
fn a_switch_loads_its_field_once() {
    // A store keeps the check apart.
    let kinds = middle(
        "*(u8 *)(r2 + 0) = 0
        r5 = *(u8 *)(r2 + 23)
        if w5 == 132 goto out
        if w5 == 6 goto out
        if w5 != 17 goto out",
    );
    let fused =
        Fused::Switch { size: Size::B, anchor: Anchor::Start, masked: false, three: true, last_equal: false };
    assert_eq!(kinds[1], Kind::Fused(fused), "{kinds:?}");
}

#[test]
fn two_tests_are_one() {
    let kinds = middle(
        "*(u8 *)(r2 + 0) = 0
        r5 = *(u8 *)(r2 + 23)
        if w5 != 6 goto out
        r5 = *(u16 *)(r2 + 20)
        r5 = be16 r5
        if w5 & 0x1fff goto out",
    );
    let fused = Fused::Tests {
        sizes: (Size::B, Size::H),
        anchor: Anchor::Start,
        masked: true,
        equal: (false, false),
    };
    assert_eq!(kinds[1], Kind::Fused(fused), "{kinds:?}");
}

#[test]
fn the_end_of_a_header_is_one_operation_with_what_follows() {
    let kinds = middle(
        "r4 = *(u8 *)(r2 + 14)
        r4 <<= 2
        r4 &= 0x3c
        r1 = r2
        r1 += 14
        r1 += r4
        r5 = r1
        r5 += 4
        if r5 > r3 goto out
        r0 = *(u8 *)(r1 + 3)
        r5 = r1
        r5 += 8
        w0 = 3
        if r5 > r3 goto out
        r5 = *(u16 *)(r1 + 6)
        if w5 == 22 goto out",
    );
    let expected = [
        Kind::Fused(Fused::AddressEnd { anchor: Anchor::Start, shift: Direction::Left }),
        Kind::JumpEnd { before: true },
        Kind::Fused(Fused::EndTest { size: Size::H, masked: false, equal: true }),
        test(Size::H, Anchor::Register, false, true),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn another_address_goes_with_the_end_of_a_header() {
    let kinds = middle(
        "r4 = *(u8 *)(r2 + 14)
        r4 &= 0xf
        r4 <<= 2
        r1 = r2
        r1 += r4
        r0 = r2
        r0 += 23
        r5 = r1
        r5 += 4
        if r5 > r3 goto out
        *(u8 *)(r1 + 0) = 1
        *(u8 *)(r0 + 0) = 2",
    );
    let fused = Fused::AddressesEnd { anchor: Anchor::Start, shift: Direction::Left };
    assert_eq!(kinds[0], Kind::Fused(fused), "{kinds:?}");
}

#[test]
fn operations_in_between_go_before() {
    let kinds = middle(
        "r4 = *(u8 *)(r2 + 14)
        r4 &= 0xf
        r4 <<= 2
        r1 = r2
        r1 += r4
        r6 = *(u8 *)(r2 + 20)
        r5 = r1
        r5 += 4
        if r5 > r3 goto out
        *(u8 *)(r1 + 0) = r6",
    );
    let expected = [
        Kind::LoadPart { size: Size::B, anchor: Anchor::Start, reversed: false, shift: None },
        Kind::Fused(Fused::AddressEnd { anchor: Anchor::Start, shift: Direction::Left }),
        Kind::JumpEnd { before: true },
    ];
    assert_eq!(kinds[..3], expected, "{kinds:?}");
}

#[test]
fn a_load_over_its_base_needs_no_copy() {
    let kinds = middle(
        "r4 = *(u8 *)(r2 + 14)
        r4 &= 0xf
        r2 += r4
        r5 = r2
        r5 += 2
        if r5 > r3 goto out
        r4 = *(u8 *)(r2 + 1)
        r2 = *(u8 *)(r2 + 0)
        w2 <<= 8
        w2 |= w4
        if w2 == 22 goto out",
    );
    let last = kinds.last().copied();
    assert_eq!(last, Some(test(Size::H, Anchor::Register, false, true)), "{kinds:?}");
    assert!(!kinds.iter().any(|kind| matches!(kind, Kind::Load { .. })), "{kinds:?}");
}

#[test]
fn what_is_read_later_stays() {
    let kinds = middle(
        "r5 = *(u8 *)(r2 + 23)
        if w5 != 6 goto out
        *(u8 *)(r2 + 0) = r5",
    );
    let load = Kind::LoadPart { size: Size::B, anchor: Anchor::Start, reversed: false, shift: None };
    assert!(kinds.contains(&load), "{kinds:?}");
}

#[test]
fn a_store_ends_what_is_known_of_the_packet() {
    let kinds = middle(
        "r5 = *(u8 *)(r2 + 23)
        *(u8 *)(r2 + 23) = r0
        if w5 != 6 goto out",
    );
    assert!(matches!(kinds.last(), Some(Kind::JumpIf { .. })), "{kinds:?}");
}

#[test]
fn a_mask_and_a_comparison_are_one() {
    let kinds = middle(
        "r5 = *(u64 *)(r2 + 0)
        w5 &= 7
        if w5 == 3 goto out",
    );
    assert_eq!(kinds[1], Kind::Fused(Fused::MaskJump(Condition::Eq)), "{kinds:?}");
}
