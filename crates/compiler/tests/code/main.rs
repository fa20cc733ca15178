//! Expected code of programs: cases in `cases/`, each with a program and its expected instructions, as an independent decoder reads
//! them.
//!
//! ```text
//! case: NAME
//! program:
//!     BPF assembly, with the maps of `links.rs` by name; several programs, with `then` on a line between them, are a
//!     chain in which each runs if the one before passed the packet
//! settings: WORD ...            (optional: `baseline` for no BMI2; `burst` for the loop over a burst, with
//!                                `prefetch` for 8 packets ahead; `wildcard` for a chain
//!                                in which each program runs whatever the one before returned; `form` for code from the form;
//!                                `arm64` for that machine, as llvm-mc reads its code)
//! code:
//!     x86-64 or arm64 assembly
//! ```
//! `PACELINE_REGENERATE=1 cargo test -p paceline-compiler --test code` regenerates the code blocks; review the difference.

mod arm64;
mod case;
mod links;
mod listing;

use std::path::PathBuf;

#[test]
fn code_is_as_expected() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/code/cases");
    let regenerate = std::env::var_os("PACELINE_REGENERATE").is_some();
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("is there")
        .map(|entry| entry.expect("is readable").path())
        .collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("is readable");
        let mut cases = case::parse(&text);
        for case in &mut cases {
            let found = listing::of(case);
            if found != case.code {
                let name = file.file_stem().unwrap_or_default().to_string_lossy();
                wrong.push(format!("{name}::{}\nexpected:\n{}found:\n{found}", case.name, case.code));
                case.code = found;
            }
        }
        if regenerate {
            std::fs::write(&file, case::write(&cases)).expect("is writable");
        }
    }
    assert!(regenerate || wrong.is_empty(), "{}", wrong.join("\n"));
}
