//! Slots of the frame for virtual registers that lose their register: those of others that are not live any more, before new ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::assignments::Assignment;
use super::live_ranges::LiveRanges;
use super::point::Point;

/// Gives a slot to each live range that is split, and returns the number of slots. A slot has its value from the definition on, so it
/// is held from there to the last point at which the register is live, holes included.
pub(super) fn assign(ranges: &LiveRanges, assignments: &mut [Assignment]) -> u32 {
    let mut spans: Vec<(Point, Point, u32)> = Vec::new();
    for &(start, vreg) in ranges.order.iter().filter(|(_, vreg)| assignments[*vreg as usize].is_split()) {
        let end = ranges.segments_of(vreg).last().map_or(start, |last| last.end);
        spans.push((start, end, vreg));
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
        // default: without a free slot there is a new one.
        let slot = free.pop().unwrap_or_else(|| {
            count += 1;
            count - 1
        });
        held.push(Reverse((end, slot)));
        assignments[vreg as usize].slot = Some(slot);
    }
    count
}
