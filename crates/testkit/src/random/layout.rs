//! From steps to instructions, and removal of steps to shrink a program.

use std::collections::BTreeSet;

use paceline_isa::{Callee, Imm64, Insn, RawInsn, encode_all};
use paceline_spec::{FunctionInfo, Linkage, ProgramKind, ProgramSpec};

use super::kfuncs::kfuncs;

/// Target of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Forward over this number of steps.
    Over(usize),
    /// Back to the start of the step at this distance; 0 is this one.
    Back(usize),
    /// To the final steps of the function.
    End,
}

/// A short sequence of instructions that is kept or removed as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The instructions. Jumps and calls have offset 0; `targets` has their targets.
    pub insns: Vec<Insn>,
    /// Targets of jumps, by index of the instruction.
    pub targets: Vec<(usize, Target)>,
    /// Functions that are called, or whose address is taken, by index of the instruction.
    pub calls: Vec<(usize, usize)>,
}

impl Step {
    /// Instructions without jumps.
    #[must_use]
    pub fn plain(insns: Vec<Insn>) -> Self {
        Self { insns, targets: Vec::new(), calls: Vec::new() }
    }
}

/// A function before layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its steps.
    pub steps: Vec<Step>,
    /// The final steps, which are the target of jumps to the end; the exit follows them.
    pub end: Vec<Step>,
    /// Whether it is global.
    pub linkage: Linkage,
    /// Its type in [`btf`](super::btf), 0 for none; either all functions of a program have a type or none.
    pub btf_id: u32,
}

/// A program before layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its type.
    pub kind: ProgramKind,
    /// The main program and its functions.
    pub functions: Vec<Function>,
    /// A change of one slot after layout, which produces programs that the generator would not.
    pub mutation: Option<(usize, RawInsn)>,
    /// Its features, for statistics.
    pub features: BTreeSet<&'static str>,
}

impl Candidate {
    /// The program over [`maps`](super::maps); `None` if a jump offset does not fit.
    #[must_use]
    pub fn program(&self) -> Option<ProgramSpec> {
        let mut starts = Vec::new();
        let mut next = 0;
        for function in &self.functions {
            starts.push(next);
            next += function.slots();
        }
        let mut insns = Vec::new();
        for (function, &start) in self.functions.iter().zip(&starts) {
            insns.extend(function.lay_out(start, &starts)?);
        }
        let mut raw = encode_all(&insns).ok()?;
        if let Some((slot, insn)) = self.mutation
            && let Some(place) = raw.get_mut(slot)
        {
            *place = insn;
        }
        let mut spec = ProgramSpec::new("candidate", self.kind, raw);
        spec.license = "GPL".to_owned();
        let infos =
            self.functions.iter().zip(starts).enumerate().map(|(i, (function, start))| FunctionInfo {
                start,
                name: if i == 0 { "candidate".to_owned() } else { format!("function_{i}") },
                linkage: function.linkage,
                btf_id: function.btf_id,
            });
        spec.functions = infos.collect();
        if insns.iter().any(|insn| matches!(insn, Insn::Call(Callee::Kfunc { .. }))) {
            spec.kfuncs = kfuncs();
        }
        Some(spec)
    }

    /// The smallest program found for which `shows` still holds, by removing steps and instructions.
    #[must_use]
    pub fn shrink(&self, mut shows: impl FnMut(&Self) -> bool) -> Self {
        let mut best = self.clone();
        loop {
            let smaller = best.smaller().find(|candidate| shows(candidate));
            match smaller {
                Some(candidate) => best = candidate,
                None => return best,
            }
        }
    }

    /// The program without some parts, each given by its number among the parts that can be removed at that point.
    #[must_use]
    pub fn without(&self, path: &[usize]) -> Option<Self> {
        path.iter().try_fold(self.clone(), |candidate, &index| candidate.smaller().nth(index))
    }

