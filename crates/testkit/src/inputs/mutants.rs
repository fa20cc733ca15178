//! Mutants of a program: one instruction is changed, and generated inputs must tell the mutant from the program.

use fastrand::Rng;
use paceline::explain::Outcome;
use paceline::generate::{Generated, Input};
use paceline::{Engine, LoadOptions, Object, ProgramSpec};
use paceline_isa::{Condition, Insn, Operand, RawInsn, decode_at, disassemble, encode};

use super::run_on;
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
    /// The others: place, and instruction before and after.
    pub survivors: Vec<String>,
}

/// What a run leaves: the packet's fate, and the maps.
type Left = (Outcome, Vec<Option<Contents>>);

/// Makes `count` mutants that the verifier accepts, or gives up after ten times as many attempts, and runs the generated inputs on each.
///
/// # Errors
/// The program itself does not run on an input.
pub fn mutants(
    object: &Object,
    program: &ProgramSpec,
    generated: &Generated,
    (count, rng): (usize, &mut Rng),
) -> Result<Mutants, String> {
    let mut inputs: Vec<&Input> = Vec::new();
    for confirmed in generated.reached.values() {
        if !inputs.contains(&&confirmed.input) {
            inputs.push(&confirmed.input);
        }
    }
    let left = inputs.iter().map(|input| run(object, program, input));
    let left = left.collect::<Option<Vec<Left>>>().ok_or("the program does not run on its inputs")?;
    let mut mutants = Mutants::default();
    for _ in 0..10 * count {
        if mutants.made == count {
            break;
        }
        let slot = rng.usize(..program.insns.len());
        let Some(changed) = change(&program.insns, slot, rng) else { continue };
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
        } else {
            mutants.survivors.push(describe(program, slot, &spec.insns));
        }
    }
    Ok(mutants)
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
    let options = LoadOptions::default().engine(Engine::Plain).budget(BUDGET);
    let (outcome, collection) = run_on(object, program, options, input).ok()??;
    let maps = collection.maps().iter().map(|map| map_contents(map, 0)).collect();
    Some((outcome, maps))
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
    format!("{place}: {} instead of {}", text(changed), text(&program.insns))
}
