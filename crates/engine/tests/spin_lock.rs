//! Spin locks of map values keep workers from each other.

use std::sync::Arc;
use std::thread;

use paceline_btf::{SpecialField, SpecialKind};
use paceline_engine::{FaultKind, Host, Program};
use paceline_frame::{Burst, FrameMeta};
use paceline_isa::{Names, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapKind, MapSpec, ProgramKind, ProgramSpec, XdpAttach};

struct TestNames;

impl Names for TestNames {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }
}

/// `struct { u64 count; struct bpf_spin_lock lock; }`
fn accounts() -> Arc<Map> {
    let spec = MapSpec {
        special: Box::new([SpecialField { kind: SpecialKind::SpinLock, offset: 8, size: 4 }]),
        ..MapSpec::new("accounts", MapKind::Array, 4, 16, 1)
    };
    Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).expect("a small map can be made")
}

fn program(text: &str, map: &Arc<Map>) -> Program {
    let code = assemble(text, &TestNames).expect("the test's program assembles");
    let insns = code.encode().expect("what assembles can be encoded");
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    Program::new(Arc::new(ProgramSpec::new("test", kind, insns)), vec![map.clone()]).expect("well-formed")
}

fn run(program: &Program, times: usize) -> Result<(), FaultKind> {
    let mut burst = Burst::new(1);
    burst.push(&[7; 60], FrameMeta::default()).expect("there is room");
    let mut host = Host::default();
    for _ in 0..times {
        program.run_raw(&mut burst.frame_mut(0), &mut host).map_err(|fault| fault.kind)?;
    }
    Ok(())
}

/// One by one is what the lock makes of an increment that is a load and a store with some work between.
const COUNT: &str = "
    r1 = map_value[0] + 8 ll
    call bpf_spin_lock
    r1 = map_value[0] + 0 ll
    r2 = *(u64 *)(r1 + 0)
    r3 = 50
again:
    r3 += -1
    if r3 != 0 goto again
    r2 += 1
    *(u64 *)(r1 + 0) = r2
    r1 = map_value[0] + 8 ll
    call bpf_spin_unlock
    r0 = 2
    exit";

#[test]
fn no_increment_is_lost() {
    const WORKERS: usize = 4;
    const TIMES: usize = 2000;
    let map = accounts();
    let program = program(COUNT, &map);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| run(&program, TIMES).expect("it does nothing wrong"));
        }
    });
    let value = map.lookup(&[0; 4]).expect("it is there");
    assert_eq!(value[..8], ((WORKERS * TIMES) as u64).to_ne_bytes());
    assert_eq!(value[8..], [0; 8]);
}

#[test]
fn a_lock_is_given_back_where_a_program_stops() {
    let map = accounts();
    let keeps = program("r1 = map_value[0] + 8 ll\n call bpf_spin_lock\n r0 = 2\n exit", &map);
    run(&keeps, 2).expect("it may keep it to its end");
    let faults = "r1 = map_value[0] + 8 ll\n call bpf_spin_lock\n r1 = 0\n r0 = *(u64 *)(r1 + 0)\n exit";
    run(&program(faults, &map), 1).expect_err("it reads through null");
    run(&program(COUNT, &map), 1).expect("nobody has it");
}
