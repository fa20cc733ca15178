//! Words of a stack in which two ways leave something else before they come together, pointers above all, and which are read behind: `diff` tells programs
//! apart that differ in such a word alone, `prove` proves what is true of it, and `generate` reaches the sides that it decides.

use std::time::Duration;

use paceline::Object;
use paceline::generate::{Differences, Options, differences_of_paths};
use paceline::isa::{Insn, decode};
use paceline::prove::{Property, holds, prove};
use paceline_spec::MapSpec;

use super::generate_joined::{are_equal, compared};
use super::generate_sound::fates_at;
use super::{array, generated, hash, xdp};

/// How ways come together: the byte of the packet that decides which was taken last, and the program.
pub(super) struct Shape {
    pub(super) name: &'static str,
    byte: u32,
    make: fn(&str, &str, &str) -> String,
}

/// Both ways of a branch: the packet is at `r9`, the byte that decides in `r7`.
fn branch(a: &str, b: &str) -> String {
    format!("r7 = *(u8 *)(r9 + 0)\nif r7 > 5 goto other\n{a}\ngoto then\nother:\n{b}\nthen:\n")
}

/// Ways come together outside of loops, in one, and behind one.
pub(super) const SHAPES: [Shape; 3] = [
    Shape { name: "straight", byte: 0, make: |a, b, read| format!("r9 = r1\n{}{read}", branch(a, b)) },
    Shape {
        name: "in a loop",
        byte: 1,
        make: |a, b, read| {
            format!("r9 = r1\nr8 = 0\nagain:\n{}{read}\nr9 += 1\nr8 += 1\nif r8 < 2 goto again", branch(a, b))
        },
    },
    Shape {
        name: "behind a loop",
        byte: 1,
        make: |a, b, read| {
            format!(
                "r9 = r1\nr8 = 0\nagain:\nr7 = *(u8 *)(r9 + 0)\nr9 += 1\nr8 += 1\nif r7 > 5 goto other\n{a}\nif r8 < 2 goto again\ngoto then\nother:\n{b}\n\
                 if r8 < 2 goto again\nthen:\n{read}"
            )
        },
    },
];

/// A program of two ways, of which one is to return 2 and the other 3.
pub(super) struct Case<'a> {
    pub(super) name: &'a str,
    /// What comes before the ways, with the packet at `r1` and the context in `r6`.
    pub(super) before: &'a str,
    pub(super) ways: [&'a str; 2],
    /// What is behind them, and leaves the result in `r0`.
    pub(super) read: &'a str,
    /// Whether that leaves something else than its result.
    pub(super) leaves_more: bool,
    pub(super) functions: &'a str,
    pub(super) maps: &'a [MapSpec],
    pub(super) object: fn(&str, Vec<MapSpec>) -> Object,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            name: "",
            before: "",
            ways: [""; 2],
            read: "",
            leaves_more: false,
            functions: "",
            maps: &[],
            object: xdp,
        }
    }
}

