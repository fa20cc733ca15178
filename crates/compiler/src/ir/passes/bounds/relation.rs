//! What is known of the order of two values.

use paceline_isa::Condition;

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;

/// The orders that two values may have, unsigned and signed, and whether they have a common bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    unsigned: u8,
    signed: u8,
    common_bit: Option<bool>,
}

impl Default for Relation {
    fn default() -> Self {
        Self { unsigned: LESS | EQUAL | GREATER, signed: LESS | EQUAL | GREATER, common_bit: None }
    }
}

/// Orders with which a condition holds, unsigned and signed; `None` for an order that it does not look at.
const fn orders(condition: Condition) -> (Option<u8>, Option<u8>) {
    match condition {
        Condition::Eq => (Some(EQUAL), Some(EQUAL)),
        Condition::Ne => (Some(LESS | GREATER), Some(LESS | GREATER)),
        Condition::Gt => (Some(GREATER), None),
        Condition::Ge => (Some(GREATER | EQUAL), None),
        Condition::Lt => (Some(LESS), None),
        Condition::Le => (Some(LESS | EQUAL), None),
        Condition::SGt => (None, Some(GREATER)),
        Condition::SGe => (None, Some(GREATER | EQUAL)),
        Condition::SLt => (None, Some(LESS)),
        Condition::SLe => (None, Some(LESS | EQUAL)),
        Condition::Set => (None, None),
    }
}

impl Relation {
    /// What is known after a condition held, or did not.
    pub(super) fn with(mut self, condition: Condition, holds: bool) -> Self {
        let (unsigned, signed) = orders(condition);
        let cut = |all: u8, orders: Option<u8>| match orders {
            Some(orders) if holds => all & orders,
            Some(orders) => all & !orders,
            None => all,
        };
        (self.unsigned, self.signed) = (cut(self.unsigned, unsigned), cut(self.signed, signed));
        // Equality is the same in both orders.
        let equality = |one: u8, other: u8| match one {
            EQUAL => other & EQUAL,
            one if one & EQUAL == 0 => other & !EQUAL,
            _ => other,
        };
        self.signed = equality(self.unsigned, self.signed);
        self.unsigned = equality(self.signed, self.unsigned);
        if condition == Condition::Set {
            self.common_bit = Some(holds);
        }
        self
    }

    /// Whether a condition holds, if it is known. Contradictory knowledge is of code that no run reaches, and decides nothing.
    pub(super) fn decides(self, condition: Condition) -> Option<bool> {
        if self.unsigned == 0 || self.signed == 0 {
            return None;
        }
        let decided = |known: u8, orders: Option<u8>| match orders? {
            orders if known & !orders == 0 => Some(true),
            orders if known & orders == 0 => Some(false),
            _ => None,
        };
        let (unsigned, signed) = orders(condition);
        match condition {
            Condition::Set => self.common_bit,
            _ => decided(self.unsigned, unsigned).or_else(|| decided(self.signed, signed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use paceline_isa::{Width, eval};

    use super::*;
    use crate::ir::op::CONDITIONS;

    #[test]
    fn what_two_conditions_say_is_true_of_all_numbers() {
        let numbers = [0, 1, 2, 5, i64::MAX as u64, i64::MIN as u64, u64::MAX - 1, u64::MAX];
        let holds = |condition, a, b| eval::compare(Width::W64, condition, a, b);
        let mut decided = 0;
        for (a, b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))) {
            for (first, _) in CONDITIONS {
                for (second, _) in CONDITIONS {
                    let known =
                        Relation::default().with(first, holds(first, a, b)).with(second, holds(second, a, b));
                    for (third, _) in CONDITIONS {
                        if let Some(outcome) = known.decides(third) {
                            assert_eq!(
                                outcome,
                                holds(third, a, b),
                                "{first:?} {second:?} {third:?} of {a}, {b}"
                            );
                            decided += 1;
                        }
                    }
                }
            }
        }
        assert!(decided > 10_000, "{decided}");
    }
}
