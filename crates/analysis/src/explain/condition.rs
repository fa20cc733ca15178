//! The branches that one condition of the source is compiled to.

use paceline_isa::Condition;

use crate::explain::fact::FactWriter;
use crate::explain::field::Comparison;
use crate::explain::jump::{Jump, Standing, is_setting};
use crate::explain::recorder::Record;
use crate::explain::steps::Step;
use crate::explain::trace::{Cause, CauseKind, Event, Fact};

/// Most branches of a condition that are looked for, in each direction.
const MOST: usize = 16;

/// The decision that a branch belongs to: with the branches before and after it that lead to the same other side, or compare the same
/// field.
pub(crate) fn condition(record: &Record, index: usize, writer: FactWriter<'_>) -> Option<Cause> {
    let jump = record.jumps.get(index)?;
    let at = record.steps.get(jump.step)?.at;
    let mut members = vec![index];
    for step in [-1, 1] {
        let mut last = index;
        let others = (1..=MOST as isize).map_while(|n| index.checked_add_signed(n * step));
        for other in others {
            match relation(record, index, last, other) {
                Relation::Other => break,
                Relation::Near => {}
                Relation::Part => members.push(other),
            }
            last = other;
        }
    }
    members.sort_unstable();
    let jumps = || members.iter().filter_map(|member| record.jumps.get(*member));
    let mut facts: Vec<Fact> = Vec::new();
    for jump in jumps() {
        for fact in facts_of(jump, writer) {
            let known =
                facts.iter().position(|known| (&known.name, &known.value) == (&fact.name, &fact.value));
            let index = known.unwrap_or(facts.len());
            if known.is_none() {
                facts.push(fact);
            }
            let Some(fact) = facts.get_mut(index) else { continue };
            let unequal = Comparison::of(jump).and_then(|comparison| comparison.unequal(&fact.name));
            fact.not.extend(unequal.filter(|other| !fact.not.contains(other)));
        }
    }
    // One value that it does not have says little, and many say nothing.
    facts
        .iter_mut()
        .filter(|fact| !(2..=MOST_OTHERS).contains(&fact.not.len()))
        .for_each(|fact| fact.not.clear());
    let variables = match jump.event.and_then(|event| record.events.get(event)) {
        Some(Event::Branch(branch)) => branch.variables.clone(),
        _ => Vec::new(),
    };
    let events = jumps().filter_map(|jump| jump.event).collect();
    Some(Cause { at, after: None, kind: CauseKind::Condition, facts, variables, events })
}

/// Most values that a field is said not to have.
const MOST_OTHERS: usize = 4;

/// What a branch compares, without constants that it was found to differ from.
fn facts_of(jump: &Jump, writer: FactWriter<'_>) -> Vec<Fact> {
    let differ = matches!((jump.condition, jump.taken), (Condition::Eq, false) | (Condition::Ne, true));
    let merged = jump.left.0.merged(&jump.right.0).sources;
    let named: Vec<_> = merged.iter().filter(|source| !differ || !is_setting(source)).cloned().collect();
    writer.facts(if named.is_empty() { &merged } else { &named })
}

/// What a branch is to a condition.
enum Relation {
    /// No part of it, nor is anything beyond.
    Other,
    /// On its line, but without influence.
    Near,
    /// A part of it.
    Part,
}

fn relation(record: &Record, of: usize, last: usize, other: usize) -> Relation {
    let step =
        |index: usize| record.jumps.get(index).and_then(|jump| Some((jump, record.steps.get(jump.step)?)));
    let (Some(of), Some(last), Some(other)) = (step(of), step(last), step(other)) else {
        return Relation::Other;
    };
    if of.1.activation != other.1.activation || of.1.at == other.1.at {
        return Relation::Other;
    }
    if is_ladder(of.0, other.0) {
        return Relation::Part;
    }
    if !same_statement(record, last.1, other.1) {
        return Relation::Other;
    }
    match has_same_other_side(record, of, other)
        && matches!(other.0.standing(), Standing::Strong | Standing::Setting)
    {
        true => Relation::Part,
        false => Relation::Near,
    }
}

/// Whether two branches compare one field with numbers, as those of a `switch` do, and the first of them has not found its value.
fn is_ladder(a: &Jump, b: &Jump) -> bool {
    let (Some(a), Some(b)) = (Comparison::of(a), Comparison::of(b)) else { return false };
    let place = |comparison: &Comparison<'_>| comparison.bits.positions().collect::<Vec<_>>();
    !a.is_equal() && !b.is_equal() && place(&a) == place(&b)
}

/// Whether the sides that two branches did not take lead to the same place.
fn has_same_other_side(record: &Record, a: (&Jump, &Step), b: (&Jump, &Step)) -> bool {
    let Some(flow) = record.steps.flow(a.1.at) else { return false };
    let side = |(jump, step): (&Jump, &Step)| flow.side(step.at.slot, !jump.taken);
    flow.meet(side(a), side(b))
}

/// Whether two branches are of one line, or of lines of which the first goes on in the second.
fn same_statement(record: &Record, a: &Step, b: &Step) -> bool {
    let line = |step: &Step| {
        record.programs.get(step.at.program)?.line_of(step.at.slot).filter(|line| line.line > 0)
    };
    let (Some(a), Some(b)) = (line(a), line(b)) else { return false };
    let (first, second) = if a.line <= b.line { (a, b) } else { (b, a) };
    let goes_on = |text: &str| ["||", "&&", "(", ","].iter().any(|end| text.trim_end().ends_with(end));
    a.file == b.file && (a.line == b.line || (second.line == first.line + 1 && goes_on(&first.text)))
}
