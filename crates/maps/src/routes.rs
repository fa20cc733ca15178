//! Which prefix an IPv4 address has: a trie that takes 16 bits, then 8, then 8. All look-ups take one to three steps, and most
//! addresses of a routing table two.
//!
//! An entry is a prefix (its slot in the table of prefixes), a node, or nothing. A node keeps one entry for each run of
//! equal ones among its 256, and a bit for each that begins a run; counting bits finds the entry. So a node takes a cache line
//! or two where a plain array takes 1 KiB, and a table of 800,000 routes fits the cache that all cores share.
//!
//! Nodes never change. A change writes new ones and puts them in place of the old with one store in the root; the old ones
//! wait until the bursts are over that may have found them. A prefix that covers several entries of the root replaces them
//! one by one: look-ups of different addresses may see it at different times.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_epoch::Domain;
use paceline_spec::Errno;

use crate::slab::{Atomics, NoMemory, Zeroed};
use crate::sync::AtomicU32;

/// Bits of an address that choose an entry of the root.
const ROOT_BITS: u32 = 16;
/// Bits that choose an entry of a node.
const NODE_BITS: u32 = 8;
const ENTRIES: usize = 1 << NODE_BITS;

/// Marks an entry that is the number of a node's first line. Others are a slot's number and 1, or 0.
const NODE: u32 = 1 << 31;

/// Numbers of 32 bits in a line.
const LINE: usize = 16;
/// A node begins with a bit for each entry,
const BITS: usize = ENTRIES / 32;
/// then for each 32 of them how many runs begin before, a byte each; then come the entries.
const COUNTS: usize = BITS / 4;
const HEADER: usize = BITS + COUNTS;

/// Lines that there are beside those of the prefixes, for nodes that wait.
const SPARE_LINES: u64 = 2048;
/// Nodes that wait under one tag.
const BATCH: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    line: u32,
    lines: u32,
}

/// Two entries of the root.
#[repr(C, align(8))]
#[cfg_attr(loom, derive(Default))]
struct RootPair([AtomicU32; 2]);

/// A cache line of nodes.
#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
struct Line([AtomicU32; LINE]);

// SAFETY: atomics alone, for which zeros are a value.
unsafe impl Atomics for RootPair {}
// SAFETY: the same.
unsafe impl Atomics for Line {}

pub(crate) struct Routes {
    root: Zeroed<RootPair>,
    lines: Zeroed<Line>,
    unused: Mutex<Unused>,
}

/// Lines without a node. Whoever changes the trie has the lock.
struct Unused {
    /// By how many lines there are together, from 1 on.
    free: Vec<Vec<u32>>,
    /// Those from here on were never used.
    fresh: u32,
    open: Vec<Node>,
    waiting: VecDeque<(u64, Vec<Node>)>,
    /// Nodes that the running change made, and those that it replaces.
    made: Vec<Node>,
    replaced: Vec<Node>,
}

/// Enough for two nodes of their own for each prefix.
fn lines_for(entries: u32) -> u64 {
    2 * u64::from(entries) + SPARE_LINES
}

impl Routes {
    /// For so many prefixes.
    pub(crate) fn new(entries: u32) -> Result<Self, NoMemory> {
        let lines = usize::try_from(lines_for(entries)).map_err(|_| NoMemory { bytes: u64::MAX })?;
        let most = (HEADER + ENTRIES).div_ceil(LINE);
        let unused = Unused {
            free: vec![Vec::new(); most + 1],
            fresh: 0,
            open: Vec::new(),
            waiting: VecDeque::new(),
            made: Vec::new(),
            replaced: Vec::new(),
        };
        Ok(Self {
            root: Zeroed::new(1 << (ROOT_BITS - 1))?,
            lines: Zeroed::new(lines)?,
            unused: Mutex::new(unused),
        })
    }

    /// Bytes that it takes for so many prefixes.
    pub(crate) fn bytes(entries: u32) -> u64 {
        (size_of::<u32>() as u64 * (1 << ROOT_BITS)) + lines_for(entries) * size_of::<Line>() as u64
    }

