//! What a program can do to the packet and to maps, and what it can return, by its reached instructions: known before any path is followed.

use std::collections::BTreeSet;

use paceline_isa::{Callee, Insn};
use paceline_spec::MapSpec;
use paceline_spec::helper::{Arg, Helper, HelperId};
use paceline_verifier::{Base, InsnFact, Verified};

use crate::symbolic::fixed::may_write;
use crate::symbolic::property::{Formula, Moment, Number, Rest};
use crate::symbolic::returns::returned;

/// What a program can do. Subprograms and callbacks are part of it; a program that is tail called may do anything.
#[derive(Debug)]
pub(crate) struct Effects<'v> {
    verified: &'v Verified,
    /// Whether another program may go on.
    calls_on: bool,
    /// Whether the packet's length may change.
    resizes: bool,
    /// Whether a byte of the packet may change.
    writes: bool,
    /// The numbers that it may return; `None` if they are not known.
    returns: Option<BTreeSet<u32>>,
}

impl<'v> Effects<'v> {
    pub(crate) fn of(verified: &'v Verified) -> Self {
        let reached = || {
            let all = verified.code().iter().map(|(slot, insn)| (insn, verified.fact(slot)));
            all.filter(|(_, fact)| fact.reached)
        };
        let calls_on =
            reached().any(|(insn, _)| matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL))));
        let resizes = calls_on || reached().any(|(insn, _)| resizes(insn));
        let writes = resizes || reached().any(|(insn, fact)| writes(insn, &fact));
        let returns = if calls_on { None } else { returned(verified) };
        Self { verified, calls_on, resizes, writes, returns }
    }

    /// A formula that holds of the same runs: where nothing changes the packet, the one that goes out is the one that came in; a verdict for which no
    /// returned number stands is none, and a map to which nothing is written does not change.
    pub(crate) fn applied(&self, formula: &Formula, maps: &[MapSpec]) -> Formula {
        let each = |all: &[Formula]| all.iter().map(|one| self.applied(one, maps)).collect();
        match formula {
            Formula::Not(inner) => Formula::Not(Box::new(self.applied(inner, maps))),
            Formula::All(all) => Formula::All(each(all)),
            Formula::Any(any) => Formula::Any(each(any)),
            Formula::Verdict(verdict) => {
                let meaning = self.verified.program().kind.rules().meaning;
                let stands = |number: &u32| meaning.verdict(meaning.code((*number).into())) == *verdict;
                match &self.returns {
                    Some(returns) if !returns.iter().any(stands) => Formula::Any(Vec::new()),
                    Some(returns) if returns.iter().all(stands) => Formula::All(Vec::new()),
                    _ => formula.clone(),
                }
            }
            Formula::Compare(relation, left, right) => {
                Formula::Compare(*relation, self.number(left, maps), self.number(right, maps))
            }
            Formula::Same(left, right) if !self.writes && left.from == right.from => Formula::All(Vec::new()),
            Formula::Same(left, right) => {
                let rest = |rest: &Rest| Rest { of: self.moment(rest.of, self.writes), ..*rest };
                Formula::Same(rest(left), rest(right))
            }
            Formula::Changes(map) => {
                match self.calls_on || maps.get(*map).is_none() || may_write(self.verified, *map) {
                    true => formula.clone(),
                    false => Formula::Any(Vec::new()),
                }
            }
        }
    }

    fn number(&self, number: &Number, maps: &[MapSpec]) -> Number {
        let both = |left: &Number, right: &Number| {
            (Box::new(self.number(left, maps)), Box::new(self.number(right, maps)))
        };
        match number {
            Number::Constant(_) | Number::Returned => number.clone(),
            Number::Length(of) => Number::Length(self.moment(*of, self.resizes)),
            Number::Bits { of, first, count } => {
                Number::Bits { of: self.moment(*of, self.writes), first: *first, count: *count }
            }
            Number::Sum(left, right) => {
                let (left, right) = both(left, right);
                Number::Sum(left, right)
            }
            Number::Difference(left, right) => {
                let (left, right) = both(left, right);
                Number::Difference(left, right)
            }
            Number::Product(left, right) => {
                let (left, right) = both(left, right);
                Number::Product(left, right)
            }
            Number::Both(left, right) => {
                let (left, right) = both(left, right);
                Number::Both(left, right)
            }
            Number::Choice(choices) => {
                let one = |(formula, number): &(Formula, Number)| {
                    (self.applied(formula, maps), self.number(number, maps))
                };
                Number::Choice(choices.iter().map(one).collect())
            }
        }
    }

    /// The moment of a part of the packet that may change, or that is as it came in.
    const fn moment(&self, moment: Moment, may_change: bool) -> Moment {
        if may_change { moment } else { Moment::In }
    }
}

/// Whether an instruction may change the packet's length. Pointers to the packet stay valid after a helper that does not move it, so that it cannot be
/// shorter, and none of those makes it longer.
fn resizes(insn: &Insn) -> bool {
    match insn {
        Insn::Call(Callee::Helper(id)) => match Helper::from_imm(*id) {
            Some(helper) => {
                helper.prototype.is_none_or(|prototype| prototype.moves_packet) && !keeps_length(helper.id)
            }
            None => true,
        },
        Insn::Call(Callee::Kfunc { .. }) | Insn::CallReg(_) => true,
        _ => false,
    }
}

/// Whether a helper that moves the packet leaves it as long as it was.
const fn keeps_length(id: HelperId) -> bool {
    matches!(
        id,
        HelperId::SkbStoreBytes
            | HelperId::L3CsumReplace
            | HelperId::L4CsumReplace
            | HelperId::SkbPullData
            | HelperId::XdpAdjustMeta
    )
}

/// Whether an instruction that does not change the packet's length may change its bytes.
fn writes(insn: &Insn, fact: &InsnFact) -> bool {
    match insn {
        Insn::Store { .. } | Insn::StoreRelease { .. } | Insn::Atomic { .. } => {
            match fact.memory.map(|memory| memory.base) {
                Some(
                    Base::Context
                    | Base::OwnStack
                    | Base::CallerStack
                    | Base::MapValue(_)
                    | Base::SomeMapValue,
                ) => false,
                // Memory that is given to a function may lie in the packet.
                Some(Base::Packet | Base::Memory | Base::Mixed) | None => true,
            }
        }
        Insn::Call(Callee::Helper(id)) => Helper::from_imm(*id).is_none_or(helper_writes),
        Insn::Call(Callee::Kfunc { .. }) | Insn::CallReg(_) => true,
        _ => false,
    }
}

fn helper_writes(helper: &Helper) -> bool {
    let Some(prototype) = helper.prototype else { return true };
    let is_written = |arg: &Arg| {
        matches!(
            arg,
            Arg::NextValue
                | Arg::WriteMem
                | Arg::WriteMemOrNull
                | Arg::ReadWriteMem
                | Arg::WriteBytes(_)
                | Arg::ReadWriteBytes(_)
        )
    };
    match helper.id {
        HelperId::SkbPullData | HelperId::XdpAdjustMeta => false,
        // Without moving it.
        HelperId::XdpStoreBytes | HelperId::SkbEcnSetCe | HelperId::DynptrWrite => true,
        _ => prototype.moves_packet || helper.takes_packet_memory() && prototype.args.iter().any(is_written),
    }
}
