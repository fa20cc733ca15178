//! Entries of packets and bursts, and their results.

use std::ops::Range;

use paceline_frame::{Burst, Frame};
use paceline_runtime::fault::Fault;
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{BurstEntry, Entry, Unset};

/// A fault in the middle of a burst. The packets before have their verdicts; the packet and those after, which were not run, are
/// [`Verdict::Aborted`](paceline_frame::Verdict::Aborted).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {index} of the burst")]
#[non_exhaustive]
pub struct BurstFault {
    /// Index of the packet in the burst.
    pub index: usize,
    /// The fault.
    #[source]
    pub fault: Box<Fault>,
}

impl BurstFault {
    /// A fault at a packet of a burst that is run one by one: the packet and those after it are aborted.
    #[must_use]
    pub fn at(burst: &mut Burst, index: usize, fault: Box<Fault>) -> Self {
        burst.iter_mut().skip(index).for_each(|mut frame| frame.abort());
        Self { index, fault }
    }

    /// A fault before the first packet: none is run.
    #[cold]
    pub(crate) fn of_all(frames: &mut [Frame], fault: Box<Fault>) -> Self {
        frames.iter_mut().for_each(Frame::abort);
        Self { index: 0, fault }
    }

    /// A fault of the only packet of a burst, which is aborted already.
    #[cold]
    pub(crate) fn of_only(fault: Box<Fault>) -> Self {
        Self { index: 0, fault }
    }
}

/// Runs a packet, and stores the return value in its frame.
///
/// # Safety
/// `token` must be what the entry takes.
#[inline]
pub(crate) unsafe fn run_packet(
    entry: Entry,
    token: u64,
    frame: &mut Frame,
    host: &mut Host,
) -> Result<u64, Box<Fault>> {
    let (frame, unset): (*mut Frame, _) = (frame, Unset::uninit());
    // SAFETY: the frame is borrowed for the run and the host runs it; the token is guaranteed by the caller.
    let r0 = unsafe { entry(frame as u64, token, unset, unset, unset, host) };
    // SAFETY: the pointer comes from a reference that is still borrowed.
    packet_result(unsafe { &mut *frame }, r0, host)
}

/// The result of a run over a packet that returned `r0`.
#[inline]
pub(crate) fn packet_result(frame: &mut Frame, r0: u64, host: &mut Host) -> Result<u64, Box<Fault>> {
    if host.run.fault.is_some() {
        return packet_fault(frame, r0, host);
    }
    frame.set_code(r0 as u32);
    Ok(r0)
}

/// Runs the only packet of a burst, without the set-up of a loop.
///
/// # Safety
/// As for [`run_packet`].
#[inline]
pub(crate) unsafe fn run_alone(
    entry: Entry,
    token: u64,
    frame: &mut Frame,
    host: &mut Host,
) -> Result<(), BurstFault> {
    // SAFETY: the token is guaranteed by the caller.
    let run = unsafe { run_packet(entry, token, frame, host) };
    run.map(drop).map_err(BurstFault::of_only)
}

/// Runs a burst's frames.
///
/// # Safety
/// `token` must be what the entry takes.
#[inline]
pub(crate) unsafe fn run_frames(
    entry: BurstEntry,
    token: u64,
    frames: &mut [Frame],
    host: &mut Host,
) -> Result<(), BurstFault> {
    let range = frames.as_mut_ptr_range();
    // SAFETY: the frames are borrowed for the call, and the token is guaranteed by the caller.
    let reached = unsafe { enter_frames(entry, token, range, host) };
    burst_result(frames, frames.len(), reached, host)
}

/// Runs a burst's frames by an entry. Returns the end, or the frame at which a run failed, with the fault in the host.
///
/// # Safety
/// `token` must be what the entry takes, and the frames those of a burst that nothing else uses during the call.
#[inline]
pub(crate) unsafe fn enter_frames(
    entry: BurstEntry,
    token: u64,
    frames: Range<*mut Frame>,
    host: &mut Host,
) -> u64 {
    let (first, end) = (frames.start as u64, frames.end as u64);
    // Loops are entered for one frame or more.
    if first == end {
        return end;
    }
    let unset = Unset::uninit();
    // SAFETY: both are guaranteed by the caller.
    unsafe { entry(first, end, token, unset, unset, host) }
}

/// The result of a burst of which the first `ran` frames were run, to the one at the address `reached`; after a fault the rest is aborted
/// as well.
#[inline]
pub(crate) fn burst_result(
    frames: &mut [Frame],
    ran: usize,
    reached: u64,
    host: &mut Host,
) -> Result<(), BurstFault> {
    if host.run.fault.is_some() {
        return burst_fault(frames, ran, reached, host);
    }
    Ok(())
}

/// Takes the fault of a burst's run. The verdicts are set first: the host may resume a panic.
#[cold]
#[inline(never)]
fn burst_fault(frames: &mut [Frame], ran: usize, reached: u64, host: &mut Host) -> Result<(), BurstFault> {
    let index = (reached - frames.as_ptr() as u64) as usize / size_of::<Frame>();
    // Native code runs all packets where a callback of the embedder panics: it is not known for which one.
    let index = if index < ran { index } else { 0 };
    frames.iter_mut().skip(index).for_each(Frame::abort);
    host.run.take_fault().map_or(Ok(()), |fault| Err(BurstFault { index, fault }))
}

/// Takes the fault of a packet's run. The verdict is set first: the host may resume a panic.
#[cold]
#[inline(never)]
fn packet_fault(frame: &mut Frame, r0: u64, host: &mut Host) -> Result<u64, Box<Fault>> {
    frame.abort();
    host.run.take_fault().map_or(Ok(r0), Err)
}
