//! Chains as one function of native code, with passes and without: maps and context of each program, and programs that fault.
#![cfg(feature = "jit")]

mod common;

use std::sync::Arc;

use paceline_engine::{Chain, ChainError, ChainPart, Engine, Host, LookAhead, OptLevel, Program};
use paceline_frame::{Burst, FrameMeta, Verdict};
use paceline_isa::assemble;
use paceline_maps::{Limits, Map};
use paceline_spec::graph::{Edges, Graph, Next, Node};
use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

use common::verified;

const LEVELS: [OptLevel; 2] = [OptLevel::None, OptLevel::Full];

/// Adds one to the value of index 0 of a map, and passes.
const COUNT: &str = "
    r1 = 0
    *(u32 *)(r10 - 4) = r1
    r2 = r10
    r2 += -4
    r1 = map[INDEX] ll
    call bpf_map_lookup_elem
    if r0 == 0 goto out
    r1 = *(u64 *)(r0 + 0)
    r1 += 1
    *(u64 *)(r0 + 0) = r1
out:
    r0 = 2
    exit";

/// Calls the program at 0 of its map if the packet begins with 1, and passes.
const CALL: &str = "
    r6 = r1
    r2 = *(u32 *)(r1 + 4)
    r7 = *(u32 *)(r1 + 0)
    r3 = r7
    r3 += 1
    if r3 > r2 goto out
    r3 = *(u8 *)(r7 + 0)
    if r3 != 1 goto out
    r1 = r6
    r2 = map[0] ll
    r3 = 0
    call bpf_tail_call
out:
    r0 = 2
    exit";

fn map(spec: &MapSpec) -> Arc<Map> {
    Map::create(spec, &Limits { cpus: 1, memory: 1 << 30 }).expect("is made")
}

fn burst(first_bytes: &[u8]) -> Burst {
    let mut burst = Burst::default();
    for &first in first_bytes {
        let mut packet = [0; 60];
        packet[0] = first;
        burst.push(&packet, FrameMeta::default()).expect("there is room");
    }
    burst
}

fn chain(parts: &[(&Verified, Vec<Arc<Map>>)], graph: Graph, level: OptLevel) -> Chain {
    let change = |settings: &mut paceline_engine::NativeSettings| settings.opt_level = level;
    Chain::load_with_settings(parts, graph, LookAhead::Never, change).expect("loads")
}

#[test]
fn each_program_has_its_own_maps() {
    if !Engine::Jit.is_available() {
        return;
    }
    // The second program's map is a hash, which is looked up by another function, and not at the index of the first one's.
    let array = MapSpec::new("array", MapKind::Array, 4, 8, 1);
    let hash = MapSpec::new("hash", MapKind::Hash, 4, 8, 4);
    let first = verified(&COUNT.replace("INDEX", "0"), std::slice::from_ref(&array));
    let second = verified(&COUNT.replace("INDEX", "1"), &[array.clone(), hash.clone()]);
    for level in LEVELS {
        let maps = [map(&array), map(&array), map(&hash)];
        maps[2].insert(&0_u32.to_ne_bytes(), &100_u64.to_ne_bytes()).expect("there is room");
        let parts = [(&first, vec![maps[0].clone()]), (&second, vec![maps[1].clone(), maps[2].clone()])];
        // The first one runs twice.
        let next = |node| Edges::NONE.with(Verdict::Pass, Next::Program(Node::new(node)));
        let parts = [parts[0].clone(), parts[1].clone(), parts[0].clone()];
        let graph = Graph::new(vec![next(1), next(2), Edges::NONE]).expect("a graph");
        let chain = chain(&parts, graph, level);
        chain.run_burst(&mut burst(&[0; 5]), &mut Host::new(0)).expect("ends");
        let value = |map: &Map| {
            let value = map.lookup(&0_u32.to_ne_bytes()).expect("is there");
            u64::from_ne_bytes(value.try_into().expect("eight bytes"))
        };
        assert_eq!(maps.each_ref().map(|map| value(map)), [10, 0, 105], "{level:?}");
    }
}

