//! Properties as formulas over unknown packets.

use paceline_analysis::symbolic::{Formula, Moment, Number, Relation, Rest};
use paceline_capture::packet::{Condition, Field, Offset, Protocol, Said, places};

use super::error::{Problem, PropertyError};
use super::property::{Comparison, Expr, Form, Value};

/// The formula of an expression; `map` is the index of a map whose elements may change.
pub(super) fn formula(
    expr: &Expr,
    map: &dyn Fn(&str) -> Result<usize, Problem>,
) -> Result<Formula, PropertyError> {
    let not = |expr: &Expr| Ok::<_, PropertyError>(Formula::Not(Box::new(formula(expr, map)?)));
    Ok(match expr {
        Expr::Not(inner) => not(inner)?,
        Expr::And(left, right) => Formula::All(vec![formula(left, map)?, formula(right, map)?]),
        Expr::Or(left, right) => Formula::Any(vec![formula(left, map)?, formula(right, map)?]),
        Expr::Implies(left, right, _) => Formula::Any(vec![not(left)?, formula(right, map)?]),
        Expr::Has(moment, protocol) => has(*moment, protocol),
        Expr::Verdict(verdict) => Formula::Verdict(*verdict),
        Expr::Compare(comparison, left, right) => compare(*comparison, left, right),
        Expr::Changes(name, column) => {
            Formula::Changes(map(name).map_err(|problem| PropertyError { column: *column, problem })?)
        }
    })
}

fn has(moment: Moment, protocol: &Protocol) -> Formula {
    let there = places(protocol).into_iter().map(|place| conditions(moment, &place.conditions));
    Formula::Any(there.collect())
}

fn conditions(of: Moment, all: &[Condition]) -> Formula {
    let bits = |bits: &std::ops::Range<usize>| Number::Bits { of, first: bits.start, count: bits.len() };
    let condition = |condition: &Condition| match condition {
        Condition::Is { bits: range, number } => {
            Formula::Compare(Relation::Equal, bits(range), Number::Constant(*number))
        }
        Condition::AtLeast { bits: range, number } => {
            Formula::Compare(Relation::LessOrEqual, Number::Constant(*number), bits(range))
        }
        Condition::Reaches { to, said } => reaches(of, to, said.as_ref()),
    };
    Formula::All(all.iter().map(condition).collect())
}

/// Whether a packet goes on to an offset: its bytes do, and the end that its IP header says, if that is one, is not before.
fn reaches(of: Moment, Offset { base, number }: &Offset, said: Option<&Said>) -> Formula {
    let base = Number::Constant(*base as u64);
    let to = match number {
        None => base,
        Some((bits, unit)) => {
            let bits = Number::Bits { of, first: bits.start, count: bits.len() };
            let bytes = Number::Product(Box::new(bits), Box::new(Number::Constant(*unit as u64)));
            Number::Sum(Box::new(base), Box::new(bytes))
        }
    };
    let within = Formula::Compare(Relation::LessOrEqual, to.clone(), Number::Length(of));
    let Some(Said { bits, from, after }) = said else { return within };
    let bytes = Number::Bits { of, first: bits.start, count: bits.len() };
    let end = Number::Sum(Box::new(Number::Constant(*from as u64)), Box::new(bytes.clone()));
    let says_nothing = Formula::Any(vec![
        Formula::Compare(Relation::Equal, bytes, Number::Constant(0)),
        Formula::Compare(Relation::Less, end.clone(), Number::Constant(*after as u64)),
        Formula::Compare(Relation::LessOrEqual, Number::Length(of), end.clone()),
    ]);
    let before = Formula::Compare(Relation::LessOrEqual, to, end);
    Formula::All(vec![within, Formula::Any(vec![says_nothing, before])])
}

