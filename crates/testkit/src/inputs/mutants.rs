//! Mutants of a program: one instruction is changed, and generated inputs must tell the mutant from the program.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::AnyEngine;
use fastrand::Rng;
use paceline::generate::{Generated, Input, Options, Side, differences_of_paths};
use paceline::packet::to_text;
use paceline::{LoadOptions, Object, Outcome, ProgramSpec};
use paceline_isa::{Condition, Imm64, Insn, Operand, RawInsn, decode_at, disassemble, encode};

use super::sent::{Sent, run_on};
use crate::Contents;
use crate::engine::map_contents;

/// Instructions that a run of a mutant may execute: a longer run is a fault, which tells the mutant from the program.
const BUDGET: u64 = 1_000_000;

/// Mutants of a program.
#[derive(Debug, Default)]
pub struct Mutants {
    /// Mutants that the verifier accepts.
    pub made: usize,
    /// Those that an input tells from the program.
    pub killed: usize,
    /// Those that a comparison of paths tells from the program, without the generated inputs.
    pub by_paths: usize,
    /// Those that no input can tell from the program.
    pub equivalent: Vec<String>,
    /// Those that no generated input tells from the program, and a comparison of paths does.
    pub told: usize,
    /// The others: place, and instruction before and after; also those that a comparison of paths tells.
    pub survivors: Vec<String>,
    /// Those that are proved to be the same although an input tells them from the program: faults of the proof.
    pub wrong: Vec<String>,
}

/// What a run leaves: the packet's fate, events and traces, and the maps.
type Left = (Outcome, Sent, Vec<Option<Contents>>);

/// Makes `count` different mutants, of instructions that are not proved to be unreachable, that the verifier accepts, or gives up after ten times as many attempts, and runs the generated inputs on each. The solver has
/// `limit` for each of those that they do not find.
///
/// # Errors
/// The program itself does not run on an input.
pub fn mutants(
    object: &Object,
    program: &ProgramSpec,
    generated: &Generated,
    (count, rng): (usize, &mut Rng),
    limit: Duration,
) -> Result<Mutants, String> {
    let mut inputs: Vec<&Input> = Vec::new();
    for (_, _, confirmed) in generated.inputs() {
        if !inputs.contains(&&confirmed.input) {
            inputs.push(&confirmed.input);
        }
    }
    let left = inputs.iter().map(|input| run(object, program, input));
    let left = left.collect::<Option<Vec<Left>>>().ok_or("the program does not run on its inputs")?;
    let live: Vec<usize> = live_slots(object, program, generated).into_iter().collect();
    let (mut mutants, mut known) = (Mutants::default(), BTreeSet::new());
    for _ in 0..10 * count {
        if mutants.made == count {
            break;
        }
        let Some(&slot) = rng.choice(&live) else { break };
        let Some(changed) = change(&program.insns, slot, rng) else { continue };
        // Short programs have few: each counts once.
        if !known.insert((slot, changed.to_le_bytes())) {
            continue;
        }
        let mut mutant = object.clone();
        let specs = &mut mutant.specs_mut().programs;
        let Some(spec) = specs.iter_mut().find(|spec| spec.name == program.name) else { continue };
        spec.insns[slot] = changed;
        let spec = spec.clone();
        if mutant.verify(&spec).is_err() {
            continue;
        }
        mutants.made += 1;
        let differs = |(input, left): (&&Input, &Left)| run(&mutant, &spec, input).as_ref() != Some(left);
        if inputs.iter().zip(&left).any(differs) {
            mutants.killed += 1;
            if !limit.is_zero() {
                match told_apart(object, program, (&mutant, &spec), limit) {
                    Some(Told::Same) => mutants.wrong.push(describe(program, slot, &spec.insns)),
                    Some(Told::By(_)) => mutants.by_paths += 1,
                    None => {}
                }
            }
        } else {
            let what = describe(program, slot, &spec.insns);
            match told_apart(object, program, (&mutant, &spec), limit) {
                Some(Told::Same) => mutants.equivalent.push(what),
                Some(Told::By(input)) => {
                    mutants.by_paths += 1;
                    mutants.told += 1;
                    mutants.survivors.push(format!("{what}    told by {input}"));
                }
                None => mutants.survivors.push(what),
            }
        }
    }
    Ok(mutants)
}

/// What the solver says of a mutant.
enum Told {
    /// No input tells it from the program.
    Same,
    /// This one does.
    By(String),
}

