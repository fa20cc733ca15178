//! The goals of a program, and where paths meet those that are no branch sides.

use paceline_frame::Verdict;
use paceline_isa::{Callee, Insn, Reg};
use paceline_solver::{Answer, Term};
use paceline_spec::helper::{Helper, HelperId};
use paceline_spec::{MapSpec, Meaning};
use paceline_verifier::{MapFact, Verified};

use crate::explorer::Explorer;
use crate::give_up::GiveUp;
use crate::goal::{Goal, Goals, Meets, Side};
use crate::state::{Assignment, State};

/// All goals of a kind, and whether the verifier found a way to them.
pub(crate) fn goals(verified: &Verified, maps: &[MapSpec], kind: Goals) -> Vec<(Goal, bool)> {
    let mut goals = Vec::new();
    for (slot, insn) in verified.code().iter() {
        match (kind, insn) {
            (Goals::Sides, Insn::JumpIf { .. }) => {
                let fact = verified.fact(slot);
                for (taken, may) in [(false, fact.may_fall_through), (true, fact.may_jump)] {
                    goals.push((Side { slot, taken }.into(), fact.reached && may));
                }
            }
            (Goals::Verdicts, Insn::Exit) if is_main(verified, slot) => {
                let reached = verified.fact(slot).reached;
                let verdicts = Verdict::ALL.into_iter().filter(|verdict| exists(verified, *verdict));
                goals.extend(verdicts.map(|verdict| (Goal::Return { slot, verdict }, reached)));
            }
            (Goals::Operations, &Insn::Call(Callee::Helper(id))) => {
                let met = outcomes(verified, maps, slot, id);
                let reached = verified.fact(slot).reached;
                goals.extend(met.iter().map(|&meets| (Goal::Operation { slot, meets }, reached)));
            }
            _ => {}
        }
    }
    goals
}

/// Whether a slot is in the function that the program begins with.
fn is_main(verified: &Verified, slot: usize) -> bool {
    verified.functions().iter().any(|function| function.start == 0 && slot < function.end)
}

/// Whether some number that programs of the type return stands for a verdict.
fn exists(verified: &Verified, verdict: Verdict) -> bool {
    match verified.program().kind.rules().meaning {
        Meaning::Verdict => true,
        Meaning::Action(actions) => {
            actions.other == verdict || actions.list.iter().any(|action| action.verdict == verdict)
        }
        Meaning::BytesKept => matches!(verdict, Verdict::Drop | Verdict::Pass),
    }
}

/// What a helper call may meet, if it is a map operation.
fn outcomes(verified: &Verified, maps: &[MapSpec], slot: usize, helper: i32) -> &'static [Meets] {
    use Meets::{Found, Full, NotFound};
    match Helper::from_imm(helper).map(|helper| helper.id) {
        Some(HelperId::MapLookupElem | HelperId::MapDeleteElem | HelperId::RedirectMap) => &[Found, NotFound],
        Some(HelperId::MapUpdateElem) => match verified.fact(slot).map {
            Some(MapFact::Always(map)) if !fills_up(maps.get(map.index as usize)) => &[Found, NotFound],
            _ => &[Found, NotFound, Full],
        },
        _ => &[],
    }
}

/// Whether a map may have no room for an element.
fn fills_up(map: Option<&MapSpec>) -> bool {
    map.is_some_and(|map| !map.kind.has_indices() && !map.kind.is_lru())
}

impl Explorer<'_> {
    /// Notes what the map operation at a state's slot meets.
    pub(crate) fn met(&mut self, state: &State, meets: Meets) {
        self.reach(state, Goal::Operation { slot: state.slot, meets });
    }

    /// Looks for the verdicts that the program may return at a state's slot.
    pub(crate) fn returns(&mut self, state: &State) -> Result<(), GiveUp> {
        let wanted = |goal: &Goal| matches!(goal, Goal::Return { slot, .. } if *slot == state.slot);
        let wanted: Vec<_> = self.open.iter().copied().filter(wanted).collect();
        for goal in wanted {
            let Goal::Return { verdict, .. } = goal else { continue };
            let number = self.number(state, Reg::R0)?;
            let condition = self.stands_for(number, verdict);
            match self.solver.extend(&mut self.terms, &state.path, &state.assignment.model, condition) {
                Answer::Sat(model) => {
                    let mut other = state.clone();
                    other.path.push(condition);
                    other.assignment = Assignment::new(model);
                    self.reach(&other, goal);
                }
                Answer::Unsat => {}
                Answer::Unknown(unknown) => self.leave(state, GiveUp::Solver(unknown)),
            }
        }
        Ok(())
    }

    /// Whether a returned number stands for a verdict. Of numbers of bytes to keep, 0 drops the packet.
    pub(crate) fn stands_for(&mut self, number: Term, verdict: Verdict) -> Term {
        let low = self.terms.extract(number, 0, 32);
        let is = |explorer: &mut Self, value: u32| {
            let value = explorer.terms.constant(32, u64::from(value));
            explorer.terms.eq(low, value)
        };
        match self.verified.program().kind.rules().meaning {
            Meaning::BytesKept => {
                let none = is(self, 0);
                if verdict == Verdict::Drop { none } else { self.terms.not(none) }
            }
            Meaning::Action(actions) => {
                let mut stands = self.terms.bool(actions.other == verdict);
                for action in actions.list {
                    let this = is(self, action.value);
                    let value = self.terms.bool(action.verdict == verdict);
                    stands = self.terms.ite(this, value, stands);
                }
                stands
            }
            // Numbers that are no verdict are those of a failure.
            Meaning::Verdict if verdict == Verdict::Aborted => {
                let last = self.terms.constant(32, Verdict::Redirect as u64);
                let is_beyond = self.terms.ult(last, low);
                let zero = is(self, 0);
                self.terms.or(is_beyond, zero)
            }
            Meaning::Verdict => is(self, verdict as u32),
        }
    }
}