/// A comparison, which is false if one of the values is not there.
fn compare(comparison: Comparison, left: &Value, right: &Value) -> Formula {
    let equality = |equal: Formula, there: Vec<Formula>| {
        let relation = match comparison {
            Comparison::NotEqual => Formula::Not(Box::new(equal)),
            _ => equal,
        };
        Formula::All([there, vec![relation]].concat())
    };
    if let (&Value::Bytes(a, from, None), &Value::Bytes(b, other, None)) = (left, right) {
        let same = Formula::Same(Rest { of: a, from }, Rest { of: b, from: other });
        return equality(same, Vec::new());
    }
    let mut there = Vec::new();
    is_there(left, &mut there);
    is_there(right, &mut there);
    let bytes = [left, right].iter().find_map(|value| match value.form() {
        Form::Wide(bytes) => Some(bytes),
        Form::Number | Form::Rest => None,
    });
    if let Some(bytes) = bytes {
        let pairs = words(left, bytes).into_iter().zip(words(right, bytes));
        let equal = pairs.map(|(left, right)| Formula::Compare(Relation::Equal, left, right));
        return equality(Formula::All(equal.collect()), there);
    }
    let (left, right) = (number(left), number(right));
    let (relation, left, right) = match comparison {
        Comparison::Equal | Comparison::NotEqual => {
            return equality(Formula::Compare(Relation::Equal, left, right), there);
        }
        Comparison::Less => (Relation::Less, left, right),
        Comparison::LessOrEqual => (Relation::LessOrEqual, left, right),
        Comparison::Greater => (Relation::Less, right, left),
        Comparison::GreaterOrEqual => (Relation::LessOrEqual, right, left),
    };
    there.push(Formula::Compare(relation, left, right));
    Formula::All(there)
}

/// Adds the conditions under which a value is there.
fn is_there(value: &Value, all: &mut Vec<Formula>) {
    match value {
        Value::Number(_) | Value::Length(_) | Value::Returned | Value::Bytes(_, _, None) => {}
        Value::Field(moment, protocol, _) => all.push(has(*moment, protocol)),
        Value::Bytes(moment, _, Some(end)) => {
            let end = Number::Constant(*end as u64);
            all.push(Formula::Compare(Relation::LessOrEqual, end, Number::Length(*moment)));
        }
        Value::Sum(left, right) | Value::Difference(left, right) | Value::Both(left, right) => {
            is_there(left, all);
            is_there(right, all);
        }
    }
}

/// A value of at most 64 bits.
fn number(value: &Value) -> Number {
    let both = |left: &Value, right: &Value| (Box::new(number(left)), Box::new(number(right)));
    match value {
        Value::Number(number) => Number::Constant(*number as u64),
        Value::Length(moment) => Number::Length(*moment),
        Value::Returned => Number::Returned,
        Value::Field(moment, protocol, field) => of_field(*moment, protocol, field, 0, field.bits),
        Value::Bytes(of, first, end) => {
            let count = end.map_or(0, |end| end - first) * 8;
            Number::Bits { of: *of, first: first * 8, count }
        }
        Value::Sum(left, right) => {
            let (left, right) = both(left, right);
            Number::Sum(left, right)
        }
        Value::Difference(left, right) => {
            let (left, right) = both(left, right);
            Number::Difference(left, right)
        }
        Value::Both(left, right) => {
            let (left, right) = both(left, right);
            Number::Both(left, right)
        }
    }
}

/// Some bits of a field, wherever its header is.
fn of_field(of: Moment, protocol: &Protocol, field: &Field, skipped: usize, count: usize) -> Number {
    let choices = places(protocol).into_iter().map(|place| {
        let first = place.start * 8 + field.bit + skipped;
        (conditions(of, &place.conditions), Number::Bits { of, first, count })
    });
    Number::Choice(choices.collect())
}

/// A value of so many bytes in words of 8 and what is left.
fn words(value: &Value, bytes: usize) -> Vec<Number> {
    let parts = (0..bytes).step_by(8).map(|start| (start, (bytes - start).min(8)));
    let word = |(start, len): (usize, usize)| match value {
        Value::Number(number) => {
            let low = number >> ((bytes - start - len) * 8).min(127);
            let mask = u64::MAX >> (64 - len * 8);
            Number::Constant(low as u64 & mask)
        }
        Value::Field(moment, protocol, field) => of_field(*moment, protocol, field, start * 8, len * 8),
        Value::Bytes(of, first, _) => Number::Bits { of: *of, first: (first + start) * 8, count: len * 8 },
        other => number(other),
    };
    parts.map(word).collect()
}
