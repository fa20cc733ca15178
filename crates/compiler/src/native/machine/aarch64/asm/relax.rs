//! Distances, and longer sequences for those that do not fit: a conditional branch becomes the inverse one around a branch, and the
//! address of a label a sum.
//!
//! Sequences start with one instruction and grow until all reach their labels. They never shrink, which guarantees termination.

use super::assembler::{Assembler, GapKind, JUMP, Place};
use super::reg::Gpr;
use crate::native::code::{AssembleError, Code, Label, Mark};

/// Instructions that a conditional branch grows by.
const LONG_BRANCH: u32 = 1;
/// Instructions that an address grows by.
const LONG_ADDRESS: u32 = 3;

impl Assembler {
    /// Determines all distances.
    ///
    /// # Errors
    /// The first error since [`new`](Self::new), or a label that is referenced and not bound, or code that is too long for a branch.
    /// Each but the last is a bug of the caller.
    pub fn finish(self) -> Result<Code, AssembleError> {
        match self.failed {
            Some(error) => Err(error),
            None => finish(&self),
        }
    }
}

fn finish(asm: &Assembler) -> Result<Code, AssembleError> {
    let unbound =
        |label: &Label| asm.labels.get(label.0 as usize).is_none_or(|place| *place == Place::UNBOUND);
    if let Some(label) = asm.gaps.iter().filter_map(|gap| gap.kind.label()).find(unbound) {
        return Err(AssembleError::Unbound { label });
    }
    // Twice as long with all branches grown, and padding.
    let most = asm.gaps.iter().map(|gap| u64::from(gap.kind.most())).sum::<u64>() + asm.words.len() as u64;
    if most > u64::from(i32::MAX as u32 / 4) {
        return Err(AssembleError::TooLong { bytes: 4 * most });
    }
    let mut layout = Layout { asm, grown: vec![0; asm.gaps.len()], before: vec![0; asm.gaps.len() + 1] };
    layout.place();
    while layout.grow() {
        layout.place();
    }
    let words = layout.write()?;
    let labels = asm.labels.iter().map(|place| match *place {
        Place::UNBOUND => u32::MAX,
        place => 4 * layout.position(place),
    });
    let marks = asm.marks.iter().map(|&(place, tag)| Mark { offset: 4 * layout.position(place), tag });
    Ok(Code {
        bytes: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        relocations: Vec::new(),
        marks: marks.collect(),
        labels: labels.collect(),
    })
}

impl GapKind {
    fn label(self) -> Option<Label> {
        match self {
            Self::Far(label) | Self::Near(label, _) | Self::Address(label, _) => Some(label),
            Self::Align(_) => None,
        }
    }

    /// The most instructions that it adds.
    fn most(self) -> u32 {
        match self {
            Self::Far(_) => 0,
            Self::Near(..) => LONG_BRANCH,
            Self::Address(..) => LONG_ADDRESS,
            Self::Align(log2) => (1 << log2) / 4 - 1,
        }
    }

    /// Whether one instruction is enough for a distance in instructions.
    fn reaches(self, distance: i64) -> bool {
        match self {
            Self::Far(_) => fits(distance, 26),
            Self::Near(..) => fits(distance, 19),
            Self::Address(..) => fits(4 * distance, 21),
            Self::Align(_) => true,
        }
    }
}

/// Whether a number has so many bits with its sign.
fn fits(number: i64, bits: u32) -> bool {
    let most = 1 << (bits - 1);
    (-most..most).contains(&number)
}

struct Layout<'a> {
    asm: &'a Assembler,
    /// Instructions that each gap adds; padding is contained in `before` only.
    grown: Vec<u32>,
    /// Instructions that the gaps before each one add, and all gaps at the end.
    before: Vec<u32>,
}

impl Layout<'_> {
    fn position(&self, place: Place) -> u32 {
        place.at + self.before[place.gaps as usize]
    }

    fn place(&mut self) {
        let mut sum = 0;
        for ((gap, grown), before) in self.asm.gaps.iter().zip(&self.grown).zip(&mut self.before) {
            *before = sum;
            sum += match gap.kind {
                GapKind::Align(log2) => (gap.at + sum).wrapping_neg() & ((1 << log2) / 4 - 1),
                _ => *grown,
            };
        }
        if let Some(last) = self.before.last_mut() {
            *last = sum;
        }
    }

    /// The distance from an instruction to a label, in instructions.
    fn distance(&self, from: u32, label: Label) -> i64 {
        i64::from(self.position(self.asm.labels[label.0 as usize])) - i64::from(from)
    }

    /// Lengthens what does not reach its label. Returns whether there was any.
    fn grow(&mut self) -> bool {
        let mut grew = false;
        for (index, gap) in self.asm.gaps.iter().enumerate() {
            let Some(label) = gap.kind.label().filter(|_| self.grown[index] == 0) else { continue };
            let distance = self.distance(gap.at + self.before[index], label);
            if !gap.kind.reaches(distance) && gap.kind.most() > 0 {
                self.grown[index] = gap.kind.most();
                grew = true;
            }
        }
        grew
    }

    fn write(&self) -> Result<Vec<u32>, AssembleError> {
        let raw = &self.asm.words;
        let added = self.before[self.asm.gaps.len()];
        let mut words = Vec::with_capacity(raw.len() + added as usize);
        let mut written = 0;
        for (index, gap) in self.asm.gaps.iter().enumerate() {
            words.extend_from_slice(&raw[written..gap.at as usize]);
            written = gap.at as usize;
            let here = words.len() as u32;
            if let GapKind::Align(_) = gap.kind {
                words.resize((gap.at + self.before[index + 1]) as usize, 0);
                continue;
            }
            let word = raw[written];
            written += 1;
            let Some(label) = gap.kind.label() else { continue };
            let distance = self.distance(here, label);
            let too_long = AssembleError::TooLong { bytes: 4 * (raw.len() as u64 + u64::from(added)) };
            let far = |distance: i64| match fits(distance, 26) {
                true => Ok(distance as u32 & 0x3ff_ffff),
                false => Err(too_long),
            };
            match (gap.kind, self.grown[index]) {
                (GapKind::Near(_, inverted), 1..) => {
                    words.push(word ^ inverted | 2 << 5);
                    words.push(JUMP | far(distance - 1)?);
                }
                (GapKind::Address(_, rd), 1..) => words.extend(long_address(word, rd, 4 * distance)),
                (GapKind::Near(..), 0) => words.push(word | (distance as u32 & 0x7_ffff) << 5),
                (GapKind::Address(..), 0) => {
                    let bytes = (4 * distance) as u32;
                    words.push(word | (bytes & 3) << 29 | (bytes >> 2 & 0x7_ffff) << 5);
                }
                (GapKind::Far(_), _) => words.push(word | far(distance)?),
                (GapKind::Align(_), _) => {}
            }
        }
        words.extend_from_slice(&raw[written..]);
        Ok(words)
    }
}

/// `adr rd, .`; `movz x16, #low`; `movk x16, #high, lsl #16`; `add rd, rd, w16, sxtw`
fn long_address(adr: u32, rd: Gpr, bytes: i64) -> [u32; 4] {
    let (scratch, rd) = (Gpr::X16.number(), rd.number());
    let half = |shift: u32| ((bytes >> shift) as u32 & 0xffff) << 5;
    [
        adr,
        0xd280_0000 | half(0) | scratch,
        0xf2a0_0000 | half(16) | scratch,
        0x8b20_c000 | scratch << 16 | rd << 5 | rd,
    ]
}
