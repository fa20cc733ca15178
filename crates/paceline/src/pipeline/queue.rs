//! Packets that wait for one target.

/// Path of packets to an entry of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Egress {
    /// Number of the entry's program; 0 for none.
    pub(super) program: u32,
    /// Packets that may wait there before it, in a CPU's queue.
    pub(super) room: u32,
}

/// Packets of a burst that wait, by index, in the order in which they go.
#[derive(Default)]
pub(super) struct Queue {
    indices: Vec<u8>,
    /// From which on they go through something else than those before; the first ones go through nothing.
    changes: Vec<(usize, Egress)>,
}

impl Queue {
    #[inline]
    pub(super) fn push(&mut self, index: usize, through: Egress) {
        let before = self.changes.last().map_or(Egress::default(), |&(_, before)| before);
        if before != through {
            self.changes.push((self.indices.len(), through));
        }
        self.indices.push(index as u8);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// All that waits, if it goes through nothing.
    #[inline]
    pub(super) fn plain(&self) -> Option<&[u8]> {
        self.changes.is_empty().then_some(&*self.indices)
    }

    /// Neighbors that go through the same.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Egress, &[u8])> {
        let starts = std::iter::once((0, Egress::default())).chain(self.changes.iter().copied());
        let ends = self.changes.iter().map(|&(start, _)| start).chain([self.indices.len()]);
        starts.zip(ends).map(|((start, through), end)| (through, &self.indices[start..end]))
    }

    pub(super) fn clear(&mut self) {
        self.indices.clear();
        self.changes.clear();
    }
}
