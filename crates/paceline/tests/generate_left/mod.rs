//! Two programs that leave other metadata, redirect flags, events, traces, or something else for a program that they call.

use std::time::Duration;

use paceline::generate::{Confirmed, Differences, Handover, Options, differences_of_paths};
use paceline::{Object, ProgramKind};
use paceline_spec::{InitialValue, MapKind, MapSpec};

use super::{LOOK_UP, array, generated, object, xdp};

fn compared(objects: &[Object; 2]) -> Differences {
    let [old, new] = objects;
    let options = Options { time: Duration::from_secs(30), ..Options::default() };
    let sides = ((old, &old.programs()[0]), (new, &new.programs()[0]));
    let found = differences_of_paths(sides.0, sides.1, &options, 10, &mut |_| {}).unwrap();
    assert!(found.unconfirmed.is_empty(), "{:?}", found.unconfirmed);
    found
}

/// The programs, as both fare with the first input on which they differ; none if they are proved to be equal.
fn first([old, new]: [&str; 2], maps: &[MapSpec]) -> Option<[Confirmed; 2]> {
    let found = compared(&[old, new].map(|text| xdp(text, maps.to_vec())));
    assert!(!found.found.is_empty() || found.left.is_empty(), "{:?}", found.left);
    found.found.into_iter().next().map(|difference| [difference.old, difference.new])
}

#[test]
fn metadata_is_compared() {
    let meta = |byte| {
        format!(
            "r1 = r6\nr2 = -4\ncall 54\nif r0 != 0 goto out\nr1 = *(u32 *)(r6 + 8)\nr2 = *(u32 *)(r6 + 0)\nr3 = r1\n\
             r3 += 4\nif r3 > r2 goto out\n*(u8 *)(r1 + 0) = {byte}\nr0 = 2"
        )
    };
    assert!(first([&meta(1), &meta(1)], &[]).is_none());
    let [old, new] = first([&meta(1), &meta(2)], &[]).unwrap();
    assert_eq!((old.metadata, new.metadata), (vec![1, 0, 0, 0], vec![2, 0, 0, 0]));
    // No metadata is other metadata.
    assert!(first([&meta(0), "r0 = 2"], &[]).is_some());
}

#[test]
fn flags_of_redirections_are_compared() {
    let redirect = |index: &str, flags| {
        object(ProgramKind::SchedCls, &format!("r1 = {index}\nr2 = {flags}\ncall 23"), Vec::new())
    };
    let are_equal = |a: (&str, i32), b: (&str, i32)| {
        let found = compared(&[a, b].map(|(index, flags)| redirect(index, flags)));
        assert!(found.left.is_empty(), "{:?}", found.left);
        found.found.is_empty()
    };
    assert!(are_equal(("3", 1), ("3", 1)));
    assert!(!are_equal(("3", 0), ("3", 1)), "into the interface or out of it");
    assert!(!are_equal(("3", 0), ("0x80000003", 0)), "all bits of the index count");
    assert!(!are_equal(("3", 0), ("3", 2)), "flags that are refused");
    assert!(are_equal(("3", 2), ("4", 4)), "both are refused");
}

fn programs() -> MapSpec {
    let mut programs = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 4);
    let program = InitialValue::Program("test".to_owned());
    programs.contents = (0..4_u32).map(|index| (index.to_ne_bytes().to_vec(), program.clone())).collect();
    programs
}

/// The program that is called is the program itself, so that the runs end alike.
#[test]
fn tail_calls_are_told_where_they_differ() {
    let call = |index: i32| format!("r1 = r6\nr2 = map[0] ll\nr3 = {index}\ncall 12\nr0 = 1");
    let maps = [programs(), array()];
    let called = |run: &Confirmed| run.handover.as_ref().map(|call| call.index);
    assert!(first([&call(1), &call(1)], &maps).is_none());
    let [old, new] = first([&call(1), &call(2)], &maps).unwrap();
    assert_eq!((called(&old), called(&new)), (Some(1), Some(2)));
    let [old, new] = first([&call(1), "r0 = 1"], &maps).unwrap();
    assert_eq!((called(&old), called(&new)), (Some(1), None));
    // Bytes before the packet, a target, a byte and an element that the call alone shows.
    let over = |run: Confirmed| -> Handover { run.handover.unwrap() };
    let move_start = format!("r1 = r6\nr2 = 8\ncall 44\nif r0 != 0 goto out\n{}", call(0));
    let [old, new] = first(
        [&format!("*(u8 *)(r1 + 0) = 7\n{move_start}"), &format!("*(u8 *)(r1 + 0) = 8\n{move_start}")],
        &maps,
    )
    .unwrap();
    assert_ne!(over(old).headroom, over(new).headroom);
    let redirect = |to| format!("r1 = {to}\nr2 = 0\ncall 23\n{}", call(0));
    let [old, new] = first([&redirect(3), &redirect(4)], &maps).unwrap();
    assert_ne!(over(old).redirect, over(new).redirect);
    let look_up = LOOK_UP.replace("map[0]", "map[1]");
    let store =
        |number| format!("{look_up}\nif r0 == 0 goto out\nr5 = {number}\n*(u64 *)(r0 + 0) = r5\n{}", call(0));
    let [old, new] = first([&store(5), &store(6)], &maps).unwrap();
    assert_ne!(over(old).changes, over(new).changes);
}

