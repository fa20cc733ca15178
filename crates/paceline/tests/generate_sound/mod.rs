//! Sides that some run takes, although most runs do not: none of them is called unreachable.

use std::collections::BTreeMap;
use std::time::Duration;

use paceline::generate::{Generated, Goal, Options, Side, generate};
use paceline::isa::Insn;
use paceline::{Object, ProgramKind};
use paceline_spec::{InitialValue, MapKind, MapSpec};

use super::{LOOK_UP, array, counts, generated, hash, object, xdp};

/// What became of each side of the last jump to `out`, not taken and taken: `reached`, `unreachable`, or the reason why it was given up.
fn last(object: &Object) -> [String; 2] {
    fates(object, &generated(object))
}

fn fates(object: &Object, generated: &Generated) -> [String; 2] {
    let program = paceline::isa::decode(&object.programs()[0].insns).unwrap();
    let jumps = program.iter().filter(|(_, insn)| matches!(insn, Insn::JumpIf { .. }));
    fates_at(generated, jumps.map(|(slot, _)| slot).last().unwrap())
}

pub(super) fn fates_at(generated: &Generated, slot: usize) -> [String; 2] {
    [false, true].map(|taken| {
        let side = Goal::Side(Side { slot, taken });
        let given_up: BTreeMap<_, _> =
            generated.given_up.iter().map(|(goal, place)| (*goal, place.why.to_string())).collect();
        match () {
            () if generated.reached.contains_key(&side) => "reached".to_owned(),
            () if generated.unreachable.contains_key(&side) => "unreachable".to_owned(),
            () => given_up.get(&side).cloned().unwrap_or_default(),
        }
    })
}

/// An update of `map[0]` with a key, and what it returns in `r0`.
fn update(key: u32, flags: u32) -> String {
    format!(
        "
        *(u32 *)(r10 - 4) = {key}
        *(u64 *)(r10 - 16) = 0
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = {flags}
        r1 = map[0] ll
        call 2"
    )
}

fn look_up(key: u32) -> String {
    format!("*(u32 *)(r10 - 4) = {key}\nr2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 1")
}

fn of_entries(kind: MapKind, entries: u32) -> MapSpec {
    MapSpec::new("few", kind, 4, 8, entries)
}

#[test]
fn the_second_insertion_finds_a_full_map() {
    let text = format!("{}\nif r0 != 0 goto out\n{}\nif r0 != 0 goto out", update(1, 0), update(2, 0));
    let object = xdp(&text, vec![hash()]);
    let known = generated(&object);
    assert_eq!(fates(&object, &known), ["reached", "reached"]);
    // Seven others were there, or one of the keys and all others but one.
    let elements = known.reached.values().map(|confirmed| confirmed.input.maps.get(&0).map_or(0, Vec::len));
    assert!(elements.clone().any(|count| count == 7) && elements.clone().any(|count| count == 8));
    // Where one element fits, the second one never does, unless it is there.
    assert_eq!(last(&xdp(&text, vec![of_entries(MapKind::Hash, 1)])), ["unreachable", "reached"]);
    let is_there = format!("{}\nif r0 == 0 goto out\n{text}", look_up(2));
    assert_eq!(last(&xdp(&is_there, vec![of_entries(MapKind::Hash, 1)])), ["unreachable", "unreachable"]);
}

#[test]
fn a_removal_makes_room() {
    let remove = "r2 = r10\nr2 += -4\nr1 = map[0] ll\ncall 3\nif r0 != 0 goto out";
    let full = format!("{}\nif r0 == 0 goto out\n{}\nif r0 == 0 goto out", update(1, 0), look_up(2));
    let text = format!("{full}\n{remove}\n{}\nif r0 != 0 goto out", update(1, 0));
    assert_eq!(last(&xdp(&text, vec![hash()])), ["reached", "unreachable"]);
}

