//! Longest prefix of an IPv4 address: a trie that takes 16 bits, then 8, then 8. All look-ups take one to three steps, and most
//! addresses of a routing table two.
//!
//! An entry is a prefix (its slot in the table of prefixes), a node, or nothing. A node keeps one entry for each run of
//! equal ones among its 256, and a bit for each that begins a run; counting bits finds the entry. So a node takes a cache line
//! or two where a plain array takes 1 KiB, and a table of 800,000 routes fits the cache that all cores share.
//!
//! Prefixes of up to 8 bits, the default route above all, have a table of their own ([`short`]), in which addresses that
//! the trie has nothing for are looked up. So a change of one writes 256 entries at most, and not all of the trie.
//!
//! A change writes new nodes and puts them in place of the old with one store in the root; the old ones wait until the
//! bursts are over that may have found them. A prefix that covers several entries of the root replaces them one by one:
//! look-ups of different addresses may see it at different times.
//!
//! While so many nodes wait that there are no lines for new ones, a removal changes the entries where they are: it needs no
//! memory, so that it never fails. The node keeps neighbors that are equal then, until it is written anew. When all
//! waiting nodes have come back and the free lines are still too short for a new node, nodes move to the first lines that
//! are free ([`Routes::compact`]), each with one store in the entry that leads to it.

mod line;
mod short;
mod unused;

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use paceline_epoch::Domain;
use paceline_spec::Errno;

use crate::lines::Lines;
use crate::slab::{Atomics, NoMemory, Zeroed, prefetch};
use crate::slots::PATIENCE;
use crate::sync::AtomicU32;
use line::{LINE, Line, positions};
use short::ShortPrefixes;
use unused::{Node, Unused};

/// Bits of an address that choose an entry of the root.
#[cfg(not(loom))]
const ROOT_BITS: u32 = 16;
/// The model checker makes a root in each run.
#[cfg(loom)]
const ROOT_BITS: u32 = 1;
/// Bits that choose an entry of a node.
const NODE_BITS: u32 = 8;
const ENTRIES: usize = 1 << NODE_BITS;

/// Marks an entry that is the number of a node's first line. Others are a slot's number and 1, or 0.
const NODE: u32 = 1 << 31;

/// A node begins with a bit for each entry,
const BITS: usize = ENTRIES / 32;
/// then for each 32 of them how many runs begin before, a byte each; then come the entries.
const COUNTS: usize = BITS / 4;
const HEADER: usize = BITS + COUNTS;

/// Lines that there are beside those of the prefixes, for nodes that wait.
const SPARE_LINES: u64 = 2048;
/// Lines of the longest node.
const MOST_LINES: u32 = lines_of(ENTRIES);

/// Position of a node: the number of address bits before it, and those bits.
#[derive(Clone, Copy)]
struct Path {
    bits: u32,
    depth: u32,
}

/// Two entries of the root.
#[repr(C, align(8))]
#[cfg_attr(loom, derive(Default))]
struct RootPair([AtomicU32; 2]);

// SAFETY: atomics alone, for which zeros are a value.
unsafe impl Atomics for RootPair {}

/// A prefix: its slot in the table of prefixes, and its length in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) slot: u32,
    pub(crate) length: u32,
}

/// A look-up ahead of the one for an address, between two of its cache lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// At a node, with the bits of the address that were not used yet.
    Node { line: u32, rest: u32 },
    /// At an entry of a node that is not in its first line.
    Entry { line: u32, index: u32, rest: u32 },
    /// At a prefix.
    Slot(u32),
}

pub(crate) struct Routes {
    short: ShortPrefixes,
    root: Zeroed<RootPair>,
    lines: Zeroed<Line>,
    unused: Mutex<Unused>,
}

/// Enough for two nodes of their own for each prefix.
fn lines_for(entries: u32) -> u64 {
    2 * u64::from(entries) + SPARE_LINES
}

impl Routes {
    /// For so many prefixes.
    pub(crate) fn new(entries: u32) -> Result<Self, NoMemory> {
        Self::with_lines(lines_for(entries), Domain::global().clone())
    }

    fn with_lines(lines: u64, domain: Domain) -> Result<Self, NoMemory> {
        let count = u32::try_from(lines).ok().filter(|&lines| lines < NODE);
        let count = count.ok_or(NoMemory { bytes: u64::MAX })?;
        Ok(Self {
            short: ShortPrefixes::new()?,
            root: Zeroed::new(1 << (ROOT_BITS - 1))?,
            lines: Zeroed::new(count as usize)?,
            unused: Mutex::new(Unused::new(domain, Lines::new(count, MOST_LINES))),
        })
    }

