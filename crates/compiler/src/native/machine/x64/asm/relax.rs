//! Branch relaxation: lengths of jumps and alignment.
//!
//! Jumps start with the least length that they may have, and grow until all reach their targets. They never shrink, even if alignment does, which guarantees
//! termination.

use super::assembler::{Assembler, Fill, Gap, GapKind, Place};
use super::control::nops;
use super::reg::Cond;
use crate::native::code::{AssembleError, Code, Label, Mark, Relocation};

/// Passes before all jumps that could still grow are made long. Code in which each jump's growth makes the next one grow would need
/// as many passes as jumps.
const MAX_PASSES: usize = 24;

/// Distances are signed 32-bit numbers.
const MAX_BYTES: u64 = i32::MAX as u64;

impl Assembler {
    /// Determines all lengths and distances.
    ///
    /// # Errors
    /// The first error since [`new`](Assembler::new), or a label that is referenced and not bound, or code beyond 2 GiB. Each is a
    /// bug of the caller.
    pub fn finish(mut self) -> Result<Code, AssembleError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.bytes.truncate(self.len);
        finish(&self, &self.bytes)
    }
}

fn finish(asm: &Assembler, raw: &[u8]) -> Result<Code, AssembleError> {
    let longest: u64 = asm.gaps.iter().map(|gap| u64::from(gap.kind.max_len())).sum();
    let bytes = raw.len() as u64 + longest;
    if bytes > MAX_BYTES {
        return Err(AssembleError::TooLong { bytes });
    }
    let is_unbound =
        |label: Label| asm.labels.get(label.0 as usize).is_none_or(|&place| place == Place::UNBOUND);
    let jumped_to = asm.gaps.iter().filter_map(|gap| match gap.kind {
        GapKind::Jump(_, label) => Some(label),
        GapKind::Align(..) => None,
    });
    let mut labels = asm.references.iter().map(|reference| reference.label).chain(jumped_to);
    if let Some(label) = labels.find(|label| is_unbound(*label)) {
        return Err(AssembleError::Unbound { label });
    }
    let layout = Layout::relaxed(asm, MAX_PASSES);
    let mut bytes = layout.write(raw);
    for reference in &asm.references {
        let field = layout.offset(reference.place);
        let distance = layout.target(reference.label).wrapping_sub(field + 4 + reference.behind);
        bytes[field as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    }
    let labels = asm.labels.iter().map(|&place| match place {
        Place::UNBOUND => u32::MAX,
        place => layout.offset(place),
    });
    let marks = asm.marks.iter().map(|&(place, tag)| Mark { offset: layout.offset(place), tag });
    let relocations = asm.externs.iter().map(|external| Relocation {
        offset: layout.offset(external.place),
        kind: external.kind,
        target: external.target,
    });
    let (labels, marks, relocations) = (labels.collect(), marks.collect(), relocations.collect());
    Ok(Code { bytes, relocations, marks, labels })
}

impl GapKind {
    /// Maximum length in bytes.
    fn max_len(self) -> u32 {
        match self {
            GapKind::Jump(cond, _) => long_len(cond),
            GapKind::Align(log2, _) => (1 << log2) - 1,
        }
    }
}

const SHORT_LEN: u8 = 2;

fn long_len(cond: Option<Cond>) -> u32 {
    if cond.is_some() { 6 } else { 5 }
}

/// The least length of a gap that is a jump, whatever the lengths of the other gaps are.
fn least_len(asm: &Assembler, gap: &Gap, index: u32) -> u8 {
    match gap.kind {
        GapKind::Jump(_, label) => {
            let target = asm.labels[label.0 as usize];
            if target.gaps > index && target.raw == gap.raw { 0 } else { SHORT_LEN }
        }
        GapKind::Align(..) => 0,
    }
}

struct Layout<'a> {
    gaps: &'a [Gap],
    labels: &'a [Place],
    /// Length of each jump; lengths of alignment are contained in `before` only.
    lens: Vec<u8>,
    /// Total length of the gaps before each one, and of all gaps at the end.
    before: Vec<u32>,
}

