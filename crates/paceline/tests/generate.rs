//! Inputs for programs whose sides are known, and for the examples.

mod generate_chosen;
mod generate_goals;
mod generate_joined;
mod generate_left;
mod generate_lent;
mod generate_route;
mod generate_sound;
mod generate_spilled;
mod generate_words;

use std::time::Duration;

use paceline::generate::{Generated, Options, generate};
use paceline::isa::assemble;
use paceline::{Object, ProgramKind, ProgramSpec, Verdict};
use paceline_spec::{MapKind, MapSpec, XdpAttach};

/// The packet's first 32 bytes are at `r1`, the context is in `r6`; `out` leaves.
const START: &str = "
    r6 = r1
    r2 = *(u32 *)(r1 + 4)
    r1 = *(u32 *)(r1 + 0)
    r3 = r1
    r3 += 32
    r0 = 1
    if r3 > r2 goto out
";

fn xdp(text: &str, maps: Vec<MapSpec>) -> Object {
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    object(kind, &format!("{START}{text}"), maps)
}

fn object(kind: ProgramKind, text: &str, maps: Vec<MapSpec>) -> Object {
    let end = if text.contains("out:") { "" } else { "\nout:\n    exit" };
    let code = assemble(&format!("{text}{end}"), &());
    let code = code.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut program = ProgramSpec::new("test", kind, code.encode().unwrap());
    program.license = "GPL".to_owned();
    let mut object = Object::of_program(program);
    object.specs_mut().maps = maps;
    object
}

fn generated(object: &Object) -> Generated {
    let options = Options { time: Duration::from_secs(30), ..Options::default() };
    let generated = generate(object, &object.programs()[0], &options).unwrap();
    assert!(generated.failures.is_empty(), "{:?}", generated.failures);
    generated
}

/// Sides that are reached and unreachable, those of the length check (both reached) included, and sides that are given up.
fn counts(text: &str, maps: Vec<MapSpec>) -> [usize; 3] {
    let generated = generated(&xdp(text, maps));
    [generated.reached.len(), generated.unreachable.len(), generated.given_up.len()]
}

fn hash() -> MapSpec {
    MapSpec::new("hash", MapKind::Hash, 4, 8, 8)
}

fn array() -> MapSpec {
    MapSpec::new("array", MapKind::Array, 4, 8, 4)
}

/// A look-up with the first four bytes of the packet as the key; its result in `r0`.
const LOOK_UP: &str = "
    r7 = *(u32 *)(r1 + 0)
    *(u32 *)(r10 - 4) = r7
    r2 = r10
    r2 += -4
    r1 = map[0] ll
    call 1
";

#[test]
fn numbers_are_solved_for() {
    // A square; an inverse modulo 2^32; bytes in network order; a sum with a carry.
    assert_eq!(counts("r4 = *(u8 *)(r1 + 0)\nr4 *= r4\nif r4 == 144 goto out", vec![]), [4, 0, 0]);
    assert_eq!(counts("r4 = *(u32 *)(r1 + 0)\nw4 *= 7\nif w4 == 1 goto out", vec![]), [4, 0, 0]);
    assert_eq!(
        counts("r4 = *(u32 *)(r1 + 0)\nr4 = be32 r4\nif r4 == 0x01020304 goto out", vec![]),
        [4, 0, 0]
    );
    assert_eq!(
        counts("r4 = *(u16 *)(r1 + 0)\nr5 = *(u16 *)(r1 + 2)\nr4 += r5\nif r4 == 0x10000 goto out", vec![]),
        [4, 0, 0]
    );
}

#[test]
fn contradictions_are_proved() {
    // Not below 3 after above 5; a square is not 2 modulo 4; a product of bytes is not 65,026.
    assert_eq!(
        counts("r4 = *(u8 *)(r1 + 0)\nif r4 <= 5 goto out\nr4 *= 2\nif r4 < 12 goto out", vec![]),
        [5, 1, 0]
    );
    assert_eq!(counts("r4 = *(u32 *)(r1 + 0)\nr4 *= r4\nr4 &= 3\nif r4 == 2 goto out", vec![]), [3, 1, 0]);
    assert_eq!(
        counts("r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\nr4 *= r5\nif r4 == 65026 goto out", vec![]),
        [3, 1, 0]
    );
}

