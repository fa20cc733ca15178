//! The origins of all values of a machine.
//!
//! A value has up to four sources, and the element of a map that a pointer leads to. A source of packet bits remembers mask, shift
//! and byte order, so that `(byte & 0xf) << 2` is named `ipv4.ihl`. Memory that a helper writes has the helper as its source.

use std::collections::BTreeMap;
use std::ops::Range;

use paceline_isa::Reg;

use crate::explain::origin::Origin;

/// A function that waits for the one it called.
struct Saved {
    program: u32,
    depth: usize,
    callee_saved: [Origin; 4],
}

/// Origins of registers and of the memory that the run wrote.
#[derive(Default)]
pub(crate) struct Shadow {
    registers: [Origin; 11],
    /// By the address of the first byte: length and origin.
    memory: BTreeMap<u64, (u64, Origin)>,
    saved: Vec<Saved>,
    /// Program and depth of the running function.
    at: Option<(u32, usize)>,
}

impl Shadow {
    pub(crate) fn get(&self, reg: Reg) -> Origin {
        self.registers.get(usize::from(reg.number())).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, reg: Reg, origin: Origin) {
        if let Some(register) = self.registers.get_mut(usize::from(reg.number())) {
            *register = origin;
        }
    }

    /// The registers that calls do not keep.
    pub(crate) fn clear_arguments(&mut self) {
        for reg in [Reg::R1, Reg::R2, Reg::R3, Reg::R4, Reg::R5] {
            self.set(reg, Origin::default());
        }
    }

    /// Whether the run wrote some of these bytes.
    pub(crate) fn has(&self, address: u64, len: u64) -> bool {
        self.overlapping(address, len).next().is_some()
    }

    /// Forgets what the run wrote to addresses.
    pub(crate) fn forget(&mut self, range: Range<u64>) {
        let written: Vec<_> = self.memory.range(range).map(|(start, _)| *start).collect();
        written.iter().for_each(|start| drop(self.memory.remove(start)));
    }

    /// Records the origin of bytes.
    pub(crate) fn store(&mut self, address: u64, len: u64, origin: Origin) {
        let overlapped: Vec<_> = self.overlapping(address, len).map(|(start, _)| start).collect();
        for start in overlapped {
            self.memory.remove(&start);
        }
        self.memory.insert(address, (len, origin));
    }

    /// The origin of bytes that the run wrote.
    pub(crate) fn load(&self, address: u64, len: u64) -> Origin {
        let origins = self.overlapping(address, len).map(|(_, origin)| origin);
        origins.fold(Origin::default(), |all, origin| {
            if all.sources.is_empty() { origin.clone() } else { all.merged(origin) }
        })
    }

    fn overlapping(&self, address: u64, len: u64) -> impl Iterator<Item = (u64, &Origin)> {
        // Nothing that is stored at once is longer than a frame of the stack.
        let from = address.saturating_sub(512);
        let near = self.memory.range(from..address.saturating_add(len));
        near.filter(move |(start, (size, _))| **start + size > address)
            .map(|(start, (_, origin))| (*start, origin))
    }

    /// Follows calls and returns: the function that runs now.
    pub(crate) fn enter(&mut self, program: u32, depth: usize) {
        let Some(before) = self.at.replace((program, depth)) else { return };
        if before == (program, depth) {
            return;
        }
        if let Some(found) =
            self.saved.iter().rposition(|saved| (saved.program, saved.depth) == (program, depth))
        {
            let saved = self.saved.drain(found..).next();
            for (reg, origin) in [Reg::R6, Reg::R7, Reg::R8, Reg::R9]
                .into_iter()
                .zip(saved.map(|s| s.callee_saved).into_iter().flatten())
            {
                self.set(reg, origin);
            }
            self.clear_arguments();
            return;
        }
        let callee_saved = [Reg::R6, Reg::R7, Reg::R8, Reg::R9].map(|reg| self.get(reg));
        let (program, depth) = before;
        self.saved.push(Saved { program, depth, callee_saved });
    }
}
