//! Properties that hold and that do not, of examples and of programs in which a wrong proof would be easy.

mod prove_effects;

use std::time::Duration;

use paceline::generate::generate;
use paceline::isa::assemble;
use paceline::prove::{Options, Proof, Property, holds, prove};
use paceline::{Object, ProgramKind, ProgramSpec};
use paceline_spec::{MapKind, MapSpec, XdpAttach};

fn proof_of(object: &Object, program: &ProgramSpec, text: &str, seconds: u64) -> Proof {
    let property: Property = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let options = Options { time: Duration::from_secs(seconds), ..Options::default() };
    let proof = prove(object, program, &property, &options, 3, &mut |_| {}).unwrap();
    assert!(proof.unconfirmed.is_empty(), "{text}: {:?}", proof.unconfirmed);
    assert!(proof.refuting.iter().all(|confirmed| !holds(object, &property, confirmed)), "{text}");
    proof
}

fn example(name: &str) -> Object {
    Object::open(format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Whether a property of an example's program is proved; `None` if that is not known.
fn of_example(name: &str, program: &str, text: &str) -> Option<bool> {
    let object = example(name);
    let proof = proof_of(&object, object.program(program).unwrap(), text, 60);
    match (proof.refuting.is_empty(), proof.is_complete()) {
        (false, _) => Some(false),
        (true, true) => Some(true),
        (true, false) => None,
    }
}

#[test]
fn the_three_of_the_plan() {
    // ARP is never dropped.
    let arp = "arp implies verdict != drop";
    assert_eq!(of_example("vlan.o", "vlan_pop", arp), Some(true));
    assert_eq!(of_example("reflector.o", "reflector", arp), Some(true));
    assert_eq!(of_example("protocols.o", "drop", arp), Some(false));
    // Nothing is written beyond the MAC header.
    let behind = "out[14:] == in[14:]";
    assert_eq!(of_example("protocols.o", "drop", behind), Some(true));
    assert_eq!(of_example("reflector.o", "reflector", behind), Some(false));
    assert_eq!(of_example("vlan.o", "vlan_push", behind), Some(false));
    // Packets go back only after their addresses were swapped.
    let swapped = "verdict == tx implies out.eth.dst == eth.src and out.eth.src == eth.dst";
    // ARP replies go to the address in the ARP header.
    assert_eq!(of_example("reflector.o", "reflector", swapped), Some(false));
    let swapped = format!("not arp implies ({swapped})");
    assert_eq!(of_example("reflector.o", "reflector", &swapped), Some(true));
    let unswapped = "verdict == tx implies out.eth.dst == eth.dst";
    assert_eq!(of_example("reflector.o", "reflector", unswapped), Some(false));
}

#[test]
fn lengths_and_tags() {
    assert_eq!(of_example("vlan.o", "vlan_pop", "out.len <= in.len"), Some(true));
    assert_eq!(of_example("vlan.o", "vlan_pop", "out.len == in.len"), Some(false));
    assert_eq!(of_example("vlan.o", "vlan_push", "out.len == in.len or out.len == in.len + 4"), Some(true));
    assert_eq!(
        of_example("vlan.o", "vlan_push", "out.len == in.len + 4 implies out[18:] == in[14:]"),
        Some(true)
    );
    assert_eq!(
        of_example("vlan.o", "vlan_push", "out.len == in.len + 4 implies out[15:] == in[11:]"),
        Some(false)
    );
    assert_eq!(of_example("vlan.o", "vlan_push", "not vlan and out.vlan implies changes(vlans)"), Some(true));
}

/// What is proved holds for all inputs that `generate` makes, and what one of them refutes is not.
#[test]
fn generated_inputs_agree_with_proofs() {
    const PROPERTIES: [&str; 16] = [
        "arp implies verdict != drop",
        "out[14:] == in[14:]",
        "out[0:] == in[0:]",
        "verdict == pass",
        "verdict != tx",
        "verdict != redirect",
        "out.len == in.len",
        "out.len <= in.len",
        "verdict == tx implies out.eth.dst == eth.src",
        "ipv4 implies out.ipv4",
        "ipv4.ttl == out.ipv4.ttl or not ipv4",
        "tcp.dport == out.tcp.dport or not tcp",
        "vlan implies not out.vlan",
        "not vlan implies not out.vlan",
        "ipv4.frag != 0 implies verdict == pass",
        "in[12:14] == out[12:14]",
    ];
    let mut counts = [0; 2];
    for name in ["vlan.o", "reflector.o", "sampler.o"] {
        let object = example(name);
        for program in object.programs() {
            let options = Options { time: Duration::from_secs(20), boundaries: true, ..Options::default() };
            let generated = generate(&object, program, &options).unwrap();
            let inputs = generated.inputs();
            for text in PROPERTIES {
                let property: Property = text.parse().unwrap();
                let refuted = inputs.iter().find(|(_, _, confirmed)| !holds(&object, &property, confirmed));
                let proof = proof_of(&object, program, text, 20);
                assert!(
                    !(proof.is_proved() && refuted.is_some()),
                    "{name} {}: {text}: {refuted:?}",
                    program.name
                );
                counts[usize::from(proof.is_proved())] += 1;
            }
        }
    }
    assert!(counts[0] > 20 && counts[1] > 20, "{counts:?}");
}

const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

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
    let end = if text.contains("out:") { "" } else { "\nout:\n    exit" };
    object_of(XDP, &format!("{START}{text}{end}"), maps)
}

fn object_of(kind: ProgramKind, text: &str, maps: Vec<MapSpec>) -> Object {
    let code = assemble(text, &()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut program = ProgramSpec::new("test", kind, code.encode().unwrap());
    program.license = "GPL".to_owned();
    let mut object = Object::of_program(program);
    object.specs_mut().maps = maps;
    object
}

/// Whether a property of a program is proved; `None` if that is not known.
fn of(object: &Object, text: &str) -> Option<bool> {
    let proof = proof_of(object, &object.programs()[0], text, 30);
    match (proof.refuting.is_empty(), proof.is_complete()) {
        (false, _) => Some(false),
        (true, true) => Some(true),
        (true, false) => None,
    }
}

#[test]
fn a_single_packet_is_found() {
    let object = xdp(
        "r0 = 2
         r3 = *(u32 *)(r1 + 20)
         if r3 != 0x12345678 goto out
         r0 = 1
        ",
        Vec::new(),
    );
    assert_eq!(of(&object, "in.len >= 32 implies verdict == pass"), Some(false));
    assert_eq!(of(&object, "in.len < 32 implies verdict == drop"), Some(true));
    assert_eq!(of(&object, "in[20:24] == 0x78563412 implies verdict == drop"), Some(true));
    assert_eq!(of(&object, "in[20:24] == 0x12345678 implies verdict == drop"), Some(false));
    assert_eq!(of(&object, "in.len >= 32 and in[20:24] != 0x78563412 implies returns == 2"), Some(true));
}

/// A byte that is written back as it was is no change; one that differs by a bit is.
#[test]
fn bytes_that_are_written_back_are_the_same() {
    let same = "
        r3 = *(u8 *)(r1 + 20)
        *(u8 *)(r1 + 20) = r3
        r0 = 2
    ";
    assert_eq!(of(&xdp(same, Vec::new()), "out[14:] == in[14:]"), Some(true));
    let other = "
        r3 = *(u8 *)(r1 + 20)
        r4 = *(u8 *)(r1 + 21)
        if r4 != 77 goto write
        r3 ^= 1
    write:
        *(u8 *)(r1 + 20) = r3
        r0 = 2
    ";
    assert_eq!(of(&xdp(other, Vec::new()), "out[14:] == in[14:]"), Some(false));
    assert_eq!(of(&xdp(other, Vec::new()), "in[21] == 77 or out[0:] == in[0:]"), Some(true));
}

/// Bytes move when the packet's ends do; what grows is zero.
#[test]
fn packets_whose_ends_move() {
    let head = "
        r1 = r6
        r2 = 4
        call 44
        r0 = 2
    ";
    let object = xdp(head, Vec::new());
    assert_eq!(of(&object, "verdict == pass implies out[0:] == in[4:]"), Some(true));
    assert_eq!(of(&object, "verdict == pass implies out[0:] == in[3:]"), Some(false));
    assert_eq!(of(&object, "verdict == pass implies out.len == in.len - 4"), Some(true));
    let shrink = "
        r1 = r6
        r2 = -8
        call 65
        r0 = 2
    ";
    let object = xdp(shrink, Vec::new());
    assert_eq!(
        of(&object, "in.len >= 32 implies out.len == in.len - 8 and out[0:20] == in[0:20]"),
        Some(true)
    );
    assert_eq!(of(&object, "out[14:] == in[14:]"), Some(false));
    let grow = "
        r1 = r6
        r2 = 8
        call 65
        r0 = 2
    ";
    let object = xdp(grow, Vec::new());
    assert_eq!(of(&object, "out[0:32] == in[0:32] or in.len < 32"), Some(true));
    // Buffers have any size.
    assert_ne!(of(&object, "out.len == in.len + 8 or in.len < 32"), Some(true));
    assert_eq!(of(&object, "out.len == in.len or out.len == in.len + 8"), Some(true));
    let unknown = "
        r2 = *(u32 *)(r1 + 16)
        r1 = r6
        call 65
        r0 = 2
    ";
    // It may grow beyond all bytes that are looked at.
    assert_eq!(of(&xdp(unknown, Vec::new()), "out[0:] == in[0:] or out.len != in.len"), None);
}

/// A packet that ends before the place where it began when it came in has lost all of its bytes.
#[test]
fn packets_that_end_in_the_headroom() {
    let text = "
        r1 = r6
        r2 = -200
        call 44
        if r0 != 0 goto drop
        r1 = r6
        call 188
        r1 = r6
        r2 = 14
        r2 -= r0
        call 65
        if r0 != 0 goto drop
        r1 = r6
        r2 = 20
        call 65
        if r0 != 0 goto drop
        r1 = r6
        r2 = 300
        call 65
        if r0 != 0 goto drop
        r0 = 2
        goto out
    drop:
        r0 = 1
    ";
    let object = xdp(text, Vec::new());
    assert_eq!(of(&object, "verdict == pass implies out[200] == in[0]"), Some(false));
    assert_eq!(of(&object, "verdict == pass implies out[200] == 0 and out[20] == 0"), Some(true));
}

/// What the program that a tail call leads to does is not known.
#[test]
fn tail_calls_are_not_proved() {
    let mut map = MapSpec::new("jumps", MapKind::ProgArray, 4, 4, 4);
    map.contents.clear();
    let object = xdp(
        "r1 = r6
         r2 = map[0] ll
         r3 = 1
         call 12
         r0 = 2
        ",
        vec![map],
    );
    assert_eq!(of(&object, "in.len >= 32 implies verdict == pass"), None);
    assert_eq!(of(&object, "in.len < 32 implies verdict == drop"), Some(true));
}

/// A loop beyond the bounds is no proof.
#[test]
fn loops_beyond_the_bounds_are_not_proved() {
    let text = "
        r7 = *(u16 *)(r1 + 20)
        r8 = 0
    again:
        if r8 >= r7 goto done
        r8 += 1
        if r8 < 4000 goto again
        r0 = 1
        goto out
    done:
        r0 = 2
    ";
    let object = xdp(text, Vec::new());
    assert_eq!(of(&object, "in.len >= 32 implies verdict == pass"), None);
}

#[test]
fn what_is_not_modelled_is_not_proved() {
    let text = "
        r1 = r6
        r2 = r10
        r2 += -64
        r3 = 64
        r4 = 0
        *(u64 *)(r10 - 64) = r4
        *(u64 *)(r10 - 56) = r4
        *(u64 *)(r10 - 48) = r4
        *(u64 *)(r10 - 40) = r4
        *(u64 *)(r10 - 32) = r4
        *(u64 *)(r10 - 24) = r4
        *(u64 *)(r10 - 16) = r4
        *(u64 *)(r10 - 8) = r4
        call 69
        r0 = 2
    ";
    assert_eq!(of(&xdp(text, Vec::new()), "in.len >= 32 implies verdict == pass"), None);
}

#[test]
fn changes_of_maps() {
    let hash = MapSpec::new("hash", MapKind::Hash, 4, 8, 8);
    let text = "
        r3 = *(u32 *)(r1 + 20)
        *(u32 *)(r10 - 4) = r3
        r2 = r10
        r2 += -4
        r1 = map[0] ll
        call 1
        if r0 == 0 goto none
        r1 = *(u64 *)(r0 + 0)
        r1 |= 1
        *(u64 *)(r0 + 0) = r1
        r0 = 1
        goto out
    none:
        r0 = 2
    ";
    let object = xdp(text, vec![hash]);
    assert_eq!(of(&object, "verdict == pass implies not changes(hash)"), Some(true));
    // The bit may be there before.
    assert_eq!(of(&object, "in.len >= 32 and verdict == drop implies changes(hash)"), Some(false));
    assert_eq!(of(&object, "changes(hash) implies verdict == drop"), Some(true));
    let property: Property = "changes(hsh)".parse().unwrap();
    let error = prove(&object, &object.programs()[0], &property, &Options::default(), 1, &mut |_| {});
    assert_eq!(error.unwrap_err().to_string(), "column 9: no map is named `hsh`");
}

/// An LRU map may give up another element, which is a change as well.
#[test]
fn elements_that_maps_give_up_are_not_known() {
    let lru = MapSpec::new("lru", MapKind::LruHash, 4, 8, 8);
    let text = "
        r3 = *(u32 *)(r1 + 20)
        *(u32 *)(r10 - 4) = r3
        *(u64 *)(r10 - 16) = 7
        r2 = r10
        r2 += -4
        r3 = r10
        r3 += -16
        r4 = 0
        r1 = map[0] ll
        call 2
        r0 = 2
    ";
    let object = xdp(text, vec![lru]);
    assert_eq!(of(&object, "in.len >= 32 implies changes(lru)"), None);
    assert_eq!(of(&object, "in.len >= 32 implies verdict == pass"), Some(true));
}

/// Filters and classifiers return no verdicts.
#[test]
fn verdicts_and_numbers_of_other_types() {
    let filter =
        |number: i32| object_of(ProgramKind::SocketFilter, &format!("r0 = {number}\nexit"), Vec::new());
    assert_eq!(of(&filter(20), "verdict == pass and returns == 20"), Some(true));
    for other in ["drop", "aborted", "tx", "redirect"] {
        assert_eq!(of(&filter(20), &format!("verdict == {other}")), Some(false), "{other}");
    }
    // The numbers of verdicts are numbers of bytes.
    assert_eq!(of(&filter(1), "verdict != pass"), Some(false));
    assert_eq!(of(&filter(0), "verdict == drop and returns == 0"), Some(true));
    assert_eq!(of(&filter(0), "verdict == aborted"), Some(false));
    let classifier =
        |number: i32| object_of(ProgramKind::SchedCls, &format!("r0 = {number}\nexit"), Vec::new());
    assert_eq!(of(&classifier(0), "verdict == pass and returns == 0"), Some(true));
    assert_eq!(of(&classifier(0), "returns == 2"), Some(false));
    assert_eq!(of(&classifier(2), "verdict == drop and returns == 2"), Some(true));
    assert_eq!(of(&classifier(2), "returns == 1"), Some(false));
    assert_eq!(of(&classifier(-1), "verdict == pass and returns == 0xffffffff"), Some(true));
}

/// An LRU map may give up an element, also the one with the key, before an update looks whether there is one.
#[test]
fn updates_of_lru_maps_with_flags_are_not_known() {
    for (flags, property) in [(1, "verdict != tx"), (1, "not changes(lru)"), (2, "not changes(lru)")] {
        let lru = MapSpec::new("lru", MapKind::LruHash, 4, 8, 8);
        let is_there = if flags == 1 { "==" } else { "!=" };
        let text = format!(
            "
            *(u32 *)(r10 - 4) = 1
            *(u64 *)(r10 - 16) = 7
            r2 = r10
            r2 += -4
            r1 = map[0] ll
            call 1
            if r0 {is_there} 0 goto pass
            r2 = r10
            r2 += -4
            r3 = r10
            r3 += -16
            r4 = {flags}
            r1 = map[0] ll
            call 2
            if r0 != 0 goto pass
            r0 = 3
            goto out
        pass:
            r0 = 2
            "
        );
        assert_eq!(of(&xdp(&text, vec![lru]), property), None, "{flags} {property}");
    }
}

/// Also an update of an element that is there may remove another one.
#[test]
fn updates_of_elements_that_are_there_make_room() {
    for kind in [MapKind::LruHash, MapKind::LruPerCpuHash, MapKind::PerCpuHash] {
        let text = "
            *(u32 *)(r10 - 4) = 1
            *(u32 *)(r10 - 8) = 2
            *(u64 *)(r10 - 16) = 7
            r2 = r10
            r2 += -4
            r1 = map[0] ll
            call 1
            if r0 == 0 goto pass
            r2 = r10
            r2 += -8
            r1 = map[0] ll
            call 1
            if r0 == 0 goto pass
            r2 = r10
            r2 += -4
            r3 = r10
            r3 += -16
            r4 = 0
            r1 = map[0] ll
            call 2
            r2 = r10
            r2 += -8
            r1 = map[0] ll
            call 1
            if r0 != 0 goto pass
            r0 = 3
            goto out
        pass:
            r0 = 2
        ";
        let expected = if kind == MapKind::PerCpuHash { Some(true) } else { None };
        let object = xdp(text, vec![MapSpec::new("map", kind, 4, 8, 8)]);
        assert_eq!(of(&object, "verdict != tx"), expected, "{kind}");
    }
}

#[test]
fn machines_have_several_nodes() {
    let node = |call: i32| {
        object_of(XDP, &format!("call {call}\nif r0 == 0 goto out\nr0 = 1\nout:\nexit"), Vec::new())
    };
    // The processor, and its node.
    assert_eq!([8, 42].map(|call| of(&node(call), "returns == 0")), [None, None]);
}

/// Whether events are sent is not said.
#[test]
fn what_is_sent_to_readers_is_no_change() {
    for (kind, size, told) in [
        (
            MapKind::RingBuf,
            0,
            "column 9: map `sent` is a ringbuf, which has no elements: what the program sends to its reader is no change",
        ),
        (
            MapKind::PerfEventArray,
            4,
            "column 9: map `sent` is a perf_event_array, which has no elements: what the program sends to its reader is no change",
        ),
    ] {
        let object = object_of(XDP, "r0 = 2\nexit", vec![MapSpec::new("sent", kind, size, size, 4096)]);
        let property: Property = "changes(sent)".parse().unwrap();
        let error = prove(&object, &object.programs()[0], &property, &Options::default(), 1, &mut |_| {});
        assert_eq!(error.unwrap_err().to_string(), told);
    }
}