#[test]
fn division_by_zero_is_zero() {
    assert_eq!(
        counts(
            "r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\nif r5 != 0 goto out\nr4 /= r5\nif r4 == 0 goto out",
            vec![]
        ),
        [5, 1, 0]
    );
    assert_eq!(
        counts(
            "r4 = *(u8 *)(r1 + 0)\nr5 = *(u8 *)(r1 + 1)\nif r5 != 0 goto out\nr4 %= r5\nif r4 == 9 goto out",
            vec![]
        ),
        [6, 0, 0]
    );
}

#[test]
fn loops_are_followed() {
    // The number of leading bytes that are 7 is 5.
    let text = "
        r4 = 0
    next:
        r5 = *(u8 *)(r1 + 0)
        if r5 != 7 goto done
        r1 += 1
        r4 += 1
        if r4 < 8 goto next
    done:
        if r4 == 5 goto out";
    assert_eq!(counts(text, vec![]), [8, 0, 0]);
}

#[test]
fn subprograms_are_followed() {
    let text = "
        r1 = *(u8 *)(r1 + 0)
        call double
        if r0 == 6 goto out
        if r0 == 7 goto out
    out:
        exit
    double:
        r0 = r1
        r0 += r1
        exit";
    assert_eq!(counts(text, vec![]), [5, 1, 0]);
}

#[test]
fn equal_keys_find_equal_elements() {
    let twice = format!(
        "{LOOK_UP}
        if r0 == 0 goto out
        r8 = *(u64 *)(r0 + 0)
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        if r0 == 0 goto out
        r9 = *(u64 *)(r0 + 0)
        if r8 != r9 goto out
        if r8 == 5 goto out"
    );
    assert_eq!(counts(&twice, vec![hash()]), [8, 2, 0], "the second look-up finds what the first one found");
}

#[test]
fn other_keys_may_find_nothing() {
    let other = format!(
        "r8 = *(u32 *)(r1 + 4)
        {LOOK_UP}
        if r0 == 0 goto out
        *(u32 *)(r10 - 4) = r8
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        if r0 != 0 goto out
        if r7 == r8 goto out"
    );
    assert_eq!(counts(&other, vec![hash()]), [7, 1, 0], "keys are not equal if only one is found");
}

#[test]
fn indices_are_found_within_arrays() {
    let text = format!("{LOOK_UP}\nif r0 != 0 goto out\nif r7 < 4 goto out");
    assert_eq!(counts(&text, vec![array()]), [5, 1, 0]);
}

#[test]
fn what_was_written_is_found() {
    let text = "
        r7 = *(u32 *)(r1 + 0)
        *(u32 *)(r10 - 4) = r7
        r8 = *(u8 *)(r1 + 4)
        *(u64 *)(r10 - 16) = r8
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 0
        r1 = map[0] ll
        call 2
        if r0 != 0 goto full
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        if r0 == 0 goto out
        r9 = *(u64 *)(r0 + 0)
        if r9 != r8 goto out
        r0 = 2
        goto out
    full:
        r0 = 3";
    let object = xdp(text, vec![hash()]);
    let generated = generated(&object);
    assert_eq!((generated.reached.len(), generated.unreachable.len()), (6, 2), "{generated:?}");
    // A map that is full has as many elements as fit.
    let full = generated.reached.values().find(|confirmed| confirmed.verdict == Verdict::Tx).unwrap();
    assert_eq!(full.input.maps[&0].len(), 8);
}

