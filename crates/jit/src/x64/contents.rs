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

/// Stands for values that differ by where control comes from. It is no multiple of [`STEP`], as numbers are.
const DIFFERS: u32 = u32::MAX;

/// The numbers of all registers' values.
type Numbers = [u32; REGISTERS];

/// The step from one number to the next: the bits below it are a register's in [`Held`].
const STEP: u32 = REGISTERS as u32;

/// A value in a register, taken note of with [`Assembler::hold`] to be used later with [`Assembler::held`].
///
/// The value's number and the register's in one word, as there are many of them in what the compiler knows of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(u32);

impl Held {
    #[inline]
    const fn gpr(self) -> Gpr {
        Gpr::ALL[(self.0 % STEP) as usize]
    }
}

/// The contents that jumps bring to a label.
#[derive(Clone, Copy, Debug)]
enum Arriving {
    /// Nothing, so far.
    Nothing,
    /// The numbers in `snapshots`.
    Snapshot(u32),
    /// That is not followed: all registers get new numbers there.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Contents {
    numbers: Numbers,
    /// The last number that was given, a multiple of [`STEP`]. Beyond 32 bits numbers come again.
    last: u64,
    /// What was pushed.
    pushed: Vec<u32>,
    /// No instruction comes here: the one before is a jump.
    unreached: bool,
    /// By label, what jumps to it bring there.
    arriving: Vec<Arriving>,
    snapshots: Vec<Numbers>,
}

impl Contents {
    #[inline]
    fn renew(&mut self, gpr: Gpr) {
        self.last += u64::from(STEP);
        self.numbers[gpr as usize] = self.last as u32;
    }

    fn renew_all(&mut self) {
        Gpr::ALL.into_iter().for_each(|gpr| self.renew(gpr));
    }

    /// Whether so much was written that numbers were given twice.
    pub(super) fn is_exhausted(&self) -> bool {
        self.last > u64::from(u32::MAX)
    }

    fn renew_unknown(&mut self) {
        for gpr in Gpr::ALL {
            if self.numbers[gpr as usize] == DIFFERS {
                self.renew(gpr);
            }
        }
    }

    #[inline]
    pub(super) fn new_label(&mut self) {
        self.arriving.push(Arriving::Nothing);
    }

    #[inline]
    pub(super) fn new_block_label(&mut self) {
        self.arriving.push(Arriving::Unknown);
    }

    /// A jump to a label, which may be taken.
    #[inline]
    pub(super) fn jump(&mut self, label: Label) {
        if let Some(arriving) = self.arriving.get_mut(label.0 as usize)
            && !matches!(arriving, Arriving::Unknown)
            && !self.unreached
        {
            arriving.meet(&mut self.snapshots, &self.numbers);
        }
    }

    /// What follows is not reached from here.
    #[inline]
    pub(super) fn leave(&mut self) {
        self.unreached = true;
    }

    pub(super) fn bind(&mut self, label: Label) {
        let arriving = self.arriving.get_mut(label.0 as usize);
        let arriving = arriving.map_or(Arriving::Nothing, |a| std::mem::replace(a, Arriving::Nothing));
        let was_unreached = std::mem::replace(&mut self.unreached, false);
        match arriving {
            Arriving::Snapshot(index) => {
                let Some(snapshot) = self.snapshots.get(index as usize) else { return self.renew_all() };
                if was_unreached {
                    self.numbers = *snapshot;
                } else {
                    meet(&mut self.numbers, snapshot);
                }
                self.renew_unknown();
            }
            Arriving::Nothing if !was_unreached => {}
            Arriving::Nothing | Arriving::Unknown => self.renew_all(),
        }
    }
}

impl Arriving {
    /// A jump brings more.
    fn meet(&mut self, snapshots: &mut Vec<Numbers>, numbers: &Numbers) {
        match *self {
            Self::Nothing => {
                *self = Self::Snapshot(snapshots.len() as u32);
                snapshots.push(*numbers);
            }
            Self::Snapshot(index) => {
                if let Some(snapshot) = snapshots.get_mut(index as usize) {
                    meet(snapshot, numbers);
                }
            }
            Self::Unknown => {}
        }
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
        Held(self.contents.numbers[gpr as usize] | gpr as u32)
    }

    /// The register of a value that was taken note of. Where it holds another one by now, `finish` fails with
    /// [`AssembleError::Overwritten`].
    #[inline]
    pub fn held(&mut self, held: Held) -> Gpr {
        let gpr = held.gpr();
        if self.hold(gpr) != held {
            self.lost(gpr);
        }
        gpr
    }

    #[cold]
    fn lost(&mut self, register: Gpr) {
        if !self.contents.unreached {
            self.fail(AssembleError::Overwritten { register, offset: self.len() });
        }
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
