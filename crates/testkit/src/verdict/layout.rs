//! From steps to instructions, and shrinking.

use paceline_isa::{Callee, Insn, RawInsn, encode_all};
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

/// Where a jump goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Over so many of the steps that follow.
    Over(usize),
    /// Back to the start of the step so many before; 0 is this one.
    Back(usize),
    /// To the end of the function.
    End,
}

/// A few instructions that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The instructions. Jumps and calls have offset 0; `targets` says where they go.
    pub insns: Vec<Insn>,
    /// For instructions by index: where they jump.
    pub targets: Vec<(usize, Target)>,
    /// For instructions by index: the function they call.
    pub calls: Vec<(usize, usize)>,
}

impl Step {
    /// Instructions without jumps.
    #[must_use]
    pub fn plain(insns: Vec<Insn>) -> Self {
        Self { insns, targets: Vec::new(), calls: Vec::new() }
    }
}

/// A program in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The steps of the main program, then of each function. Each ends with what its last step leaves in `r0`.
    pub functions: Vec<Vec<Step>>,
    /// A slot to change after all is laid out, and how: makes programs that no generator would think of.
    pub mutation: Option<(usize, RawInsn)>,
}

impl Candidate {
    /// The program over [`maps`](super::maps); `None` where jumps do not reach.
    #[must_use]
    pub fn program(&self) -> Option<ProgramSpec> {
        let starts: Vec<usize> = self
            .functions
            .iter()
            .scan(0, |start, steps| {
                let mine = *start;
                *start += length(steps);
                Some(mine)
            })
            .collect();
        let mut insns = Vec::new();
        for (steps, &start) in self.functions.iter().zip(&starts) {
            insns.extend(lay_out(steps, start, &starts)?);
        }
        let mut raw = encode_all(&insns).ok()?;
        if let Some((slot, insn)) = self.mutation
            && let Some(place) = raw.get_mut(slot)
        {
            *place = insn;
        }
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let mut spec = ProgramSpec::new("candidate", kind, raw);
        spec.license = "GPL".to_owned();
        Some(spec)
    }

    /// The smallest program found for which `shows` still holds, by leaving out steps and instructions.
    #[must_use]
    pub fn shrink(&self, shows: impl Fn(&Self) -> bool) -> Self {
        let mut best = self.clone();
        loop {
            let smaller = best.smaller().find(|candidate| shows(candidate));
            match smaller {
                Some(candidate) => best = candidate,
                None => return best,
            }
        }
    }

    fn smaller(&self) -> impl Iterator<Item = Self> + '_ {
        let without_step = self.functions.iter().enumerate().flat_map(move |(f, steps)| {
            (0..steps.len()).map(move |s| {
                let mut less = self.clone();
                less.functions[f].remove(s);
                less
            })
        });
        let without_insn = self.functions.iter().enumerate().flat_map(move |(f, steps)| {
            steps.iter().enumerate().flat_map(move |(s, step)| {
                (0..step.insns.len()).map(move |i| {
                    let mut less = self.clone();
                    less.functions[f][s].remove(i);
                    less
                })
            })
        });
        without_step.chain(without_insn)
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

/// Slots of a function, its exit included.
fn length(steps: &[Step]) -> usize {
    steps.iter().map(|s| slots(&s.insns)).sum::<usize>() + 1
}

fn slots(insns: &[Insn]) -> usize {
    insns.iter().map(Insn::slots).sum()
}

fn lay_out(steps: &[Step], start: usize, functions: &[usize]) -> Option<Vec<Insn>> {
    let mut step_starts = vec![start];
    for step in steps {
        step_starts.push(step_starts.last()? + slots(&step.insns));
    }
    let end = *step_starts.last()?;
    let mut insns = Vec::new();
    for (index, step) in steps.iter().enumerate() {
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
                insn = Insn::Call(Callee::Subprogram(distance));
            }
            slot += insn.slots();
            insns.push(insn);
        }
    }
    insns.push(Insn::Exit);
    Some(insns)
}

fn set_offset(insn: &mut Insn, distance: i64) -> Option<()> {
    match insn {
        Insn::Jump { offset } | Insn::JumpIf { offset, .. } => *offset = i16::try_from(distance).ok()?,
        _ => {}
    }
    Some(())
}