#[test]
fn time_and_random_numbers_are_chosen() {
    let time = "call 5\nr0 /= 1000000000\nif r0 == 100 goto out";
    assert_eq!(counts(time, vec![]), [4, 0, 0]);
    let random = "call 7\nr0 &= 63\nif r0 == 17 goto out\ncall 7\nif r0 == 18 goto out";
    let [reached, unreachable, given_up] = counts(random, vec![]);
    assert_eq!(
        (reached, unreachable, given_up),
        (5, 0, 1),
        "a number of 32 bits is not found among few seeds"
    );
}

#[test]
fn packets_that_move_keep_their_bytes() {
    let text = "
        r7 = *(u16 *)(r1 + 12)
        r1 = r6
        r2 = 4
        call 44
        if r0 != 0 goto out
        r2 = *(u32 *)(r6 + 4)
        r1 = *(u32 *)(r6 + 0)
        r3 = r1
        r3 += 14
        if r3 > r2 goto out
        r8 = *(u16 *)(r1 + 8)
        if r7 != r8 goto out
        if r8 == 0x88 goto out";
    assert_eq!(counts(text, vec![]), [7, 3, 0]);
}

#[test]
fn lengths_are_solved_for() {
    let text = "
        r7 = r2
        r7 -= r1
        if r7 == 777 goto out
        if r7 > 3520 goto out
        if r7 < 32 goto out";
    assert_eq!(counts(text, vec![]), [6, 2, 0]);
}

#[test]
fn what_is_not_modelled_is_given_up() {
    // bpf_xdp_adjust_meta is, bpf_get_route_realm is not; here bpf_check_mtu.
    let text = "
        r1 = r6
        r2 = 0
        *(u32 *)(r10 - 4) = 0
        r3 = r10
        r3 += -4
        r4 = 0
        r5 = 0
        call 163
        if r0 == 0 goto out";
    assert_eq!(counts(text, vec![]), [2, 0, 2]);
}

/// What bpf_trace_printk returns is the key: no input says what it is.
#[test]
fn keys_that_no_input_gives_are_given_up() {
    let text = "
        *(u64 *)(r10 - 8) = 0x61
        r1 = r10
        r1 += -8
        r2 = 2
        call 6
        *(u32 *)(r10 - 4) = r0
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        if r0 == 0 goto out";
    assert_eq!(counts(text, vec![hash()]), [3, 0, 1]);
}

/// A value is the key of another element.
#[test]
fn values_that_are_keys_are_given() {
    let text = format!(
        "{LOOK_UP}
        if r0 == 0 goto out
        r7 = *(u32 *)(r0 + 4)
        *(u32 *)(r10 - 4) = r7
        r2 = r10
        r2 += -4
        r1 = map[1] ll
        call 1
        if r0 == 0 goto out
        r8 = *(u8 *)(r0 + 0)
        if r8 == 3 goto out"
    );
    assert_eq!(counts(&text, vec![hash(), MapSpec { name: "other".to_owned(), ..hash() }]), [8, 0, 0]);
}

#[test]
fn the_same_inputs_come_again() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let object = Object::open(format!("{folder}/vlan.o")).unwrap();
    let inputs = || -> Vec<_> {
        generated(&object).reached.into_iter().map(|(side, confirmed)| (side, confirmed.input)).collect()
    };
    assert_eq!(inputs(), inputs());
}

/// Examples that take no more than some seconds without optimization.
#[test]
fn sides_of_the_examples_are_reached_or_proved_unreachable() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let (mut known, mut all) = (0, 0);
    for name in ["counter", "reflector", "sampler", "steering", "vlan"] {
        let object = Object::open(format!("{folder}/{name}.o")).unwrap();
        for program in object.programs() {
            let options = Options { time: Duration::from_secs(20), ..Options::default() };
            let generated = generate(&object, program, &options).unwrap();
            assert!(generated.failures.is_empty(), "{name}: {:?}", generated.failures);
            known += generated.reached.len() + generated.unreachable.len();
            all += generated.reached.len() + generated.unreachable.len() + generated.given_up.len();
        }
    }
    assert!(known * 100 >= all * 95, "{known} of {all}");
}