    /// The slot of an address's longest prefix.
    #[inline(always)]
    pub(crate) fn find(&self, address: u32) -> Option<u32> {
        // Acquire: all nodes from here on are written.
        let mut entry = self.root_entry(address >> ROOT_BITS)?.load(Acquire);
        let mut rest = address << ROOT_BITS;
        while entry & NODE != 0 {
            entry = self.entry(entry & !NODE, (rest >> (32 - NODE_BITS)) as usize)?;
            rest <<= NODE_BITS;
        }
        entry.checked_sub(1)
    }

    #[inline(always)]
    fn root_entry(&self, index: u32) -> Option<&AtomicU32> {
        self.root.get(index as usize / 2).map(|pair| &pair.0[index as usize % 2])
    }

    /// A number of a node.
    #[inline(always)]
    fn number(&self, line: u32, index: usize) -> Option<&AtomicU32> {
        self.lines.get(line as usize + index / LINE).map(|line| &line.0[index % LINE])
    }

    /// One of the 256 entries of a node.
    #[inline(always)]
    fn entry(&self, line: u32, index: usize) -> Option<u32> {
        let first = self.lines.get(line as usize)?;
        let bits = first.0[index / 32].load(Relaxed) & (u32::MAX >> (31 - index % 32));
        let before = first.0[BITS + index / 128].load(Relaxed) >> (index / 32 % 4 * 8) & 0xff;
        // The run that the entry is in began at or before it.
        let run = (before + bits.count_ones()).wrapping_sub(1) as usize;
        self.number(line, HEADER + run).map(|entry| entry.load(Relaxed))
    }

    /// Lets `change` replace the prefixes that the addresses have which begin with these bits.
    ///
    /// # Errors
    /// `ENOMEM`: there are no lines for the nodes; nothing is changed.
    pub(crate) fn change(
        &self,
        bits: u32,
        length: u32,
        change: &impl Fn(Option<u32>) -> Option<u32>,
    ) -> Result<(), Errno> {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.collect();
        let range = positions(bits, length, 0, ROOT_BITS);
        let entries: Result<Vec<u32>, Errno> = range
            .clone()
            .map(|index| {
                let entry = self.root_entry(index as u32).map_or(0, |entry| entry.load(Relaxed));
                self.changed(&mut unused, entry, ROOT_BITS, (bits, length), change)
            })
            .collect();
        match entries {
            Ok(entries) => {
                for (index, new) in range.zip(entries) {
                    if let Some(entry) = self.root_entry(index as u32) {
                        entry.store(new, Release);
                    }
                }
                unused.made.clear();
                unused.retire();
                Ok(())
            }
            Err(errno) => {
                unused.replaced.clear();
                unused.give_back();
                Err(errno)
            }
        }
    }

    /// What comes in place of an entry that is found after so many bits of the address.
    fn changed(
        &self,
        unused: &mut MutexGuard<'_, Unused>,
        entry: u32,
        depth: u32,
        (bits, length): (u32, u32),
        change: &impl Fn(Option<u32>) -> Option<u32>,
    ) -> Result<u32, Errno> {
        if length <= depth && entry & NODE == 0 {
            return Ok(change(entry.checked_sub(1)).map_or(0, |slot| slot + 1));
        }
        let old = self.expand(entry);
        let mut new = old;
        for place in &mut new[positions(bits, length, depth, NODE_BITS)] {
            *place = self.changed(unused, *place, depth + NODE_BITS, (bits, length), change)?;
        }
        if new == old {
            return Ok(entry);
        }
        if entry & NODE != 0 {
            let node = Node { line: entry & !NODE, lines: lines_of(runs(&old)) };
            unused.replaced.push(node);
        }
        if new[0] & NODE == 0 && new.iter().all(|entry| *entry == new[0]) {
            return Ok(new[0]);
        }
        self.write(unused, &new)
    }

    /// The 256 entries that one stands for.
    fn expand(&self, entry: u32) -> [u32; ENTRIES] {
        if entry & NODE == 0 {
            return [entry; ENTRIES];
        }
        std::array::from_fn(|index| self.entry(entry & !NODE, index).unwrap_or_default())
    }