#[test]
fn an_insertion_may_remove_another_element() {
    for entries in [1, 8] {
        let text = format!("{}\n{}\n{}\nif r0 == 0 goto out", update(1, 0), update(2, 0), look_up(1));
        let [there, gone] = last(&xdp(&text, vec![of_entries(MapKind::LruHash, entries)]));
        assert_ne!(gone, "unreachable", "{entries}");
        assert_eq!(there == "reached", entries == 8, "{there}");
        // The newest one is there.
        let text = format!("{}\n{}\nif r0 == 0 goto out", update(2, 0), look_up(2));
        assert_eq!(
            last(&xdp(&text, vec![of_entries(MapKind::LruHash, entries)])),
            ["reached", "unreachable"]
        );
    }
}

#[test]
fn many_updates_may_fail() {
    let times = |count| (0..count).map(|_| update(1, 0)).collect::<String>() + "\nif r0 != 0 goto out";
    let first = update(1, 0) + "\nif r0 != 0 goto out";
    let of = |count| last(&xdp(&format!("{first}{}", times(count)), vec![hash()]))[1].clone();
    assert_eq!(of(2), "unreachable");
    assert!(of(40).contains("after so many others"), "{}", of(40));
}

pub(super) fn programs(given: &[u32]) -> MapSpec {
    let mut map = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4);
    let program = InitialValue::Program("test".to_owned());
    map.contents = given.iter().map(|index| (index.to_ne_bytes().to_vec(), program.clone())).collect();
    map
}

const TAIL_CALL: &str = "r7 = *(u8 *)(r1 + 0)\nr1 = r6\nr2 = map[0] ll\nr3 = 1\ncall 12\nr0 = 1";

/// The result of a called program is that of the function.
#[test]
fn a_tail_call_in_a_function_may_return_anything() {
    let text = "
        r1 = r6
        call other
        if r0 == 5 goto out
    out:
        exit
    other:
        r2 = map[0] ll
        r3 = 1
        call 12
        r0 = 1
        exit";
    for given in [&[][..], &[1]] {
        let [other, five] = last(&xdp(text, vec![programs(given)]));
        assert_eq!(other == "reached", given.is_empty(), "{other}");
        assert!(five.contains("bpf_tail_call"), "{five}");
    }
    // An index past the array's end calls nothing.
    let past = text.replace("r3 = 1", "r3 = 4");
    assert_eq!(last(&xdp(&past, vec![programs(&[])])), ["reached", "unreachable"]);
}

/// User space may have removed the program, or there were too many calls before.
#[test]
fn a_tail_call_may_fail() {
    let text = format!("{TAIL_CALL}\nif r7 == 5 goto out");
    for (given, expected) in [(&[][..], "reached"), (&[1], "it needs a tail call that fails")] {
        assert_eq!(last(&xdp(&text, vec![programs(given)])), [expected, expected]);
    }
}

#[test]
fn low_halves_of_addresses_are_compared() {
    let text = "
        r7 = *(u32 *)(r6 + 8)
        r8 = *(u32 *)(r6 + 0)
        if w7 == w8 goto out";
    assert_eq!(last(&xdp(text, vec![])), ["unreachable", "reached"]);
    let null = "r8 = *(u32 *)(r6 + 0)\nif w8 == 0 goto out";
    assert_eq!(last(&xdp(null, vec![])), ["reached", "unreachable"]);
}

/// The value of one element may begin where that of another one ends.
#[test]
fn addresses_of_two_regions_may_be_equal() {
    let text = format!(
        "{}
        if r0 == 0 goto out
        r7 = r0
        {}
        if r0 == 0 goto out
        r7 += 8
        if r7 == r0 goto out",
        look_up(0),
        look_up(1),
    );
    let [other, equal] = last(&xdp(&text, vec![array()]));
    assert!(other != "unreachable" && equal != "unreachable", "{other} {equal}");
}