/// Bytes of the stack, from the packet's first word, for the reader of `map[0]`.
fn event(helper: &str, word: i32) -> String {
    let call = match helper {
        "ring" => "r1 = map[0] ll\nr2 = r10\nr2 += -8\nr3 = 8\nr4 = 0\ncall 130",
        _ => "r1 = r6\nr2 = map[0] ll\nr3 = 0x8ffffffff ll\nr4 = r10\nr4 += -8\nr5 = 8\ncall 25",
    };
    format!("r7 = *(u32 *)(r1 + {word})\n*(u64 *)(r10 - 8) = r7\n{call}\nr0 = 2")
}

#[test]
fn events_are_compared() {
    let ring = MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096);
    let perf = MapSpec::new("perf", MapKind::PerfEventArray, 4, 4, 2);
    for (helper, map) in [("ring", ring), ("perf", perf)] {
        let maps = [map];
        assert!(first([&event(helper, 0), &event(helper, 0)], &maps).is_none(), "{helper}");
        let [old, new] = first([&event(helper, 0), &event(helper, 4)], &maps).unwrap();
        assert_ne!(old.events, new.events, "{helper}");
        let [old, new] = first([&event(helper, 0), "r0 = 2"], &maps).unwrap();
        assert_eq!((old.events.len(), new.events.len()), (1, 0), "{helper}");
        // Two events in another order.
        let twice = |a, b| format!("r8 = r1\n{}\nr1 = r8\n{}", event(helper, a), event(helper, b));
        assert!(first([&twice(0, 4), &twice(0, 4)], &maps).is_none(), "{helper}");
        assert!(first([&twice(0, 4), &twice(4, 0)], &maps).is_some(), "{helper}");
    }
}

/// Eight bytes of the packet go with the event: as they were then.
#[test]
fn captured_bytes_are_compared() {
    let maps = [MapSpec::new("perf", MapKind::PerfEventArray, 4, 4, 2)];
    let store = |at| format!("*(u8 *)(r1 + {at}) = 9\n{}", event("perf", 16));
    let back = |text: &str| {
        text.replace("r0 = 2", "r1 = *(u32 *)(r6 + 0)\nr2 = *(u32 *)(r6 + 4)\nr3 = r1\nr3 += 32\nif r3 > r2 goto out\n*(u8 *)(r1 + 3) = 1\n*(u8 *)(r1 + 4) = 1\nr0 = 2")
    };
    assert!(first([&back(&store(3)), &back(&store(3))], &maps).is_none());
    let [old, new] = first([&back(&store(3)), &back(&store(4))], &maps).unwrap();
    assert_eq!((&old.bytes, &old.events[0].data), (&new.bytes, &new.events[0].data));
    assert_ne!(old.events[0].captured, new.events[0].captured);
}

#[test]
fn traces_are_compared() {
    // "%d\n" or "%u" and the packet's first or second word.
    let trace = |format: u32, word| {
        format!(
            "r3 = *(u32 *)(r1 + {word})\n*(u32 *)(r10 - 4) = {format}\nr1 = r10\nr1 += -4\nr2 = 4\ncall 6\nr0 = 2"
        )
    };
    let (signed, unsigned) = (0x000a_6425, 0x0000_7525);
    assert!(first([&trace(signed, 0), &trace(signed, 0)], &[]).is_none());
    let [old, new] = first([&trace(signed, 0), &trace(signed, 4)], &[]).unwrap();
    assert_ne!(old.traces, new.traces);
    // The end of the line is added where it is missing; another format may print the same.
    assert!(first([&trace(signed, 0), &trace(0x0000_6425, 0)], &[]).is_none());
    let [a, b] = [signed, unsigned].map(|format| xdp(&trace(format, 0), Vec::new()));
    let told = compared(&[a, b]);
    assert!(told.found.is_empty() && !told.is_complete(), "{told:?}");
    // A character may be the end of the line.
    let [a, b] = [0x0000_6325, 0x000a_6325].map(|format| xdp(&trace(format, 0), Vec::new()));
    assert!(!compared(&[a.clone(), b]).is_complete());
    assert!(compared(&[a.clone(), a]).is_complete());
    // Two texts.
    let [old, new] = first([&trace(0x0000_6161, 0), &trace(0x0000_6261, 0)], &[]).unwrap();
    assert_ne!(old.traces, new.traces);
}

