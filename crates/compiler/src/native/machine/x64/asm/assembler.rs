use super::bytes::Bytes;
use super::reg::Cond;
use crate::native::code::{AssembleError, Label, RelocationKind};

/// Padding before an aligned position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// As few `nop`s as possible, for positions that execution falls into.
    Nop,
    /// `int3`, for positions that execution does not fall into.
    Int3,
}

/// Assembles a sequence of instructions into [`Code`](crate::native::code::Code).
///
/// Methods append; errors in their arguments are reported by [`finish`](Assembler::finish).
#[derive(Debug, Default)]
pub struct Assembler {
    // Jumps to labels and alignment have no length until `finish`. They are kept apart from the bytes, as gaps; a position in the
    // code is the number of bytes and gaps before it.
    /// Valid up to `len`; the rest is spare room for stores of whole words.
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
    pub(super) gaps: Vec<Gap>,
    pub(super) labels: Vec<Place>,
    pub(super) references: Vec<Reference>,
    pub(super) externs: Vec<Extern>,
    pub(super) marks: Vec<(Place, u32)>,
    pub(super) failed: Option<AssembleError>,
}

/// Labels and jumps for which there is room at first.
const ROOM: usize = 256;

/// A position in unfinished code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes before it, without gaps.
    pub(super) raw: u32,
    /// Number of gaps before it.
    pub(super) gaps: u32,
}

impl Place {
    pub(super) const UNBOUND: Place = Place { raw: u32::MAX, gaps: u32::MAX };
}

/// A jump or alignment, whose length is determined by [`relax`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Bytes before it, without gaps.
    pub(super) raw: u32,
    pub(super) kind: GapKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GapKind {
    /// A conditional jump, or an unconditional one.
    Jump(Option<Cond>, Label),
    /// Alignment to this power of two.
    Align(u8, Fill),
}

/// A 32-bit field for the distance from the end of its instruction to a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) place: Place,
    pub(super) label: Label,
    /// Bytes of the instruction after the field.
    pub(super) behind: u32,
}

/// A 32-bit field for the distance from its end to an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extern {
    pub(super) place: Place,
    pub(super) kind: RelocationKind,
    pub(super) target: u64,
}

impl Assembler {
    /// An assembler without instructions.
    pub fn new() -> Assembler {
        let mut asm = Assembler::default();
        asm.labels.reserve(ROOM);
        asm.gaps.reserve(ROOM);
        asm.marks.reserve(2 * ROOM);
        asm
    }

    /// A label to jump to, call or load from, which is [bound](Assembler::bind) before or after its uses.
    #[inline]
    pub fn new_label(&mut self) -> Label {
        self.labels.push(Place::UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds a label to the current position; once per label.
    #[inline]
    pub fn bind(&mut self, label: Label) {
        let here = self.here();
        match self.labels.get_mut(label.0 as usize) {
            Some(place) if *place == Place::UNBOUND => *place = here,
            Some(_) => self.fail(AssembleError::BoundTwice { label }),
            None => self.fail(AssembleError::Unbound { label }),
        }
    }

    /// Records that the following code belongs to `tag`, for example an instruction slot.
    ///
    /// The finished code has the marks in this order; several can have the same offset.
    #[inline]
    pub fn mark(&mut self, tag: u32) {
        self.marks.push((self.here(), tag));
    }

    /// Pads to a multiple of 2 to the `log2`, relative to the start of the code, which must be aligned accordingly.
    ///
    /// `log2` is at most 12, a page: [`AssembleError::Alignment`].
    pub fn align(&mut self, log2: u8, fill: Fill) {
        if log2 > 12 {
            return self.fail(AssembleError::Alignment { log2 });
        }
        self.gap(GapKind::Align(log2, fill));
    }

    /// Bytes so far, without gaps. Truncated beyond 4 GiB, which `finish` detects.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.len as u32
    }

    #[inline]
    pub(super) fn here(&self) -> Place {
        Place { raw: self.len(), gaps: self.gaps.len() as u32 }
    }

    #[inline]
    pub(super) fn gap(&mut self, kind: GapKind) {
        self.gaps.push(Gap { raw: self.len(), kind });
    }

    /// Records a reference to a label: a 32-bit field `ahead` bytes from here, with `behind` bytes of the instruction after it.
    #[inline]
    pub(super) fn refer(&mut self, ahead: u32, label: Label, behind: u32) {
        let here = self.here();
        let place = Place { raw: here.raw.wrapping_add(ahead), ..here };
        self.references.push(Reference { place, label, behind });
    }

    #[cold]
    pub(super) fn fail(&mut self, error: AssembleError) {
        self.failed.get_or_insert(error);
    }

    /// An operand that cannot be encoded.
    #[cold]
    pub(super) fn fail_operand(&mut self) {
        self.fail(AssembleError::Operand { offset: self.len() });
    }

    /// Appends an instruction: prefixes, opcode, ModRM and SIB are its head; displacement and immediate its tail.
    ///
    /// Stores whole words, whose excess the next instruction overwrites: this is faster than copies of exact lengths.
    #[inline(always)]
    pub(super) fn put(&mut self, head: Bytes, tail: Bytes) {
        const WORD: usize = size_of::<u64>();
        if self.bytes.len() - self.len < 2 * WORD {
            self.grow();
        }
        let (len, middle) = (self.len, self.len + head.len as usize);
        self.bytes[len..len + WORD].copy_from_slice(&head.bits.to_le_bytes());
        self.bytes[middle..middle + WORD].copy_from_slice(&tail.bits.to_le_bytes());
        self.len = middle + tail.len as usize;
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes.resize((2 * self.bytes.len()).max(4096), 0);
    }
}
