//! Slots of the frame for virtual registers that lose their register: those of others that are not live any more, before new ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ranges::{Point, Ranges};

/// The slot of each virtual register that is cut, and the number of slots. A slot has its value from the definition on, so it is held from
/// there to the last point at which the register is live, holes included.
pub(super) fn assign(ranges: &Ranges, cuts: &[Point]) -> (Vec<Option<u32>>, u32) {
    let mut slots = vec![None; cuts.len()];
    let mut spans: Vec<(Point, Point, usize)> = Vec::new();
    for (vreg, range) in ranges.vregs.iter().enumerate().filter(|(vreg, _)| cuts[*vreg] != Point::MAX) {
        let last = (range.segments.end as usize).checked_sub(1).and_then(|last| ranges.segments.get(last));
        spans.push((range.start, last.map_or(range.start, |last| last.end), vreg));
    }
    spans.sort_unstable();
    let (mut held, mut free, mut count) = (BinaryHeap::new(), Vec::new(), 0);
    for (start, end, vreg) in spans {
        while let Some(&Reverse((until, slot))) = held.peek()
            && until <= start
        {
            held.pop();
            free.push(slot);
        }
        let slot = free.pop().unwrap_or_else(|| {
            count += 1;
            count - 1
        });
        held.push(Reverse((end, slot)));
        slots[vreg] = Some(slot);
    }
    (slots, count)
}