impl Case<'_> {
    fn program(&self, shape: &Shape, ways: [usize; 2], end: &str) -> Object {
        let [a, b] = ways.map(|way| self.ways[way]);
        let text = (shape.make)(a, b, self.read);
        let text = format!("{}\n{text}\n{end}\nout:\nexit\n{}", self.before, self.functions);
        (self.object)(&text, self.maps.to_vec())
    }

    /// A program that returns what is expected by the byte itself.
    fn expected(&self, shape: &Shape) -> Object {
        let byte = format!("r7 = *(u8 *)(r1 + {})", shape.byte);
        let text = format!("{}\n{byte}\nr0 = 2\nif r7 <= 5 goto out\nr0 = 3\nout:\nexit", self.before);
        xdp(&text, self.maps.to_vec())
    }

    pub(super) fn check(&self) {
        self.check_shapes(&SHAPES);
    }

    pub(super) fn check_shapes(&self, shapes: &[Shape]) {
        for shape in shapes {
            self.check_differences(shape);
            self.check_proofs(shape);
            self.check_sides(shape);
        }
    }

    fn check_differences(&self, shape: &Shape) {
        let about = format!("{}, {}", self.name, shape.name);
        let [same, swapped, first, second] =
            [[0, 1], [1, 0], [0, 0], [1, 1]].map(|ways| self.program(shape, ways, ""));
        let is_equal = |old: &Object, new: &Object| {
            let found = told(old, new);
            assert!(found.left.is_empty(), "{about}: {:?}", found.left);
            found.found.is_empty()
        };
        assert!(is_equal(&same, &same), "{about}: the same");
        let expected = self.expected(shape);
        let is_expected = || is_equal(&same, &expected) && is_equal(&expected, &same);
        assert!(self.leaves_more || is_expected(), "{about}: by the byte");
        for other in [&swapped, &first, &second] {
            assert!(!is_equal(&same, other) && !is_equal(other, &same), "{about}: another word");
        }
    }

    fn check_proofs(&self, shape: &Shape) {
        let object = self.program(shape, [0, 1], "");
        let byte = shape.byte;
        for (text, expected) in [
            (format!("in.len >= 32 and in[{byte}] <= 5 implies returns == 2"), true),
            (format!("in.len >= 32 and in[{byte}] > 5 implies returns == 3"), true),
            ("in.len >= 32 implies returns == 2".to_owned(), false),
            ("in.len >= 32 implies returns == 3".to_owned(), false),
        ] {
            assert_eq!(is_proved(&object, &text), expected, "{}, {}: {text}", self.name, shape.name);
        }
    }

    fn check_sides(&self, shape: &Shape) {
        let about = format!("{}, {}", self.name, shape.name);
        let either = "if r0 == 3 goto out\nif r0 == 2 goto out";
        assert_eq!(last(&self.program(shape, [0, 1], either)), ["unreachable", "reached"], "{about}");
        let with_byte = |value: u32, is: &str| {
            format!("if r0 != {value} goto done\nif r7 {is} 5 goto out\ndone:\nr0 = 1")
        };
        for (value, is) in [(2, ">"), (3, "<=")] {
            let object = self.program(shape, [0, 1], &with_byte(value, is));
            assert_eq!(last(&object), ["reached", "unreachable"], "{about}: {value}");
        }
    }
}

/// What became of the sides of the last jump outside of functions.
fn last(object: &Object) -> [String; 2] {
    let code = decode(&object.programs()[0].insns).unwrap();
    let functions = code.iter().filter_map(|(slot, insn)| insn.subprogram_target(slot));
    let end = functions.min().map_or(usize::MAX, |start| start as usize);
    let jumps = code.iter().filter(|(slot, insn)| matches!(insn, Insn::JumpIf { .. }) && *slot < end);
    fates_at(&generated(object), jumps.map(|(slot, _)| slot).last().unwrap())
}

/// Runs of two programs that differ, each of which was run.
pub(super) fn told(old: &Object, new: &Object) -> Differences {
    let options = Options { time: Duration::from_secs(30), ..Options::default() };
    let sides = ((old, &old.programs()[0]), (new, &new.programs()[0]));
    let found = differences_of_paths(sides.0, sides.1, &options, 10, &mut |_| {}).unwrap();
    assert!(found.unconfirmed.is_empty(), "{:?}", found.unconfirmed);
    found
}

/// Whether a property is proved; if it is not, there is a run with which it does not hold.
pub(super) fn is_proved(object: &Object, text: &str) -> bool {
    let property: Property = text.parse().unwrap();
    let options = Options { time: Duration::from_secs(30), ..Default::default() };
    let proof = prove(object, &object.programs()[0], &property, &options, 3, &mut |_| {}).unwrap();
    assert!(proof.unconfirmed.is_empty(), "{text}: {:?}", proof.unconfirmed);
    assert!(proof.refuting.iter().all(|confirmed| !holds(object, &property, confirmed)), "{text}");
    assert!(proof.is_complete() || !proof.refuting.is_empty(), "{text}: {proof:?}");
    proof.refuting.is_empty()
}

