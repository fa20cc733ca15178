//! Disassembly by iced-x86.

use std::collections::BTreeMap;
use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, Mnemonic, OpKind};
use paceline_compiler::native::{
    Architecture, Compiled, CompiledFunction, Features, Part, Prefetch, Settings, compile, compile_chain,
};
use paceline_frame::Verdict;
use paceline_isa::assemble;
use paceline_spec::graph::{Edges, Graph, Next, Node};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};
use paceline_verifier::{Options, Verified, verify};

use crate::arm64;
use crate::case::Case;
use crate::links;

const KIND: ProgramKind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };

/// Separator of the programs of a chain.
const THEN: &str = "    then\n";

/// Verifies a case's program.
fn verified(case: &Case, text: &str) -> Verified {
    let code = assemble(text, &links::Maps).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let mut spec = ProgramSpec::new(&case.name, KIND, code.encode().expect("encodes"));
    spec.license = "GPL".to_owned();
    verify(&spec, &links::specs(), None, &Options::default())
        .unwrap_or_else(|refusal| panic!("{}: {refusal}", case.name))
}

/// Disassembles the code of a case's program or chain.
pub(crate) fn of(case: &Case) -> String {
    let programs: Vec<Verified> = case.program.split(THEN).map(|text| verified(case, text)).collect();
    let features = Features { bmi2: true };
    let architecture = Architecture::X86_64;
    let mut settings =
        Settings { architecture, features, prefetch: Prefetch::Ahead(0), ..Settings::default() };
    let (mut burst, mut wildcard) = (false, false);
    for word in case.settings.split_whitespace() {
        match word {
            "baseline" => settings.features = Features::BASELINE,
            "burst" => burst = true,
            "wildcard" => wildcard = true,
            "prefetch" => settings.prefetch = Prefetch::Ahead(8),
            "arm64" => settings.architecture = Architecture::Arm64,
            other => panic!("{}: no setting {other}", case.name),
        }
    }
    let links = links::links();
    if let [program] = programs.as_slice() {
        let compiled = compile(program, &links, &settings);
        let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        return list_for(case, settings.architecture, &compiled, burst);
    }
    let part = |program| {
        let part = Part::new(program, links.clone(), &settings);
        part.unwrap_or_else(|error| panic!("{}: {error}", case.name))
    };
    let parts: Vec<Part> = programs.iter().map(part).collect();
    let edges = |node: usize| match node + 1 {
        next if next == parts.len() => Edges::NONE,
        next if wildcard => Edges::NONE.with_wildcard(Next::Program(Node::new(next))),
        next => Edges::NONE.with(Verdict::Pass, Next::Program(Node::new(next))),
    };
    let graph = Graph::new((0..parts.len()).map(edges).collect()).expect("is a graph");
    let compiled = compile_chain(&parts.iter().collect::<Vec<_>>(), &graph, false, &settings);
    let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    list_for(case, settings.architecture, &compiled, true)
}

/// The instructions by the decoder for the machine. Without one the code is as it is expected.
fn list_for(case: &Case, architecture: Architecture, compiled: &Compiled, burst: bool) -> String {
    match architecture {
        Architecture::X86_64 => list(compiled, burst),
        Architecture::Arm64 => arm64::list(&case.name, compiled, burst).unwrap_or_else(|| case.code.clone()),
    }
}

/// The functions with entries for packets or for bursts, and their callees.
fn list(compiled: &Compiled, burst: bool) -> String {
    let other = |ip: u64| {
        let within = |f: &&CompiledFunction| (f.offset..f.offset + f.len).contains(&(ip as u32));
        let function = compiled.functions.iter().find(within);
        function.is_some_and(|function| function.slot == 0 && function.burst != burst)
    };
    let instructions: Vec<Instruction> = Decoder::with_ip(64, &compiled.bytes, 0, DecoderOptions::NONE)
        .iter()
        .filter(|instruction| !other(instruction.ip()))
        .collect();
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
        // Padding between functions.
        if instruction.mnemonic() == Mnemonic::Int3 {
            continue;
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

/// Target of a direct jump or call.
fn target(instruction: &Instruction) -> Option<u64> {
    (instruction.op0_kind() == OpKind::NearBranch64).then(|| instruction.near_branch_target())
}

/// Names of targets: entries by kind, others by their order.
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
    for function in compiled.functions.iter().filter(|function| function.slot != 0) {
        labels.insert(u64::from(function.offset), format!("function_{}", function.slot));
    }
    if compiled.tail_entry != compiled.entry {
        labels.insert(u64::from(compiled.tail_entry), "tail_entry".to_owned());
    }
    labels
}
