//! Control flow of a program: where the sides of a branch come together, and what a side may change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use paceline_isa::{Callee, Code, Insn, Reg, RegSet};
use paceline_spec::helper::{Arg, Helper};

/// Join of a branch whose sides come together nowhere in the function.
const NOWHERE: u32 = u32::MAX;

/// Control flow of the functions of a program.
pub(crate) struct Flow {
    code: Code,
    /// By slot: the first instruction of the block that follows whichever side is taken, the immediate post-dominator (Ferrante, Ottenstein
    /// and Warren).
    joins: Vec<u32>,
    effects: Mutex<HashMap<usize, Arc<Effects>>>,
}

/// What instructions may change.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Registers.
    pub(crate) registers: RegSet,
    /// Stores with the frame pointer as base: offset and length.
    pub(crate) stack: Vec<(i16, usize)>,
    /// Whether memory may be written through other pointers.
    pub(crate) memory: bool,
}

impl Flow {
    pub(crate) fn of(code: Code) -> Self {
        let joins = Blocks::of(&code).joins(&code);
        Self { code, joins, effects: Mutex::default() }
    }

    /// The instruction of a slot.
    pub(crate) fn insn(&self, slot: usize) -> Option<&Insn> {
        self.code.get(slot)
    }

    /// Where control comes whichever side of the branch at a slot is taken; `None` if the function may end before.
    pub(crate) fn join(&self, slot: usize) -> Option<usize> {
        self.joins.get(slot).filter(|join| **join != NOWHERE).map(|join| *join as usize)
    }

    /// The slot to which a side of the conditional jump at a slot leads.
    pub(crate) fn side(&self, slot: usize, taken: bool) -> Option<usize> {
        let insn = self.code.get(slot)?;
        if taken { usize::try_from(insn.jump_target(slot)?).ok() } else { Some(slot + insn.slots()) }
    }

    /// What may change between a side of the conditional jump at a slot and its join.
    pub(crate) fn effects(&self, slot: usize, taken: bool) -> Arc<Effects> {
        let key = slot * 2 + usize::from(taken);
        // What a thread that panicked has left is whole.
        let mut effects = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(effects.entry(key).or_insert_with(|| Arc::new(self.find_effects(slot, taken))))
    }

    fn find_effects(&self, slot: usize, taken: bool) -> Effects {
        let (mut effects, mut seen) = (Effects::default(), HashSet::new());
        let mut work: Vec<usize> = self.side(slot, taken).into_iter().collect();
        let join = self.join(slot);
        while let Some(at) = work.pop() {
            let Some(insn) = self.code.get(at).filter(|_| Some(at) != join && seen.insert(at)) else {
                continue;
            };
            effects.add(insn);
            work.extend(successors(insn, at));
        }
        effects
    }

    /// Whether the sides of two jumps lead to the same place, but for moves on the way.
    pub(crate) fn meet(&self, a: Option<usize>, b: Option<usize>) -> bool {
        let (a, b) = (self.next_steps(a), self.next_steps(b));
        a.iter().any(|slot| b.contains(slot))
    }

    /// The slots that follow without a branch, up to the first that does more than set a register to a constant or to another one.
    fn next_steps(&self, start: Option<usize>) -> Vec<usize> {
        let (mut slots, mut next) = (Vec::new(), start);
        while let Some(slot) = next.filter(|slot| !slots.contains(slot)) {
            slots.push(slot);
            next = match self.code.get(slot) {
                Some(Insn::Alu { op: paceline_isa::AluOp::Mov, .. } | Insn::LoadImm64 { .. }) => {
                    self.side(slot, false)
                }
                Some(insn @ (Insn::Jump { .. } | Insn::JumpLong { .. })) => successors(insn, slot).next(),
                _ => None,
            };
        }
        slots
    }
}

impl Effects {
    fn add(&mut self, insn: &Insn) {
        self.registers = self.registers.union(insn.writes());
        match insn {
            Insn::Store { base: Reg::R10, offset, size, .. }
            | Insn::StoreRelease { base: Reg::R10, offset, size, .. } => {
                self.stack.push((*offset, size.bytes()));
            }
            Insn::Store { .. } | Insn::StoreRelease { .. } | Insn::Atomic { .. } => self.memory = true,
            Insn::Call(Callee::Helper(id)) => self.memory |= Helper::from_imm(*id).is_none_or(writes_memory),
            Insn::Call(_) | Insn::CallReg(_) => self.memory = true,
            _ => {}
        }
    }
}

/// Whether a helper may write memory of the program's, or calls a function that may.
fn writes_memory(helper: &Helper) -> bool {
    let args = helper.prototype.as_ref().map_or(&[][..], |prototype| prototype.args);
    let writes = |arg: &Arg| {
        !matches!(
            arg,
            Arg::Scalar
                | Arg::Unchecked
                | Arg::Context
                | Arg::Map
                | Arg::MapKey
                | Arg::ReadMem
                | Arg::ReadMemOrNull
                | Arg::ReadBytes(_)
                | Arg::Text
                | Arg::Size
                | Arg::SizeOrZero
                | Arg::RecordSize
                | Arg::Record
        )
    };
    args.iter().any(writes)
}

