//! Two programs on paths that are followed as one, and with bytes of the packet at places that are not known: neither may hide a difference,
//! nor make one.

use std::time::Duration;

use paceline::generate::{Differences, Options, differences_of_paths};
use paceline_spec::MapSpec;

use super::{LOOK_UP, array, hash, xdp};

pub(super) fn compared(old: &str, new: &str, maps: &[MapSpec]) -> Differences {
    let (old, new) = (xdp(old, maps.to_vec()), xdp(new, maps.to_vec()));
    let options = Options { time: Duration::from_secs(30), ..Options::default() };
    let sides = ((&old, &old.programs()[0]), (&new, &new.programs()[0]));
    let found = differences_of_paths(sides.0, sides.1, &options, 10, &mut |_| {}).unwrap();
    assert!(found.unconfirmed.is_empty(), "{:?}", found.unconfirmed);
    assert!(found.left.is_empty(), "{:?}", found.left);
    found
}

pub(super) fn are_equal(old: &str, new: &str, maps: &[MapSpec]) -> bool {
    compared(old, new, maps).found.is_empty()
}

/// The first byte of the first packet on which two programs differ.
fn first_byte(old: &str, new: &str) -> u8 {
    compared(old, new, &[]).found[0].old.input.packet[0]
}

/// Passes packets whose first byte is one of some.
fn one_of(values: &[u8]) -> String {
    let tests: String = values.iter().map(|value| format!("if r4 == {value} goto pass\n")).collect();
    format!("r4 = *(u8 *)(r1 + 0)\n{tests}goto out\npass:\nr0 = 2\nout:\nexit")
}

#[test]
fn each_of_the_joined_paths_counts() {
    assert!(are_equal(&one_of(&[7, 9, 11]), &one_of(&[11, 7, 9]), &[]));
    assert_eq!(first_byte(&one_of(&[7, 9, 11]), &one_of(&[11, 7])), 9);
    assert_eq!(first_byte(&one_of(&[7, 9]), &one_of(&[7, 9, 11])), 11);
}

#[test]
fn paths_that_leave_other_values_are_not_one() {
    // In a register, on the stack, in the packet, and in one that a called function saves.
    let branch = |a: &str, b: &str, then: &str| {
        format!("r4 = *(u8 *)(r1 + 0)\nif r4 > 5 goto other\n{a}\ngoto then\nother:\n{b}\nthen:\n{then}")
    };
    let wheres = [
        ("r7 = 2", "r7 = 1", "r0 = r7\nout:\nexit"),
        ("*(u64 *)(r10 - 8) = 2", "*(u64 *)(r10 - 8) = 1", "r0 = *(u64 *)(r10 - 8)\nout:\nexit"),
        ("*(u8 *)(r1 + 9) = 2", "*(u8 *)(r1 + 9) = 1", "r0 = *(u8 *)(r1 + 9)\nout:\nexit"),
        ("r7 = 2", "r7 = 1", "call f\nr0 = r7\nout:\nexit\nf:\nr7 = 0\nr0 = 0\nexit"),
    ];
    for (a, b, then) in wheres {
        let old = branch(a, b, then);
        assert!(are_equal(&old, &old, &[]), "{old}");
        assert!(!are_equal(&old, &branch(a, a, then), &[]), "{old}");
        assert!(!are_equal(&old, &branch(b, a, then), &[]), "{old}");
    }
}

#[test]
fn rounds_of_loops_are_not_mixed() {
    let sum = |rounds: u32, first: u32| {
        format!(
            "r4 = *(u8 *)(r1 + 0)\nr4 &= 3\nr5 = {first}\nagain:\nr5 += 3\nif r4 > 2 goto odd\nr5 += 1\nodd:\nr4 += 1\nif r4 < {rounds} goto again\n\
             *(u8 *)(r1 + 4) = r5\nr0 = 2"
        )
    };
    assert!(are_equal(&sum(6, 0), &sum(6, 0), &[]));
    assert!(!are_equal(&sum(6, 0), &sum(7, 0), &[]));
    assert!(!are_equal(&sum(6, 0), &sum(6, 1), &[]));
}

#[test]
fn elements_of_joined_paths_are_the_same() {
    let then = |found: u32, none: u32| {
        format!("{LOOK_UP}if r0 == 0 goto none\nr0 = {found}\nexit\nnone:\nr0 = {none}\nout:\nexit")
    };
    for map in [hash(), array()] {
        assert!(are_equal(&then(1, 2), &then(1, 2), std::slice::from_ref(&map)));
        assert!(!are_equal(&then(1, 2), &then(2, 2), std::slice::from_ref(&map)));
        assert!(!are_equal(&then(1, 2), &then(1, 1), std::slice::from_ref(&map)));
    }
}

/// Moves `r1` by `r4` bytes, behind which there are eight.
const MOVE: &str = "r1 += r4\nr8 = r1\nr8 += 8\nr9 = *(u32 *)(r6 + 4)\nif r8 > r9 goto out\n";

