//! The goals of a program.

use paceline_frame::Verdict;
use paceline_isa::{Callee, Insn};
use paceline_spec::helper::{Helper, HelperId};
use paceline_spec::{MapSpec, Meaning};
use paceline_verifier::{MapFact, Verified};

use crate::symbolic::goal::{Goal, Goals, Meets, Side};

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
