//! Local variables by DWARF: of three compilers, in versions 4 and 5, and against llvm-dwarfdump.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use paceline_isa::{Insn, Operand, decode};
use paceline_object::{Object, ObjectOptions};
use paceline_spec::{ProgramSpec, Scalar, ScalarKind};

use crate::common::{fixture, skip};

const FIXTURES: [&str; 3] = ["variables.clang14.o", "variables.clang16.o", "variables.clang19.o"];

fn program(name: &str) -> ProgramSpec {
    let object = Object::parse_with(&fixture(name), &ObjectOptions::default().variables(true));
    object.expect("the fixture is well-formed").programs.remove(0)
}

/// Names and types of the variables that the branches on a constant compare.
fn compared(program: &ProgramSpec, constant: i32) -> BTreeSet<(String, Scalar)> {
    let code = decode(&program.insns).expect("the fixture's instructions are valid");
    let mut found = BTreeSet::new();
    for (slot, insn) in code.iter() {
        if let Insn::JumpIf { dst, src: Operand::Imm(imm), .. } = insn
            && *imm == constant
        {
            let at = program.variables_at(slot, dst.number());
            found.extend(at.map(|variable| (variable.name.to_string(), variable.scalar)));
        }
    }
    found
}

#[test]
fn branches_compare_variables_of_the_source() {
    for name in FIXTURES {
        let program = program(name);
        let is = |constant: i32, name: &str, kind: ScalarKind, bytes: u8| {
            let found = compared(&program, constant);
            assert!(found.contains(&(name.to_owned(), Scalar { kind, bytes })), "{constant}: {found:?}");
        };
        is(77, "sum", ScalarKind::Unsigned, 4);
        is(999, "product", ScalarKind::Unsigned, 8);
        is(2, "rest", ScalarKind::Unsigned, 4);
    }
}

#[test]
fn values_of_enumerations_are_named() {
    for name in FIXTURES {
        let program = program(name);
        let code = decode(&program.insns).expect("the fixture's instructions are valid");
        let compared = code.iter().find_map(|(slot, insn)| match insn {
            Insn::JumpIf { dst, src: Operand::Imm(2), .. } => {
                program.variables_at(slot, dst.number()).find(|variable| *variable.name == *"step").cloned()
            }
            _ => None,
        });
        let step = compared.unwrap_or_else(|| panic!("{name}: step is compared with THIRD"));
        assert_eq!([0, 1, 2, 3].map(|value| step.text(value)), ["FIRST", "SECOND", "THIRD", "3"], "{name}");
    }
}

#[test]
fn variables_are_read_only_if_asked_for() {
    let object = Object::parse(&fixture(FIXTURES[2])).expect("the fixture is well-formed");
    assert!(object.programs[0].variables.is_empty());
}

/// Register and offsets of the instructions of each variable that llvm-dwarfdump shows in a register.
fn dumped(text: &str) -> BTreeMap<String, BTreeSet<(u64, u64, u8)>> {
    let mut variables: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
    for entry in text
        .split("\n\n")
        .filter(|entry| entry.contains("DW_TAG_variable\n") || entry.contains("DW_TAG_formal_parameter\n"))
    {
        let quoted = |attribute: &str| {
            let line = entry.lines().find(|line| line.contains(attribute))?;
            line.split('"').nth(1).map(str::to_owned)
        };
        let Some(name) = quoted("DW_AT_name").or_else(|| quoted("DW_AT_abstract_origin")) else { continue };
        for line in entry.lines().filter(|line| line.contains("): DW_OP_reg") && !line.contains(", DW_OP")) {
            let number = |text: &str| u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap();
            let range = line.split(['[', ')']).nth(1).and_then(|range| range.split_once(',')).unwrap();
            let register = line.split("DW_OP_reg").nth(1).unwrap().split(' ').next().unwrap();
            let register = register.trim_end_matches(')').parse().unwrap();
            variables.entry(name.clone()).or_default().insert((number(range.0), number(range.1), register));
        }
    }
    variables
}

#[test]
fn location_lists_are_those_of_llvm() {
    for name in FIXTURES {
        let path = format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        let Ok(output) = Command::new("llvm-dwarfdump-19").args(["--debug-info", &path]).output() else {
            return skip("llvm-dwarfdump-19");
        };
        let dumped = dumped(&String::from_utf8_lossy(&output.stdout));
        let program = program(name);
        let ours = |variable: &str| -> BTreeSet<(u64, u64, u8)> {
            let same = program.variables.iter().filter(|found| *found.name == *variable);
            let offset = |slot: usize| {
                let start = program.function_of(slot).expect("a function").start;
                ((slot - start) * 8) as u64
            };
            same.map(|v| (offset(v.slots.start), offset(v.slots.end - 1) + 8, v.register)).collect()
        };
        assert!(dumped.len() >= 7, "{dumped:?}");
        for (variable, places) in &dumped {
            let ours = ours(variable);
            let missing: Vec<_> = places.difference(&ours).collect();
            assert!(missing.is_empty(), "{name}: {variable}: {missing:?}, ours {ours:?}");
        }
    }
}