/// The instructions that may follow in the same function.
fn successors(insn: &Insn, slot: usize) -> impl Iterator<Item = usize> {
    let target = insn.jump_target(slot).and_then(|target| usize::try_from(target).ok());
    let next = insn.falls_through().then(|| slot + insn.slots());
    next.into_iter().chain(target)
}

/// Whether the function may end at an instruction: an exit, a tail call, or a load outside of the packet.
fn may_end(insn: &Insn) -> bool {
    matches!(insn, Insn::Exit | Insn::Call(Callee::Helper(Helper::TAIL_CALL)) | Insn::LoadPacket { .. })
}

/// Basic blocks; the last number is the end of all functions.
struct Blocks {
    /// First slots, rising.
    starts: Vec<usize>,
    /// The blocks that may follow each.
    next: Vec<Vec<usize>>,
}

impl Blocks {
    fn of(code: &Code) -> Self {
        let mut starts: BTreeSet<usize> =
            code.function_starts().into_iter().filter(|start| *start < code.len()).collect();
        for (slot, insn) in code.iter() {
            if insn.jump_target(slot).is_some() || may_end(insn) {
                starts.extend(successors(insn, slot));
            }
        }
        let starts: Vec<usize> = starts.into_iter().filter(|slot| code.get(*slot).is_some()).collect();
        let end = starts.len();
        let next = starts.iter().enumerate().map(|(number, start)| {
            let stop = starts.get(number + 1).copied().unwrap_or(code.len());
            let last = (*start..stop).rev().find_map(|slot| Some((slot, code.get(slot)?)));
            let Some((slot, insn)) = last else { return vec![end] };
            let mut next: Vec<_> =
                successors(insn, slot).filter_map(|slot| starts.binary_search(&slot).ok()).collect();
            next.extend(may_end(insn).then_some(end));
            next
        });
        Self { next: next.collect(), starts }
    }

    /// The join of each slot that ends a block with several successors.
    fn joins(&self, code: &Code) -> Vec<u32> {
        let dominators = self.post_dominators();
        let mut joins = vec![NOWHERE; code.len()];
        for (number, &start) in self.starts.iter().enumerate() {
            let stop = self.starts.get(number + 1).copied().unwrap_or(code.len());
            let last = (start..stop).rev().find(|slot| code.get(*slot).is_some());
            let join = dominators.get(number).copied().flatten().and_then(|block| self.starts.get(block));
            if let (Some(last), Some(join)) = (last.and_then(|last| joins.get_mut(last)), join) {
                *last = *join as u32;
            }
        }
        joins
    }

    /// The immediate post-dominator of each block (Cooper, Harvey and Kennedy, on the reversed graph); `None` if no end is reached.
    fn post_dominators(&self) -> Vec<Option<usize>> {
        let end = self.starts.len();
        let mut before = vec![Vec::new(); end + 1];
        for (number, next) in self.next.iter().enumerate() {
            next.iter().for_each(|next| before[*next].push(number));
        }
        let order = post_order(&before, end);
        let mut rank = vec![usize::MAX; end + 1];
        order.iter().enumerate().for_each(|(index, block)| rank[*block] = index);
        let mut found = vec![None; end + 1];
        found[end] = Some(end);
        loop {
            let mut is_changed = false;
            for &block in order.iter().rev().filter(|block| **block != end) {
                let known = self.next[block].iter().filter(|next| found[**next].is_some()).copied();
                let common = known.reduce(|a, b| intersection(&found, &rank, a, b));
                is_changed |= found[block] != common;
                found[block] = common;
            }
            if !is_changed {
                return found;
            }
        }
    }
}

/// The closest block that dominates both.
fn intersection(found: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        // The block of the lower rank is farther from the root.
        let lower = if rank[a] < rank[b] { &mut a } else { &mut b };
        let Some(next) = found[*lower] else { break };
        *lower = next;
    }
    a
}

/// The blocks that reach `root`, each after those that are reached from it only.
fn post_order(before: &[Vec<usize>], root: usize) -> Vec<usize> {
    let (mut order, mut seen) = (Vec::new(), vec![false; before.len()]);
    let mut work = vec![(root, 0)];
    seen[root] = true;
    while let Some((block, index)) = work.last_mut() {
        match before[*block].get(*index).copied() {
            Some(next) => {
                *index += 1;
                if !std::mem::replace(&mut seen[next], true) {
                    work.push((next, 0));
                }
            }
            None => {
                order.push(*block);
                work.pop();
            }
        }
    }
    order
}
