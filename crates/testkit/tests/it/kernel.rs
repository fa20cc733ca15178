//! The kernel oracle itself: values survive a round trip.

use paceline::{Limits, Map};
use paceline_btf::{Btf, Int, IntEncoding, SymbolLinkage, Type};
use paceline_isa::{AluOp, Callee, Condition, Operand, Size, Width};
use paceline_isa::{Imm64, Insn, RawInsn, Reg, encode_all};
use paceline_spec::{InitialValue, MapFlags, MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};
use paceline_testkit::case::parse_file;
use paceline_testkit::kernel::{self, KernelObject, LoadError, LoadOptions, Packet, Program, Request};

const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

fn slots(insns: &[Insn]) -> Vec<RawInsn> {
    encode_all(insns).expect("instructions that can be encoded")
}

fn set(dst: Reg, value: i32) -> Insn {
    Insn::Alu { width: Width::W64, op: AluOp::Mov, dst, src: Operand::Imm(value) }
}

fn map(name: &str, kind: MapKind, entries: u32) -> MapSpec {
    MapSpec::new(name, kind, 4, 8, entries)
}

/// `value[0] += 1` of the first map, by direct address.
fn count() -> Vec<RawInsn> {
    let value = Imm64::MapValueIndex { index: 0, offset: 0 };
    slots(&[
        Insn::LoadImm64 { dst: Reg::R1, value },
        Insn::Load { size: Size::Dw, signed: false, dst: Reg::R2, base: Reg::R1, offset: 0 },
        Insn::Alu { width: Width::W64, op: AluOp::Add, dst: Reg::R2, src: Operand::Imm(1) },
        Insn::Store { size: Size::Dw, base: Reg::R1, offset: 0, src: Operand::Reg(Reg::R2) },
        set(Reg::R0, 2),
        Insn::Exit,
    ])
}

#[test]
fn runs_and_counts_in_an_array() {
    if !kernel::available_for("runs_and_counts_in_an_array") {
        return;
    }
    let mut hits = map("hits", MapKind::Array, 1);
    let zero = 0u32.to_ne_bytes().to_vec();
    hits.contents = vec![(zero.clone(), InitialValue::Bytes(41u64.to_ne_bytes().to_vec()))];
    let program = ProgramSpec::new("count", XDP, count());
    let object = KernelObject::load(&[hits], [&program], LoadOptions::default()).expect("a good object");
    let run = object.programs[0].test_run(&Packet::new(&[7; 60])).expect("a good packet");
    assert_eq!((run.retval, run.data, run.meta), (2, vec![7; 60], vec![]));
    let contents = object.maps[0].contents(0).expect("a readable map").expect("bytes");
    assert_eq!(contents.into_iter().collect::<Vec<_>>(), [(zero, 42u64.to_ne_bytes().to_vec())]);
}