/// A program of a device map may read where packets go, others may not; what they have in common is one load.
#[test]
fn programs_of_one_context_are_one_function() {
    if !Engine::Jit.is_available() {
        return;
    }
    let program = |attach, frags, text: &str| {
        let code = assemble(text, &()).expect("assembles").encode().expect("encodes");
        let spec = ProgramSpec::new("test", ProgramKind::Xdp { attach, frags }, code);
        verify(&spec, &[], None, &Options::default()).expect("is accepted")
    };
    let ingress = "r2 = *(u32 *)(r1 + 12)\nr0 = 2\nif r2 == 7 goto out\nr0 = 1\nout: exit";
    let egress = "r2 = *(u32 *)(r1 + 12)\nr3 = *(u32 *)(r1 + 20)\nr0 = r2\nr0 -= 4\nr0 += r3\nexit";
    let first = program(XdpAttach::Interface, true, ingress);
    let second = program(XdpAttach::DevMap, false, egress);
    for level in LEVELS {
        let graph = Graph::sequence(2).expect("two");
        let chain = chain(&[(&first, Vec::new()), (&second, Vec::new())], graph, level);
        assert!(chain.native_code().is_some());
        let mut packets = burst(&[0, 0]);
        packets.frame_mut(0).set_ingress(7, 0);
        packets.frame_mut(1).set_ingress(8, 0);
        chain.run_burst(&mut packets, &mut Host::new(0)).expect("no fault");
        assert_eq!([0, 1].map(|at| packets.frame(at).verdict()), [Verdict::Tx, Verdict::Drop]);
    }
}

/// The first field of the one context is the packet's start, that of the other one its length.
#[test]
fn programs_of_several_contexts_are_one_function() {
    if !Engine::Jit.is_available() {
        return;
    }
    let program = |kind, text: &str| {
        let code = assemble(text, &()).expect("assembles").encode().expect("encodes");
        verify(&ProgramSpec::new("test", kind, code), &[], None, &Options::default()).expect("is accepted")
    };
    let xdp = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let start = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr0 = 2\nr4 = r2\nr4 += 1\nif r4 > r3 goto out
        r5 = *(u8 *)(r2 + 0)\nif r5 != 9 goto out\nr0 = 1\nout: exit";
    let length = "r2 = *(u32 *)(r1 + 0)\nr3 = *(u32 *)(r1 + 4)\nr0 = r2\nr0 -= 58\nr0 += r3\nexit";
    let filter = program(ProgramKind::SocketFilter, length);
    let [first, last] = [start, "r0 = *(u32 *)(r1 + 12)\nexit"].map(|text| program(xdp, text));
    for level in LEVELS {
        let graph = || Graph::sequence(3).expect("three");
        let parts = [(&first, Vec::new()), (&filter, Vec::new()), (&last, Vec::new())];
        let chain = chain(&parts, graph(), level);
        let called = Chain::load(&parts, graph(), Engine::Plain).expect("loads");
        let run = |chain: &Chain| {
            let mut packets = burst(&[0, 9, 0]);
            packets.push(&[0; 64], FrameMeta::default()).expect("there is room");
            (0..4).for_each(|at| packets.frame_mut(at).set_ingress(3, 0));
            chain.run_burst(&mut packets, &mut Host::new(0)).expect("no fault");
            [0, 1, 2, 3].map(|at| packets.frame(at).verdict())
        };
        // What the filter returns is 2 for packets of 60 bytes, and no verdict for the last one.
        let expected = [Verdict::Tx, Verdict::Drop, Verdict::Tx, Verdict::Aborted];
        assert_eq!((run(&chain), run(&called)), (expected, expected), "{level:?}");
    }
}

