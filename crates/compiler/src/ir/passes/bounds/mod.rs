//! Branches that the outcome of dominating ones decides: by relations of the same two values, by ranges, and by the least and greatest
//! length of the packet that a comparison with its end has proven.

mod length;
mod relation;

use std::collections::HashMap;

use foldhash::fast::RandomState;
use paceline_isa::Condition;
use paceline_verifier::domain::Number;

use crate::ir::analyses::Analyses;
use crate::ir::arena::Side;
use crate::ir::cfg::{Cfg, Edge};
use crate::ir::entity::Value;
use crate::ir::function::{Function, Terminator};
use crate::ir::op::Op;
use crate::ir::ranges::{Ranges, decide, of_op};
use crate::ir::types::Type;
use length::{Asked, Length};
use relation::Relation;

pub(super) fn run(function: &mut Function, analyses: &mut Analyses) {
    let (cfg, tree) = (analyses.cfg(function), analyses.dominators(function));
    // default: ranges that no pass has left are computed.
    let ranges = analyses.take_ranges().unwrap_or_else(|| Ranges::of(function, &cfg));
    let decided_by_ranges = analyses.folded().is_some_and(|folded| folded.is_current);
    let mut known = Known::new(function, &cfg, &ranges, decided_by_ranges);
    let mut decided = Vec::new();
    let mut work = Vec::with_capacity(64);
    work.push(Step::Enter(0));
    while let Some(step) = work.pop() {
        match step {
            Step::Leave(undo) => known.forget(undo),
            Step::Enter(position) => {
                let Some(&block) = cfg.order().get(position as usize) else { break };
                let is_asked = matches!(function.block(block).terminator, Terminator::Branch { .. });
                if !is_asked && tree.children(position).is_empty() {
                    continue;
                }
                work.push(Step::Leave(known.changes.len()));
                if let Some(edge) = cfg.single_edge(block) {
                    known.learn(edge);
                }
                if let Some(holds) = known.outcome(&function.block(block).terminator) {
                    decided.push((block, holds));
                }
                work.extend(tree.children(position).iter().map(|child| Step::Enter(*child)));
            }
        }
    }
    analyses.keep_ranges(ranges);
    if !decided.is_empty() {
        analyses.values_changed();
        analyses.graph_changed();
    }
    for (block, holds) in decided {
        if let Terminator::Branch { targets: [taken, other], .. } = &function.block(block).terminator {
            let target = if holds { taken } else { other }.clone();
            function.block_mut(block).terminator = Terminator::Jump(target);
        }
    }
}

/// A step of the walk over the dominator tree.
enum Step {
    Enter(u32),
    /// Back to so many changes.
    Leave(usize),
}

type Map<K, V> = HashMap<K, V, RandomState>;

/// What is known at a block.
struct Known<'a> {
    function: &'a Function,
    ranges: &'a Ranges,
    /// Whether the ranges that values have everywhere decide no branch.
    decided: bool,
    /// How often branches ask for the ranges of values.
    asked: Side<Value, u8>,
    refined: Refined,
    relations: Map<(Type, Value, Value), Relation>,
    /// By start and end.
    lengths: Map<(Value, Value), Length>,
    changes: Vec<Change>,
}

/// Ranges that values have here, and not everywhere.
#[derive(Default)]
struct Refined {
    places: Side<Value, Place>,
    ranges: Vec<Number>,
}

/// One more than the position of a range, or 0.
type Place = u32;

impl Refined {
    const fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn get(&self, value: Value) -> Option<&Number> {
        self.ranges.get((self.places[value] as usize).wrapping_sub(1))
    }

    /// Sets the range of a value. Returns the place of its range before, to which it is restored.
    fn set(&mut self, value: Value, range: Number) -> Place {
        self.ranges.push(range);
        std::mem::replace(&mut self.places[value], self.ranges.len() as Place)
    }

