//! Slices of programs, as text: cases in `slices/`.
//!
//! ```text
//! case: NAME
//! program:
//!     BPF assembly, with the maps below by name
//! slice:
//!     the slice, or `none`
//! ```
//! `PACELINE_REGENERATE=1 cargo test -p paceline-compiler` writes the slices anew; review the difference.

use std::fmt::Write;
use std::path::PathBuf;

use paceline_compiler::slice::{LookUps, is_quiet, slice};
use paceline_isa::{Names, assemble, disassemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, XdpAttach};

/// The maps of all cases: their names, and the sizes of keys that are looked up ahead.
const MAPS: [(&str, Option<u32>); 5] =
    [("flows", Some(16)), ("hosts", Some(4)), ("routes", Some(8)), ("counts", None), ("data", None)];

struct Maps;

impl Names for Maps {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        MAPS.iter().position(|(known, _)| *known == name).map(|index| index as i32)
    }
}

struct Case {
    name: String,
    program: String,
    slice: String,
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut in_slice = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("case: ") {
            cases.push(Case { name: name.to_owned(), program: String::new(), slice: String::new() });
            in_slice = false;
        } else if line == "slice:" || line == "program:" {
            in_slice = line == "slice:";
        } else if let Some(case) = cases.last_mut().filter(|_| !line.is_empty()) {
            let block = if in_slice { &mut case.slice } else { &mut case.program };
            block.push_str(line);
            block.push('\n');
        }
    }
    cases
}

fn found(case: &Case) -> String {
    let code = assemble(&case.program, &Maps).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let maps = MAPS.map(|(_, size)| size.map_or(LookUps::Unknown, |key_size| LookUps::Ahead { key_size }));
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    let Some(slice) = slice(&code, kind, &maps) else { return "    none\n".to_owned() };
    assert!(is_quiet(&slice), "{}", case.name);
    disassemble(&slice.encode().expect("it has a form")).iter().fold(String::new(), |mut text, line| {
        writeln!(text, "{line}").expect("a string takes all");
        text
    })
}

#[test]
fn slices_are_as_expected() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/slices");
    let regenerate = std::env::var_os("PACELINE_REGENERATE").is_some();
    let mut wrong = String::new();
    for entry in std::fs::read_dir(folder).expect("is there") {
        let path = entry.expect("is readable").path();
        let mut cases = parse(&std::fs::read_to_string(&path).expect("is readable"));
        let mut text = String::new();
        for case in &mut cases {
            let found = found(case);
            if found != case.slice {
                write!(wrong, "{}\nexpected:\n{}found:\n{found}", case.name, case.slice).expect("takes all");
            }
            write!(text, "case: {}\nprogram:\n{}slice:\n{found}\n", case.name, case.program)
                .expect("takes all");
        }
        if regenerate {
            std::fs::write(&path, text.trim_end().to_owned() + "\n").expect("is writable");
        }
    }
    assert!(regenerate || wrong.is_empty(), "{wrong}");
}
