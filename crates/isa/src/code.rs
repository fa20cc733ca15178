//! A decoded program.

use super::encode::{EncodeError, encode_all};
use super::insn::{Insn, RawInsn};

/// A decoded program, indexed by slot, the unit of jump offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Code {
    slots: Vec<Option<Insn>>,
}

impl Code {
    /// The first slots of the functions, increasing: 0, and the targets of calls and of addresses of functions, which may be none of the
    /// program's.
    #[must_use]
    pub fn function_starts(&self) -> Vec<usize> {
        let targets = self.iter().filter_map(|(slot, insn)| insn.subprogram_target(slot));
        let mut starts: Vec<usize> =
            targets.filter_map(|target| usize::try_from(target).ok()).chain([0]).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    pub(crate) fn with_capacity(slots: usize) -> Self {
        Self { slots: Vec::with_capacity(slots) }
    }

    /// Appends an instruction, with its second slot if it has one.
    pub fn push(&mut self, insn: Insn) {
        self.slots.push(Some(insn));
        self.slots.extend((1..insn.slots()).map(|_| None));
    }

    /// Number of slots.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the program is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The instruction that starts at a slot; `None` past the end and at the second slot of a 64-bit immediate load.
    #[must_use]
    pub fn get(&self, slot: usize) -> Option<&Insn> {
        self.slots.get(slot)?.as_ref()
    }

    /// All slots; the second of a 64-bit immediate load is `None`.
    #[must_use]
    pub fn slots(&self) -> &[Option<Insn>] {
        &self.slots
    }

    /// The instructions in order, each with its slot.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Insn)> {
        self.slots.iter().enumerate().filter_map(|(slot, insn)| Some((slot, insn.as_ref()?)))
    }

    /// Encodes the program; the inverse of [`decode`](crate::decode).
    ///
    /// # Errors
    /// For an instruction that [`Insn`] can represent but BPF does not have.
    pub fn encode(&self) -> Result<Vec<RawInsn>, EncodeError> {
        encode_all(self.slots.iter().flatten())
    }
}

impl FromIterator<Insn> for Code {
    fn from_iter<I: IntoIterator<Item = Insn>>(insns: I) -> Self {
        let mut code = Self::default();
        insns.into_iter().for_each(|insn| code.push(insn));
        code
    }
}