    /// Bytes that it takes for so many prefixes.
    pub(crate) fn bytes(entries: u32) -> u64 {
        let root = size_of::<u32>() as u64 * (1 << ROOT_BITS);
        ShortPrefixes::BYTES + root + lines_for(entries) * size_of::<Line>() as u64
    }

    /// The slot of an address's longest prefix.
    #[inline(always)]
    pub(crate) fn find(&self, address: u32) -> Option<u32> {
        let changes = self.short.changes();
        self.find_long(address).or_else(|| self.find_short(address, changes))
    }

    /// Look-up among the short prefixes, after the trie had no match at `changes` changes of the short ones. The trie is searched again
    /// after further changes: a prefix may have been added there while the short one was removed.
    fn find_short(&self, address: u32, mut changes: u32) -> Option<u32> {
        loop {
            let short = self.short.find(address);
            let before = std::mem::replace(&mut changes, self.short.changes());
            if changes == before {
                return short;
            }
            if let Some(long) = self.find_long(address) {
                return Some(long);
            }
        }
    }

    #[inline(always)]
    fn find_long(&self, address: u32) -> Option<u32> {
        // Acquire: all nodes from here on are written.
        let mut entry = self.root_entry(address >> (u32::BITS - ROOT_BITS))?.load(Acquire);
        let mut rest = address << ROOT_BITS;
        while entry & NODE != 0 {
            entry = self.entry(entry & !NODE, (rest >> (32 - NODE_BITS)) as usize)?;
            rest <<= NODE_BITS;
        }
        entry.checked_sub(1)
    }

    /// Begins a look-up ahead: brings the root's entry closer.
    #[inline(always)]
    pub(crate) fn ahead(&self, address: u32) {
        if let Some(entry) = self.root_entry(address >> (u32::BITS - ROOT_BITS)) {
            prefetch(std::ptr::from_ref(entry).addr());
        }
    }

    /// Goes on when the root's entry is there.
    #[inline(always)]
    pub(crate) fn ahead_of_root(&self, address: u32) -> Option<Ahead> {
        let entry = self.root_entry(address >> (u32::BITS - ROOT_BITS))?.load(Acquire);
        self.ahead_of(entry, address << ROOT_BITS)
    }

    /// Goes on when the line of an earlier step is there.
    #[inline(always)]
    pub(crate) fn ahead_of_line(&self, ahead: Ahead) -> Option<Ahead> {
        match ahead {
            Ahead::Node { line, rest } => {
                let index = HEADER + self.run_of(line, (rest >> (32 - NODE_BITS)) as usize)?;
                let entry = self.number(line, index)?;
                if index < LINE {
                    return self.ahead_of(entry.load(Acquire), rest << NODE_BITS);
                }
                prefetch(std::ptr::from_ref(entry).addr());
                Some(Ahead::Entry { line, index: index as u32, rest })
            }
            Ahead::Entry { line, index, rest } => {
                self.ahead_of(self.number(line, index as usize)?.load(Acquire), rest << NODE_BITS)
            }
            Ahead::Slot(_) => None,
        }
    }

    /// The next step behind an entry; none without a prefix.
    #[inline(always)]
    fn ahead_of(&self, entry: u32, rest: u32) -> Option<Ahead> {
        if entry & NODE == 0 {
            return entry.checked_sub(1).map(Ahead::Slot);
        }
        let line = entry & !NODE;
        prefetch(std::ptr::from_ref(self.lines.get(line as usize)?).addr());
        Some(Ahead::Node { line, rest })
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
        // Acquire: the target of an entry is written, also if the entry was changed in place.
        self.number(line, HEADER + self.run_of(line, index)?).map(|entry| entry.load(Acquire))
    }

    /// The run that an entry of a node is in, which began at it or before.
    #[inline(always)]
    fn run_of(&self, line: u32, index: usize) -> Option<usize> {
        let first = self.lines.get(line as usize)?;
        let bits = first.0[index / 32].load(Relaxed) & (u32::MAX >> (31 - index % 32));
        let before = first.0[BITS + index / 128].load(Relaxed) >> (index / 32 % 4 * 8) & 0xff;
        Some((before + bits.count_ones()).wrapping_sub(1) as usize)
    }