/// The packet's bytes 8 and 12 are 2 and 3.
const IN_PACKET: &str =
    "r4 = 2\n*(u8 *)(r1 + 8) = r4\nr4 = 3\n*(u8 *)(r1 + 12) = r4\nr4 = 3\n*(u8 *)(r1 + 13) = r4";

/// The value of the array's second element, 3, is at the address in the word at -24.
const IN_MAP: &str = "
    *(u64 *)(r10 - 32) = r1
    *(u32 *)(r10 - 4) = 1
    r2 = r10
    r2 += -4
    r1 = map[0] ll
    call 1
    if r0 == 0 goto out
    r4 = 3
    *(u64 *)(r0 + 0) = r4
    *(u64 *)(r10 - 24) = r0
    r1 = *(u64 *)(r10 - 32)
    r4 = 2
    *(u8 *)(r1 + 8) = r4";

const FOLLOW: &str = "r5 = *(u64 *)(r10 - 16)\nr0 = *(u8 *)(r5 + 0)";

#[test]
fn pointers_to_other_places_of_the_packet() {
    Case {
        name: "offsets",
        before: &format!("{IN_PACKET}\n*(u64 *)(r10 - 40) = r1"),
        ways: [
            "r5 = *(u64 *)(r10 - 40)\nr5 += 8\n*(u64 *)(r10 - 16) = r5",
            "r5 = *(u64 *)(r10 - 40)\nr5 += 12\n*(u64 *)(r10 - 16) = r5",
        ],
        read: FOLLOW,
        ..Case::default()
    }
    .check();
}

#[test]
fn a_pointer_to_the_packet_and_one_to_a_map() {
    let maps = [array()];
    Case {
        name: "regions",
        before: IN_MAP,
        ways: [
            "r5 = *(u64 *)(r10 - 32)\nr5 += 8\n*(u64 *)(r10 - 16) = r5",
            "r5 = *(u64 *)(r10 - 24)\n*(u64 *)(r10 - 16) = r5",
        ],
        read: FOLLOW,
        maps: &maps,
        ..Case::default()
    }
    .check();
}

#[test]
fn a_pointer_and_a_number() {
    // Another word tells which it is.
    Case {
        name: "a number",
        before: &format!("{IN_PACKET}\n*(u64 *)(r10 - 40) = r1"),
        ways: [
            "r5 = *(u64 *)(r10 - 40)\nr5 += 8\n*(u64 *)(r10 - 16) = r5\n*(u64 *)(r10 - 48) = 0",
            "*(u64 *)(r10 - 16) = 3\n*(u64 *)(r10 - 48) = 1",
        ],
        read: "r4 = *(u64 *)(r10 - 48)\nr5 = *(u64 *)(r10 - 16)\nif r4 != 0 goto number\nr0 = *(u8 *)(r5 + 0)\ngoto done2\nnumber:\nr0 = r5\ndone2:",
        ..Case::default()
    }
    .check();
    // The word is tested for null instead.
    Case {
        name: "null",
        before: &format!("{IN_PACKET}\n*(u64 *)(r10 - 40) = r1"),
        ways: ["r5 = *(u64 *)(r10 - 40)\nr5 += 8\n*(u64 *)(r10 - 16) = r5", "*(u64 *)(r10 - 16) = 0"],
        read: "r5 = *(u64 *)(r10 - 16)\nr0 = 3\nif r5 == 0 goto null\nr0 = *(u8 *)(r5 + 0)\nnull:",
        ..Case::default()
    }
    .check();
}

