//! Tail calls between programs with different maps: each run starts with the memory of its own program.

use paceline::{Burst, FrameMeta, Host, InitialValue, MapFlags, MapKind, MapSpec, Program, XdpAttach};
use paceline_testkit::AnyEngine;
use paceline_testkit::engine::fill_map;
use paceline_testkit::text;
use paceline_verifier::{Options, verify};

/// Formats the text of `names` with `%s` and returns the length, then calls `next` if the packet's first byte is 0.
const FIRST: &str = "
    r6 = r1
    r2 = *(u32 *)(r1 + 0)
    r3 = *(u32 *)(r1 + 4)
    r4 = r2
    r4 += 1
    r7 = 1
    if r4 > r3 goto print
    r7 = *(u8 *)(r2 + 0)
print:
    r1 = map_value[names] + 0 ll
    *(u64 *)(r10 - 8) = r1
    r1 = map_value[out] + 0 ll
    r2 = 32
    r3 = map_value[format] + 0 ll
    r4 = r10
    r4 += -8
    r5 = 8
    call bpf_snprintf
    r8 = r0
    if r7 != 0 goto out
    r1 = r6
    r2 = map[next] ll
    r3 = 0
    call bpf_tail_call
out:
    r0 = r8
    exit
";

/// An array of one value; a frozen one is a constant to the verifier.
fn array(name: &str, value: &[u8], frozen: bool) -> MapSpec {
    let mut spec = MapSpec::new(name, MapKind::Array, 4, value.len() as u32, 1);
    spec.contents = vec![(vec![0; 4], InitialValue::Bytes(value.to_vec()))];
    if frozen {
        (spec.flags, spec.frozen) = (MapFlags::RDONLY_PROG, true);
    }
    spec
}

/// A program with maps of its own.
fn load(program: &str, specs: &[MapSpec], engine: AnyEngine) -> Program {
    let spec = text::xdp(program, XdpAttach::Interface, specs).expect("it assembles");
    let verified = verify(&spec, specs, None, &Options::default()).expect("it is accepted");
    let create = |spec: &MapSpec| {
        let map = text::map(spec, 1).expect("it is created");
        fill_map(&map, spec, &[], 0).expect("it takes the contents");
        map
    };
    engine.load(&verified, specs.iter().map(create).collect()).expect("it loads")
}

/// The values that a burst's programs return.
fn run(engine: AnyEngine) -> Vec<u32> {
    let next = MapSpec::new("next", MapKind::ProgArray, 4, 4, 1);
    let specs = [
        array("names", b"name\0\0\0\0", false),
        array("out", &[0; 32], false),
        array("format", b"%s\0\0\0\0\0\0", true),
        next,
    ];
    let first = load(FIRST, &specs, engine);
    load("r0 = 2\nexit", &[], engine).install(&first.maps()[3], 0).expect("it is installed");
    let mut burst = Burst::default();
    for byte in [1, 0, 1, 0, 1] {
        burst.push(&[byte; 60], FrameMeta::default()).expect("there is room");
    }
    first.run_burst(&mut burst, &mut Host::default()).expect("no fault");
    burst.iter().map(|frame| frame.code()).collect()
}

#[test]
fn a_packet_after_a_tail_call_reads_the_maps_of_its_own_program() {
    for engine in AnyEngine::available() {
        assert_eq!(run(engine), [5, 2, 5, 2, 5], "{engine}");
    }
}