#[test]
fn a_fault_of_a_program_that_was_called_ends_the_burst_there() {
    if !Engine::Jit.is_available() {
        return;
    }
    let programs = MapSpec::new("programs", MapKind::ProgArray, 4, 4, 1);
    let caller = verified(CALL, std::slice::from_ref(&programs));
    let in_subprogram =
        verified(&format!("call function\nexit\nfunction:\n{CALL}"), std::slice::from_ref(&programs));
    let endless = verified("r0 = 7\nr0 += 1\nexit", &[]);
    let endless = Program::load(&endless, Vec::new(), Engine::Plain).expect("loads").with_budget(1);
    let last = verified("r0 = 1\nexit", &[]);
    for level in LEVELS {
        for caller in [&caller, &in_subprogram] {
            let programs = map(&programs);
            endless.install(&programs, 0).expect("is put there");
            let change = |settings: &mut paceline_engine::NativeSettings| settings.opt_level = level;
            let alone = Program::load_with_settings(caller, vec![programs.clone()], change).expect("loads");
            let graph = Graph::sequence(2).expect("two");
            let fused = chain(&[(caller, vec![programs]), (&last, Vec::new())], graph, level);
            let (mut first, mut second) = (burst(&[0, 1, 0]), burst(&[0, 1, 0]));
            let (mut host, mut counts) = (Host::new(0), fused.counts().expect("compiles"));
            let fault = alone.run_burst(&mut first, &mut host).expect_err("the budget is one instruction");
            let fault_of_chain = fused.run_burst(&mut second, &mut host).expect_err("as above");
            assert_eq!((fault.index, fault_of_chain.index), (1, 1), "{level:?}");
            assert_eq!(first.frame(0).verdict(), Verdict::Pass);
            assert_eq!(second.frame(0).verdict(), Verdict::Drop);
            let fault = fused.run_burst_counted(&mut second, &mut host, &mut counts).expect_err("as above");
            assert_eq!(fault.index, 1, "{level:?}");
            assert_eq!(counts.of(Node::ENTRY, Some(Verdict::Pass)), 1);
        }
    }
}

/// One part is in several chains, also twice in one; its code goes with the last of them.
#[test]
fn a_part_is_in_many_chains() {
    if !Engine::Jit.is_available() {
        return;
    }
    let array = MapSpec::new("array", MapKind::Array, 4, 8, 1);
    let count = Arc::new(verified(&COUNT.replace("INDEX", "0"), std::slice::from_ref(&array)));
    let values = map(&array);
    let part = ChainPart::new(count, vec![values.clone()]).expect("has native code");
    let fused = |parts: Vec<ChainPart>| {
        let graph = Graph::sequence(parts.len()).expect("is short");
        Chain::fused(parts, graph, LookAhead::Never).expect("compiles")
    };
    let (one, two) = (fused(vec![part.clone()]), fused(vec![part.clone(), part.clone()]));
    drop(part);
    let value = || values.lookup(&0_u32.to_ne_bytes()).map(|value| value[0]);
    one.run_burst(&mut burst(&[0; 5]), &mut Host::new(0)).expect("ends");
    assert_eq!(value(), Ok(5));
    drop(one);
    two.run_burst(&mut burst(&[0; 5]), &mut Host::new(0)).expect("ends");
    assert_eq!(value(), Ok(15));
    let graph = Graph::sequence(2).expect("two");
    let error = Chain::fused(Vec::new(), graph, LookAhead::Never).err();
    assert_eq!(error, Some(ChainError::NodeCount { nodes: 2, programs: 0 }));
}

/// Code that counts is compiled for a chain when counts are made for it.
#[test]
#[should_panic = "counts of another chain"]
fn counts_are_of_one_chain() {
    if !Engine::Jit.is_available() {
        panic!("counts of another chain");
    }
    let pass = verified("r0 = 2\nexit", &[]);
    let made = || chain(&[(&pass, Vec::new())], Graph::one(), OptLevel::Full);
    let (one, other) = (made(), made());
    let mut counts = one.counts().expect("compiles");
    one.run_burst_counted(&mut burst(&[0; 3]), &mut Host::new(0), &mut counts).expect("ends");
    assert_eq!(counts.take().of(Node::ENTRY, Some(Verdict::Pass)), 3);
    assert_eq!(counts.of(Node::ENTRY, Some(Verdict::Pass)), 0, "they were taken");
    drop(other.run_burst_counted(&mut burst(&[0]), &mut Host::new(0), &mut counts));
}
