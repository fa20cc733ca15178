//! Where the sides of branches lead to.

use paceline_spec::LineInfo;

use crate::coverage::counts::Counts;

/// Most blocks without a line that a side is followed through.
const FOLLOWED: usize = 16;

/// The lines of its own file that a branch leads to: by its jump, and by the way on. `None` if they are not known, or the same.
pub(crate) fn destinations(counts: &Counts, entries: &[Option<&LineInfo>], slot: usize) -> Option<[u32; 2]> {
    let own = entries.get(slot).copied().flatten()?;
    let block = counts.blocks.iter().find(|block| block.last == slot)?;
    let line = |side: Option<usize>| {
        let leads_to = destination(counts, entries, own, side?)?;
        (leads_to.file == own.file).then_some(leads_to.line)
    };
    let lines = [line(block.target)?, line(block.next)?];
    (lines[0] != lines[1]).then_some(lines)
}

/// The first line of a block, or of those that control can only go on to.
fn destination<'a>(
    counts: &Counts,
    entries: &[Option<&'a LineInfo>],
    own: &LineInfo,
    block: usize,
) -> Option<&'a LineInfo> {
    let mut at = Some(block);
    for _ in 0..FOLLOWED {
        let block = counts.blocks.get(at?)?;
        // What follows the branch in its entry of the line information has no line of its own.
        let known = |slot: usize| entries.get(slot).copied().flatten().filter(|entry| entry.slot != own.slot);
        if let Some(found) = (block.start..block.end).find_map(known) {
            return Some(found);
        }
        at = match (block.target, block.next) {
            (Some(only), None) | (None, Some(only)) => Some(only),
            _ => None,
        };
    }
    None
}