    /// The node that an entry leads to, as long as it is.
    fn node(&self, entry: u32) -> Option<Node> {
        let line = entry & !NODE;
        Some(Node { line, lines: lines_of(self.run_of(line, ENTRIES - 1)? + 1) })
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
        let mut unused = self.lock();
        if self.short.change(bits, length, change) {
            return Ok(());
        }
        unused.collect();
        self.try_change(&mut unused, bits, length, change)
            .or_else(|_| {
                unused.close();
                unused.collect();
                self.try_change(&mut unused, bits, length, change)
            })
            .or_else(|errno| {
                // Nodes that wait are no reason to move others, which would have to wait too.
                if !unused.waiting.is_empty() {
                    return Err(errno);
                }
                self.compact(&mut unused);
                unused.collect();
                self.try_change(&mut unused, bits, length, change)
            })
    }

    /// Puts the next shorter prefix, or none, in the place of one that begins with these bits. Never fails.
    pub(crate) fn replace(&self, bits: u32, old: Prefix, shorter: Option<Prefix>) {
        let Prefix { slot: old, length } = old;
        // The trie has no short prefixes: those stay where they are.
        let new = shorter.filter(|new| !short::is_short(new.length) || short::is_short(length));
        let new = new.map(|new| new.slot);
        let mut unused = self.lock();
        let change = |found| if found == Some(old) { new } else { found };
        if self.short.change(bits, length, &change) {
            return;
        }
        unused.collect();
        if self.try_change(&mut unused, bits, length, &change).is_ok() {
            return;
        }
        let values = (old + 1, new.map_or(0, |slot| slot + 1));
        for index in positions(bits, length, 0, ROOT_BITS) {
            if let Some(entry) = self.root_entry(index as u32) {
                self.replace_in_place(entry, ROOT_BITS, (bits, length), values);
            }
        }
    }

    /// Replaces in the entry at a depth in bits.
    fn replace_in_place(&self, entry: &AtomicU32, depth: u32, prefix: (u32, u32), values: (u32, u32)) {
        let (old, new) = values;
        let found = entry.load(Relaxed);
        if found & NODE == 0 {
            if found == old {
                // Release: a reader of the new prefix sees its contents.
                entry.store(new, Release);
            }
            return;
        }
        let line = found & !NODE;
        let range = positions(prefix.0, prefix.1, depth, NODE_BITS);
        let runs = self.run_of(line, range.start).zip(self.run_of(line, range.end - 1));
        for run in runs.into_iter().flat_map(|(first, last)| first..=last) {
            if let Some(entry) = self.number(line, HEADER + run) {
                self.replace_in_place(entry, depth + NODE_BITS, prefix, values);
            }
        }
    }

