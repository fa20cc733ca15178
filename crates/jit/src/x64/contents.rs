//! Which value each register holds, by number: a register with the same number as before holds what it held before.
//!
//! The assembler follows the instructions that it appends. A write gives a register a new number, a move of 64 bits that of its
//! source, and what is pushed comes back where it is popped. Where jumps arrive, a register that does not hold the same on
//! every way in gets a new number. So code that was told of a value before it emitted something else finds out where it uses
//! the value whether the register still holds it: a register that was overwritten is an error, not another value.
//!
//! Ways in from behind, of loops, are not known when a label is bound: nothing is to be kept in a register across one, but
//! what the loop does not write.

use super::{AssembleError, Assembler, Gpr, Label};

const REGISTERS: usize = Gpr::ALL.len();

/// What a call may overwrite (System V ABI, section 3.2.1).
const CALLER_SAVED: [Gpr; 9] =
    [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];

/// Stands for values that differ by where control comes from.
const DIFFERS: u32 = u32::MAX;

/// The numbers of all registers' values.
type Numbers = [u32; REGISTERS];

/// A value in a register, taken note of with [`Assembler::hold`] to be used later with [`Assembler::held`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    gpr: Gpr,
    number: u32,
}

#[derive(Debug, Default)]
pub(super) struct Contents {
    numbers: Numbers,
    /// The last number that was given. There are fewer than 2^32 writes in 2 GiB of code.
    last: u32,
    /// What was pushed.
    pushed: Vec<u32>,
    /// No instruction comes here: the one before is a jump.
    unreached: bool,
    /// By label, what jumps to it bring there.
    arriving: Vec<Option<Numbers>>,
}

impl Contents {
    fn renew(&mut self, gpr: Gpr) {
        self.last = self.last.wrapping_add(1);
        self.numbers[gpr as usize] = self.last;
    }

    fn renew_unknown(&mut self) {
        for gpr in Gpr::ALL {
            if self.numbers[gpr as usize] == DIFFERS {
                self.renew(gpr);
            }
        }
    }

    pub(super) fn new_label(&mut self) {
        self.arriving.push(None);
    }

    /// A jump to a label, which may be taken.
    pub(super) fn jump(&mut self, label: Label) {
        if self.unreached {
            return;
        }
        match self.arriving.get_mut(label.0 as usize) {
            Some(Some(numbers)) => meet(numbers, &self.numbers),
            Some(none) => *none = Some(self.numbers),
            None => {}
        }
    }

    /// What follows is not reached from here.
    pub(super) fn leave(&mut self) {
        self.unreached = true;
    }

    pub(super) fn bind(&mut self, label: Label) {
        let arriving = self.arriving.get_mut(label.0 as usize).and_then(Option::take);
        match arriving {
            Some(arriving) if self.unreached => self.numbers = arriving,
            Some(arriving) => meet(&mut self.numbers, &arriving),
            None if self.unreached => self.numbers = [DIFFERS; REGISTERS],
            None => return,
        }
        self.unreached = false;
        self.renew_unknown();
    }
}

/// Joins what two ways bring.
fn meet(numbers: &mut Numbers, others: &Numbers) {
    for (number, other) in numbers.iter_mut().zip(others) {
        if number != other {
            *number = DIFFERS;
        }
    }
}

impl Assembler {
    /// Takes note of what a register holds.
    #[inline]
    pub fn hold(&self, gpr: Gpr) -> Held {
        Held { gpr, number: self.contents.numbers[gpr as usize] }
    }

    /// The register of a value that was taken note of. Where it holds another one by now, `finish` fails with
    /// [`AssembleError::Overwritten`].
    #[inline]
    pub fn held(&mut self, held: Held) -> Gpr {
        if self.hold(held.gpr) != held && !self.contents.unreached {
            self.fail(AssembleError::Overwritten { register: held.gpr, offset: self.len() });
        }
        held.gpr
    }

    /// An instruction writes a register.
    #[inline]
    pub(super) fn write(&mut self, gpr: Gpr) {
        self.contents.renew(gpr);
    }

    /// An instruction copies all of a register.
    #[inline]
    pub(super) fn copy(&mut self, dst: Gpr, src: Gpr) {
        self.contents.numbers[dst as usize] = self.contents.numbers[src as usize];
    }

    pub(super) fn exchange(&mut self, left: Gpr, right: Gpr) {
        self.contents.numbers.swap(left as usize, right as usize);
    }

    pub(super) fn pushed(&mut self, gpr: Gpr) {
        let number = self.contents.numbers[gpr as usize];
        self.contents.pushed.push(number);
    }

    pub(super) fn popped(&mut self, gpr: Gpr) {
        match self.contents.pushed.pop() {
            Some(number) => self.contents.numbers[gpr as usize] = number,
            None => self.contents.renew(gpr),
        }
    }

    /// A call, which returns.
    pub(super) fn called(&mut self) {
        CALLER_SAVED.into_iter().for_each(|gpr| self.contents.renew(gpr));
    }
}