    /// Undoes the last change.
    fn restore(&mut self, value: Value, place: Place) {
        self.places[value] = place;
        self.ranges.pop();
    }
}

/// A change, with what was known before.
enum Change {
    Range(Value, Place),
    Relation((Type, Value, Value), Option<Relation>),
    Length((Value, Value), Option<Length>),
}

/// How deep operands of operands are looked at.
const DEPTH: u32 = 2;

impl<'a> Known<'a> {
    fn new(function: &'a Function, cfg: &Cfg, ranges: &'a Ranges, decided: bool) -> Self {
        let (relations, lengths) = (Map::default(), Map::default());
        let (asked, changes) = (asked(function, cfg), Vec::with_capacity(64));
        let refined = Refined::default();
        Self { function, ranges, decided, asked, refined, relations, lengths, changes }
    }

    fn forget(&mut self, until: usize) {
        fn restore<K: std::hash::Hash + Eq, V>(map: &mut Map<K, V>, key: K, old: Option<V>) {
            match old {
                Some(old) => map.insert(key, old),
                None => map.remove(&key),
            };
        }
        while self.changes.len() > until {
            match self.changes.pop() {
                Some(Change::Range(value, old)) => self.refined.restore(value, old),
                Some(Change::Relation(key, old)) => restore(&mut self.relations, key, old),
                Some(Change::Length(key, old)) => restore(&mut self.lengths, key, old),
                None => {}
            }
        }
    }

    /// The range of a value here.
    fn range(&self, value: Value, depth: u32) -> Number {
        // default: a value that no branch has narrowed has the range that it has everywhere.
        let known = *self.refined.get(value).unwrap_or_else(|| self.ranges.get(self.function, value));
        match self.function.op_of(value) {
            Some(op) if self.is_of_narrowed(op, depth) => {
                let computed = of_op(op, |arg| self.range(arg, depth - 1));
                // default: where ranges have nothing in common, no run comes by, and either is right.
                computed.and_then(|computed| computed.meet(&known)).unwrap_or(known)
            }
            _ => known,
        }
    }

    /// Whether one of an operation's operands has another range here than it has everywhere.
    fn is_of_narrowed(&self, op: &Op, depth: u32) -> bool {
        if depth == 0 || self.refined.is_empty() || matches!(op, Op::Const { .. }) || !op.effects().is_pure()
        {
            return false;
        }
        let mut found = false;
        op.operands(|arg, _| found = found || self.is_narrowed(arg, depth - 1));
        found
    }

    /// Whether a value has another range here than it has everywhere.
    fn is_narrowed(&self, value: Value, depth: u32) -> bool {
        let is_of = || self.function.op_of(value).is_some_and(|op| self.is_of_narrowed(op, depth));
        !self.refined.is_empty() && (self.refined.get(value).is_some() || is_of())
    }

    /// Adds what an edge says.
    fn learn(&mut self, edge: Edge) {
        let terminator = &self.function.block(edge.from).terminator;
        let Terminator::Branch { condition, ty, args, .. } = terminator else { return };
        let (condition, ty, [a, b], holds) = (*condition, *ty, *args, edge.at == 0);
        if self.is_of_use(a) || self.is_of_use(b) {
            self.learn_ranges(condition, ty, a, b, holds);
        }
        let (key, condition) = ordered(condition, ty, a, b);
        let old = self.relations.get(&key).copied();
        // default: nothing is known of the pair yet.
        let new = old.unwrap_or_default().with(condition, holds);
        self.changes.push(Change::Relation(key, old));
        self.relations.insert(key, new);
        if let Some(asked) = Asked::of(self.function, condition_of(key, condition)) {
            let old = self.lengths.get(&asked.between).copied();
            // default: as above.
            let new = old.unwrap_or_default().with(asked.least, holds == asked.holds_if_long);
            self.changes.push(Change::Length(asked.between, old));
            self.lengths.insert(asked.between, new);
        }
    }

