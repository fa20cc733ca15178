//! Text cases from programs that were found by machine.

use std::fmt::Write;

use paceline_isa::disassemble;
use paceline_spec::{InitialValue, MapSpec, ProgramSpec};

/// A case over one map whose contents before are in its specification; `after` is the value of key 0 afterwards.
#[must_use]
pub fn write_case(name: &str, map: &MapSpec, program: &ProgramSpec, after: Option<&[u8]>) -> String {
    let mut text = format!("case: {name}\n");
    let MapSpec { name: map_name, kind, key_size, value_size, max_entries, .. } = map;
    let _ = writeln!(text, "map: {map_name} {kind} key {key_size} value {value_size} entries {max_entries}");
    for (key, value) in &map.contents {
        if let InitialValue::Bytes(value) = value {
            let _ = writeln!(text, "    {} = {}", hex(key), hex(value));
        }
    }
    text.push_str("program:\n");
    // Generated programs have no labels: the distances of jumps are in slots, as the disassembler prints them.
    for line in disassemble(&program.insns) {
        match line.insn {
            Ok(insn) => drop(writeln!(text, "    {}", with_name(&insn.to_string(), map_name))),
            Err(error) => drop(writeln!(text, "    # slot {}: {error}", line.slot)),
        }
    }
    if let Some(after) = after {
        let _ =
            writeln!(text, "after: {map_name}\n    {} = {}", hex(&vec![0; *key_size as usize]), hex(after));
    }
    text
}

/// The disassembler knows maps by index.
fn with_name(insn: &str, map: &str) -> String {
    insn.replace("map_value[0]", &format!("map_value[{map}]")).replace("map[0]", &format!("map[{map}]"))
}

fn hex(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(8).map(word).collect::<Vec<_>>().join(" ")
}