/// A program with what moves `r1` in it.
fn moved(text: &str) -> String {
    text.replace("MOVE", MOVE)
}

/// Passes packets with a 9 at a place.
fn nine_at(place: &str) -> String {
    format!("r4 = *(u8 *)(r1 + 0)\n{place}\n{MOVE}r5 = *(u8 *)(r1 + 0)\nif r5 != 9 goto out\nr0 = 2")
}

#[test]
fn bytes_at_one_unknown_place_are_the_same() {
    assert!(are_equal(
        &nine_at("r4 &= 15\nr4 += 2"),
        &nine_at("r4 += 2\nr4 -= 2\nr4 &= 15\nr4 |= 16\nr4 -= 14"),
        &[]
    ));
    // Twice, as a word and as bytes.
    let word = "r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nMOVE r5 = *(u16 *)(r1 + 3)\nif r5 == 0x0909 goto out\nr0 = 2";
    let bytes = "r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nMOVE r5 = *(u8 *)(r1 + 3)\nr2 = *(u8 *)(r1 + 4)\nif r5 != 9 goto pass\nif r2 == 9 goto out\npass:\nr0 = 2\nout:\nexit";
    assert!(are_equal(&moved(word), &moved(bytes), &[]));
}

#[test]
fn an_unknown_place_may_be_a_known_one() {
    // At 3 it is the byte that is read there by its number.
    let only = |read: &str| {
        format!(
            "r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nif r4 != 3 goto out\n{}\nif r5 != 9 goto out\nr0 = 2",
            moved(read)
        )
    };
    assert!(are_equal(&only("MOVE r5 = *(u8 *)(r1 + 0)"), &only("r2 = r1\nMOVE r5 = *(u8 *)(r2 + 3)"), &[]));
    assert!(!are_equal(&only("MOVE r5 = *(u8 *)(r1 + 0)"), &only("r2 = r1\nMOVE r5 = *(u8 *)(r2 + 4)"), &[]));
    // Nothing passes: a byte is not 9 and 8.
    let both = "r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nr2 = *(u8 *)(r1 + 3)\nr3 = r4\nMOVE r5 = *(u8 *)(r1 + 0)\n\
                if r2 != 8 goto out\nif r5 != 9 goto out\nif r3 != 3 goto out\nr0 = 2";
    assert!(are_equal(&moved(both), "r0 = 1", &[]));
    // The byte that says where is itself one.
    let own = "r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nr3 = r4\nMOVE r5 = *(u8 *)(r1 + 0)\nif r3 != 0 goto out\nif r5 == 7 goto out\nr0 = 2";
    assert!(!are_equal(&moved(own), "r0 = 2", &[]));
}

#[test]
fn unknown_places_are_told_apart() {
    let found = compared(&nine_at("r4 &= 15"), &nine_at("r4 &= 15\nr4 += 1"), &[]);
    assert_ne!(found.found[0].old.verdict, found.found[0].new.verdict);
    assert!(!are_equal(&nine_at("r4 &= 15"), &nine_at("r4 &= 7"), &[]));
    // One place in 16.
    assert!(!are_equal(&nine_at("r4 &= 15"), &nine_at("r4 &= 15\nif r4 != 11 goto on\nr4 = 12\non:"), &[]));
}

#[test]
fn what_was_written_may_be_read_at_an_unknown_place() {
    let read = moved("r4 = *(u8 *)(r1 + 0)\nr4 &= 15\nr2 = r1\nMOVE");
    let before = format!("{read}r5 = *(u8 *)(r1 + 1)\n*(u8 *)(r2 + 5) = 9\nif r5 != 9 goto out\nr0 = 2");
    let after = format!("{read}*(u8 *)(r2 + 5) = 9\nr5 = *(u8 *)(r1 + 1)\nif r5 != 9 goto out\nr0 = 2");
    assert!(are_equal(&before, &before, &[]) && are_equal(&after, &after, &[]));
    let found = compared(&before, &after, &[]);
    assert_eq!(found.found[0].old.input.packet[0] & 15, 4);
}

#[test]
fn a_tag_that_is_pushed_is_compared() {
    let push = |tci: &str| {
        let text = format!("r2 = 0x81\nr3 = {tci}\ncall 18\nif r0 != 0 goto out\nr0 = 0");
        super::object(paceline::ProgramKind::SchedCls, &text, Vec::new())
    };
    let told = |old: &str, new: &str| {
        let (old, new) = (push(old), push(new));
        let sides = ((&old, &old.programs()[0]), (&new, &new.programs()[0]));
        differences_of_paths(sides.0, sides.1, &Options::default(), 10, &mut |_| {}).unwrap()
    };
    assert!(told("7", "7").is_complete() && told("7", "7").found.is_empty());
    assert!(!told("7", "8").is_complete(), "another tag");
}