    fn learn_ranges(&mut self, condition: Condition, ty: Type, a: Value, b: Value, holds: bool) {
        let (range_a, range_b) = (self.range(a, DEPTH), self.range(b, DEPTH));
        // An outcome that cannot be is on an edge that no run takes.
        let refined = Number::refine(&range_a, &range_b, ty.width(), condition, holds);
        let Some((new_a, new_b)) = refined else { return };
        for (value, old, new) in [(a, range_a, new_a), (b, range_b, new_b)] {
            if old != new {
                self.narrow(value, new);
            }
        }
    }

    /// Whether a branch asks for the range of a value, or of one that is the same number, besides the one that says more of it.
    fn is_of_use(&self, value: Value) -> bool {
        let is_asked = |value: Value| self.asked[value] > 1;
        is_asked(value)
            || match self.function.op_of(value) {
                Some(Op::ZeroExtend { arg } | Op::Truncate { arg }) => is_asked(*arg),
                _ => false,
            }
    }

    /// The value has this range here, and so have those that are the same number.
    fn narrow(&mut self, value: Value, range: Number) {
        let old = self.refined.set(value, range);
        self.changes.push(Change::Range(value, old));
        let same = match self.function.op_of(value) {
            Some(Op::ZeroExtend { arg }) => Some(*arg),
            // Nothing was cut off.
            Some(Op::Truncate { arg }) if self.range(*arg, 0).umax() <= u32::MAX.into() => Some(*arg),
            _ => None,
        };
        if let Some(same) = same {
            let old = self.refined.set(same, range);
            self.changes.push(Change::Range(same, old));
        }
    }

    /// Whether the condition of a branch holds, if it is known.
    fn outcome(&self, terminator: &Terminator) -> Option<bool> {
        let Terminator::Branch { condition, ty, args: [a, b], .. } = terminator else { return None };
        let (key, condition_here) = ordered(*condition, *ty, *a, *b);
        let by_relation = || self.relations.get(&key)?.decides(condition_here);
        let by_length = || {
            let asked = Asked::of(self.function, condition_of(key, condition_here))?;
            let long = self.lengths.get(&asked.between)?.decides(asked.least)?;
            Some(long == asked.holds_if_long)
        };
        let by_range = || {
            let is_new = !self.decided || self.is_narrowed(*a, DEPTH) || self.is_narrowed(*b, DEPTH);
            let range = |value: &Value| self.range(*value, DEPTH);
            if is_new { decide(*condition, *ty, &range(a), &range(b)) } else { None }
        };
        by_relation().or_else(by_length).or_else(by_range)
    }
}

/// How often the branches of a function ask for the ranges of values, by what [`Known::range`] looks at.
fn asked(function: &Function, cfg: &Cfg) -> Side<Value, u8> {
    fn ask(function: &Function, asked: &mut Side<Value, u8>, value: Value, depth: u32) {
        let op = function.op_of(value);
        if matches!(op, Some(Op::Const { .. })) {
            return;
        }
        asked[value] = asked[value].saturating_add(1);
        if let Some(op) = op.filter(|op| depth > 0 && op.is_computed()) {
            op.operands(|arg, _| ask(function, asked, arg, depth - 1));
        }
    }
    let mut asked = Side::sized(function.value_count());
    for &block in cfg.order() {
        if let Terminator::Branch { args, .. } = &function.block(block).terminator {
            args.iter().for_each(|arg| ask(function, &mut asked, *arg, DEPTH));
        }
    }
    asked
}

/// Two values in the order of their numbers, and the condition for that order.
fn ordered(condition: Condition, ty: Type, a: Value, b: Value) -> ((Type, Value, Value), Condition) {
    if a <= b { ((ty, a, b), condition) } else { ((ty, b, a), condition.exchanged()) }
}

fn condition_of((ty, a, b): (Type, Value, Value), condition: Condition) -> (Condition, Type, Value, Value) {
    (condition, ty, a, b)
}
