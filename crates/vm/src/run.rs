//! Entries of packets and bursts, and their results.

use std::ops::Range;

use paceline_frame::Frame;
use paceline_interpreter::image::{BurstEntry, Entry, Unset};
use paceline_runtime::fault::Fault;
use paceline_runtime::host::Host;

/// A fault in the middle of a burst. The packets before have their verdicts, those after were not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {index} of the burst: {fault}")]
pub struct BurstFault {
    /// Index of the packet in the burst.
    pub index: usize,
    /// The fault.
    #[source]
    pub fault: Box<Fault>,
}

impl BurstFault {
    /// A fault of the first packet.
    #[cold]
    pub(crate) fn of_first(fault: Box<Fault>) -> Self {
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
    // SAFETY: the frame is borrowed for the run and the host runs it; the caller vouches for the token.
    let r0 = unsafe { entry(frame as u64, token, unset, unset, unset, host) };
    if host.fault.is_some() {
        return fault(host, r0);
    }
    // SAFETY: the pointer comes from a reference that is still borrowed.
    unsafe { &mut *frame }.set_code(r0 as u32);
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
    // SAFETY: the caller vouches for the token.
    let run = unsafe { run_packet(entry, token, frame, host) };
    run.map(drop).map_err(BurstFault::of_first)
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
    let frames = frames.as_mut_ptr_range();
    // SAFETY: the frames are borrowed for the call, and the caller vouches for the token.
    let reached = unsafe { enter_frames(entry, token, frames.clone(), host) };
    burst_result(frames.start as u64, reached, host)
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
    // SAFETY: the caller vouches for both.
    unsafe { entry(first, end, token, unset, unset, host) }
}

/// The result of a burst from a frame to the one that was reached.
#[inline]
pub(crate) fn burst_result(first: u64, reached: u64, host: &mut Host) -> Result<(), BurstFault> {
    if host.fault.is_some() {
        return burst_fault(host, (reached - first) as usize / size_of::<Frame>());
    }
    Ok(())
}

/// Takes the fault of the run for a packet of a burst.
#[cold]
#[inline(never)]
fn burst_fault(host: &mut Host, index: usize) -> Result<(), BurstFault> {
    host.take_fault().map_or(Ok(()), |fault| Err(BurstFault { index, fault }))
}

/// Takes the fault of a run.
#[cold]
#[inline(never)]
pub(crate) fn fault(host: &mut Host, r0: u64) -> Result<u64, Box<Fault>> {
    host.take_fault().map_or(Ok(r0), Err)
}
