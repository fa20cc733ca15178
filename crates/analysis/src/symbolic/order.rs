//! The order in which the places of a program are taken up so that paths meet where they come together: a place comes after all from which
//! a path leads to it, and a round of a loop after the round before it.

use paceline_isa::{Insn, Reg, RegSet};
use paceline_verifier::Verified;

use crate::symbolic::stack_live::{StackBytes, uses};
use crate::symbolic::state::State;

/// The place of a state in that order: of each function that is being called, from the outermost on, loops with their rounds, and slots.
pub(crate) type Key = Vec<u32>;

/// Comes after all places of a program.
const LAST: u32 = u32::MAX;

/// The order of a program's slots, and what is alive there.
#[derive(Debug)]
pub(crate) struct Order {
    ranks: Vec<u32>,
    /// The first slots of the loops that a slot is in, the outermost first.
    loops: Vec<Vec<usize>>,
    /// Whether several ways lead to a slot.
    meets: Vec<bool>,
    /// Whether a slot comes right after a loop that it is not in.
    leaves: Vec<bool>,
    /// Registers whose value may be read still.
    live: Vec<RegSet>,
    /// Bytes of the function's stack that may be read still.
    live_stack: Vec<StackBytes>,
}

impl Order {
    pub(crate) fn of(verified: &Verified) -> Self {
        let slots = verified.code().len();
        let mut order = Self {
            ranks: vec![0; slots],
            loops: vec![Vec::new(); slots],
            meets: vec![false; slots],
            leaves: vec![false; slots],
            live: vec![RegSet::EMPTY; slots],
            live_stack: vec![StackBytes::default(); slots],
        };
        let mut after = vec![Vec::new(); slots];
        let mut ways = vec![0_u32; slots];
        for (slot, insn) in verified.code().iter() {
            after[slot] = successors(insn, slot).filter(|next| *next < slots).collect();
            after[slot].iter().for_each(|next| ways[*next] += 1);
            if insn.is_call() && slot + 1 < slots {
                // Functions return from several places.
                order.meets[slot + 1] = true;
            }
        }
        (order.meets.iter_mut().zip(&ways)).for_each(|(meets, ways)| *meets |= *ways > 1);
        let mut next = 1;
        for function in verified.functions() {
            let code = verified.code().iter().map(|(slot, _)| slot);
            let within: Vec<_> = code.filter(|slot| (function.start..function.end).contains(slot)).collect();
            order.arrange(&within, &after, &mut next);
        }
        order.find_leaves(&after);
        order.find_live(verified, &after);
        order.find_live_stack(verified, &after);
        order
    }

    /// Gives ranks to slots: strongly connected ones are a loop, within which the slots behind its first one are arranged in the same way.
    fn arrange(&mut self, within: &[usize], after: &[Vec<usize>], next: &mut u32) {
        for part in components(within, after) {
            let Some(&first) = part.iter().min() else { continue };
            let is_loop = part.len() > 1 || after[first].contains(&first);
            self.ranks[first] = *next;
            *next += 1;
            if is_loop {
                part.iter().for_each(|slot| self.loops[*slot].push(first));
                let rest: Vec<_> = part.into_iter().filter(|slot| *slot != first).collect();
                self.arrange(&rest, after, next);
            }
        }
    }

    fn find_leaves(&mut self, after: &[Vec<usize>]) {
        for (slot, next) in
            after.iter().enumerate().flat_map(|(slot, next)| next.iter().map(move |next| (slot, *next)))
        {
            self.leaves[next] |= self.loops[slot].iter().any(|first| !self.loops[next].contains(first));
        }
    }

    fn find_live(&mut self, verified: &Verified, after: &[Vec<usize>]) {
        let mut changed = true;
        while changed {
            changed = false;
            let slots: Vec<_> = verified.code().iter().collect();
            for &(slot, insn) in slots.iter().rev() {
                let behind = after[slot].iter().fold(RegSet::EMPTY, |all, next| all.union(self.live[*next]));
                let live = behind.minus(insn.writes()).union(insn.reads());
                changed |= std::mem::replace(&mut self.live[slot], live) != live;
            }
        }
    }

    fn find_live_stack(&mut self, verified: &Verified, after: &[Vec<usize>]) {
        let slots: Vec<_> = verified.code().iter().collect();
        let mut shared = vec![StackBytes::default(); after.len()];
        for function in verified.functions() {
            let words = StackBytes::of_words(function.shared);
            shared.iter_mut().take(function.end).skip(function.start).for_each(|bytes| *bytes = words);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &(slot, insn) in slots.iter().rev() {
                let none = StackBytes::default();
                let behind = after[slot].iter().fold(none, |all, next| all.union(self.live_stack[*next]));
                let (read, written) = uses(insn, &verified.fact(slot));
                let live = behind.minus(written).union(read).union(shared[slot]);
                changed |= std::mem::replace(&mut self.live_stack[slot], live) != live;
            }
        }
    }

