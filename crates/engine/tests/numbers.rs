//! Numbers of programs: each program has its own, and entries of maps find it while it lives.

mod common;

use paceline_engine::{Engine, LookAhead, Program, Target};
use paceline_spec::{ProgramKind, XdpAttach};

use common::verified_as;

fn of_entries(engine: Engine) -> Program {
    let kind = ProgramKind::Xdp { attach: XdpAttach::DevMap, frags: false };
    Program::load(&verified_as(kind, "r0 = 2\nexit", &[]), Vec::new(), engine).expect("loads")
}

#[test]
fn a_changed_copy_is_another_program() {
    for engine in [Engine::Plain, Engine::Threaded, Engine::Jit].into_iter().filter(|e| e.is_available()) {
        let program = of_entries(engine);
        let copies = [
            ("a budget", program.clone().with_budget(1000)),
            ("look-ups ahead", program.clone().with_look_ahead(LookAhead::Always)),
        ];
        for (what, copy) in copies {
            let is_same = what == "look-ups ahead" && engine != Engine::Jit;
            assert_eq!(copy.id() == program.id(), is_same, "{what} on {engine}");
            assert!(Target::of_entry(copy.id()).is_some(), "{what} on {engine}");
            drop(copy);
            assert!(Target::of_entry(program.id()).is_some(), "{what} on {engine}");
        }
        let number = program.clone().id();
        assert_eq!(number, program.id());
        drop(program);
        assert!(Target::of_entry(number).is_none(), "{engine}");
    }
}