#[test]
fn pointers_to_words_of_the_stack() {
    // Other words, and one whose value differs.
    Case {
        name: "words",
        before: "*(u64 *)(r10 - 24) = 2\n*(u64 *)(r10 - 32) = 3",
        ways: [
            "r5 = r10\nr5 += -24\n*(u64 *)(r10 - 16) = r5",
            "r5 = r10\nr5 += -32\n*(u64 *)(r10 - 16) = r5",
        ],
        read: FOLLOW,
        ..Case::default()
    }
    .check();
    Case {
        name: "values",
        before: "r5 = r10\nr5 += -24\n*(u64 *)(r10 - 16) = r5",
        ways: ["*(u64 *)(r10 - 24) = 2", "*(u64 *)(r10 - 24) = 3"],
        read: FOLLOW,
        ..Case::default()
    }
    .check();
    Case {
        name: "the stack and the packet",
        before: &format!("{IN_PACKET}\n*(u64 *)(r10 - 40) = r1\n*(u64 *)(r10 - 24) = 3"),
        ways: [
            "r5 = *(u64 *)(r10 - 40)\nr5 += 8\n*(u64 *)(r10 - 16) = r5",
            "r5 = r10\nr5 += -24\n*(u64 *)(r10 - 16) = r5",
        ],
        read: FOLLOW,
        ..Case::default()
    }
    .check();
}

#[test]
fn pointers_that_are_overwritten() {
    let pointer = "r5 = *(u64 *)(r10 - 40)\nr5 += 8\n*(u64 *)(r10 - 16) = r5\n";
    let before = format!("{IN_PACKET}\n*(u64 *)(r10 - 40) = r1");
    // By a number of as many bits on one way, by one of fewer bits on both.
    let whole = format!("{pointer}*(u64 *)(r10 - 16) = 3");
    Case {
        name: "whole",
        before: &before,
        ways: ["*(u64 *)(r10 - 16) = 2", &whole],
        read: "r0 = *(u64 *)(r10 - 16)",
        ..Case::default()
    }
    .check();
    for size in ["u32", "u16", "u8"] {
        for place in [16, 12] {
            let ways = [2, 3].map(|value| format!("{pointer}*({size} *)(r10 - {place}) = {value}"));
            Case {
                name: &format!("{size} at {place}"),
                before: &before,
                ways: [&ways[0], &ways[1]],
                read: &format!("r0 = *({size} *)(r10 - {place})"),
                ..Case::default()
            }
            .check();
        }
    }
}

#[test]
fn bytes_beside_those_that_are_overwritten_count() {
    // The other half of the word, behind where the ways come together.
    for (ways, place) in [(["2", "3"], 12), (["2", "3"], 10), (["0x200000000 ll", "0x300000000 ll"], 16)] {
        let ways = ways.map(|value| format!("r5 = {value}\n*(u64 *)(r10 - 16) = r5"));
        let shift = if place == 16 { "r0 >>= 32" } else { "" };
        let size = if place == 10 { 16 } else { 32 };
        Case {
            name: &format!("at {place}"),
            ways: [&ways[0], &ways[1]],
            read: &format!("if r7 > 9 goto over\nr5 = 1\nover:\n*(u{size} *)(r10 - {place}) = 0\nr0 = *(u64 *)(r10 - 16)\n{shift}"),
            ..Case::default()
        }
        .check();
    }
}

/// The address itself is not known: nothing is proved of it.
#[test]
fn bytes_of_a_pointer_are_given_up() {
    let text = |low: u32, read: &str| {
        format!(
            "r9 = r1\n{}{read}",
            branch(&format!("*(u64 *)(r10 - 16) = r9\n*(u32 *)(r10 - 16) = {low}"), "*(u64 *)(r10 - 16) = 0")
        )
    };
    for read in ["r0 = *(u32 *)(r10 - 12)", "r0 = *(u8 *)(r10 - 9)", "r0 = *(u64 *)(r10 - 16)"] {
        let [old, new] = [text(2, read), text(3, read)].map(|text| xdp(&text, vec![]));
        assert!(!told(&old, &new).is_complete() || !told(&old, &new).found.is_empty(), "{read}");
        assert!(!told(&old, &old).is_complete(), "{read}");
    }
}

