//! Two programs whose paths differ in numbers alone, with products of many bits, and with arrays to which neither writes: what is assumed of them may
//! neither hide a difference, nor make one.

use paceline_spec::MapSpec;

use super::generate_joined::{are_equal, compared};
use super::{LOOK_UP, array};

/// Returns 2 if the place of the greatest of four bytes is `wanted`, that of the last one of several that are the greatest if `or_equal`.
fn greatest(rounds: u32, skips: &str, wanted: u32) -> String {
    format!(
        "r4 = 0\nr5 = 0\nr8 = 9\nagain:\nr2 = *(u8 *)(r1 + 0)\nif {skips} goto next\nr5 = r2\nr8 = r4\nnext:\nr1 += 1\nr4 += 1\nif r4 < {rounds} goto again\n\
         r0 = 1\nif r8 != {wanted} goto out\nr0 = 2"
    )
}

#[test]
fn numbers_are_chosen_by_the_way_through_a_loop() {
    let last = greatest(4, "r2 < r5", 2);
    assert!(are_equal(&last, &last, &[]));
    assert!(are_equal(&last, &greatest(4, "r5 > r2", 2), &[]));
    // The first of those that are equal.
    assert!(!are_equal(&last, &greatest(4, "r2 <= r5", 2), &[]));
    assert!(!are_equal(&last, &greatest(5, "r2 < r5", 2), &[]));
    assert!(!are_equal(&last, &greatest(4, "r2 < r5", 3), &[]));
}

#[test]
fn numbers_that_look_the_same_are_told_apart() {
    // 0 and 1 are their squares.
    let last = |number: &str| {
        format!(
            "r4 = 0\nr5 = 0\nagain:\nr2 = *(u8 *)(r1 + 0)\nif r2 > 99 goto next\nr5 = r2\n{number}\nnext:\nr1 += 1\nr4 += 1\nif r4 < 3 goto again\nr0 = r5"
        )
    };
    assert!(are_equal(&last("r5 += 1"), &last("r5 -= 2\nr5 += 3"), &[]));
    assert!(!are_equal(&last(""), &last("r5 *= r2"), &[]));
}

#[test]
fn numbers_on_stacks_and_of_callers_are_chosen() {
    let sum = |add: &str, last: &str| {
        format!(
            "r7 = 0\nr8 = 0\n*(u64 *)(r10 - 8) = 0\nr9 = r1\nagain:\nr4 = *(u8 *)(r9 + 0)\nif r4 > 5 goto next\nr5 = *(u64 *)(r10 - 8)\nr5 += r4\n{add}\n\
             *(u64 *)(r10 - 8) = r5\nr7 += 3\nnext:\nr9 += 1\nr8 += 1\ncall f\nif r8 < 4 goto again\nr0 = *(u64 *)(r10 - 8)\nr0 += r7\n{last}\nout:\nexit\n\
             f:\nr6 = 0\nturn:\nr6 += 1\nr7 = 2\nr0 = 0\nif r6 < 2 goto turn\nexit"
        )
    };
    assert!(are_equal(&sum("r5 += 1", ""), &sum("r5 -= -1", ""), &[]));
    assert!(!are_equal(&sum("r5 += 1", ""), &sum("", ""), &[]));
    assert!(!are_equal(&sum("", ""), &sum("", "if r0 != 27 goto out\nr0 = 26"), &[]));
}