/// Whether some input tells a mutant from its program, as far as that is found out in time.
fn told_apart(
    object: &Object,
    program: &ProgramSpec,
    (mutant, changed): (&Object, &ProgramSpec),
    limit: Duration,
) -> Option<Told> {
    let options = Options { time: limit, ..Options::default() };
    let found = differences_of_paths((object, program), (mutant, changed), &options, 1, &mut |_| {}).ok()?;
    match found.found.first() {
        Some(difference) => Some(Told::By(to_text(&difference.old.input.packet))),
        None => found.is_complete().then_some(Told::Same),
    }
}

/// The slots to which a way leads that takes no side that is proved unreachable.
fn live_slots(object: &Object, program: &ProgramSpec, generated: &Generated) -> BTreeSet<usize> {
    let Ok(verified) = object.verify(program) else { return BTreeSet::new() };
    let is_taken = |slot, taken| !generated.unreachable.contains_key(&Side { slot, taken }.into());
    let (mut live, mut open) = (BTreeSet::new(), vec![0]);
    while let Some(slot) = open.pop() {
        let Some(insn) = verified.code().get(slot).filter(|_| verified.fact(slot).reached) else { continue };
        if !live.insert(slot) {
            continue;
        }
        let next = slot + insn.slots();
        let jump = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
        match insn {
            Insn::JumpIf { .. } => {
                open.extend(is_taken(slot, false).then_some(next));
                open.extend(jump.filter(|_| is_taken(slot, true)));
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => open.extend(jump),
            Insn::Exit => {}
            _ => {
                open.push(next);
                open.extend(jump);
                let called = insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok());
                open.extend(called);
                if let Insn::LoadImm64 { value: Imm64::Code { offset }, .. } = insn {
                    open.extend(slot.checked_add_signed(1 + *offset as isize));
                }
            }
        }
    }
    live
}

/// The instruction at a slot, changed; `None` where there is nothing to change.
fn change(insns: &[RawInsn], slot: usize, rng: &mut Rng) -> Option<RawInsn> {
    let mut raw = *insns.get(slot)?;
    let one = if rng.bool() { 1 } else { -1 };
    match decode_at(insns, slot).ok()? {
        Insn::JumpIf { width, condition, dst, src, offset } => {
            if matches!(src, Operand::Imm(_)) && rng.bool() {
                raw.imm = raw.imm.wrapping_add(one);
            } else {
                let condition = *rng.choice(&Condition::ALL).filter(|other| **other != condition)?;
                raw = encode(&Insn::JumpIf { width, condition, dst, src, offset }).ok()?.iter().next()?;
            }
        }
        Insn::Alu { src: Operand::Imm(_), .. } | Insn::Store { src: Operand::Imm(_), .. } if rng.bool() => {
            raw.imm = raw.imm.wrapping_add(one);
        }
        Insn::Load { size, .. } | Insn::Store { size, .. } => {
            raw.offset = raw.offset.checked_add(one as i16 * size.bytes() as i16)?;
        }
        // `dst += 0` in the place of a byte swap.
        Insn::Swap { .. } => (raw.opcode, raw.src, raw.imm) = (0x07, 0, 0),
        _ => return None,
    }
    Some(raw)
}

/// Runs an input on the plain interpreter; `None` if it faults or the program cannot be loaded.
fn run(object: &Object, program: &ProgramSpec, input: &Input) -> Option<Left> {
    let options = LoadOptions::default().budget(BUDGET);
    let (outcome, sent, collection) = run_on(object, program, (AnyEngine::Plain, options), input).ok()??;
    let maps = collection.maps().iter().map(|map| map_contents(map, 0)).collect();
    Some((outcome, sent, maps))
}

/// The line of a slot, and its instruction before and after.
fn describe(program: &ProgramSpec, slot: usize, changed: &[RawInsn]) -> String {
    let text = |insns: &[RawInsn]| {
        let lines = disassemble(insns);
        lines.into_iter().find(|line| line.slot == slot).map(|line| line.to_string()).unwrap_or_default()
    };
    let line = program.lines.iter().rev().find(|line| line.slot <= slot);
    let place =
        line.map_or_else(|| format!("slot {slot}"), |line| format!("line {}, slot {slot}", line.line));
    let source = line.map_or("", |line| line.text.trim());
    let (changed, before) = (text(changed), text(&program.insns));
    format!("{}: {place}: {} instead of {}    {source}", program.name, changed.trim(), before.trim())
}