#[test]
fn each_byte_of_a_word_counts() {
    for byte in 0..8_u64 {
        let way = |value: u64| format!("r5 = {} ll\n*(u64 *)(r10 - 16) = r5", value << (8 * byte));
        let name = format!("byte {byte}");
        let (first, second) = (way(2), way(3));
        let place = if cfg!(target_endian = "little") { 16 - byte } else { 9 + byte };
        Case {
            name: &name,
            ways: [&first, &second],
            read: &format!("r0 = *(u8 *)(r10 - {place})"),
            ..Case::default()
        }
        .check();
        // By the byte alone on one way, and within a word that is read as a whole.
        let alone = format!("*(u64 *)(r10 - 16) = 0\nr5 = 3\n*(u8 *)(r10 - {place}) = r5");
        Case {
            name: &name,
            ways: [&first, &alone],
            read: &format!("r0 = *(u64 *)(r10 - 16)\nr0 >>= {}", 8 * byte),
            ..Case::default()
        }
        .check();
        // No other byte does.
        let other = if place == 16 { 9 } else { 16 };
        let text = |ways: [&str; 2]| {
            format!("r9 = r1\n{}r0 = *(u8 *)(r10 - {other})\nr0 += 2", branch(ways[0], ways[1]))
        };
        assert!(are_equal(&text([&first, &second]), "r0 = 2", &[]), "{name}");
    }
}

#[test]
fn bytes_at_unknown_places_of_a_stack_count() {
    // One of eight bytes, of which one way writes another one.
    let text = |a: &str, b: &str| {
        format!(
            "r9 = r1\n*(u64 *)(r10 - 16) = 0\n{}r4 = *(u8 *)(r9 + 4)\nr4 &= 7\nr5 = r10\nr5 += -16\nr5 += r4\nr0 = *(u8 *)(r5 + 0)\nr0 += 1",
            branch(a, b)
        )
    };
    let at = |place: u32, value: u32| format!("*(u8 *)(r10 - {place}) = {value}");
    for place in [9, 12, 16] {
        let old = text(&at(place, 2), &at(place, 3));
        assert!(are_equal(&old, &old, &[]), "{place}");
        assert!(!are_equal(&old, &text(&at(place, 2), &at(place, 2)), &[]), "{place}");
        assert!(!are_equal(&old, &text(&at(place, 3), &at(place, 2)), &[]), "{place}");
        let found = compared(&old, &text(&at(place, 2), ""), &[]);
        assert_eq!(u32::from(found.found[0].old.input.packet[4] & 7), 16 - place);
    }
    // A store at such a place leaves the others.
    let stored = |value: u32| {
        format!(
            "r9 = r1\n{}r4 = *(u8 *)(r9 + 4)\nr4 &= 7\nr5 = r10\nr5 += -16\nr5 += r4\n*(u8 *)(r5 + 0) = 0\nr0 = *(u8 *)(r10 - 12)",
            branch(
                "*(u64 *)(r10 - 16) = 0\n*(u8 *)(r10 - 12) = 2",
                &format!("*(u64 *)(r10 - 16) = 0\n*(u8 *)(r10 - 12) = {value}")
            )
        )
    };
    assert!(are_equal(&stored(3), &stored(3), &[]));
    assert!(!are_equal(&stored(3), &stored(2), &[]));
}

#[test]
fn words_are_read_by_helpers() {
    let ways = ["*(u64 *)(r10 - 16) = 2", "*(u64 *)(r10 - 16) = 3"];
    let maps = [array()];
    let update = "
        *(u32 *)(r10 - 4) = 1
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 0
        r1 = map[0] ll
        call 2
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        r1 = r0
        r0 = 1
        if r1 == 0 goto done2
        r0 = *(u64 *)(r1 + 0)
    done2:";
    let reads = [
        ("a value", update),
        // The sum of four bytes.
        ("a sum", "r1 = 0\nr2 = 0\nr3 = r10\nr3 += -16\nr4 = 4\nr5 = 0\ncall 28"),
    ];
    for (name, read) in reads {
        let leaves_more = name == "a value";
        Case { name, ways, read, leaves_more, maps: &maps, ..Case::default() }.check();
    }
    // Bytes that a helper writes to the packet.
    let store = "r1 = r6\nr2 = 20\nr3 = r10\nr3 += -16\nr4 = 8\ncall 190\nr5 = *(u32 *)(r6 + 0)\nr4 = *(u32 *)(r6 + 4)\nr3 = r5\nr3 += 28\nr0 = 1\n\
                 if r3 > r4 goto done2\nr0 = *(u8 *)(r5 + 20)\ndone2:";
    Case { name: "the packet", ways, read: store, leaves_more: true, maps: &maps, ..Case::default() }.check();
}

