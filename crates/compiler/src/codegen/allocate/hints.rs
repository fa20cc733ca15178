//! Hints: virtual registers that would best have the same register, so that no move is needed: parameters with their arguments, and definitions
//! with the uses that they are tied to.

use crate::codegen::lir::{Function, Reg, Vreg};
use crate::codegen::reuse::empty;

/// Stands for no virtual register.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Hint {
    /// The first virtual register that it would best share a register with.
    first: u32,
    /// A link towards the first member of the group: all that hints connect (union-find).
    towards: u32,
    /// For the first member of a group: the register that a member was given last, or is tied to.
    shared: Option<Reg>,
}

/// By virtual register.
#[derive(Default)]
pub(super) struct Hints(Vec<Hint>);

impl Hints {
    /// Hints of parameters and their arguments.
    pub(super) fn find<O>(&mut self, function: &Function<O>) {
        let alone = |towards| Hint { first: NONE, towards, shared: None };
        empty(&mut self.0, function.vregs as usize);
        self.0.extend((0..function.vregs).map(alone));
        for target in &function.targets {
            let args = function.args_of(target);
            if !args.is_empty() {
                let params = function.params_of(&function.blocks[target.block as usize]);
                params.iter().zip(args).for_each(|(param, arg)| self.add(*param, *arg));
            }
        }
    }

    pub(super) fn add(&mut self, a: Vreg, b: Vreg) {
        for (one, other) in [(a.0, b.0), (b.0, a.0)] {
            let hint = &mut self.0[one as usize].first;
            if *hint == NONE {
                *hint = other;
            }
        }
        let (a, b) = (self.group(a.0), self.group(b.0));
        self.0[a.max(b)].towards = a.min(b) as u32;
    }

    /// The virtual register whose register one would best have.
    #[inline]
    pub(super) fn first(&self, vreg: u32) -> Option<u32> {
        Some(self.0[vreg as usize].first).filter(|first| *first != NONE)
    }

    /// A virtual register is tied to a register, which its group shares unless it has one.
    pub(super) fn prefer(&mut self, vreg: u32, reg: Reg) {
        let group = self.group(vreg);
        self.shared(group).get_or_insert(reg);
    }

    /// The register of a group.
    #[inline]
    pub(super) fn shared(&mut self, group: usize) -> &mut Option<Reg> {
        &mut self.0[group].shared
    }

    /// The first member of a virtual register's group. Halves the path to it.
    #[inline]
    pub(super) fn group(&mut self, vreg: u32) -> usize {
        let mut at = vreg as usize;
        loop {
            let next = self.0[at].towards as usize;
            if next == at {
                return at;
            }
            let behind = self.0[next].towards;
            self.0[at].towards = behind;
            at = behind as usize;
        }
    }
}
