//! Text cases from programs that were found by machine.

use std::fmt::Write;

use paceline_isa::disassemble;
use paceline_spec::{InitialValue, MapFlags, MapSpec, ProgramKind, ProgramSpec};

use crate::Contents;

/// A case over one map whose contents before are in its specification; `after` is the value of key 0 afterwards.
#[must_use]
pub fn write_case(name: &str, map: &MapSpec, program: &ProgramSpec, after: Option<&[u8]>) -> String {
    let mut text = format!("case: {name}\n");
    write_map(&mut text, map);
    write_program(&mut text, program, "program:", &[(0, map.clone())]);
    if let Some(after) = after {
        let _ = writeln!(
            text,
            "after: {}\n    {} = {}",
            map.name,
            hex(&vec![0; map.key_size as usize]),
            hex(after)
        );
    }
    text
}

/// A packet of a case, and what it leads to.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun<'a> {
    /// The packet.
    pub data: &'a [u8],
    /// Metadata before it.
    pub meta: &'a [u8],
    /// What the program returns, where that is known.
    pub r0: Option<u64>,
    /// The packet afterwards.
    pub output: &'a [u8],
    /// The metadata afterwards.
    pub output_meta: &'a [u8],
}

/// A case over several maps by index, with their contents before, and programs of which all but the first are in the
/// program array; `after` is what the maps hold after the last run, in the same order.
#[must_use]
pub fn write_cases(
    name: &str,
    maps: &[(usize, MapSpec)],
    programs: &[&ProgramSpec],
    runs: &[CaseRun<'_>],
    after: &[Option<Contents>],
) -> String {
    let mut text = format!("case: {name}\n");
    let is_filter = programs.first().is_some_and(|program| program.kind == ProgramKind::SocketFilter);
    if is_filter {
        text.push_str("type: socket_filter\n");
    }
    maps.iter().for_each(|(_, map)| write_map(&mut text, map));
    for (index, program) in programs.iter().enumerate() {
        let directive = if index == 0 { "program:".to_owned() } else { format!("program: target_{index}") };
        write_program(&mut text, program, &directive, maps);
    }
    for run in runs {
        let _ = writeln!(text, "packet: {}", hex(run.data));
        if !run.meta.is_empty() && !is_filter {
            let _ = writeln!(text, "meta: {}", hex(run.meta));
        }
        if let Some(r0) = run.r0 {
            let _ = writeln!(text, "r0: {r0:#x}");
        }
        let _ = writeln!(
            text,
            "output: {}",
            if run.output == run.data { "same".to_owned() } else { hex(run.output) }
        );
        if run.output_meta != run.meta && !is_filter {
            let _ = writeln!(text, "output_meta: {}", hex(run.output_meta));
        }
    }
    for ((_, map), contents) in maps.iter().zip(after) {
        // The records of a ring buffer are no elements.
        let Some(contents) = contents.as_ref().filter(|_| crate::has_byte_contents(map.kind)) else {
            continue;
        };
        let _ = writeln!(text, "after: {}", map.name);
        for (key, value) in contents {
            let _ = writeln!(text, "    {} = {}", hex(key), hex(value));
        }
    }
    text
}

fn write_map(text: &mut String, map: &MapSpec) {
    let MapSpec { name, kind, key_size, value_size, max_entries, flags, .. } = map;
    let _ = write!(text, "map: {name} {kind} key {key_size} value {value_size} entries {max_entries}");
    if *flags != MapFlags::default() {
        let _ = write!(text, " flags {:#x}", flags.0);
    }
    text.push_str(if map.frozen { " frozen\n" } else { "\n" });
    for (key, value) in &map.contents {
        if let InitialValue::Bytes(value) = value {
            let _ = writeln!(text, "    {} = {}", hex(key), hex(value));
        }
    }
}

/// Generated programs have no labels: the distances of jumps are in slots, as the disassembler prints them.
fn write_program(text: &mut String, program: &ProgramSpec, directive: &str, maps: &[(usize, MapSpec)]) {
    let _ = writeln!(text, "{directive}");
    for line in disassemble(&program.insns) {
        match line.insn {
            Ok(insn) => {
                let named = maps
                    .iter()
                    .fold(insn.to_string(), |insn, (index, map)| with_name(&insn, *index, &map.name));
                let _ = writeln!(text, "    {named}");
            }
            Err(error) => drop(writeln!(text, "    # slot {}: {error}", line.slot)),
        }
    }
}

/// The disassembler knows maps by index.
fn with_name(insn: &str, index: usize, map: &str) -> String {
    insn.replace(&format!("map_value[{index}]"), &format!("map_value[{map}]"))
        .replace(&format!("map[{index}]"), &format!("map[{map}]"))
}

fn hex(bytes: &[u8]) -> String {
    let word = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(8).map(word).collect::<Vec<_>>().join(" ")
}
