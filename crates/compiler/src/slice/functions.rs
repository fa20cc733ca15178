//! The callee-saved registers that the functions of a program change.

use std::collections::BTreeMap;

use paceline_isa::{Code, RegSet};

pub(crate) struct Functions {
    /// By first slot: the registers that a function or one that it calls writes.
    changed: BTreeMap<usize, RegSet>,
}

impl Functions {
    pub(crate) fn of(code: &Code) -> Self {
        let starts = code.function_starts();
        let ends = starts.iter().skip(1).copied().chain([code.len()]);
        let mut changed = BTreeMap::new();
        let mut calls: Vec<(usize, usize)> = Vec::new();
        for (&start, end) in starts.iter().zip(ends) {
            let mut written = RegSet::EMPTY;
            for slot in start..end {
                let Some(insn) = code.get(slot) else { continue };
                match insn.subprogram_target(slot).and_then(|target| usize::try_from(target).ok()) {
                    Some(callee) if insn.is_call() => calls.push((start, callee)),
                    _ if insn.is_call() => {}
                    _ => written = written.union(insn.writes()),
                }
            }
            changed.insert(start, written.intersection(RegSet::CALLEE_SAVED));
        }
        let mut functions = Self { changed };
        functions.add_callees(&calls);
        functions
    }

    /// Adds what callees write to their callers, up to the fixed point.
    fn add_callees(&mut self, calls: &[(usize, usize)]) {
        let mut grows = true;
        while grows {
            grows = false;
            for &(caller, callee) in calls {
                let (before, theirs) = (self.changed_by(caller), self.changed_by(callee));
                let all = before.union(theirs);
                if all != before {
                    self.changed.insert(caller, all);
                    grows = true;
                }
            }
        }
    }

    /// The registers that a call of the function at a slot changes: a slice has no code that restores them.
    pub(crate) fn changed_by(&self, start: usize) -> RegSet {
        self.changed.get(&start).map_or(RegSet::CALLEE_SAVED, |changed| *changed)
    }
}