#[test]
fn clocks_go_on() {
    let twice = "call 5\nr7 = r0\ncall 5\n";
    let [same, later] = last(&xdp(&format!("{twice}if r0 != r7 goto out"), vec![]));
    assert_eq!((same.as_str(), later.contains("clocks")), ("reached", true), "{later}");
    assert_eq!(last(&xdp(&format!("{twice}if r0 < r7 goto out"), vec![])), ["reached", "unreachable"]);
    // TAI may be set, and differs from the others.
    let tai = twice.replace("call 5", "call 208");
    assert!(last(&xdp(&format!("{tai}if r0 < r7 goto out"), vec![]))[1].contains("clocks"));
    let two = "call 5\nr7 = r0\ncall 208\nif r0 != r7 goto out";
    assert!(last(&xdp(two, vec![]))[1].contains("clocks"));
}

#[test]
fn times_have_no_bound() {
    let text = "call 5\nr0 >>= 60\nif r0 == 7 goto out";
    let object = xdp(text, vec![]);
    let known = generated(&object);
    assert_eq!(fates(&object, &known), ["reached", "reached"]);
    assert!(known.reached.values().any(|confirmed| confirmed.input.time_ns >> 60 == 7));
}

/// What bpf_trace_printk returns is no random number.
#[test]
fn random_numbers_are_counted_alone() {
    let text = "
        *(u64 *)(r10 - 8) = 0x61
        r1 = r10
        r1 += -8
        r2 = 2
        call 6
        call 7
        r0 &= 63
        if r0 == 17 goto out";
    assert_eq!(counts(text, vec![]), [4, 0, 0]);
}

fn classifier(text: &str) -> Object {
    let start = "r6 = r1\nr0 = 1\n";
    object(ProgramKind::SchedCls, &format!("{start}{text}"), vec![])
}

#[test]
fn bytes_outside_of_a_packet_are_a_fault_for_classifiers() {
    let store = "
        *(u32 *)(r10 - 4) = 1
        r1 = r6
        r2 = 4000
        r3 = r10
        r3 += -4
        r4 = 4
        r5 = 0
        call 9
        ";
    assert_eq!(last(&classifier(&format!("{store}if r0 == -14 goto out"))), ["unreachable", "reached"]);
}

#[test]
fn time_stamps_of_classifiers_have_64_bits() {
    let [zero, other] = last(&classifier("r7 = *(u64 *)(r6 + 152)\nr7 >>= 40\nif r7 != 0 goto out"));
    assert_eq!((zero.as_str(), other.as_str()), ("reached", "it needs a number in the context"));
}

/// An earlier program may leave numbers in `cb`.
#[test]
fn own_memory_of_classifiers_may_hold_anything() {
    let [zero, other] = last(&classifier("r7 = *(u32 *)(r6 + 52)\nif r7 != 0 goto out"));
    assert_eq!((zero.as_str(), other.as_str()), ("reached", "it needs a number in the context"));
    let set = "r7 = 9\n*(u32 *)(r6 + 52) = r7\nr7 = *(u32 *)(r6 + 52)\nif r7 == 9 goto out";
    assert_eq!(last(&classifier(set)), ["unreachable", "reached"]);
}

#[test]
fn buffers_differ() {
    let grow = "r1 = r6\nr2 = 3000\ncall 65\nif r0 != 0 goto out";
    assert_eq!(last(&xdp(grow, vec![])), ["reached", "reached"]);
    let far = "r1 = r6\nr2 = 4000\ncall 65\nif r0 == 0 goto out";
    assert_eq!(last(&xdp(far, vec![])), ["reached", "it needs a buffer of another size"]);
}

#[test]
fn limits_of_time_are_kept() {
    let text = format!("{LOOK_UP}\nif r0 == 0 goto out");
    let object = xdp(&text, vec![hash()]);
    let of = |time| {
        let options = Options { time, ..Options::default() };
        generate(&object, &object.programs()[0], &options).unwrap()
    };
    assert_eq!(of(Duration::MAX).reached.len(), 4);
    let none = of(Duration::ZERO);
    assert_eq!((none.reached.len(), none.unreachable.len(), none.given_up.len()), (0, 0, 4));
}

