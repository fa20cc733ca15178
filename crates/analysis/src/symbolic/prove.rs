//! A property of all runs of a program: each path is followed, and the solver says whether the property fails at its end.

use crate::solver::{Answer, Term};
use paceline_isa::Reg;
use paceline_spec::MapSpec;
use paceline_verifier::Verified;

use crate::symbolic::claim::{Claim, Proof};
use crate::symbolic::compare_packet::MOST_ADDED;
use crate::symbolic::effects::Effects;
use crate::symbolic::explorer::{Explorer, Next};
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::options::{Options, Progress};
use crate::symbolic::property::{Formula, Moment, Number, Relation, Rest};
use crate::symbolic::source::Source;
use crate::symbolic::state::{Assignment, State};

/// Looks for inputs with which a property of a program's runs does not hold, up to so many.
#[must_use]
pub fn prove(
    verified: &Verified,
    maps: &[MapSpec],
    property: &Formula,
    options: &Options,
    most: usize,
    tell: &mut dyn FnMut(Progress),
) -> Proof {
    let property = &Effects::of(verified).applied(property, maps);
    let mut explorer = Explorer::new(verified, maps, *options);
    let is_about_maps = property.is_about_maps();
    explorer.claim = Some(Claim { property, is_about_maps, refuting: Vec::new(), most, left: Vec::new() });
    explorer.open.clear();
    explorer.run(tell);
    let bounds = explorer.bounds();
    let (refuting, left) = explorer.claim.map(|claim| (claim.refuting, claim.left)).unwrap_or_default();
    Proof { refuting, left, paths: explorer.paths, bounds }
}

