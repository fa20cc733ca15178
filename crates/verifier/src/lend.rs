//! Memory that global functions are lent: what they need of it, and whether their callers give them that.
//!
//! A global function is verified once, for memory of which it knows the size only. Two things are not safe with all memory
//! of that size: to touch it after the packet was moved, where it lies in the packet, and atomic operations, where it is not
//! aligned. Functions may do both; what they do becomes a need of the parameter, and once all functions are walked every
//! call is held against the needs of its callee. The kernel asks for neither.

use std::collections::{BTreeMap, BTreeSet};

use paceline_isa::Reg;

use crate::error::{Cause, Refusal, RegName};

/// A parameter of a global function: the function's index, and which parameter it is.
pub(crate) type Parameter = (usize, u8);

/// What a function needs of memory that it is lent, besides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// What its address must be a multiple of: 1, 2, 4 or 8.
    pub(crate) alignment: u8,
    /// Whether it must stay where it is when the packet is moved.
    pub(crate) stays: bool,
}

impl Needs {
    const NONE: Self = Self { alignment: 1, stays: false };
    /// It is touched after the packet was moved.
    pub(crate) const TO_STAY: Self = Self { stays: true, ..Self::NONE };

    /// Atomic operations of a size.
    pub(crate) fn to_be_aligned(size: usize) -> Self {
        Self { alignment: size as u8, ..Self::NONE }
    }

    fn and(self, other: Self) -> Self {
        Self { alignment: self.alignment.max(other.alignment), stays: self.stays || other.stays }
    }
}

/// Memory that a call lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loan {
    /// Slot of the call.
    pub(crate) slot: usize,
    /// What its address is known to be a multiple of, up to 8; as far as the address that it comes from is.
    pub(crate) alignment: u8,
    /// Whether it lies in the packet.
    pub(crate) in_packet: bool,
    /// The parameter of the calling function through which it came.
    pub(crate) from: Option<Parameter>,
}

/// All loans, and what is needed of them.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    needs: BTreeMap<Parameter, Needs>,
    calls: BTreeMap<Parameter, BTreeSet<Loan>>,
}

impl Loans {
    /// A function needs something of a parameter. Tells whether that is new.
    pub(crate) fn need(&mut self, parameter: Parameter, needs: Needs) -> bool {
        let known = self.needs.entry(parameter).or_insert(Needs::NONE);
        let before = *known;
        *known = before.and(needs);
        *known != before
    }

    pub(crate) fn lend(&mut self, parameter: Parameter, loan: Loan) {
        self.calls.entry(parameter).or_default().insert(loan);
    }

    /// Checks that every call lends what its callee needs; `name` tells a function's name.
    pub(crate) fn check(&mut self, name: impl Fn(usize) -> String) -> Result<(), Box<Refusal>> {
        self.pass_on();
        let none = BTreeSet::new();
        for (&(function, parameter), needs) in &self.needs {
            let register = RegName(Reg::ALL[usize::from(parameter) + 1]);
            for loan in self.calls.get(&(function, parameter)).unwrap_or(&none) {
                if needs.stays && loan.in_packet {
                    let cause = Cause::LentPacket { register, name: name(function) };
                    return Err(Refusal::at(loan.slot, cause));
                }
                if loan.alignment < needs.alignment {
                    let size = needs.alignment;
                    let cause = Cause::LentAlignment { register, name: name(function), size };
                    return Err(Refusal::at(loan.slot, cause));
                }
            }
        }
        Ok(())
    }

    /// What a function lends to another that it was lent itself must be what that one needs. A need grows four times at most,
    /// so that each call is looked at no more often.
    fn pass_on(&mut self) {
        let mut changed: Vec<Parameter> = self.needs.keys().copied().collect();
        while let Some(parameter) = changed.pop() {
            let Some(&needs) = self.needs.get(&parameter) else { continue };
            let loans = self.calls.get(&parameter).into_iter().flatten();
            let callers: Vec<Parameter> = loans.filter_map(|loan| loan.from).collect();
            changed.extend(callers.into_iter().filter(|&caller| self.need(caller, needs)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loan(slot: usize, alignment: u8, in_packet: bool, from: Option<Parameter>) -> Loan {
        Loan { slot, alignment, in_packet, from }
    }

    #[test]
    fn needs_are_passed_on_to_the_callers_of_callers() {
        let mut loans = Loans::default();
        loans.lend((1, 0), loan(3, 1, true, None));
        loans.lend((2, 1), loan(20, 8, false, Some((1, 0))));
        assert!(loans.check(|_| String::new()).is_ok(), "nothing is needed");
        loans.need((2, 1), Needs::TO_STAY);
        let refusal = loans.check(|function| format!("f{function}")).unwrap_err();
        assert_eq!(refusal.slot, 3);
        assert!(matches!(refusal.cause, Cause::LentPacket { name, .. } if name == "f1"));
    }

    #[test]
    fn an_alignment_is_that_of_the_place_in_what_was_lent() {
        let mut loans = Loans::default();
        loans.lend((1, 0), loan(3, 8, false, None));
        loans.lend((2, 0), loan(20, 4, false, Some((1, 0))));
        loans.need((2, 0), Needs::to_be_aligned(4));
        assert!(loans.check(|_| String::new()).is_ok());
        loans.need((2, 0), Needs::to_be_aligned(8));
        assert_eq!(loans.check(|_| String::new()).unwrap_err().slot, 20);
    }

    #[test]
    fn functions_that_lend_to_each_other_come_to_an_end() {
        let mut loans = Loans::default();
        loans.lend((1, 0), loan(10, 8, false, Some((2, 0))));
        loans.lend((2, 0), loan(20, 8, false, Some((1, 0))));
        loans.lend((1, 0), loan(3, 2, false, None));
        loans.need((2, 0), Needs::to_be_aligned(4));
        assert_eq!(loans.check(|_| String::new()).unwrap_err().slot, 3);
    }
}
