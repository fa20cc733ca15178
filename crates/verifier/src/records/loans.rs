//! Memory arguments of global functions: the function's requirements, and whether its callers meet them.
//!
//! A global function is verified once; of a memory argument it knows only the size. Two accesses are not safe for all
//! memory of that size: any access after the packet was moved, if the memory lies in the packet, and atomic operations, if
//! it is not aligned. Both are allowed in the function and become requirements of the parameter; after all functions are
//! walked, every call is checked against them. The kernel checks neither.

use std::collections::{BTreeMap, BTreeSet};

use paceline_isa::Reg;

use crate::error::{Cause, Refusal, RegName};

/// A parameter of a global function: the function's index, and which parameter it is.
pub(crate) type Parameter = (usize, u8);

/// Requirements of a memory argument, besides its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Alignment in bytes: 1, 2, 4 or 8.
    pub(crate) alignment: u8,
    /// Whether it must remain valid when the packet is moved.
    pub(crate) stays: bool,
}

impl Needs {
    const NONE: Self = Self { alignment: 1, stays: false };
    /// The memory is accessed after the packet was moved.
    pub(crate) const TO_STAY: Self = Self { stays: true, ..Self::NONE };

    /// Alignment for atomic operations of a size.
    pub(crate) fn to_be_aligned(size: usize) -> Self {
        Self { alignment: size as u8, ..Self::NONE }
    }

    fn and(self, other: Self) -> Self {
        Self { alignment: self.alignment.max(other.alignment), stays: self.stays || other.stays }
    }
}

/// A memory argument of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loan {
    /// Slot of the call.
    pub(crate) slot: usize,
    /// Known alignment of its address, up to 8; relative to the parameter in `from`.
    pub(crate) alignment: u8,
    /// Whether it lies in the packet.
    pub(crate) in_packet: bool,
    /// The caller's parameter that it was derived from.
    pub(crate) from: Option<Parameter>,
}

/// All memory arguments, and the requirements of the parameters.
#[derive(Debug, Default)]
pub(crate) struct Loans {
    needs: BTreeMap<Parameter, Needs>,
    calls: BTreeMap<Parameter, BTreeSet<Loan>>,
}

impl Loans {
    /// Adds a requirement to a parameter. True if it is new.
    pub(crate) fn need(&mut self, parameter: Parameter, needs: Needs) -> bool {
        let known = self.needs.entry(parameter).or_insert(Needs::NONE);
        let before = *known;
        *known = before.and(needs);
        *known != before
    }

    pub(crate) fn lend(&mut self, parameter: Parameter, loan: Loan) {
        self.calls.entry(parameter).or_default().insert(loan);
    }

    /// Checks every call against its callee's requirements; `name` gives a function's name.
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

    /// Propagates requirements to the callers' own parameters. A requirement grows at most four times, which bounds the
    /// number of visits of each call.
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