#[test]
fn what_others_read_of_a_stack_stays() {
    // A function, a callback, and a helper, behind a place where two ways come together.
    let of_function = |value: u32| {
        format!(
            "r2 = *(u8 *)(r1 + 0)\n*(u64 *)(r10 - 8) = {value}\nr1 = r10\nr1 += -8\ncall f\nout:\nexit\n\
             f:\nr0 = 0\nif r2 > 5 goto more\nr0 = 0\nmore:\nr0 = *(u64 *)(r1 + 0)\nexit"
        )
    };
    let of_callback = |value: u32| {
        format!(
            "r2 = *(u8 *)(r1 + 0)\n*(u64 *)(r10 - 16) = r2\n*(u64 *)(r10 - 8) = {value}\nr1 = 2\nr2 = subprog[f]\nr3 = r10\nr3 += -16\nr4 = 0\ncall 181\n\
             r0 = *(u64 *)(r10 - 8)\nout:\nexit\n\
             f:\nr3 = *(u64 *)(r2 + 0)\nr0 = 0\nif r3 > 5 goto more\nr0 = 0\nmore:\nr3 = *(u64 *)(r2 + 8)\nr3 += 1\n*(u64 *)(r2 + 8) = r3\nexit"
        )
    };
    let of_helper = |value: u32| {
        format!(
            "r4 = *(u8 *)(r1 + 0)\n*(u32 *)(r10 - 4) = {value}\nif r4 > 5 goto more\nr4 = 1\nmore:\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto out\n\
             r0 = *(u8 *)(r0 + 0)"
        )
    };
    for (text, maps) in
        [(of_function as fn(u32) -> String, vec![]), (of_callback, vec![]), (of_helper, vec![array()])]
    {
        assert!(are_equal(&text(1), &text(1), &maps));
        assert!(!are_equal(&text(1), &text(2), &maps));
    }
}

/// The product of four bytes of the packet.
const PRODUCT: &str = "r4 = *(u32 *)(r1 + 0)\nw4 *= 0x85ebca6b\n";

#[test]
fn products_of_the_same_factors_are_the_same() {
    let hash = |first: &str, factor: &str| {
        format!(
            "r4 = *(u32 *)(r1 + 0)\nr5 = *(u32 *)(r1 + 4)\n{first}\nw4 *= {factor}\nr5 = r4\nw5 >>= 13\nw4 ^= w5\nw4 *= 0xc2b2ae35\n*(u32 *)(r1 + 8) = r4\nr0 = 2"
        )
    };
    let right = hash("w4 ^= w5", "0x85ebca6b");
    assert!(are_equal(&right, &hash("w5 ^= w4\nw4 = w5", "0x85ebca6b"), &[]));
    assert!(!are_equal(&right, &hash("w4 ^= w5", "0x85ebca6d"), &[]));
    assert!(!are_equal(&right, &hash("w4 |= w5", "0x85ebca6b"), &[]));
}

#[test]
fn products_are_those_of_their_factors() {
    let is = |number: u32| format!("{PRODUCT}r0 = 1\nif w4 != {} goto out\nr0 = 2", number.cast_signed());
    let was = |number: u32| format!("r4 = *(u32 *)(r1 + 0)\nr0 = 1\nif w4 != {number} goto out\nr0 = 2");
    assert!(are_equal(&is(12_345_u32.wrapping_mul(0x85eb_ca6b)), &was(12_345), &[]));
    assert!(!are_equal(&is(12_345_u32.wrapping_mul(0x85eb_ca6b)), &was(12_346), &[]));
    // A number with which it is told: its product is the one of one number alone.
    let found = compared(&is(77_u32.wrapping_mul(0x85eb_ca6b)), "r0 = 1", &[]);
    assert_eq!(found.found[0].old.input.packet[..4], 77_u32.to_le_bytes());
}

/// Writes the first byte of the array's value at the index `r7`, zero if there is none, to the packet at an offset.
fn value_of(index: &str, offset: u32) -> String {
    format!(
        "r9 = r1\n{index}\n*(u32 *)(r10 - 4) = r7\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nr3 = 0\nif r0 == 0 goto none{offset}\nr3 = *(u8 *)(r0 + 0)\n\
         none{offset}:\nr1 = r9\n*(u8 *)(r1 + {offset}) = r3\n"
    )
}