impl Explorer<'_> {
    /// The program has ended: an input of the path is kept if the property fails with it.
    pub(crate) fn claimed(&mut self, state: &State) -> Result<Next, GiveUp> {
        let Some(property) = self.claim.as_ref().map(|claim| claim.property) else { return Ok(Next::End) };
        if state.tail.is_some() {
            return Err(GiveUp::HelperUse("bpf_tail_call", "where it leads to another program"));
        }
        let holds = self.formula(state, property)?;
        let mut fails = self.terms.not(holds);
        if property.is_about_rests() {
            let longer = self.is_longer(state);
            let shorter = self.terms.not(longer);
            fails = self.terms.and(fails, shorter);
            self.refute(state, fails)?;
            return match self.ask(&state.path, &state.assignment.model, longer) {
                Answer::Unsat => Ok(Next::End),
                Answer::Sat(_) => Err(GiveUp::Instruction("a packet that grows beyond the greatest length")),
                Answer::Unknown(unknown) => Err(GiveUp::Solver(unknown)),
            };
        }
        self.refute(state, fails)?;
        Ok(Next::End)
    }

    /// What holds of the packet that comes in where the property fails: other paths need not be followed.
    pub(crate) fn assumptions(&mut self, state: &State) -> Result<Vec<Term>, GiveUp> {
        let Some(property) = self.claim.as_ref().map(|claim| claim.property) else { return Ok(Vec::new()) };
        let mut parts = Vec::new();
        property.parts(false, &mut parts);
        let known = parts.into_iter().filter(|(part, _)| part.is_about_input());
        known
            .map(|(part, holds)| {
                let term = self.formula(state, part)?;
                Ok(if holds { term } else { self.terms.not(term) })
            })
            .collect()
    }

    /// Keeps an input of a path on which a condition holds.
    fn refute(&mut self, state: &State, condition: Term) -> Result<(), GiveUp> {
        match self.ask(&state.path, &state.assignment.model, condition) {
            Answer::Sat(model) => {
                let mut other = state.clone();
                other.path.push(condition);
                other.assignment = Assignment::new(model);
                let input = self.input(&other)?;
                // A path whose question waited comes here again.
                if let Some(claim) = &mut self.claim
                    && !claim.refuting.contains(&input)
                {
                    claim.refuting.push(input);
                }
                Ok(())
            }
            Answer::Unsat => Ok(()),
            Answer::Unknown(unknown) => Err(GiveUp::Solver(unknown)),
        }
    }

    /// Bytes of packets that are compared.
    fn most_bytes(&self) -> u64 {
        u64::from(self.options.length.1) + MOST_ADDED.cast_unsigned()
    }

    /// Whether the packet is longer at the end than packets are looked at.
    fn is_longer(&mut self, state: &State) -> Term {
        let most = self.terms.constant(64, self.most_bytes());
        let len = self.length_of(&state.packet);
        self.terms.slt(most, len)
    }

    fn formula(&mut self, state: &State, formula: &Formula) -> Result<Term, GiveUp> {
        Ok(match formula {
            Formula::Not(inner) => {
                let inner = self.formula(state, inner)?;
                self.terms.not(inner)
            }
            Formula::All(all) => {
                let mut holds = self.terms.bool(true);
                for formula in all {
                    let formula = self.formula(state, formula)?;
                    holds = self.terms.and(holds, formula);
                }
                holds
            }
            Formula::Any(any) => {
                let mut holds = self.terms.bool(false);
                for formula in any {
                    let formula = self.formula(state, formula)?;
                    holds = self.terms.or(holds, formula);
                }
                holds
            }
            Formula::Verdict(verdict) => {
                let returned = self.number(state, Reg::R0)?;
                self.stands_for(returned, *verdict)
            }
            Formula::Compare(relation, left, right) => {
                let (left, right) = (self.figure(state, left)?, self.figure(state, right)?);
                match relation {
                    Relation::Equal => self.terms.eq(left, right),
                    Relation::Less => self.terms.ult(left, right),
                    Relation::LessOrEqual => self.terms.ule(left, right),
                }
            }
            Formula::Same(left, right) => self.same_rest(state, *left, *right)?,
            Formula::Changes(map) => {
                let mut all = Vec::new();
                self.other_elements(*map, state, (&[], &[]), &mut all)?;
                self.any(&all)
            }
        })
    }

    fn figure(&mut self, state: &State, number: &Number) -> Result<Term, GiveUp> {
        Ok(match number {
            Number::Constant(number) => self.terms.constant(64, *number),
            Number::Length(moment) => self.length_at(state, *moment),
            Number::Bits { of, first, count } => self.bits(state, *of, *first, *count)?,
            Number::Returned => {
                let returned = self.number(state, Reg::R0)?;
                let low = self.terms.extract(returned, 0, 32);
                self.terms.resize(low, 64)
            }
            Number::Sum(left, right) => {
                let (left, right) = (self.figure(state, left)?, self.figure(state, right)?);
                self.terms.add(left, right)
            }
            Number::Difference(left, right) => {
                let (left, right) = (self.figure(state, left)?, self.figure(state, right)?);
                self.terms.sub(left, right)
            }
            Number::Product(left, right) => {
                let (left, right) = (self.figure(state, left)?, self.figure(state, right)?);
                self.terms.mul(left, right)
            }
            Number::Both(left, right) => {
                let (left, right) = (self.figure(state, left)?, self.figure(state, right)?);
                self.terms.and(left, right)
            }
            Number::Choice(choices) => {
                let mut chosen = self.terms.constant(64, 0);
                for (formula, number) in choices.iter().rev() {
                    let (formula, number) = (self.formula(state, formula)?, self.figure(state, number)?);
                    chosen = self.terms.ite(formula, number, chosen);
                }
                chosen
            }
        })
    }

    fn length_at(&mut self, state: &State, moment: Moment) -> Term {
        match moment {
            Moment::In => {
                let length = self.sources.term(&mut self.terms, Source::Length);
                self.terms.resize(length, 64)
            }
            Moment::Out => self.length_of(&state.packet),
        }
    }

    /// A byte of the packet, by its offset from the packet's start at that time.
    fn byte_at(&mut self, state: &State, moment: Moment, offset: usize) -> Result<Term, GiveUp> {
        const FAR: GiveUp = GiveUp::Instruction("a byte so far from the packet's start");
        match moment {
            Moment::In => {
                let offset = u32::try_from(offset).map_err(|_| FAR)?;
                Ok(self.sources.term(&mut self.terms, Source::Packet(offset)))
            }
            Moment::Out => {
                let offset = i64::try_from(offset).map_err(|_| FAR)?;
                self.packet_at(&state.packet, state.packet.start.saturating_add(offset))
            }
        }
    }

    fn bits(&mut self, state: &State, of: Moment, first: usize, count: usize) -> Result<Term, GiveUp> {
        let (start, end) = (first / 8, (first + count).div_ceil(8));
        if count == 0 || end - start > 8 {
            return Err(GiveUp::Instruction("a field of so many bits"));
        }
        let mut word = None;
        for offset in start..end {
            let byte = self.byte_at(state, of, offset)?;
            word = Some(match word {
                Some(high) => self.terms.concat(high, byte),
                None => byte,
            });
        }
        let word = word.ok_or(GiveUp::Instruction("a field of so many bits"))?;
        let below = (end * 8 - first - count) as u32;
        let bits = self.terms.extract(word, below, count as u32);
        Ok(self.terms.resize(bits, 64))
    }

    /// Bytes from an offset to the end of a packet.
    fn length_from(&mut self, state: &State, rest: Rest) -> Term {
        let (len, from) = (self.length_at(state, rest.of), self.terms.constant(64, rest.from as u64));
        let (is_short, some) = (self.terms.ule(len, from), self.terms.sub(len, from));
        let none = self.terms.constant(64, 0);
        self.terms.ite(is_short, none, some)
    }

    /// Whether two packets have the same bytes from offsets on, of packets that are not longer than packets are looked at.
    fn same_rest(&mut self, state: &State, left: Rest, right: Rest) -> Result<Term, GiveUp> {
        let (len, other) = (self.length_from(state, left), self.length_from(state, right));
        let mut same = self.terms.eq(len, other);
        // Bytes of packets of different lengths need no terms.
        if self.solver.extend(&mut self.terms, &state.path, &state.assignment.model, same) == Answer::Unsat {
            return Ok(self.terms.bool(false));
        }
        for place in 0..self.most_bytes() {
            let at = |rest: Rest| rest.from.saturating_add(place as usize);
            let (a, b) = (self.byte_at(state, left.of, at(left))?, self.byte_at(state, right.of, at(right))?);
            let equal = self.terms.eq(a, b);
            if self.terms.value(equal) == Some(1) {
                continue;
            }
            let place = self.terms.constant(64, place);
            let is_beyond = self.terms.ule(len, place);
            let equal = self.terms.or(is_beyond, equal);
            same = self.terms.and(same, equal);
        }
        Ok(same)
    }

    /// Whether maps that were changed count.
    pub(crate) fn compares_maps(&self) -> bool {
        self.twin.is_some() || self.claim.as_ref().is_some_and(|claim| claim.is_about_maps)
    }
}