#[test]
fn per_cpu_values_are_those_of_the_running_cpu() {
    if !kernel::available_for("per_cpu_values_are_those_of_the_running_cpu") {
        return;
    }
    let pinned = kernel::pin();
    let cpu = pinned.cpu();
    let mut hits = map("hits", MapKind::PerCpuHash, 4);
    let key = 9u32.to_ne_bytes().to_vec();
    hits.contents = vec![(key.clone(), InitialValue::Bytes(vec![5]))];
    let object = KernelObject::load(&[hits], [], LoadOptions { cpu, ..LoadOptions::default() })
        .expect("a good object");
    let five = vec![5, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(object.maps[0].lookup(&key, cpu).expect("there"), five);
    assert_eq!(object.maps[0].contents(cpu).expect("readable").expect("bytes").get(&key), Some(&five));
    if kernel::possible_cpus() > 1 {
        let other = (cpu + 1) % kernel::possible_cpus();
        assert_eq!(object.maps[0].lookup(&key, other).expect("there"), [0; 8]);
    }
}

#[test]
fn frozen_maps_stay_as_they_are() {
    if !kernel::available_for("frozen_maps_stay_as_they_are") {
        return;
    }
    let mut rodata = map("rodata", MapKind::Array, 1);
    rodata.flags = MapFlags::RDONLY_PROG;
    rodata.frozen = true;
    let object = KernelObject::load(&[rodata.clone()], [], LoadOptions::default()).expect("a good object");
    assert!(object.maps[0].update(&[0; 4], &[1; 8], 0).is_err());
    let program = ProgramSpec::new("count", XDP, count());
    let refused = KernelObject::load(&[rodata], [&program], LoadOptions::default()).expect_err("it writes");
    let LoadError::Program { error, .. } = refused else { panic!("{refused}") };
    assert!(error.reason().contains("write into map forbidden"), "{error}");
}

#[test]
fn types_that_the_kernel_does_not_take_are_left_out_and_said() {
    if !kernel::available_for("types_that_the_kernel_does_not_take_are_left_out_and_said") {
        return;
    }
    let mut btf = Btf::default();
    let name = btf.add_name("u64");
    let int = Int { name, size: 8, encoding: IntEncoding::Unsigned, bit_offset: 0, bits: 64 };
    let int = btf.add(Type::Int(int));
    // The key is an index, of 4 bytes.
    let hits = MapSpec { key_type: int, value_type: int, ..map("hits", MapKind::Array, 1) };
    let program = ProgramSpec::new("count", XDP, count());
    let load = |btf: &Btf, leave_out_types| {
        let options = LoadOptions { btf: Some(btf), leave_out_types, ..LoadOptions::default() };
        KernelObject::load(std::slice::from_ref(&hits), [&program], options)
    };
    let refused = load(&btf, false).expect_err("types that are not the map's");
    assert!(matches!(refused, LoadError::Map { .. }), "{refused}");
    let untyped = load(&btf, true).expect("a good object but for its types").untyped;
    assert_eq!(untyped, ["program count: a function has no type", "map hits: create map: EINVAL"]);

    let name = btf.add_name("away");
    btf.add(Type::Func { name, proto: int, linkage: SymbolLinkage::Static });
    let refused = load(&btf, false).expect_err("a function whose type is no function's");
    assert!(matches!(refused, LoadError::Btf(_)), "{refused}");
    let untyped = load(&btf, true).expect("a good object but for its types").untyped;
    assert!(untyped[0].starts_with("everything: load BTF: EINVAL"), "{untyped:?}");
}

#[test]
fn values_with_special_fields_are_refused_for_the_same_maps() {
    if !kernel::available_for("values_with_special_fields_are_refused_for_the_same_maps") {
        return;
    }
    let types = "    struct bpf_spin_lock { u32 val; };\n    struct bpf_timer { u64 opaque[2]; };\n    \
                 struct lock { u64 a; struct bpf_spin_lock lock; };\n    struct timer { struct bpf_timer timer; };";
    let kinds = ["array", "hash", "lru_hash", "percpu_array", "percpu_hash", "lru_percpu_hash"];
    let maps = kinds.iter().flat_map(|kind| {
        let value = |value| {
            [
                format!("{kind} key u32 value {value} entries 1"),
                format!("{kind} key u32 value {value} entries 1 flags rdonly_prog"),
            ]
        };
        [value("lock"), value("timer")].concat()
    });
    let mut refused = 0;
    for map in maps {
        let text = format!("case: a\ntypes:\n{types}\nmap: m {map}\nprogram:\n    r0 = 2\n    exit\nr0: 2\n");
        let case = parse_file(&text).expect("a good case").remove(0);
        assert_eq!(case.maps[0].special.len(), 1);
        let limits = Limits { cpus: kernel::possible_cpus(), memory: 1 << 30 };
        let ours = Map::create(&case.maps[0], &limits).map(|_| ()).map_err(|error| error.errno());
        let options = LoadOptions { btf: Some(&case.btf), ..LoadOptions::default() };
        let theirs = match KernelObject::load(&case.maps, [], options) {
            Ok(_) => Ok(()),
            Err(LoadError::Map { error, .. }) => Err(error.errno),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(ours, theirs, "{map}");
        refused += usize::from(ours.is_err());
    }
    assert_eq!(refused, 12 + 4 + 3, "all read-only ones, and those of other kinds");
}

#[test]
fn look_ups_under_a_lock_find_the_same() {
    const LOCK: u64 = 4;
    if !kernel::available_for("look_ups_under_a_lock_find_the_same") {
        return;
    }
    let types = "    struct bpf_spin_lock { u32 val; };\n    struct locked { u32 a; struct bpf_spin_lock lock; u64 b; };\n    \
                 struct plain { u32 a; u32 lock; u64 b; };";
    for (kind, value) in [("array", "locked"), ("hash", "locked"), ("array", "plain"), ("hash", "plain")] {
        let map = format!("{kind} key u32 value {value} entries 4\n    u32 1 = u32 7 u32 0 u64 9");
        let text = format!("case: a\ntypes:\n{types}\nmap: m {map}\nprogram:\n    r0 = 2\n    exit\nr0: 2\n");
        let case = parse_file(&text).expect("a good case").remove(0);
        let limits = Limits { cpus: kernel::possible_cpus(), memory: 1 << 30 };
        let ours = Map::create(&case.maps[0], &limits).expect("a good map");
        let options = LoadOptions { btf: Some(&case.btf), ..LoadOptions::default() };
        let theirs = KernelObject::load(&case.maps, [], options).expect("a good map");
        let contents = [7u32.to_ne_bytes(), [0; 4]].concat();
        ours.insert(&1u32.to_ne_bytes(), &[&contents[..], &9u64.to_ne_bytes()].concat()).expect("room");
        for key in [1u32, 2, 9].map(u32::to_ne_bytes) {
            let theirs = theirs.maps[0].lookup_with(&key, 0, LOCK).map_err(|error| error.errno);
            assert_eq!(ours.lookup_locked(&key), theirs, "{kind} of {value} at {key:?}");
        }
    }
}

#[test]
fn metadata_goes_in_and_comes_out() {
    if !kernel::available_for("metadata_goes_in_and_comes_out") {
        return;
    }
    // r0 = data_meta + 4 <= data ? *(u32 *)data_meta : 0; adjust_meta(-4)
    let insns = slots(&[
        Insn::Load { size: Size::W, signed: false, dst: Reg::R6, base: Reg::R1, offset: 8 },
        Insn::Load { size: Size::W, signed: false, dst: Reg::R3, base: Reg::R1, offset: 0 },
        Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R4, src: Operand::Reg(Reg::R6) },
        Insn::Alu { width: Width::W64, op: AluOp::Add, dst: Reg::R4, src: Operand::Imm(4) },
        set(Reg::R7, 0),
        Insn::JumpIf {
            width: Width::W64,
            condition: Condition::Gt,
            dst: Reg::R4,
            src: Operand::Reg(Reg::R3),
            offset: 1,
        },
        Insn::Load { size: Size::W, signed: false, dst: Reg::R7, base: Reg::R6, offset: 0 },
        set(Reg::R2, 4),
        Insn::Call(Callee::Helper(54)),
        Insn::Alu { width: Width::W64, op: AluOp::Mov, dst: Reg::R0, src: Operand::Reg(Reg::R7) },
        Insn::Exit,
    ]);
    let program = Program::load(&Request::xdp(&insns)).expect("a good program");
    let packet = Packet { data: &[1; 20], meta: &[4, 0, 0, 0, 9, 9, 9, 9], ..Packet::default() };
    let run = program.test_run(&packet).expect("a good packet");
    assert_eq!((run.retval, run.meta, run.data), (4, vec![9; 4], vec![1; 20]));
}

#[test]
fn a_refusal_has_its_reason() {
    if !kernel::available_for("a_refusal_has_its_reason") {
        return;
    }
    let insns = slots(&[Insn::Exit]);
    let error = Program::load(&Request::xdp(&insns)).expect_err("r0 is not set");
    assert_eq!(error.reason(), "R0 !read_ok");
    assert_eq!(error.to_string(), "load program: EACCES: R0 !read_ok");
}

#[test]
fn a_map_index_outside_the_list_is_refused_before_the_kernel_reads_there() {
    let insns =
        slots(&[Insn::LoadImm64 { dst: Reg::R1, value: Imm64::MapIndex(3) }, set(Reg::R0, 0), Insn::Exit]);
    assert!(Program::load(&Request::xdp(&insns)).is_err());
}
