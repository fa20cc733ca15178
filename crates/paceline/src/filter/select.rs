//! Sorting the packets of a capture by filters.

use std::ops::ControlFlow;

use paceline_capture::{CaptureReader, CaptureWriter, ReadError, WriteError};
use paceline_engine::{Fault, Host};
use paceline_frame::{Burst, FrameRef};

use super::packet::PacketFilter;

/// Packets, and their bytes as captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Packets.
    pub packets: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Matched {
    fn add(&mut self, burst: &Burst, mask: u64) {
        self.packets += u64::from(mask.count_ones());
        self.bytes += each(mask).map(|index| burst.frame(index).len() as u64).sum::<u64>();
    }
}

/// Is told of a packet that matches.
pub type Teller<'a> = Box<dyn FnMut(u64, FrameRef<'_>) + 'a>;

/// A filter and the output of its matches.
pub struct Selection<'a> {
    /// The filter.
    pub filter: PacketFilter,
    /// Output of the packets as they were read: a classic filter's result does not truncate them, as in tcpdump; that of a socket filter does.
    pub output: Option<CaptureWriter<'a>>,
    /// Matches so far.
    pub matched: Matched,
    /// Is told of each match: the packet's number in the capture, from 1, and the packet.
    pub tell: Option<Teller<'a>>,
}

impl std::fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").finish_non_exhaustive()
    }
}

impl<'a> Selection<'a> {
    /// A selection that has nothing yet.
    #[must_use]
    pub fn new(filter: PacketFilter, mut output: Option<CaptureWriter<'a>>) -> Self {
        // A packet that a socket filter cuts was as long on the wire as before.
        output.iter_mut().for_each(CaptureWriter::keep_wire_length);
        Self { filter, output, matched: Matched::default(), tell: None }
    }
}

/// Options of a selection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Select {
    /// Take so many packets at most for each filter, and stop when all have theirs.
    pub count: Option<u64>,
}

/// A selection ended early. Counts and output until then are valid.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The capture cannot be read further.
    #[error(transparent)]
    Read(ReadError),
    /// A packet caused an invalid access of a filter.
    #[error("filter {selection}")]
    Fault {
        /// Index of the selection.
        selection: usize,
        /// The invalid access.
        #[source]
        fault: Fault,
    },
    /// An output cannot be written.
    #[error("output {selection}")]
    Write {
        /// Index of the selection.
        selection: usize,
        /// Cause.
        #[source]
        source: WriteError,
    },
}

/// Runs the packets of a capture through filters, each of which takes those that match it. `observe` is called after
/// every burst with what was read so far, and may end the run, which is no error.
///
/// Returns what was read, up to the last needed packet.
///
/// # Errors
/// [`SelectError`]. The outputs are complete up to there, whatever the error is.
pub fn select(
    reader: &mut CaptureReader<'_>,
    selections: &mut [Selection<'_>],
    host: &mut Host,
    options: Select,
    mut observe: impl FnMut(Matched) -> ControlFlow<()>,
) -> (Matched, Result<(), SelectError>) {
    let mut read = Matched::default();
    let mut burst = Burst::default();
    let done = loop {
        match step(reader, selections, host, options, &mut burst, &mut read) {
            Ok(true) if observe(read).is_break() => break Ok(()),
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    // The error that ended the run takes precedence over an error from closing the output.
    let finished = finish(reader, selections);
    (read, done.and(finished))
}

/// One burst. False at the end.
fn step(
    reader: &mut CaptureReader<'_>,
    selections: &mut [Selection<'_>],
    host: &mut Host,
    options: Select,
    burst: &mut Burst,
    read: &mut Matched,
) -> Result<bool, SelectError> {
    let left = |selection: &Selection<'_>| {
        options.count.map_or(u64::MAX, |count| count.saturating_sub(selection.matched.packets))
    };
    if selections.iter().all(|selection| left(selection) == 0) {
        return Ok(false);
    }
    if reader.fill(burst).map_err(SelectError::Read)? == 0 {
        return Ok(false);
    }
    let all = u64::MAX >> (u64::BITS as usize - burst.len());
    // Packets up to the last one that a selection was still waiting for.
    let mut needed = 0;
    for (index, selection) in selections.iter_mut().enumerate() {
        let left = left(selection);
        if left == 0 {
            continue;
        }
        let link = reader.link();
        link.to_native(burst);
        let mask = selection.filter.matches(burst, host);
        link.to_captured(burst);
        let mask = mask.map_err(|fault| SelectError::Fault { selection: index, fault: *fault.fault })?;
        let mask = first(mask, left);
        needed |= if u64::from(mask.count_ones()) == left { mask } else { all };
        selection.matched.add(burst, mask);
        if let Some(tell) = &mut selection.tell {
            each(mask).for_each(|index| tell(read.packets + index as u64 + 1, burst.frame(index)));
        }
        if let Some(output) = &mut selection.output {
            let filter = &selection.filter;
            let packets = burst.iter().enumerate().map(|(index, frame)| {
                let kept = filter.kept(frame);
                (mask >> index & 1 != 0).then(|| &frame.into_packet()[..kept])
            });
            let written = output.write_selected(packets, burst.is_full(), reader.records());
            written.map_err(|source| SelectError::Write { selection: index, source })?;
        }
    }
    read.add(burst, all & u64::MAX >> needed.leading_zeros().min(u64::BITS - 1));
    Ok(true)
}

/// The lowest `count` of the bits.
fn first(mask: u64, count: u64) -> u64 {
    if u64::from(mask.count_ones()) <= count {
        return mask;
    }
    each(mask).take(count as usize).fold(0, |first, bit| first | 1 << bit)
}

/// The places of the bits, from the lowest.
fn each(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit as usize)
    })
}

fn finish(reader: &CaptureReader<'_>, selections: &mut [Selection<'_>]) -> Result<(), SelectError> {
    let mut result = Ok(());
    for (index, selection) in selections.iter_mut().enumerate() {
        if let Some(output) = selection.output.take() {
            let finished = output.finish(reader.records());
            result = result.and(finished.map_err(|source| SelectError::Write { selection: index, source }));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bits_are_the_lowest() {
        assert_eq!(first(0b1011_0110, 3), 0b1_0110);
        assert_eq!(first(0b1011_0110, 0), 0);
        assert_eq!(first(u64::MAX, 64), u64::MAX);
        assert_eq!(each(1 << 63 | 1).collect::<Vec<_>>(), [0, 63]);
    }
}
