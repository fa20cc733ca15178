//! Program arrays belong to the programs that name them.

use std::sync::Arc;

use paceline_isa::{Names, assemble};
use paceline_maps::{Limits, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{MapFlags, MapKind, MapSpec, Pinning, ProgramKind, ProgramSpec, XdpAttach};
use paceline_vm::{Program, ProgramError};

struct TestNames;

impl Names for TestNames {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id as i32)
    }

    fn map(&self, name: &str) -> Option<i32> {
        (name == "next").then_some(0)
    }
}

const XDP: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
const CALLS: &str = "r2 = map[next] ll\nr3 = 0\ncall bpf_tail_call\nr0 = 2\nexit\n";
const CALLS_NOTHING: &str = "r0 = 2\nexit\n";

fn next() -> Arc<Map> {
    let spec = MapSpec {
        name: "next".to_owned(),
        kind: MapKind::ProgArray,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        flags: MapFlags::default(),
        extra: 0,
        pinning: Pinning::None,
        key_type: 0,
        value_type: 0,
        inner: None,
        contents: Vec::new(),
        frozen: false,
    };
    Map::create(&spec, &Limits { cpus: 1, memory: 1 << 20 }).expect("a small map can be made")
}

fn load(kind: ProgramKind, text: &str, map: &Arc<Map>) -> Result<Program, ProgramError> {
    let code = assemble(text, &TestNames).expect("the test's program assembles");
    let insns = code.encode().expect("what assembles can be encoded");
    Program::new(Arc::new(ProgramSpec::new("test", kind, insns)), vec![map.clone()])
}

#[test]
fn only_programs_that_name_an_array_must_be_of_its_type() {
    let map = next();
    let _caller = load(XDP, CALLS, &map).unwrap();
    assert!(matches!(load(ProgramKind::SocketFilter, CALLS, &map), Err(ProgramError::ProgramArray { .. })));
    load(ProgramKind::SocketFilter, CALLS_NOTHING, &map).unwrap();
}

#[test]
fn an_array_is_emptied_when_the_last_program_that_names_it_goes() {
    let map = next();
    let caller = load(XDP, CALLS, &map).unwrap();
    let called = load(XDP, CALLS_NOTHING, &map).unwrap();
    called.install(&map, 0).unwrap();
    assert!(map.prog_array().unwrap().token(0).is_some());
    drop(caller);
    assert!(
        map.prog_array().unwrap().token(0).is_none(),
        "the program that is called does not use the array"
    );
}