    /// Writes a node that nobody sees yet.
    fn write(&self, unused: &mut Unused, entries: &[u32; ENTRIES]) -> Result<u32, Errno> {
        let node = unused.take(lines_of(runs(entries)), self.lines.len() as u32).ok_or(Errno::ENOMEM)?;
        unused.made.push(node);
        let mut header = [0_u32; HEADER];
        let mut run = 0;
        let store = |index, value| {
            if let Some(number) = self.number(node.line, index) {
                number.store(value, Relaxed);
            }
        };
        for (index, &entry) in entries.iter().enumerate() {
            if index % 32 == 0 {
                header[BITS + index / 128] |= (run as u32) << (index / 32 % 4 * 8);
            }
            if index == 0 || entry != entries[index - 1] {
                header[index / 32] |= 1 << (index % 32);
                store(HEADER + run, entry);
                run += 1;
            }
        }
        header.into_iter().enumerate().for_each(|(index, value)| store(index, value));
        Ok(node.line | NODE)
    }
}

/// The positions, among those that the next bits after `depth` choose, of the addresses that begin with these bits.
fn positions(bits: u32, length: u32, depth: u32, width: u32) -> Range<usize> {
    let fixed = length.saturating_sub(depth).min(width);
    let count = 1 << (width - fixed);
    let first = (bits << depth >> (32 - width)) as usize & !(count - 1);
    if fixed == 0 { 0..count } else { first..first + count }
}

fn runs(entries: &[u32; ENTRIES]) -> usize {
    1 + entries.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

fn lines_of(runs: usize) -> u32 {
    (HEADER + runs).div_ceil(LINE) as u32
}

impl Unused {
    fn take(&mut self, lines: u32, all: u32) -> Option<Node> {
        let line = match self.free.get_mut(lines as usize)?.pop() {
            Some(line) => line,
            None if self.fresh + lines <= all => {
                self.fresh += lines;
                self.fresh - lines
            }
            // A longer one is better than none; what is left of it can be used alone.
            None => {
                let longer = (lines as usize + 1..self.free.len()).find(|&n| !self.free[n].is_empty())?;
                let line = self.free[longer].pop()?;
                self.free[longer - lines as usize].push(line + lines);
                line
            }
        };
        Some(Node { line, lines })
    }

    fn put(&mut self, node: Node) {
        self.free[node.lines as usize].push(node.line);
    }

    /// Nodes that nobody has seen.
    fn give_back(&mut self) {
        for node in std::mem::take(&mut self.made) {
            self.put(node);
        }
    }

    /// Nodes that were replaced by ones in the trie.
    fn retire(&mut self) {
        self.open.append(&mut self.replaced);
        if self.open.len() >= BATCH {
            self.waiting.push_back((Domain::global().advance(), std::mem::take(&mut self.open)));
        }
    }

    fn collect(&mut self) {
        while self.waiting.front().is_some_and(|&(tag, _)| Domain::global().has_passed(tag)) {
            let Some((_, nodes)) = self.waiting.pop_front() else { break };
            nodes.into_iter().for_each(|node| self.put(node));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{PoisonError, Routes, positions};
    use crate::slots::tests::BURSTS_END;

    #[test]
    fn positions_of_a_prefix() {
        assert_eq!(positions(0x0a00_0000, 8, 0, 16), 0x0a00..0x0b00);
        assert_eq!(positions(0, 0, 0, 16), 0..65536);
        assert_eq!(positions(0x0a0b_0c00, 22, 16, 8), 12..16);
        assert_eq!(positions(0x0a0b_0c0d, 32, 24, 8), 13..14);
        assert_eq!(positions(0x0a0b_0c0d, 24, 24, 8), 0..256);
    }

    /// What changes leave behind is used again: as many changes as there are lines, many times over.
    #[test]
    fn lines_are_used_again() {
        let _turn = BURSTS_END.lock().unwrap_or_else(PoisonError::into_inner);
        let routes = Routes::new(16).unwrap();
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..5_000 {
            let address = 0x0a00_0000 | rng.u32(..1 << 20) & 0xf_0fff;
            routes.change(address, 32, &|_| Some(7)).unwrap();
            assert_eq!(routes.find(address), Some(7));
            routes.change(address, 32, &|_| None).unwrap();
            assert_eq!(routes.find(address), None);
        }
    }
}
