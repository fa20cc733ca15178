//! Code as text, by iced-x86.

use std::collections::BTreeMap;
use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind};
use paceline_isa::assemble;
use paceline_jit::{Compiled, Features, Settings, compile};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, verify};

use crate::case::Case;
use crate::links;

const KIND: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// The code of a case's program.
pub(crate) fn of(case: &Case) -> String {
    let code = assemble(&case.program, &links::Maps).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut spec = ProgramSpec::new(&case.name, KIND, code.encode().expect("encodes"));
    spec.license = "GPL".to_owned();
    let verified = verify(&spec, &links::specs(), None, &Options::default())
        .unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name));
    let features = match case.settings.as_str() {
        "" => Features { bmi2: true, movbe: true },
        "baseline" => Features::BASELINE,
        other => panic!("{}: no settings {other}", case.name),
    };
    let settings = Settings { features, ..Settings::default() };
    let compiled = compile(&verified, &links::links(), &settings)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    list(&compiled)
}

fn list(compiled: &Compiled) -> String {
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, &compiled.bytes, 0, DecoderOptions::NONE).iter().collect();
    let labels = labels(compiled, &instructions);
    let names: BTreeMap<u64, u64> =
        compiled.relocations.iter().map(|r| (u64::from(r.offset), r.target)).collect();
    let mut formatter = IntelFormatter::new();
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut text = String::new();
    for instruction in &instructions {
        assert!(!instruction.is_invalid(), "at {:#x}", instruction.ip());
        if let Some(label) = labels.get(&instruction.ip()) {
            let _ = writeln!(text, "  {label}:");
        }
        let mut line = String::new();
        formatter.format(instruction, &mut line);
        let relocation = names.range(instruction.ip()..instruction.next_ip()).next();
        if let Some((_, target)) = relocation {
            line = format!("{} {}", mnemonic(&line), links::name_of(*target));
        } else if let Some(label) = target(instruction).and_then(|target| labels.get(&target)) {
            line = format!("{} {label}", mnemonic(&line));
        }
        let _ = writeln!(text, "    {line}");
    }
    text
}

fn mnemonic(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Where a direct jump or call leads.
fn target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// Names of places: entries by what enters there, others by their order.
fn labels(compiled: &Compiled, instructions: &[Instruction]) -> BTreeMap<u64, String> {
    let mut labels = BTreeMap::new();
    let relocated = |instruction: &Instruction| {
        let bytes = instruction.ip()..instruction.next_ip();
        compiled.relocations.iter().any(|r| bytes.contains(&u64::from(r.offset)))
    };
    let mut targets: Vec<u64> = instructions.iter().filter(|i| !relocated(i)).filter_map(target).collect();
    targets.sort_unstable();
    targets.dedup();
    for (number, place) in (1..).zip(targets) {
        labels.insert(place, format!("L{number}"));
    }
    for function in compiled.functions.iter().skip(1) {
        labels.insert(u64::from(function.offset), format!("function_{}", function.slot));
    }
    if compiled.tail_entry != compiled.entry {
        labels.insert(u64::from(compiled.tail_entry), "tail_entry".to_owned());
    }
    labels
}