    /// The program without one part: the last function and its calls, a step, an instruction.
    fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let last = self.functions.len() - 1;
        // With the steps that call it: functions without callers are unreachable, and refused.
        let without_function = (last != 0).then(|| {
            let mut less = self.clone();
            less.functions.pop();
            let calls_last = |step: &Step| step.calls.iter().any(|(_, callee)| *callee == last);
            for function in &mut less.functions {
                function.steps.retain(|step| !calls_last(step));
                function.end.retain(|step| !calls_last(step));
            }
            less
        });
        let steps = |part: usize| {
            self.functions.iter().enumerate().flat_map(move |(f, function)| {
                let len = if part == 0 { function.steps.len() } else { function.end.len() };
                (0..len).map(move |step| (f, part, step))
            })
        };
        let without_step = steps(0).chain(steps(1)).map(|(f, part, step)| {
            let mut less = self.clone();
            less.functions[f].part_mut(part).remove(step);
            less
        });
        let without_insn = steps(0).chain(steps(1)).flat_map(move |(f, part, step)| {
            let insns = self.functions[f].part(part)[step].insns.len();
            (0..insns).map(move |insn| {
                let mut less = self.clone();
                less.functions[f].part_mut(part)[step].remove(insn);
                less
            })
        });
        without_function.into_iter().chain(without_step).chain(without_insn)
    }
}

impl Function {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.end)
    }

    fn part(&self, part: usize) -> &[Step] {
        if part == 0 { &self.steps } else { &self.end }
    }

    fn part_mut(&mut self, part: usize) -> &mut Vec<Step> {
        if part == 0 { &mut self.steps } else { &mut self.end }
    }

    /// Number of slots, including the exit.
    fn slots(&self) -> usize {
        self.steps().map(|step| slots(&step.insns)).sum::<usize>() + 1
    }

    fn lay_out(&self, start: usize, functions: &[usize]) -> Option<Vec<Insn>> {
        let mut step_starts = vec![start];
        for step in self.steps() {
            step_starts.push(step_starts.last()? + slots(&step.insns));
        }
        let end = *step_starts.get(self.steps.len())?;
        let mut insns = Vec::new();
        for (index, step) in self.steps().enumerate() {
            let mut slot = *step_starts.get(index)?;
            for (i, insn) in step.insns.iter().enumerate() {
                let mut insn = *insn;
                if let Some((_, target)) = step.targets.iter().find(|(at, _)| *at == i) {
                    let to = match *target {
                        Target::Over(count) => step_starts.get(index + 1 + count).copied().unwrap_or(end),
                        Target::Back(count) => *step_starts.get(index.saturating_sub(count))?,
                        Target::End => end,
                    };
                    set_offset(&mut insn, to as i64 - slot as i64 - 1)?;
                }
                if let Some((_, function)) = step.calls.iter().find(|(at, _)| *at == i) {
                    let to = functions.get(*function)?;
                    let distance = i32::try_from(*to as i64 - slot as i64 - 1).ok()?;
                    insn = match insn {
                        Insn::LoadImm64 { dst, .. } => {
                            Insn::LoadImm64 { dst, value: Imm64::Code { offset: distance } }
                        }
                        _ => Insn::Call(Callee::Subprogram(distance)),
                    };
                }
                slot += insn.slots();
                insns.push(insn);
            }
        }
        insns.push(Insn::Exit);
        Some(insns)
    }
}

impl Step {
    fn remove(&mut self, index: usize) {
        self.insns.remove(index);
        let keep = |i: &mut usize| {
            if *i > index {
                *i -= 1;
                return true;
            }
            *i != index
        };
        self.targets.retain_mut(|(i, _)| keep(i));
        self.calls.retain_mut(|(i, _)| keep(i));
    }
}

fn slots(insns: &[Insn]) -> usize {
    insns.iter().map(Insn::slots).sum()
}

fn set_offset(insn: &mut Insn, distance: i64) -> Option<()> {
    match insn {
        Insn::Jump { offset } | Insn::JumpIf { offset, .. } | Insn::MayGoto { offset } => {
            *offset = i16::try_from(distance).ok()?
        }
        _ => {}
    }
    Some(())
}
