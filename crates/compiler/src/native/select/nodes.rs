//! Functions and marks of the programs of a chain.

use paceline_spec::graph::Node;

use crate::native::code::Mark;
use crate::native::compiled::CompiledFunction;
use crate::native::machine::generator::Program;

/// Functions and marks by the programs that they are of.
pub(super) struct Nodes<'p> {
    pub(super) programs: &'p [Program],
    pub(super) functions: Vec<CompiledFunction>,
    pub(super) marks: Vec<Mark>,
}

impl Nodes<'_> {
    /// The program of a slot among those of all programs, and its slot there.
    pub(super) fn of(&self, slot: u32) -> (Node, u32) {
        let number = self.programs.partition_point(|program| program.first <= slot).saturating_sub(1);
        let first = self.programs.get(number).map_or(0, |program| program.first);
        (Node::new(number), slot - first)
    }

    pub(super) fn add(&mut self, node: Node, slot: usize, burst: bool, [start, end]: [u32; 2]) {
        let len = end.saturating_sub(start);
        self.functions.push(CompiledFunction { node, slot, burst, offset: start, len });
    }

    /// Adds code that begins with that of a slot. The code of other programs in it is a function of its own: their main program, as it
    /// is in the loop.
    pub(super) fn piece(&mut self, slot: usize, burst: bool, [mut start, end]: [u32; 2], marks: &[Mark]) {
        let (mut node, first) = self.of(slot as u32);
        let mut slot = first as usize;
        let within = marks.partition_point(|mark| mark.offset < start)
            ..marks.partition_point(|mark| mark.offset < end);
        for mark in &marks[within] {
            let (next, tag) = self.of(mark.tag);
            if next != node && mark.offset > start {
                self.add(node, slot, burst, [start, mark.offset]);
                (start, slot) = (mark.offset, 0);
            }
            node = next;
            self.marks.push(Mark { offset: mark.offset, tag });
        }
        self.add(node, slot, burst, [start, end]);
    }
}
