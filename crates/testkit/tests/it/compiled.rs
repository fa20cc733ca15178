//! Generated C: equal seeds give equal texts, and each installed compiler accepts them.
#![allow(clippy::unwrap_used, reason = "tests")]

use paceline_testkit::compiled::{CProgram, Compiler, PROGRAMS, compilers, unit_text};

fn unit(number: u64, compiler: Compiler) -> String {
    let programs: Vec<CProgram> =
        (0..PROGRAMS).map(|index| CProgram::generate(number * PROGRAMS + index, compiler)).collect();
    unit_text(&programs)
}

#[test]
fn seeds_give_the_same_text() {
    let compiler = Compiler { version: 19, cpu: 4, level: 2 };
    assert_eq!(unit(3, compiler), unit(3, compiler));
    assert_ne!(unit(3, compiler), unit(4, compiler));
}

#[test]
fn compilers_take_what_is_generated() {
    if compilers().is_empty() {
        paceline_testkit::skip("generated C", &"no clang-14, clang-16 or clang-19");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (source, object) = (directory.path().join("unit.c"), directory.path().join("unit.o"));
    for &version in compilers() {
        let compiler = Compiler { version, cpu: 3, level: 2 };
        std::fs::write(&source, unit(0, compiler)).unwrap();
        compiler.compile(&source, &object).unwrap();
        let found = paceline::Object::open(&object).unwrap();
        assert_eq!(found.programs().len() as u64, PROGRAMS, "{compiler}");
    }
}
