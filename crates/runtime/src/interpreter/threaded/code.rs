//! Operations as they are emitted: labels, distances of jumps and calls, sequences.

use paceline_compiler::codegen::Label;
use paceline_compiler::ir::FuncId;
use paceline_compiler::ir::arena::Key;

use super::error::TranslateError;
use super::fuse::{Item, sequence_at};
use super::handlers::HANDLERS;
use super::kind::{Kind, Source};
use crate::interpreter::op::Op;

/// In place of a code, for second parts.
pub(super) const NO_CODE: u16 = u16::MAX;

#[derive(Default)]
pub(super) struct Code {
    pub(super) items: Vec<Item>,
    /// Places of the labels of the current function.
    labels: Vec<Option<usize>>,
    /// Jumps of the current function.
    jumps: Vec<(usize, Label)>,
    /// Second parts with the distance of a function.
    calls: Vec<(usize, FuncId)>,
    /// Where the functions start.
    entries: Vec<usize>,
    /// Where jumps lead.
    targets: Vec<usize>,
}

impl Code {
    /// Begins the next function.
    pub(super) fn begin(&mut self) {
        self.labels.clear();
        self.entries.push(self.items.len());
    }

    pub(super) fn push(&mut self, kind: Kind, bytes: [u8; 8], uses: u32) {
        self.items.push(Item::Op(kind, bytes, uses));
    }

    pub(super) fn push_data(&mut self, word: u64, imm: i32) {
        self.items.push(Item::Data(word, imm));
    }

    /// The last item holds the distance of a function.
    pub(super) fn refer(&mut self, function: FuncId) {
        self.calls.push((self.items.len() - 1, function));
    }

    pub(super) fn push_jump(&mut self, kind: Kind, bytes: [u8; 8], to: Label) {
        self.jumps.push((self.items.len(), to));
        self.push(kind, bytes, 0);
    }

    pub(super) fn bind(&mut self, label: Label) {
        let number = label.0 as usize;
        if self.labels.len() <= number {
            self.labels.resize(number + 1, None);
        }
        self.labels[number] = Some(self.items.len());
    }

    /// Ends a function.
    pub(super) fn end(&mut self) -> Result<(), TranslateError> {
        for (at, label) in std::mem::take(&mut self.jumps) {
            let target = self.labels.get(label.0 as usize).copied().flatten();
            let target = target.ok_or(TranslateError::Lack("a label is not bound"))?;
            if let (&Item::Op(kind, mut bytes, _), Some(Item::Op(Kind::End(Source::Imm), end, _))) =
                (&self.items[at], self.items.get(target))
                && let Some(kind) = kind.ending()
            {
                bytes[4..].copy_from_slice(&end[4..]);
                self.items[at] = Item::Op(kind, bytes, 0);
                continue;
            }
            self.targets.push(target);
            let distance = target as i64 - at as i64;
            let bytes =
                distance.checked_mul(size_of::<Op>() as i64).and_then(|bytes| i32::try_from(bytes).ok());
            let distance = bytes.ok_or(TranslateError::Lack("a jump is too long"))?;
            if let Item::Op(_, bytes, _) = &mut self.items[at] {
                bytes[4..].copy_from_slice(&distance.to_ne_bytes());
            }
        }
        Ok(())
    }

    /// The operations, and the codes of their handlers.
    pub(super) fn finish(mut self) -> Result<(Vec<Op>, Vec<u16>), TranslateError> {
        for &(at, function) in &self.calls {
            let entry = self.entries.get(function.index()).copied();
            let entry = entry.ok_or(TranslateError::Lack("a function has no entry"))?;
            if let Item::Data(_, imm) = &mut self.items[at] {
                *imm = i32::try_from(entry as i64 - (at as i64 - 1))
                    .map_err(|_| TranslateError::Lack("a call is too long"))?;
            }
        }
        let mut is_target = vec![false; self.items.len()];
        self.targets.iter().for_each(|target| is_target[*target] = true);
        let (mut ops, mut codes) =
            (Vec::with_capacity(self.items.len()), Vec::with_capacity(self.items.len()));
        // Where the sequence starts, its handler, and how many of its operations are to come.
        let (mut start, mut code, mut rest) = (0, 0, 0);
        for (at, item) in self.items.iter().enumerate() {
            match *item {
                Item::Op(kind, bytes, _) => {
                    if rest == 0 {
                        let found = sequence_at(&self.items[at..], &is_target[at..]);
                        let (number, sequence) =
                            found.ok_or(TranslateError::Lack("a kind has no handler"))?;
                        (start, code, rest) = (at, number, sequence.len);
                    }
                    rest -= 1;
                    let mut op = Op::new(HANDLERS[usize::from(code)], bytes);
                    if kind.jumps() {
                        op.add_imm(((at - start) * size_of::<Op>()) as i32);
                    }
                    ops.push(op);
                    codes.push(code);
                }
                Item::Data(word, imm) => {
                    ops.push(Op::data(word, imm));
                    codes.push(NO_CODE);
                }
            }
        }
        Ok((ops, codes))
    }
}