/// Ten thousand operations in a straight line, of which the solver may say nothing in its time, need no deep stack.
#[test]
fn long_programs_end() {
    let steps = "r4 += r5\nr4 ^= r7\n".repeat(5_000);
    let start = "r4 = *(u32 *)(r1 + 0)\nr5 = *(u32 *)(r1 + 4)\nr7 = *(u32 *)(r1 + 8)\n";
    let object = xdp(&format!("{start}{steps}r4 >>= 7\nr4 &= 255\nif r4 == 77 goto out"), vec![]);
    let options = Options { time: Duration::from_secs(3), ..Options::default() };
    let begun = std::time::Instant::now();
    let known = generate(&object, &object.programs()[0], &options).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(known.reached.len() + known.given_up.len(), 4, "{known:?}");
    assert!(known.failures.is_empty());
}

#[test]
fn an_element_of_a_trie_may_match_two_keys() {
    // What is found with a prefix of no bits would have been found before.
    let look_up = |bits: u32| {
        format!(
            "*(u32 *)(r10 - 8) = {bits}\nr2 = r10\nr2 += -8\nr1 = map[0] ll\ncall 1\nif r0 == 0 goto none{bits}\n"
        )
    };
    let text = format!(
        "r7 = *(u32 *)(r1 + 0)\n*(u32 *)(r10 - 4) = r7\n{}r0 = 1\nexit\nnone32:\n{}r0 = 2\nexit\nnone0:\nr0 = 1\nout:\nexit",
        look_up(32),
        look_up(0)
    );
    let mut trie = MapSpec::new("trie", MapKind::LpmTrie, 8, 8, 4);
    trie.flags = paceline_spec::MapFlags::NO_PREALLOC;
    let [found, _] = last(&xdp(&text, vec![trie]));
    assert!(found.contains("a second look-up"), "{found}");
}

#[test]
fn records_may_not_fit_together() {
    let value =
        "*(u32 *)(r10 - 4) = 0\nr2 = r10\nr2 += -4\nr1 = map[1] ll\ncall 1\nif r0 == 0 goto out\nr7 = r0\n";
    let output = "r1 = map[0] ll\nr2 = r7\nr3 = 3000\nr4 = 0\ncall 130\nif r0 != 0 goto out\n";
    let ring = || MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let big = || MapSpec::new("big", MapKind::Array, 4, 3000, 1);
    let [once, _] = last(&xdp(&format!("{value}{output}"), vec![ring(), big()]));
    assert_eq!(once, "reached");
    let [twice, _] = last(&xdp(&format!("{value}{output}{output}"), vec![ring(), big()]));
    assert!(twice.contains("more records than fit together"), "{twice}");
}

/// A record of `size` bytes, or `out`; `text` uses it in `r7`, then it is given back by a helper.
fn record(size: u32, text: &str, back: u32) -> String {
    format!(
        "r8 = r1\nr1 = map[0] ll\nr2 = {size}\nr3 = 0\ncall 131\nif r0 == 0 goto out\nr7 = r0\n{text}\nr1 = r7\nr2 = 0\n\
         call {back}\nr1 = r8"
    )
}

