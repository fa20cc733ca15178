//! How far it is from an instruction to the branches whose sides are looked for.

use std::collections::VecDeque;

use paceline_isa::{Callee, Insn};
use paceline_verifier::{CallbackFact, Verified};

/// A distance that is never reached.
pub(crate) const FAR: u32 = u32::MAX;

/// The instructions that come before others, over all functions.
#[derive(Debug)]
pub(crate) struct Flow {
    before: Vec<Vec<u32>>,
    distances: Vec<u32>,
}

impl Flow {
    pub(crate) fn of(verified: &Verified) -> Self {
        let mut before = vec![Vec::new(); verified.code().len()];
        for (slot, insn) in verified.code().iter() {
            for next in successors(verified, insn, slot) {
                if let Some(list) = before.get_mut(next) {
                    list.push(slot as u32);
                }
            }
        }
        let distances = vec![FAR; before.len()];
        Self { before, distances }
    }

    /// Computes the distances to some slots anew: the number of instructions on the shortest way, into calls too, but not out of them.
    pub(crate) fn aim(&mut self, goals: impl Iterator<Item = usize>) {
        self.distances.fill(FAR);
        let mut open: VecDeque<usize> = VecDeque::new();
        for goal in goals {
            self.distances[goal] = 0;
            open.push_back(goal);
        }
        while let Some(slot) = open.pop_front() {
            let next = self.distances[slot] + 1;
            for &before in &self.before[slot] {
                let distance = &mut self.distances[before as usize];
                if *distance == FAR {
                    *distance = next;
                    open.push_back(before as usize);
                }
            }
        }
    }

    /// The distance from a slot, by the shortest way in its function and those that it calls.
    pub(crate) fn distance(&self, slot: usize) -> u32 {
        self.distances.get(slot).copied().unwrap_or(FAR)
    }

    /// The distance from a position: a slot, and those at which the callers go on.
    pub(crate) fn from(&self, position: impl Iterator<Item = usize>) -> u32 {
        // Leaving a function takes some instructions, how many does not matter.
        const LEAVING: u32 = 8;
        position
            .zip(0..)
            .map(|(slot, depth)| self.distance(slot).saturating_add(depth * LEAVING))
            .min()
            .unwrap_or(FAR)
    }
}

/// The slots that may come after an instruction: those of its function, and the starts of functions that it calls.
fn successors(verified: &Verified, insn: &Insn, slot: usize) -> Vec<usize> {
    let mut next = Vec::new();
    let falls_through = !matches!(insn, Insn::Jump { .. } | Insn::JumpLong { .. } | Insn::Exit);
    if falls_through {
        next.push(slot + insn.slots());
    }
    let targets = [insn.jump_target(slot), insn.subprogram_target(slot)];
    next.extend(targets.into_iter().flatten().filter_map(|target| usize::try_from(target).ok()));
    if matches!(insn, Insn::Call(Callee::Helper(_))) {
        match verified.fact(slot).callback {
            Some(CallbackFact::Always(start)) => next.push(start as usize),
            Some(CallbackFact::Different) => {
                next.extend(verified.functions().iter().filter(|f| f.is_callback).map(|f| f.start));
            }
            None => {}
        }
    }
    next
}
