use super::reg::Gpr;
use crate::native::code::{AssembleError, Label};
use crate::native::machine::operand::Width;

/// Assembles a sequence of instructions into [`Code`](crate::native::code::Code).
///
/// Methods append; errors in their arguments are reported by [`finish`](Assembler::finish).
#[derive(Debug, Default)]
pub struct Assembler {
    /// Positions are counted in instructions, without those that branches which do not reach and alignment add.
    pub(super) words: Vec<u32>,
    pub(super) labels: Vec<Place>,
    /// In the order of their positions.
    pub(super) gaps: Vec<Gap>,
    pub(super) marks: Vec<(Place, u32)>,
    /// No label, mark or padding is at a position behind this one.
    settled: u32,
    pub(super) failed: Option<AssembleError>,
}

/// A position in unfinished code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Instructions before it, without those that gaps add.
    pub(super) at: u32,
    /// Number of gaps before it.
    pub(super) gaps: u32,
}

impl Place {
    pub(super) const UNBOUND: Self = Self { at: u32::MAX, gaps: u32::MAX };
}

/// A place where instructions may be added, or that needs the distance to a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// The instruction, or the one before which padding is.
    pub(super) at: u32,
    pub(super) kind: GapKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GapKind {
    /// A branch or call with a distance of 26 bits.
    Far(Label),
    /// A conditional branch, or a comparison with zero and a branch, with a distance of 19 bits. A bit of it inverts its condition.
    Near(Label, u32),
    /// The address of a label, with a distance of 21 bits.
    Address(Label, Gpr),
    /// Alignment to this power of two in bytes.
    Align(u8),
}

impl Assembler {
    /// An assembler without instructions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A label to jump to, which is [bound](Self::bind) before or after its uses.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(Place::UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the current position; once per label. An unconditional jump there that directly precedes it is dropped.
    pub fn bind(&mut self, label: Label) {
        self.drop_jump(label);
        let here = self.settle();
        match self.labels.get_mut(label.0 as usize) {
            Some(place) if *place == Place::UNBOUND => *place = here,
            Some(_) => self.fail(AssembleError::BoundTwice { label }),
            None => self.fail(AssembleError::Unbound { label }),
        }
    }

    /// Records that the following code belongs to `tag`, for example an instruction slot.
    pub fn mark(&mut self, tag: u32) {
        let here = self.settle();
        self.marks.push((here, tag));
    }

    /// Pads with `udf` to a multiple of 2 to the `log2`, which is 2 to 12, relative to the start of the code, which must be aligned
    /// accordingly.
    pub fn align(&mut self, log2: u8) {
        if !(2..=12).contains(&log2) {
            return self.fail(AssembleError::Alignment { log2 });
        }
        self.settle();
        self.gap(GapKind::Align(log2));
    }

    /// The current position, at which something is.
    fn settle(&mut self) -> Place {
        let here = self.here();
        self.settled = here.at;
        here
    }

    /// Drops the jump to a label that the code ends with, unless something is behind it.
    fn drop_jump(&mut self, label: Label) {
        let Some(last) = self.here().at.checked_sub(1).filter(|last| self.settled <= *last) else { return };
        let is_jump = self
            .gaps
            .last()
            .is_some_and(|gap| gap.at == last && matches!(gap.kind, GapKind::Far(target) if target == label));
        if is_jump && self.words.last() == Some(&JUMP) {
            self.words.pop();
            self.gaps.pop();
        }
    }

    pub(super) fn here(&self) -> Place {
        Place { at: self.words.len() as u32, gaps: self.gaps.len() as u32 }
    }

    pub(super) fn put(&mut self, word: u32) {
        self.words.push(word);
    }

    pub(super) fn gap(&mut self, kind: GapKind) {
        self.gaps.push(Gap { at: self.here().at, kind });
    }

    #[cold]
    pub(super) fn fail(&mut self, error: AssembleError) {
        self.failed.get_or_insert(error);
    }

    /// An operand that cannot be encoded.
    #[cold]
    pub(super) fn fail_operand(&mut self) {
        self.fail(AssembleError::Operand { offset: 4 * self.here().at });
    }

    /// The number of a register, of which 31 is zero.
    pub(super) fn r(&mut self, gpr: Gpr) -> u32 {
        if gpr == Gpr::Sp {
            self.fail_operand();
        }
        gpr.number()
    }

    /// The number of a register, of which 31 is the stack pointer.
    pub(super) fn s(&mut self, gpr: Gpr) -> u32 {
        if gpr == Gpr::Zr {
            self.fail_operand();
        }
        gpr.number()
    }
}

/// `b` without its distance.
pub(super) const JUMP: u32 = 0x1400_0000;

/// The bit of encodings that selects 64 bits.
pub(super) const fn sf(width: Width) -> u32 {
    match width {
        Width::D32 => 0,
        Width::Q64 => 1 << 31,
    }
}
