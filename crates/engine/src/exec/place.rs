//! Placement of an arena in the address space: within reach of 32-bit displacements of the process's own code.

use std::ops::Range;

/// Reach of a signed 32-bit displacement in bytes.
pub(crate) const REACH: usize = 1 << 31;

/// Alignment of the candidates; no page size is larger.
const GRAIN: usize = 64 << 10;

/// Whether all addresses of one range reach all of the other with a signed 32-bit displacement.
pub(crate) fn within_reach(one: &Range<usize>, other: &Range<usize>) -> bool {
    let span = one.end.max(other.end) - one.start.min(other.start);
    span < REACH
}

/// Candidate addresses for `size` bytes within reach of the whole mapping that contains `anchor`, best first, by the contents of
/// `/proc/self/maps`.
///
/// Free memory below the anchor is preferred, because the heap grows directly after a program's text and data (`brk(2)`). Above,
/// the far end of the reach is used for the same reason.
pub(crate) fn candidates(maps: &str, anchor: usize, size: usize) -> Vec<usize> {
    let mapped: Vec<Range<usize>> = maps.lines().filter_map(range).collect();
    let Some(text) = mapped.iter().find(|range| range.contains(&anchor)) else { return Vec::new() };
    let lowest = text.end.saturating_sub(REACH - 1).next_multiple_of(GRAIN);
    let highest = text.start.saturating_add(REACH - 1);
    let fits = |start: usize| -> Option<usize> {
        let end = start.checked_add(size)?;
        // A free grain on both sides keeps a distance from other mappings, including guard pages of stacks.
        let with_margin = start.checked_sub(GRAIN)?..end.checked_add(GRAIN)?;
        let free =
            mapped.iter().all(|range| range.end <= with_margin.start || with_margin.end <= range.start);
        (free && start >= lowest && end <= highest).then_some(start)
    };
    let below = mapped.iter().rev().filter(|range| range.start <= text.start).filter_map(|range| {
        let end = range.start.checked_sub(GRAIN)? / GRAIN * GRAIN;
        fits(end.checked_sub(size)?)
    });
    let above = mapped
        .iter()
        .filter(|range| range.start > text.start)
        .map(|range| range.start)
        .chain([highest])
        .filter_map(|limit| {
            let end = limit.min(highest).checked_sub(GRAIN)? / GRAIN * GRAIN;
            fits(end.checked_sub(size)?)
        });
    let above: Vec<usize> = above.collect();
    below.chain(above.into_iter().rev()).collect()
}

/// The address range of a line of `/proc/self/maps`.
fn range(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn below_a_position_independent_program() {
        let maps = "555555554000-555555600000 r-xp 0 0 0 a\n555555600000-555555700000 rw-p 0 0 0 [heap]\n";
        let found = candidates(maps, 0x5555_5556_0000, MIB);
        assert_eq!(found.first(), Some(&0x5555_5544_0000));
        for &address in &found {
            assert!(within_reach(&(0x5555_5555_4000..0x5555_5560_0000), &(address..address + MIB)));
        }
        assert!(found.len() > 1, "there is room above as well: {found:x?}");
    }

    #[test]
    fn far_above_a_program_at_a_fixed_address() {
        let maps = "00400000-00500000 r-xp 0 0 0 a\n00500000-00600000 rw-p 0 0 0 [heap]\n";
        let found = candidates(maps, 0x40_1000, 64 * MIB);
        assert_eq!(found.len(), 1);
        assert!(found[0] > 0x60_0000 + 1024 * MIB, "leaves the heap room: {found:x?}");
        assert!(within_reach(&(0x40_0000..0x50_0000), &(found[0]..found[0] + 64 * MIB)));
    }

    #[test]
    fn nowhere_when_the_reach_is_full_or_the_anchor_unknown() {
        let maps = "10000-7fffffff0000 r-xp 0 0 0 a\n";
        assert_eq!(candidates(maps, 0x20000, MIB), [0usize; 0]);
        assert_eq!(candidates("", 0x20000, MIB), [0usize; 0]);
        assert_eq!(candidates("not a map\n", 0x20000, MIB), [0usize; 0]);
    }
}