impl<'a> Layout<'a> {
    fn relaxed(asm: &'a Assembler, passes: usize) -> Layout<'a> {
        let mut layout = Layout {
            gaps: &asm.gaps,
            labels: &asm.labels,
            lens: asm.gaps.iter().zip(0..).map(|(gap, index)| least_len(asm, gap, index)).collect(),
            before: vec![0; asm.gaps.len() + 1],
        };
        for _ in 0..passes {
            layout.place();
            if !layout.grow() {
                return layout;
            }
        }
        layout.settle();
        layout.place();
        layout
    }

    fn offset(&self, place: Place) -> u32 {
        place.raw + self.before[place.gaps as usize]
    }

    fn target(&self, label: Label) -> u32 {
        self.offset(self.labels[label.0 as usize])
    }

    /// Sums up the lengths, and computes those of alignment.
    fn place(&mut self) {
        let mut sum = 0;
        for ((gap, &len), before) in self.gaps.iter().zip(&self.lens).zip(&mut self.before) {
            *before = sum;
            sum += match gap.kind {
                GapKind::Jump(..) => u32::from(len),
                GapKind::Align(log2, _) => (gap.raw + sum).wrapping_neg() & ((1 << log2) - 1),
            };
        }
        if let Some(last) = self.before.last_mut() {
            *last = sum;
        }
    }

    /// Lengthens jumps that do not reach their targets, and returns whether any did not.
    fn grow(&mut self) -> bool {
        let mut grew = false;
        for (index, gap) in self.gaps.iter().enumerate() {
            let GapKind::Jump(cond, label) = gap.kind else { continue };
            // One that is long stays so.
            if self.lens[index] > SHORT_LEN {
                continue;
            }
            let target = self.labels[label.0 as usize];
            let distance = i64::from(self.offset(target)) - i64::from(gap.raw + self.before[index]);
            let needed = if target.gaps as usize > index {
                // A forward target moves with the jump's length, which `distance` contains already.
                match distance - i64::from(self.lens[index]) {
                    0 => 0,
                    1..=127 => SHORT_LEN,
                    _ => long_len(cond) as u8,
                }
            } else if distance - i64::from(SHORT_LEN) >= -128 {
                SHORT_LEN
            } else {
                long_len(cond) as u8
            };
            if needed > self.lens[index] {
                self.lens[index] = needed;
                grew = true;
            }
        }
        grew
    }

    /// Lengthens all jumps that would not reach if all gaps in between had their maximum length.
    fn settle(&mut self) {
        let mut sum = 0;
        let mut most = Vec::with_capacity(self.before.len());
        most.push(0);
        most.extend(self.gaps.iter().map(|gap| {
            sum += gap.kind.max_len();
            sum
        }));
        for (index, (gap, len)) in self.gaps.iter().zip(&mut self.lens).enumerate() {
            let GapKind::Jump(cond, label) = gap.kind else { continue };
            let target = self.labels[label.0 as usize];
            let ahead = target.gaps as usize > index;
            let between = if ahead {
                target.raw - gap.raw + most[target.gaps as usize] - most[index + 1]
            } else {
                gap.raw - target.raw + most[index + 1] - most[target.gaps as usize]
            };
            let needed = match between {
                0 => 0,
                1..=127 => SHORT_LEN,
                _ => long_len(cond) as u8,
            };
            *len = needed.max(*len);
        }
    }

    fn write(&self, raw: &[u8]) -> Vec<u8> {
        let total = raw.len() + self.before.last().map_or(0, |&sum| sum as usize);
        let mut bytes = Vec::with_capacity(total);
        let mut written = 0;
        for (index, gap) in self.gaps.iter().enumerate() {
            bytes.extend_from_slice(&raw[written..gap.raw as usize]);
            written = gap.raw as usize;
            match gap.kind {
                GapKind::Jump(cond, label) => {
                    let end = bytes.len() as u32 + u32::from(self.lens[index]);
                    write_jump(&mut bytes, cond, self.lens[index], self.target(label).wrapping_sub(end));
                }
                GapKind::Align(_, fill) => {
                    let len = (self.before[index + 1] - self.before[index]) as usize;
                    write_fill(&mut bytes, fill, len);
                }
            }
        }
        bytes.extend_from_slice(&raw[written..]);
        bytes
    }
}

fn write_jump(bytes: &mut Vec<u8>, cond: Option<Cond>, len: u8, distance: u32) {
    match (len, cond) {
        (0, _) => {}
        (SHORT_LEN, Some(cond)) => bytes.extend_from_slice(&[0x70 + cond as u8, distance as u8]),
        (SHORT_LEN, None) => bytes.extend_from_slice(&[0xeb, distance as u8]),
        (_, Some(cond)) => {
            bytes.extend_from_slice(&[0x0f, 0x80 + cond as u8]);
            bytes.extend_from_slice(&distance.to_le_bytes());
        }
        (_, None) => {
            bytes.push(0xe9);
            bytes.extend_from_slice(&distance.to_le_bytes());
        }
    }
}

fn write_fill(bytes: &mut Vec<u8>, fill: Fill, len: usize) {
    match fill {
        Fill::Int3 => bytes.resize(bytes.len() + len, 0xcc),
        Fill::Nop => nops(len).for_each(|nop| bytes.extend_from_slice(nop)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether all jumps reach their targets, and jumps of length 0 are directly before theirs.
    fn holds(layout: &Layout) -> bool {
        layout.gaps.iter().enumerate().all(|(index, gap)| {
            let GapKind::Jump(cond, label) = gap.kind else { return true };
            let len = u32::from(layout.lens[index]);
            let end = gap.raw + layout.before[index] + len;
            let distance = i64::from(layout.target(label)) - i64::from(end);
            match len {
                0 => distance == 0 && layout.labels[label.0 as usize].gaps as usize > index,
                2 => i8::try_from(distance).is_ok(),
                _ => len == long_len(cond),
            }
        })
    }

    #[test]
    fn any_number_of_passes_is_enough() {
        for round in 0..300 {
            let mut rng = fastrand::Rng::with_seed(round);
            let mut asm = Assembler::new();
            let labels: Vec<Label> = (0..rng.usize(1..200)).map(|_| asm.new_label()).collect();
            let reach = rng.usize(1..10);
            for (index, &label) in labels.iter().enumerate() {
                let near = (index + rng.usize(0..2 * reach)).saturating_sub(reach).min(labels.len() - 1);
                match rng.u32(0..3) {
                    0 => asm.jmp(labels[near]),
                    _ => asm.jcc(Cond::E, labels[near]),
                }
                if rng.u32(0..8) == 0 {
                    asm.align(rng.u8(0..6), Fill::Int3);
                }
                asm.nop(rng.usize(0..256 / reach));
                asm.bind(label);
            }
            let mut long = Vec::new();
            for passes in [0, 1, 2, 3, MAX_PASSES] {
                let layout = Layout::relaxed(&asm, passes);
                assert!(holds(&layout), "round {round}, {passes} passes");
                long.push(layout.lens.iter().filter(|&&len| len > SHORT_LEN).count());
            }
            assert!(long.is_sorted_by(|more, fewer| more >= fewer), "round {round}: {long:?}");
        }
    }
}
