//! The numbers that a program may return, by the constants that reach its exits: found without paths, so that no path has to be followed to
//! say that others are never returned.

use std::collections::BTreeSet;

use paceline_isa::{AluOp, Callee, Imm64, Insn, Operand, Reg, Width, eval};
use paceline_verifier::Verified;

use crate::symbolic::order::successors;

/// Most numbers of a register that are told apart.
const MOST: usize = 32;

/// The numbers that a register may hold; `None` is any number.
type Numbers = Option<BTreeSet<u64>>;

/// The registers before an instruction, but for `r10`.
type Registers = [Numbers; 10];

/// The numbers, of 32 bits, that a program may return; `None` if they are not known. Tail calls are not looked at.
pub(crate) fn returned(verified: &Verified) -> Option<BTreeSet<u32>> {
    // Results of functions, which grow until nothing changes.
    let starts: Vec<usize> = verified.functions().iter().map(|function| function.start).collect();
    let mut results: Vec<Numbers> = vec![Some(BTreeSet::new()); starts.len()];
    loop {
        let mut is_same = true;
        for index in 0..starts.len() {
            let result = result_of(verified, starts[index], &|start| {
                starts.iter().position(|other| *other == start).and_then(|callee| results[callee].clone())
            });
            is_same &= result == results[index];
            results[index] = result;
        }
        if is_same {
            break;
        }
    }
    let main = starts.iter().position(|start| *start == 0)?;
    let numbers = results.swap_remove(main)?;
    Some(numbers.into_iter().map(|number| number as u32).collect())
}

/// What the function at a slot may return; `callee` is what others do.
fn result_of(verified: &Verified, start: usize, callee: &dyn Fn(usize) -> Numbers) -> Numbers {
    let mut before: Vec<Option<Registers>> = vec![None; verified.code().len()];
    let mut result = Some(BTreeSet::new());
    let mut open = vec![(start, Registers::default())];
    while let Some((slot, registers)) = open.pop() {
        let (Some(insn), Some(known)) = (verified.code().get(slot), before.get_mut(slot)) else {
            return None;
        };
        let joined = match known {
            Some(known) => joined(known, &registers),
            None => registers,
        };
        if known.as_ref() == Some(&joined) {
            continue;
        }
        *known = Some(joined.clone());
        if matches!(insn, Insn::Exit) {
            result = union(&result, &joined[0]);
            continue;
        }
        let after = step(insn, slot, joined, callee);
        open.extend(successors(insn, slot).map(|next| (next, after.clone())));
    }
    result
}

fn joined(a: &Registers, b: &Registers) -> Registers {
    std::array::from_fn(|register| union(&a[register], &b[register]))
}

fn union(a: &Numbers, b: &Numbers) -> Numbers {
    let all: BTreeSet<u64> = a.as_ref()?.union(b.as_ref()?).copied().collect();
    (all.len() <= MOST).then_some(all)
}

/// The registers after an instruction.
fn step(insn: &Insn, slot: usize, before: Registers, callee: &dyn Fn(usize) -> Numbers) -> Registers {
    let mut after: Registers = std::array::from_fn(|register| {
        let is_written = Reg::ALL.get(register).is_none_or(|reg| insn.writes().contains(*reg));
        before[register].clone().filter(|_| !is_written)
    });
    let number = |reg: Reg| before.get(usize::from(reg.number())).cloned().flatten();
    let (dst, numbers) = match insn {
        Insn::LoadImm64 { dst, value: Imm64::Value(value) } => (*dst, Some(BTreeSet::from([*value]))),
        Insn::Alu { width, op, dst, src } => {
            let right = match src {
                Operand::Reg(reg) => number(*reg),
                Operand::Imm(imm) => Some(BTreeSet::from([*imm as u64])),
            };
            // A move does not read its target.
            let left = if *op == AluOp::Mov { Some(BTreeSet::from([0])) } else { number(*dst) };
            (*dst, computed(*width, *op, left, right))
        }
        Insn::Call(Callee::Subprogram(_)) => {
            let target = insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok());
            (Reg::R0, target.and_then(callee))
        }
        _ => return after,
    };
    if let Some(register) = after.get_mut(usize::from(dst.number())) {
        *register = numbers;
    }
    after
}

fn computed(width: Width, op: AluOp, left: Numbers, right: Numbers) -> Numbers {
    let (left, right) = (left?, right?);
    let mut all = BTreeSet::new();
    for &a in &left {
        all.extend(right.iter().map(|&b| eval::alu(width, op, a, b)));
        if all.len() > MOST {
            return None;
        }
    }
    Some(all)
}