#[test]
fn values_at_the_same_index_are_the_same() {
    let first = value_of("r7 = *(u8 *)(r1 + 0)", 8);
    let maps = [array()];
    // At one index by another computation, and with a condition alone.
    let other = value_of("r7 = *(u8 *)(r1 + 0)\nr7 += 4\nr7 -= 4", 8);
    assert!(are_equal(&format!("{first}r0 = 2"), &format!("{other}r0 = 2"), &maps));
    let second = value_of("r7 = *(u8 *)(r1 + 1)", 8);
    let same = "r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\nr0 = 2\nif r4 != r5 goto out\n";
    assert!(are_equal(&format!("{same}{first}r0 = 2"), &format!("{same}{second}r0 = 2"), &maps));
    let found = compared(&format!("{first}r0 = 2"), &format!("{second}r0 = 2"), &maps);
    let input = &found.found[0].old.input;
    assert!(!input.maps.is_empty(), "elements tell them apart: {input:?}");
}

#[test]
fn elements_that_a_way_does_not_ask_for_are_not_given() {
    // The first index is beyond the array where the programs differ.
    let last = |end: &str| {
        format!(
            "r9 = r1\nr8 = 7\nr6 = 0\nagain:\nr7 = *(u8 *)(r9 + 0)\n*(u32 *)(r10 - 4) = r7\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto next\n\
             r3 = *(u8 *)(r0 + 0)\nif r3 == 0 goto next\nr8 = r6\nnext:\nif r6 != 0 goto other\nr5 = r7\n*(u64 *)(r10 - 16) = r5\nother:\nr9 += 1\nr6 += 1\n\
             if r6 < 3 goto again\nr5 = *(u64 *)(r10 - 16)\nr0 = r8\nif r5 != 200 goto out\nif r8 != 2 goto out\n{end}"
        )
    };
    assert!(are_equal(&last("r0 = 3"), &last("r0 += 1"), &[array()]));
    assert!(!are_equal(&last("r0 = 3"), &last("r0 = 4"), &[array()]));
}

#[test]
fn values_that_are_written_are_not_fixed() {
    let read = "if r0 == 0 goto out\nr3 = *(u8 *)(r0 + 0)\n";
    let then = "r4 = *(u8 *)(r0 + 0)\nr0 = 1\nif r3 == r4 goto out\nr0 = 2";
    // By a store, an atomic operation, a helper that writes to memory, a function, and an update.
    let writes = [
        "*(u8 *)(r0 + 0) = 7",
        "r5 = 1\nlock *(u64 *)(r0 + 0) += r5",
        "r7 = r0\nr1 = r6\nr2 = 0\nr3 = r0\nr4 = 4\ncall 189\nr3 = 7\nr0 = r7",
        "r7 = r0\n*(u8 *)(r10 - 8) = r3\nr4 = 7\n*(u64 *)(r10 - 16) = r4\nr2 = r10\nr2 += -4\nr3 = r10\nr3 += -16\nr4 = 0\nr1 = map[0] ll\ncall 2\nr3 = *(u8 *)(r10 - 8)\nr0 = r7",
    ];
    let maps: [MapSpec; 1] = [array()];
    for write in writes {
        let old = format!("{LOOK_UP}{read}{then}");
        let new = format!("{LOOK_UP}{read}{write}\n{then}");
        assert!(are_equal(&new, &new, &maps), "{write}");
        assert!(!are_equal(&old, &new, &maps), "{write}");
        let never = format!("{LOOK_UP}{read}{write}\nr0 = 1");
        assert!(!are_equal(&new, &never, &maps), "{write}");
    }
    let called = |value: u32| {
        format!(
            "{LOOK_UP}{read}r7 = r0\nr8 = r3\nr1 = r0\ncall f\nr0 = r7\nr3 = r8\n{then}\nout:\nexit\nf:\nr2 = {value}\n*(u8 *)(r1 + 0) = r2\nr0 = 0\nexit"
        )
    };
    assert!(are_equal(&called(7), &called(7), &maps));
    assert!(!are_equal(&called(7), &called(8), &maps));
}
