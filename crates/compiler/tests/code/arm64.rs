//! Disassembly of arm64 code by LLVM.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use paceline_compiler::native::{Compiled, CompiledFunction};

/// The instructions of functions with entries for packets or for bursts, and of their callees; `None` without LLVM, which is told as
/// `SKIP name: reason`.
pub(crate) fn list(name: &str, compiled: &Compiled, burst: bool) -> Option<String> {
    let Some(lines) = disassemble(&compiled.bytes) else {
        assert!(std::env::var_os("PACELINE_REQUIRE_ALL").is_none(), "llvm-mc is missing");
        eprintln!("SKIP {name}: llvm-mc is missing");
        return None;
    };
    assert_eq!(4 * lines.len(), compiled.bytes.len(), "{name}: {lines:?}");
    let other = |offset: u32| {
        let within = |f: &&CompiledFunction| (f.offset..f.offset + f.len).contains(&offset);
        let function = compiled.functions.iter().find(within);
        function.is_none_or(|function| function.slot == 0 && function.burst != burst)
    };
    let own: Vec<(u32, &String)> =
        (0..).step_by(4).zip(&lines).filter(|(offset, _)| !other(*offset)).collect();
    let targets: BTreeMap<u32, u32> =
        own.iter().filter_map(|(offset, line)| Some((*offset, target(*offset, line)?))).collect();
    let labels = labels(compiled, &targets);
    let mut text = String::new();
    for (offset, line) in own {
        if let Some(label) = labels.get(&offset) {
            text += &format!("  {label}:\n");
        }
        let label = targets.get(&offset).and_then(|target| labels.get(target));
        let line = match (label, line.rsplit_once('#')) {
            (Some(label), Some((start, _))) => format!("{start}{label}"),
            _ => line.clone(),
        };
        text += &format!("    {line}\n");
    }
    Some(text)
}

/// Target of a branch, call or address.
fn target(offset: u32, line: &str) -> Option<u32> {
    let mnemonic = line.split(' ').next()?;
    let jumps = ["b", "bl", "cbz", "cbnz", "adr"].contains(&mnemonic) || mnemonic.starts_with("b.");
    let distance: i32 = line.rsplit_once('#').filter(|_| jumps)?.1.parse().ok()?;
    offset.checked_add_signed(distance)
}

/// Names of targets: entries by kind, others by their order.
fn labels(compiled: &Compiled, targets: &BTreeMap<u32, u32>) -> BTreeMap<u32, String> {
    let mut places: Vec<u32> = targets.values().copied().collect();
    places.sort_unstable();
    places.dedup();
    let mut labels: BTreeMap<u32, String> =
        (1..).zip(places).map(|(number, place)| (place, format!("L{number}"))).collect();
    for function in compiled.functions.iter().filter(|function| function.slot != 0) {
        labels.insert(function.offset, format!("function_{}", function.slot));
    }
    if compiled.tail_entry != compiled.entry {
        labels.insert(compiled.tail_entry, "tail_entry".to_owned());
    }
    labels
}

/// One line for each instruction.
fn disassemble(bytes: &[u8]) -> Option<Vec<String>> {
    let child = ["llvm-mc", "llvm-mc-19", "llvm-mc-20", "llvm-mc-16"].into_iter().find_map(|tool| {
        let mut command = Command::new(tool);
        command.args(["--triple=aarch64", "--disassemble"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()
    });
    let mut child = child?;
    let mut stdin = child.stdin.take().expect("is piped");
    let line = |word: &[u8]| word.iter().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(",");
    let text = bytes.chunks(4).map(line).collect::<Vec<_>>().join("\n");
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("is written");
    assert!(output.status.success(), "llvm-mc reads no arm64 code");
    let text = String::from_utf8(output.stdout).expect("is text");
    let lines = text.lines().map(|line| line.trim().replace('\t', " "));
    Some(lines.filter(|line| !line.is_empty() && line != ".text").collect())
}