#[test]
fn records_are_memory_until_they_are_given_back() {
    let ring = || MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let copied = "r4 = *(u64 *)(r8 + 0)\n*(u64 *)(r7 + 8) = r4\nr9 = *(u32 *)(r7 + 8)";
    for back in [132, 133] {
        let text = format!("{}\nr0 = 0\nif r9 == 0x1020304 goto out", record(16, copied, back));
        assert_eq!(last(&xdp(&text, vec![ring()])), ["reached", "reached"], "{back}");
        let text =
            format!("{}\nr0 = 0\nr4 = *(u32 *)(r8 + 0)\nif r9 != r4 goto out", record(16, copied, back));
        assert_eq!(last(&xdp(&text, vec![ring()])), ["reached", "unreachable"], "{back}");
    }
    // The bytes of an earlier record are not known.
    let stale = record(16, "r9 = *(u32 *)(r7 + 8)", 132);
    let [zero, other] = last(&xdp(&format!("{stale}\nr0 = 0\nif r9 != 0 goto out"), vec![ring()]));
    assert!(zero != "unreachable" && other.contains("what was in a ring buffer before"), "{zero} {other}");
}

#[test]
fn a_ring_without_room_gives_no_record() {
    let ring = || MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let reserve = |size: u32| {
        format!(
            "r1 = map[0] ll\nr2 = {size}\nr3 = 0\ncall 131\nif r0 != 0 goto use\nr0 = 2\ngoto out\nuse:\nr1 = r0\nr2 = 0\ncall 132\nr0 = 1\nout:\nexit"
        )
    };
    let fits = last(&xdp(&reserve(4080), vec![ring()]));
    assert!(fits[0].contains("a ring buffer without room") && fits[1] == "reached", "{fits:?}");
    assert_eq!(last(&xdp(&reserve(4088), vec![ring()])), ["reached", "unreachable"]);
    let one = record(3000, "r9 = 0", 132);
    let twice = last(&xdp(&format!("{one}\n{one}\nr0 = 0\nif r9 == 0 goto out"), vec![ring()]));
    assert!(twice[1].contains("more records than fit together"), "{twice:?}");
}

#[test]
fn maps_in_maps_are_those_of_the_object() {
    let maps = |kind: MapKind| {
        let mut outer = MapSpec::new("outer", kind, 4, 4, 4);
        outer.inner = Some(Box::new(MapSpec::new("inner", MapKind::Hash, 4, 8, 8)));
        outer.contents = vec![
            (1_u32.to_ne_bytes().to_vec(), InitialValue::Map(1)),
            (2_u32.to_ne_bytes().to_vec(), InitialValue::Map(2)),
        ];
        vec![
            outer,
            MapSpec::new("first", MapKind::Hash, 4, 8, 8),
            MapSpec::new("second", MapKind::Hash, 4, 8, 8),
        ]
    };
    // The value in the map of the packet's first byte.
    let text = |mask: u32, then: &str| {
        format!(
            "r8 = r1\nr4 = *(u8 *)(r8 + 0)\nr4 &= {mask}\n*(u32 *)(r10 - 4) = r4\nr2 = r10\nr2 += -4\nr1 = map[0] ll\n\
             call 1\nif r0 == 0 goto out\n*(u32 *)(r10 - 4) = 7\nr2 = r10\nr2 += -4\nr1 = r0\ncall 1\nif r0 == 0 goto out\n\
             r4 = *(u64 *)(r0 + 0)\nr0 = 2\n{then}"
        )
    };
    for kind in [MapKind::ArrayOfMaps, MapKind::HashOfMaps] {
        let found = last(&xdp(&text(3, "if r4 == 77 goto out"), maps(kind)));
        assert_eq!(found, ["reached", "reached"], "{kind}");
        // Other keys may have maps that user space puts there.
        let other = "r5 = *(u8 *)(r8 + 0)\nr5 &= 3\nif r5 == 3 goto out";
        let [_, found] = last(&xdp(&text(3, other), maps(kind)));
        assert!(found.contains("a map that user space puts there"), "{kind}: {found}");
    }
    let beyond = "r5 = *(u8 *)(r8 + 0)\nr5 &= 7\nif r5 == 5 goto out";
    let text = text(5, beyond).replace("r4 &= 5", "r4 &= 7\nr4 |= 4");
    let [_, found] = last(&xdp(&text, maps(MapKind::ArrayOfMaps)));
    assert_eq!(found, "unreachable", "an index beyond the map");
}
