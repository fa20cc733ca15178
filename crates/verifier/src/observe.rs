//! Observers of a walk: for logs, for a register's history in messages, for soundness tests.

use crate::domain::state::State;

/// Why a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// The program or the global function returns.
    Exit,
    /// An earlier state covers this one in all that is known to matter.
    Covered,
}

/// Observer of a walk. Branches wait on a stack: last in, first out.
pub trait Observer {
    /// A function is walked from its start: the main program, or a global function by its types.
    fn function(&mut self, slot: usize, state: &State) {
        let _ = (slot, state);
    }

    /// The instruction of a slot is simulated on this state, even if it is then refused.
    fn instruction(&mut self, slot: usize, state: &State) {
        let _ = (slot, state);
    }

    /// The branch at `slot` may also jump to `target`: the jump waits, the path falls through.
    fn branch(&mut self, slot: usize, target: usize) {
        let _ = (slot, target);
    }

    /// The path ends at `slot`.
    fn path_ends(&mut self, slot: usize, why: PathEnd) {
        let _ = (slot, why);
    }

    /// The branch that waited last resumes, at `slot`.
    fn resume(&mut self, slot: usize) {
        let _ = slot;
    }

    /// A path that was covered at `slot` resumes there: values became precise in which its state is not covered.
    fn retry(&mut self, slot: usize) {
        let _ = slot;
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::assemble;
    use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

    use super::*;
    use crate::{Options, verify_observed};

    #[derive(Default)]
    struct Count {
        instructions: usize,
        waiting: Vec<usize>,
        resumed: usize,
        ends: Vec<PathEnd>,
    }

    impl Observer for Count {
        fn instruction(&mut self, _slot: usize, _state: &State) {
            self.instructions += 1;
        }

        fn branch(&mut self, _slot: usize, target: usize) {
            self.waiting.push(target);
        }

        fn path_ends(&mut self, _slot: usize, why: PathEnd) {
            self.ends.push(why);
        }

        fn resume(&mut self, slot: usize) {
            assert_eq!(self.waiting.pop(), Some(slot), "the branch that waited last");
            self.resumed += 1;
        }
    }

    #[test]
    fn everything_is_told() {
        let text = "r2 = *(u32 *)(r1 + 12)
            r0 = 1
            if r2 == 3 goto +1
            r0 = 2
            if r2 == 4 goto +1
            r0 = 2
            exit";
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        let program = ProgramSpec::new("told", kind, assemble(text, &()).unwrap().encode().unwrap());
        let mut count = Count::default();
        let verified = verify_observed(&program, &[], None, &Options::default(), &mut count).unwrap();
        assert_eq!(count.instructions, verified.stats().instructions);
        assert!(count.waiting.is_empty());
        assert_eq!(count.ends.len(), count.resumed + 1, "each path ends once");
        assert_eq!(count.resumed, 2);
    }
}