/// Nothing else reads the word.
#[test]
fn words_are_read_by_atomic_operations() {
    let ways = ["*(u64 *)(r10 - 16) = 2", "*(u64 *)(r10 - 16) = 3"];
    let reads = [
        "r0 = 0\nr0 = atomic64_fetch_or((u64 *)(r10 - 16), r0)",
        "r0 = 7\nr0 = xchg_64(r10 - 16, r0)",
        "r0 = 2\nr4 = 1\nr0 = cmpxchg_64(r10 - 16, r0, r4)",
    ];
    for read in reads {
        Case { name: read, ways, read, ..Case::default() }.check();
    }
}

#[test]
fn keys_are_those_of_the_way() {
    // The elements at 2 and 3, of which the first one is updated.
    let text = |first: u32, second: u32| {
        format!(
            "r9 = r1\n{}r2 = r10\nr2 += -16\nr3 = r10\nr3 += -24\n*(u64 *)(r10 - 24) = 7\nr4 = 0\nr1 = map[0] ll\ncall 2\nr0 = 2",
            branch(&format!("*(u32 *)(r10 - 16) = {first}"), &format!("*(u32 *)(r10 - 16) = {second}"))
        )
    };
    for map in [array(), hash()] {
        let maps = [map];
        assert!(are_equal(&text(2, 3), &text(2, 3), &maps));
        assert!(!are_equal(&text(2, 3), &text(3, 2), &maps));
        assert!(!are_equal(&text(2, 3), &text(2, 2), &maps));
        assert!(!are_equal(&text(2, 3), &text(3, 3), &maps));
    }
}

/// Neither program writes to the array, so that its values are unknown until they decide.
#[test]
fn pointers_to_values_that_nobody_writes() {
    let look_up = |key: u32, place: u32| {
        format!(
            "*(u32 *)(r10 - 4) = {key}\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto out\n*(u64 *)(r10 - {place}) = r0\n"
        )
    };
    let before =
        format!("*(u64 *)(r10 - 40) = r1\n{}{}r1 = *(u64 *)(r10 - 40)\n", look_up(1, 24), look_up(2, 32));
    let way = |place: u32| format!("r5 = *(u64 *)(r10 - {place})\n*(u64 *)(r10 - 16) = r5");
    // The elements are looked up on the ways themselves, and tested for null behind them.
    let own = |key: u32| look_up(key, 16).replace("if r0 == 0 goto out\n", "");
    let tested = "r0 = 1\nr5 = *(u64 *)(r10 - 16)\nif r5 == 0 goto null\nr0 = *(u8 *)(r5 + 0)\nnull:";
    let maps = [array()];
    for shape in &SHAPES {
        for (before, ways, read) in [
            (&*before, [way(24), way(32)], FOLLOW),
            ("", [own(1), own(2)], tested),
            ("", [own(1), own(9)], tested),
        ] {
            let text = |a: usize, b: usize| {
                let text = (shape.make)(&ways[a], &ways[b], read);
                format!("{before}{text}")
            };
            assert!(are_equal(&text(0, 1), &text(0, 1), &maps), "{}", shape.name);
            for (a, b) in [(1, 0), (0, 0), (1, 1)] {
                assert!(!are_equal(&text(0, 1), &text(a, b), &maps), "{}: {a} {b}", shape.name);
            }
        }
    }
}
