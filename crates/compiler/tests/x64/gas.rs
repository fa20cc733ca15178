//! GNU as finds no shorter encoding for any instruction.

use std::io::Write;
use std::process::{Command, Stdio};

use paceline_compiler::native::machine::x64::Assembler;

use crate::forms;
use crate::read::decode;
use crate::single::operands;

#[test]
fn lengths_are_those_of_gnu_as() {
    let memories = forms::memories();
    let mut source = String::from(".intel_syntax noprefix\n");
    let mut asm = Assembler::new();
    let mut texts = Vec::new();
    for form in forms::all() {
        let all = operands(form.kind, &memories);
        // A prime step samples all combinations.
        for operands in all.iter().step_by(if all.len() > 10_000 { 37 } else { 1 }) {
            let text = form.emit(&mut asm, operands);
            source.push_str(&text);
            source.push('\n');
            texts.push(text);
        }
    }
    let ours = asm.finish().unwrap().bytes;
    let Some(theirs) = assemble(&source) else { return };
    let (ours, theirs) = (decode(&ours), decode(&theirs));
    assert_eq!((ours.len(), theirs.len()), (texts.len(), texts.len()));
    for ((ours, theirs), text) in ours.iter().zip(&theirs).zip(&texts) {
        assert_eq!(ours.len(), theirs.len(), "{text}");
    }
}

/// The bytes of the text section, or `None` without GNU as.
fn assemble(source: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (object, binary) = (folder.path().join("code.o"), folder.path().join("code.bin"));
    let child = Command::new("as").args(["--64", "-o"]).arg(&object).arg("-").stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        assert!(std::env::var_os("PACELINE_REQUIRE_ALL").is_none(), "GNU as is missing");
        eprintln!("skipped: GNU as is missing");
        return None;
    };
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    let copied =
        Command::new("objcopy").args(["-O", "binary", "-j", ".text"]).args([&object, &binary]).status();
    assert!(copied.unwrap().success());
    Some(std::fs::read(binary).unwrap())
}