/// Both programs get the packet at one address.
#[test]
fn low_halves_of_packet_addresses_are_compared() {
    let short = "w7 = w2\nw7 -= w1\nif w7 > 100 goto out\nr0 = 2";
    let long = "r7 = r2\nr7 -= r1\nif r7 > 100 goto out\nr0 = 2";
    assert!(first([short, long], &[]).is_none());
    assert!(first([short, &long.replace("100", "101")], &[]).is_some());
    // Addresses of the stack are each program's own.
    let stack = xdp("r7 = r10\nw7 = w7\nw7 &= 7\nif w7 == 1 goto out\nr0 = 2", Vec::new());
    assert!(!compared(&[stack.clone(), stack]).is_complete());
}

/// A run takes the side that was solved for, whatever was replaced.
#[test]
fn replaced_checksums_are_those_of_runs() {
    for (size, bits, sum) in
        [(2, 16, 0x1234), (2, 16, 0), (2, 16, 0xffff), (4, 32, 0x1234), (4, 32, 0), (4, 32, 0xffff)]
    {
        let look = "r7 = *(u32 *)(r6 + 80)\nr8 = *(u32 *)(r6 + 76)\nr2 = r8\nr2 += 32\nr0 = 0\nif r2 > r7 goto out\n";
        let text = format!(
            "r6 = r1\n{look}r3 = *(u{bits} *)(r8 + 0)\nr4 = *(u{bits} *)(r8 + 4)\nr9 = *(u16 *)(r8 + 8)\n\
             if r9 != 0x8001 goto out\nr1 = r6\nr2 = 8\nr5 = {size}\ncall 10\n{look}r5 = *(u16 *)(r8 + 8)\n\
             if r5 != {sum} goto out\nr0 = 2"
        );
        let generated = generated(&object(ProgramKind::SchedCls, &text, Vec::new()));
        assert!(generated.given_up.is_empty(), "{:?}", generated.given_up);
    }
}

#[test]
fn replaced_checksums_are_computed() {
    // 16 or 32 bits of the packet's sum at byte 8 are replaced.
    let replace = |from: &str, to: &str, size| {
        let text = format!(
            "r7 = *(u32 *)(r1 + 80)\nr8 = *(u32 *)(r1 + 76)\nr2 = r8\nr2 += 32\nr0 = 0\nif r2 > r7 goto out\n\
             r3 = *(u16 *)(r8 + 0)\nr4 = *(u16 *)(r8 + 2)\nr2 = 8\nr3 {from}\nr4 {to}\nr5 = {size}\ncall 10\nr0 = 0"
        );
        object(ProgramKind::SchedCls, &text, Vec::new())
    };
    let same = |a: Object, b: Object| {
        let found = compared(&[a, b]);
        assert!(!found.found.is_empty() || found.left.is_empty(), "{:?}", found.left);
        found.found.is_empty()
    };
    for size in [2, 4] {
        assert!(same(replace("+= 0", "+= 0", size), replace("+= 0", "+= 0", size)));
        assert!(!same(replace("+= 0", "+= 0", size), replace("+= 1", "+= 0", size)));
    }
}

/// A record of eight bytes that is filled with bytes of the packet, and given back by a helper.
fn record(at: u8, back: u32) -> String {
    format!(
        "r7 = r1\nr1 = map[0] ll\nr2 = 8\nr3 = 0\ncall 131\nif r0 == 0 goto out\nr4 = *(u64 *)(r7 + {at})\n\
         *(u64 *)(r0 + 0) = r4\nr1 = r0\nr2 = 0\ncall {back}\nr0 = 2"
    )
}

#[test]
fn records_are_compared() {
    let maps = [MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096)];
    assert!(first([&record(0, 132), &record(0, 132)], &maps).is_none());
    let [old, new] = first([&record(0, 132), &record(8, 132)], &maps).unwrap();
    assert_ne!(old.events, new.events);
    let [old, new] = first([&record(0, 132), &record(0, 133)], &maps).unwrap();
    assert_eq!((old.events.len(), new.events.len()), (1, 0));
    assert!(first([&record(0, 133), "r0 = 2"], &maps).is_none());
    // As an output of the same bytes.
    let output = "r4 = *(u64 *)(r1 + 0)\n*(u64 *)(r10 - 8) = r4\nr1 = map[0] ll\nr2 = r10\nr2 += -8\nr3 = 8\nr4 = 0\ncall 130\nr0 = 2";
    assert!(first([&record(0, 132), output], &maps).is_none());
}

#[test]
fn bytes_that_no_one_wrote_prove_nothing() {
    let maps = vec![MapSpec::new("ring", MapKind::RingBuf, 0, 0, 4096)];
    let text = "r1 = map[0] ll\nr2 = 8\nr3 = 0\ncall 131\nif r0 == 0 goto out\n*(u32 *)(r0 + 0) = 1\nr1 = r0\nr2 = 0\ncall 132\nr0 = 2";
    let found = compared(&[xdp(text, maps.clone()), xdp(text, maps)]);
    assert!(found.found.is_empty() && !found.left.is_empty(), "{found:?}");
}
