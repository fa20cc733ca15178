//! Lines of the trie that no node occupies: free, or freed once the bursts that may still read them are over.

use std::collections::VecDeque;

use paceline_epoch::Domain;

use crate::lines::Lines;

/// Nodes that wait under one tag.
const BATCH: usize = 64;

/// The lines of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) line: u32,
    pub(super) lines: u32,
}

/// Lines without a node in the trie. Changes of the trie hold the lock.
pub(super) struct Unused {
    /// Of the workers that look addresses up.
    pub(super) domain: Domain,
    pub(super) free: Lines,
    /// Nodes that wait for a tag.
    pub(super) open: Vec<Node>,
    /// Nodes that wait for the end of their grace period.
    pub(super) waiting: VecDeque<(u64, Vec<Node>)>,
    /// Nodes that the running change made, and those that it replaces.
    pub(super) made: Vec<Node>,
    pub(super) replaced: Vec<Node>,
    /// The tag after which a wait has timed out: no thread waits for it again.
    pub(super) waited_for: u64,
}

impl Unused {
    /// No node was made so far: all lines are free.
    pub(super) fn new(domain: Domain, free: Lines) -> Self {
        Self {
            domain,
            free,
            open: Vec::new(),
            waiting: VecDeque::new(),
            made: Vec::new(),
            replaced: Vec::new(),
            waited_for: 0,
        }
    }

    /// Unpublished nodes.
    pub(super) fn give_back(&mut self) {
        for node in std::mem::take(&mut self.made) {
            self.free.put(node.line, node.lines);
        }
    }

    /// Nodes that were replaced by ones in the trie.
    pub(super) fn retire(&mut self) {
        self.open.append(&mut self.replaced);
        if self.open.len() >= BATCH {
            self.close();
        }
    }

    /// Gives a tag to those that wait for one.
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            self.waiting.push_back((self.domain.advance(), std::mem::take(&mut self.open)));
        }
    }

    /// Frees those that have waited long enough; whether there were some.
    pub(super) fn collect(&mut self) -> bool {
        let mut found = false;
        while self.waiting.front().is_some_and(|&(tag, _)| self.domain.has_passed(tag)) {
            let Some((_, nodes)) = self.waiting.pop_front() else { break };
            nodes.into_iter().for_each(|node| self.free.put(node.line, node.lines));
            found = true;
        }
        found
    }
}