    /// Lets workers run until nodes that wait for them come back. False if none did in 200 ms, or none waits: it is of no use to
    /// try again.
    pub(crate) fn wait(&self) -> bool {
        let start = Instant::now();
        loop {
            let mut unused = self.lock();
            unused.close();
            let Some(&(oldest, _)) = unused.waiting.front() else { return false };
            if unused.collect() {
                return true;
            }
            if unused.waited_for == oldest || start.elapsed() > PATIENCE {
                unused.waited_for = oldest;
                return false;
            }
            drop(unused);
            std::thread::yield_now();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Unused> {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_change(
        &self,
        unused: &mut Unused,
        bits: u32,
        length: u32,
        change: &impl Fn(Option<u32>) -> Option<u32>,
    ) -> Result<(), Errno> {
        let range = positions(bits, length, 0, ROOT_BITS);
        let entries: Result<Vec<u32>, Errno> = range
            .clone()
            .map(|index| {
                let entry = self.root_entry(index as u32).map_or(0, |entry| entry.load(Relaxed));
                self.changed(unused, entry, ROOT_BITS, (bits, length), change)
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

    /// Moves nodes to the first free lines, each without entries that equal their neighbors, so that the free lines behind
    /// them are neighbors. Costs a walk over the whole trie.
    #[cold]
    fn compact(&self, unused: &mut Unused) {
        let mut nodes = Vec::new();
        for index in 0..1 << ROOT_BITS {
            let entry = self.root_entry(index).map_or(0, |entry| entry.load(Relaxed));
            let path = Path { bits: index << (u32::BITS - ROOT_BITS), depth: ROOT_BITS };
            self.nodes_below(entry, path, &mut nodes);
        }
        // A node that becomes one entry makes those above it shorter; the last lines shall become free.
        nodes.sort_unstable_by_key(|&(path, line)| std::cmp::Reverse((path.depth, line)));
        for (path, _) in nodes {
            // One that finds no better place stays.
            let _ = self.move_node(unused, path);
        }
        unused.retire();
        unused.close();
    }

    fn nodes_below(&self, entry: u32, path: Path, nodes: &mut Vec<(Path, u32)>) {
        if entry & NODE == 0 {
            return;
        }
        nodes.push((path, entry & !NODE));
        let depth = path.depth + NODE_BITS;
        if depth == ROOT_BITS + 2 * NODE_BITS {
            return;
        }
        for (index, child) in (0..).zip(self.expand(entry)) {
            let bits = path.bits | index << (u32::BITS - depth);
            self.nodes_below(child, Path { bits, depth }, nodes);
        }
    }

    /// Writes the node of a path anew, where that makes it shorter or brings it further to the front.
    fn move_node(&self, unused: &mut Unused, path: Path) -> Option<()> {
        let place = self.entry_of(path)?;
        let entry = place.load(Relaxed);
        let (node, entries) = (self.node(entry)?, self.expand(entry));
        let new = match uniform(&entries) {
            Some(value) => value,
            None => {
                let lines = lines_of(runs(&entries));
                let before = if lines < node.lines { u32::MAX } else { node.line };
                let line = unused.free.take_before(lines, before)?;
                self.fill(line, &entries);
                line | NODE
            }
        };
        // Release: the node is written.
        place.store(new, Release);
        unused.replaced.push(node);
        Some(())
    }

    /// The entry that refers to a path.
    fn entry_of(&self, path: Path) -> Option<&AtomicU32> {
        let mut place = self.root_entry(path.bits >> (u32::BITS - ROOT_BITS))?;
        let mut depth = ROOT_BITS;
        while depth < path.depth {
            let line = place.load(Relaxed) & !NODE;
            let index = (path.bits << depth >> (u32::BITS - NODE_BITS)) as usize;
            place = self.number(line, HEADER + self.run_of(line, index)?)?;
            depth += NODE_BITS;
        }
        Some(place)
    }

    /// Replacement of the entry at a depth in bits.
    fn changed(
        &self,
        unused: &mut Unused,
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
            unused.replaced.extend(self.node(entry));
        }
        match uniform(&new) {
            Some(value) => Ok(value),
            None => self.write(unused, &new),
        }
    }

    /// The 256 entries that one stands for.
    fn expand(&self, entry: u32) -> [u32; ENTRIES] {
        if entry & NODE == 0 {
            return [entry; ENTRIES];
        }
        let line = entry & !NODE;
        let Some(first) = self.lines.get(line as usize) else { return [0; ENTRIES] };
        let bits: [u32; BITS] = std::array::from_fn(|word| first.0[word].load(Relaxed));
        let (mut value, mut runs) = (0, HEADER..);
        std::array::from_fn(|index| {
            if bits[index / 32] >> (index % 32) & 1 != 0 {
                let number = runs.next().and_then(|run| self.number(line, run));
                value = number.map_or(0, |number| number.load(Relaxed));
            }
            value
        })
    }

    /// Writes an unpublished node.
    fn write(&self, unused: &mut Unused, entries: &[u32; ENTRIES]) -> Result<u32, Errno> {
        let lines = lines_of(runs(entries));
        let line = unused.free.take(lines).ok_or(Errno::ENOMEM)?;
        unused.made.push(Node { line, lines });
        self.fill(line, entries);
        Ok(line | NODE)
    }

    fn fill(&self, line: u32, entries: &[u32; ENTRIES]) {
        let mut header = [0_u32; HEADER];
        let mut run = 0;
        let store = |index, value| {
            if let Some(number) = self.number(line, index) {
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
    }
}

/// The common value of all entries of a node, if they are one prefix or all empty.
fn uniform(entries: &[u32; ENTRIES]) -> Option<u32> {
    let first = entries[0];
    (first & NODE == 0 && entries.iter().all(|entry| *entry == first)).then_some(first)
}

fn runs(entries: &[u32; ENTRIES]) -> usize {
    1 + entries.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

const fn lines_of(runs: usize) -> u32 {
    (HEADER + runs).div_ceil(LINE) as u32
}

#[cfg(test)]
mod tests;
