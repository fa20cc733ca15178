//! LLVM's assembler.

use std::io::Write;
use std::process::{Command, Stdio};

/// The instructions of lines of assembly; `None` without LLVM, which is told as `SKIP name: reason`.
pub(crate) fn assemble(name: &str, lines: &[String]) -> Option<Vec<u32>> {
    let candidates = ["llvm-mc", "llvm-mc-19", "llvm-mc-20", "llvm-mc-16"];
    let child = candidates.into_iter().find_map(|tool| {
        let mut command = Command::new(tool);
        command.args(["--triple=aarch64", "--show-encoding"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()
    });
    let Some(mut child) = child else {
        assert!(std::env::var_os("PACELINE_REQUIRE_ALL").is_none(), "llvm-mc is missing");
        eprintln!("SKIP {name}: llvm-mc is missing");
        return None;
    };
    let mut stdin = child.stdin.take().expect("is piped");
    let text = lines.join("\n") + "\n";
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("is written");
    assert!(output.status.success(), "{name}: llvm-mc refuses a line");
    let text = String::from_utf8(output.stdout).expect("is text");
    let words = text.lines().filter_map(|line| line.split("encoding: [").nth(1)).map(word).collect();
    Some(words)
}

/// `0x20,0x0c,0x02,0x8b]`
fn word(text: &str) -> u32 {
    let bytes = text.trim_end_matches(']').split(',').map(|byte| {
        u8::from_str_radix(byte.trim().trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("{text}"))
    });
    bytes.rev().fold(0, |word, byte| word << 8 | u32::from(byte))
}
