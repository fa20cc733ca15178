//! Value numbering of registers: a register with the same number as before holds the same value as before.
//!
//! The assembler tracks the instructions that it appends. A write gives a register a new number, a 64-bit move that of its source,
//! and a pop restores the number that was pushed. At a label, a register whose number differs between predecessors gets a new one.
//! Code that recorded a value before emitting other instructions can thus check at the use whether the register still holds it: an
//! overwritten register is an error, not a wrong value.
//!
//! Back edges of loops are unknown when a label is bound: only registers that the loop does not write may be used across its head.

use super::{AssembleError, Assembler, Gpr, Label};

const REGISTERS: usize = Gpr::ALL.len();

/// Registers that a call may overwrite (System V ABI, section 3.2.1).
const CALLER_SAVED: [Gpr; 9] =
    [Gpr::Rax, Gpr::Rcx, Gpr::Rdx, Gpr::Rsi, Gpr::Rdi, Gpr::R8, Gpr::R9, Gpr::R10, Gpr::R11];

/// Marks values that differ between predecessors. Not a multiple of [`STEP`], unlike value numbers.
const DIFFERS: u32 = u32::MAX;

/// Value numbers of all registers.
type Numbers = [u32; REGISTERS];

/// Step between value numbers: the bits below it hold the register's number in [`Held`].
const STEP: u32 = REGISTERS as u32;

/// A value in a register, recorded by [`Assembler::hold`] and checked by [`Assembler::held`].
///
/// Value number and register number in one word, because the compiler stores many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held(u32);

impl Held {
    #[inline]
    const fn gpr(self) -> Gpr {
        Gpr::ALL[(self.0 % STEP) as usize]
    }
}

/// Register contents that jumps bring to a label.
#[derive(Clone, Copy, Debug)]
enum Arriving {
    /// No jump so far.
    Nothing,
    /// The value numbers at this index of `snapshots`.
    Snapshot(u32),
    /// Not tracked: all registers get new numbers at the label.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct Contents {
    numbers: Numbers,
    /// The last assigned number, a multiple of [`STEP`]. Beyond 32 bits numbers would repeat.
    last: u64,
    /// Value numbers of pushed registers.
    pushed: Vec<u32>,
    /// The current position is unreachable by fall-through, as the last instruction is a jump.
    unreached: bool,
    /// Contents that jumps bring, by label.
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

    /// Whether value numbers have repeated.
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

    /// Makes room for so many labels.
    pub(super) fn reserve(&mut self, labels: usize) {
        self.arriving.reserve(labels);
    }

    #[inline]
    pub(super) fn new_label(&mut self) {
        self.arriving.push(Arriving::Nothing);
    }

    #[inline]
    pub(super) fn new_block_label(&mut self) {
        self.arriving.push(Arriving::Unknown);
    }

    /// A conditional or unconditional jump to a label.
    #[inline]
    pub(super) fn jump(&mut self, label: Label) {
        if let Some(arriving) = self.arriving.get_mut(label.0 as usize)
            && !matches!(arriving, Arriving::Unknown)
            && !self.unreached
        {
            arriving.meet(&mut self.snapshots, &self.numbers);
        }
    }

    /// Marks the following code as unreachable by fall-through.
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
    /// Joins the contents of another jump.
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

/// Joins the contents of two predecessors.
fn meet(numbers: &mut Numbers, others: &Numbers) {
    for (number, other) in numbers.iter_mut().zip(others) {
        if number != other {
            *number = DIFFERS;
        }
    }
}

impl Assembler {
    /// Records the value in a register.
    #[inline]
    pub fn hold(&self, gpr: Gpr) -> Held {
        Held(self.contents.numbers[gpr as usize] | gpr as u32)
    }

    /// The register of a recorded value. If it holds another value by now, `finish` fails with [`AssembleError::Overwritten`].
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

    /// Tracks a write to a register.
    #[inline]
    pub(super) fn write(&mut self, gpr: Gpr) {
        self.contents.renew(gpr);
    }

    /// Tracks a copy of all 64 bits of a register.
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

    /// Tracks a call.
    pub(super) fn called(&mut self) {
        CALLER_SAVED.into_iter().for_each(|gpr| self.contents.renew(gpr));
    }
}
