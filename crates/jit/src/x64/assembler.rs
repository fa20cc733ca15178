use super::code::AssembleError;
use super::contents::Contents;
use super::encode::Bytes;
use super::{Cond, relax};

/// A place in the code that may be named before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(pub(super) u32);

/// What fills the space in front of an aligned place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fill {
    /// As few no-operations as possible, where execution may pass.
    Nop,
    /// Breakpoints, where it may not.
    Int3,
}

/// Takes instructions one after the other and gives [`Code`](super::Code).
///
/// Methods append; what is wrong with what they were given is told by [`finish`](Assembler::finish).
///
#[derive(Debug, Default)]
pub struct Assembler {
    // Jumps to labels and alignment have no length until `finish`. They are kept apart from the bytes, as gaps between
    // them, and places in the code count the bytes and the gaps in front of them.
    /// Valid up to `len`; what is behind it is room to write whole words into.
    bytes: Vec<u8>,
    len: usize,
    pub(super) gaps: Vec<Gap>,
    pub(super) labels: Vec<Place>,
    pub(super) references: Vec<Reference>,
    pub(super) externs: Vec<Extern>,
    pub(super) marks: Vec<(Place, u32)>,
    pub(super) failed: Option<AssembleError>,
    pub(super) contents: Contents,
}

/// A place in unfinished code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes in front of it, without gaps.
    pub(super) raw: u32,
    /// Gaps in front of it.
    pub(super) gaps: u32,
}

impl Place {
    pub(super) const UNBOUND: Place = Place { raw: u32::MAX, gaps: u32::MAX };
}

/// Something whose length is found by [`relax`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Bytes in front of it, without gaps.
    pub(super) raw: u32,
    pub(super) kind: GapKind,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum GapKind {
    /// A conditional jump, or one that is always taken.
    Jump(Option<Cond>, Label),
    /// Alignment to this power of two.
    Align(u8, Fill),
}

/// Four bytes that will hold the distance from the end of their instruction to a label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) place: Place,
    pub(super) label: Label,
    /// Bytes of the instruction behind the four.
    pub(super) behind: u32,
}

/// Four bytes that will hold the distance from their end to an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extern {
    pub(super) place: Place,
    pub(super) kind: super::RelocationKind,
    pub(super) target: u64,
}

impl Assembler {
    /// An assembler without instructions.
    pub fn new() -> Assembler {
        Assembler::default()
    }

    /// A label to jump to, call or load from, and to [`bind`](Assembler::bind) before or after.
    #[inline]
    pub fn new_label(&mut self) -> Label {
        self.labels.push(Place::UNBOUND);
        self.contents.new_label();
        Label(self.labels.len() as u32 - 1)
    }

    /// The same for a place where nothing is known of what registers hold: what is held there is taken note of behind it.
    #[inline]
    pub fn new_block_label(&mut self) -> Label {
        self.labels.push(Place::UNBOUND);
        self.contents.new_block_label();
        Label(self.labels.len() as u32 - 1)
    }

    /// Puts a label here. That can be done once.
    #[inline]
    pub fn bind(&mut self, label: Label) {
        let here = self.here();
        self.contents.bind(label);
        match self.labels.get_mut(label.0 as usize) {
            Some(place) if *place == Place::UNBOUND => *place = here,
            Some(_) => self.fail(AssembleError::BoundTwice { label }),
            None => self.fail(AssembleError::Unbound { label }),
        }
    }

    /// Notes that the code from here on comes from `tag`, for example an instruction slot.
    ///
    /// [`Code::marks`](super::Code::marks) has the marks in the order they were made; several can have one offset.
    #[inline]
    pub fn mark(&mut self, tag: u32) {
        self.marks.push((self.here(), tag));
    }

    /// Fills up to a multiple of 2 to the `log2`, counted from the start of the code, which must be placed accordingly.
    ///
    /// At most 12, a page: [`AssembleError::Alignment`].
    pub fn align(&mut self, log2: u8, fill: Fill) {
        if log2 > 12 {
            return self.fail(AssembleError::Alignment { log2 });
        }
        self.gap(GapKind::Align(log2, fill));
    }

    /// Where the code so far ends with a jump to, if it does: that jump takes no bytes if its label is bound next.
    pub fn jump_here(&self) -> Option<Label> {
        let last = self.gaps.last().filter(|gap| gap.raw == self.len())?;
        match last.kind {
            GapKind::Jump(None, label) => Some(label),
            _ => None,
        }
    }

    /// Settles all lengths and distances.
    ///
    /// # Errors
    /// The first mistake made since [`new`](Assembler::new), or a label that is referred to and not bound, or code beyond
    /// 2 GiB. Each is a defect in the caller.
    pub fn finish(mut self) -> Result<super::Code, AssembleError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if self.contents.is_exhausted() {
            return Err(AssembleError::TooLong { bytes: self.len as u64 });
        }
        self.bytes.truncate(self.len);
        relax::finish(&self, &self.bytes)
    }

    /// Bytes so far, without gaps. Beyond 4 GiB it is wrong, but `finish` has the real number.
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

    /// The four bytes `ahead` from here refer to a label, and `behind` bytes of the instruction follow them.
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

    /// Appends an instruction: prefixes, opcode, ModRM and SIB are its head; displacement and immediate its tail.
    ///
    /// Whole words are written and the next instruction overwrites what was too much: copying exact lengths takes longer.
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