    /// The bytes of the function's stack that may be read still before the instruction of a slot.
    pub(crate) fn live_stack(&self, slot: usize) -> Option<StackBytes> {
        self.live_stack.get(slot).copied()
    }

    /// Whether several ways lead to a slot.
    pub(crate) fn meets(&self, slot: usize) -> bool {
        self.meets.get(slot).copied().unwrap_or(false)
    }

    /// Whether a slot is in a loop, or comes right after one.
    pub(crate) fn is_of_loop(&self, slot: usize) -> bool {
        self.leaves.get(slot).copied().unwrap_or(false)
            || self.loops.get(slot).is_some_and(|loops| !loops.is_empty())
    }

    /// Whether a register may be read still.
    pub(crate) fn is_live(&self, slot: usize, reg: Reg) -> bool {
        self.live.get(slot).is_none_or(|live| live.contains(reg))
    }

    /// Counts the rounds of the loops that a state is in, after one instruction.
    pub(crate) fn settle(&self, state: &mut State) {
        let (slot, is_round) = (state.slot, |nest: &[usize], depth: usize| nest[depth] == state.slot);
        let Some(frame) = state.frames.last_mut() else { return };
        let from = std::mem::replace(&mut frame.at, slot);
        if from == slot && !frame.rounds.is_empty() {
            return;
        }
        let none: &[usize] = &[];
        let nest = |slot: usize| self.loops.get(slot).map_or(none, Vec::as_slice);
        let (old, new) = (nest(from), nest(slot));
        let mut common = old.iter().zip(new).take_while(|(a, b)| a == b).count().min(frame.rounds.len());
        if let Some(depth) = (0..common).find(|depth| is_round(new, *depth)) {
            frame.rounds[depth] += 1;
            common = depth + 1;
        }
        frame.rounds.truncate(common);
        frame.rounds.resize(new.len(), 0);
    }

    /// The place of a state.
    pub(crate) fn key(&self, state: &State) -> Key {
        if state.has_ended {
            return vec![LAST];
        }
        let mut key = Vec::new();
        let returns = state.frames.iter().skip(1).map(|frame| Some(frame.return_to)).chain([None]);
        for (frame, return_to) in state.frames.iter().zip(returns) {
            let slot = frame.at;
            for (first, round) in self.loops.get(slot).into_iter().flatten().zip(&frame.rounds) {
                key.extend([self.rank(*first), *round]);
            }
            // Called functions come before where they return to.
            key.push(self.rank(slot) + u32::from(return_to.is_some()));
            if let Some(callback) = &frame.callback {
                key.push(callback.round as u32);
            }
        }
        key
    }

    fn rank(&self, slot: usize) -> u32 {
        self.ranks.get(slot).map_or(LAST - 2, |rank| rank * 2)
    }
}

/// The slots of the same function that come after an instruction.
pub(crate) fn successors(insn: &Insn, slot: usize) -> impl Iterator<Item = usize> {
    let falls = insn.falls_through().then(|| slot + insn.slots());
    let jumps = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
    falls.into_iter().chain(jumps)
}

/// The strongly connected components of some slots, those first from which ways lead to the others (Tarjan's algorithm).
fn components(within: &[usize], after: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let size = within.iter().max().map_or(0, |most| most + 1);
    // Numbers in the order of the first visit, and the least that a slot leads to; slots that are done are not on the stack.
    let (mut numbers, mut least) = (vec![NEW; size], vec![NEW; size]);
    let (mut is_within, mut on_stack) = (vec![false; size], vec![false; size]);
    within.iter().for_each(|slot| is_within[*slot] = true);
    let (mut stack, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for &start in within {
        if numbers[start] != NEW {
            continue;
        }
        let mut visits = vec![(start, 0)];
        while let Some((slot, edge)) = visits.pop() {
            if edge == 0 {
                (numbers[slot], least[slot]) = (count, count);
                count += 1;
                stack.push(slot);
                on_stack[slot] = true;
            } else {
                let before = after[slot][edge - 1];
                if before < size && is_within[before] && on_stack[before] {
                    least[slot] = least[slot].min(least[before]);
                }
            }
            if let Some(&next) = after[slot].get(edge) {
                visits.push((slot, edge + 1));
                if next < size && is_within[next] && numbers[next] == NEW {
                    visits.push((next, 0));
                }
                continue;
            }
            if least[slot] == numbers[slot] {
                let from = stack.iter().rposition(|other| *other == slot).unwrap_or(0);
                let part = stack.split_off(from);
                part.iter().for_each(|slot| on_stack[*slot] = false);
                found.push(part);
            }
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn what_leads_to_others_comes_first() {
        // 0 to 1 and 3, a loop of 1 and 2, and 3 after it.
        let after = [vec![1, 3], vec![2], vec![1, 3], vec![]];
        let mut parts = components(&[0, 1, 2, 3], &after);
        parts.iter_mut().for_each(|part| part.sort_unstable());
        assert_eq!(parts, [vec![0], vec![1, 2], vec![3]]);
        assert_eq!(components(&[2, 3], &after), [vec![2], vec![3]]);
    }
}
