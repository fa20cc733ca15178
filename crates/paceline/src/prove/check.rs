//! Properties of a run that was made.

use paceline_analysis::symbolic::Moment;
use paceline_capture::packet::Layers;
use paceline_frame::Verdict;

use super::property::{Comparison, Expr, Form, Value};

/// What a property is about, of a run.
pub(super) struct Run<'r> {
    pub(super) input: &'r [u8],
    pub(super) output: &'r [u8],
    pub(super) verdict: Verdict,
    pub(super) returned: u32,
    /// Whether it changed the map of a name.
    pub(super) changes: &'r dyn Fn(&str) -> bool,
}

impl Run<'_> {
    /// Whether an expression holds.
    pub(super) fn holds(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Not(inner) => !self.holds(inner),
            Expr::And(left, right) => self.holds(left) && self.holds(right),
            Expr::Or(left, right) => self.holds(left) || self.holds(right),
            Expr::Implies(left, right, _) => !self.holds(left) || self.holds(right),
            Expr::Has(moment, protocol) => Layers::new(self.packet(*moment)).placed(protocol).is_some(),
            Expr::Verdict(verdict) => self.verdict == *verdict,
            Expr::Compare(comparison, left, right) => self.compares(*comparison, left, right),
            Expr::Changes(name, _) => (self.changes)(name),
        }
    }

    fn packet(&self, moment: Moment) -> &[u8] {
        match moment {
            Moment::In => self.input,
            Moment::Out => self.output,
        }
    }

    fn compares(&self, comparison: Comparison, left: &Value, right: &Value) -> bool {
        if left.form() == Form::Number && right.form() == Form::Number {
            let (Some(left), Some(right)) = (self.number(left), self.number(right)) else { return false };
            return match comparison {
                Comparison::Equal => left == right,
                Comparison::NotEqual => left != right,
                Comparison::Less => left < right,
                Comparison::LessOrEqual => left <= right,
                Comparison::Greater => left > right,
                Comparison::GreaterOrEqual => left >= right,
            };
        }
        let bytes = [left, right].iter().find_map(|value| match value.form() {
            Form::Wide(bytes) => Some(bytes),
            Form::Number | Form::Rest => None,
        });
        let (left, right) = (self.bytes(left, bytes), self.bytes(right, bytes));
        match (left, right) {
            (Some(left), Some(right)) => (left == right) == (comparison == Comparison::Equal),
            _ => false,
        }
    }

    /// A value of at most 64 bits, if it is there.
    fn number(&self, value: &Value) -> Option<u64> {
        Some(match value {
            Value::Number(number) => *number as u64,
            Value::Length(moment) => self.packet(*moment).len() as u64,
            Value::Returned => self.returned.into(),
            Value::Field(moment, protocol, field) => {
                field.number(Layers::new(self.packet(*moment)).placed(protocol)?.header) as u64
            }
            Value::Bytes(moment, first, end) => {
                let bytes = self.packet(*moment).get(*first..(*end)?)?;
                bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
            }
            Value::Sum(left, right) => self.number(left)?.wrapping_add(self.number(right)?),
            Value::Difference(left, right) => self.number(left)?.wrapping_sub(self.number(right)?),
            Value::Both(left, right) => self.number(left)? & self.number(right)?,
        })
    }

    /// The bytes of a value, if it is there; of a number so many.
    fn bytes(&self, value: &Value, len: Option<usize>) -> Option<Vec<u8>> {
        let of_number = |number: u128| {
            let bytes = number.to_be_bytes();
            bytes.get(bytes.len().checked_sub(len?)?..).map(<[u8]>::to_vec)
        };
        match value {
            Value::Field(moment, protocol, field) => {
                of_number(field.number(Layers::new(self.packet(*moment)).placed(protocol)?.header))
            }
            Value::Bytes(moment, first, Some(end)) => {
                self.packet(*moment).get(*first..*end).map(<[u8]>::to_vec)
            }
            Value::Bytes(moment, first, None) => {
                Some(self.packet(*moment).get(*first..).unwrap_or_default().to_vec())
            }
            Value::Number(number) => of_number(*number),
            other => of_number(self.number(other)?.into()),
        }
    }
}
