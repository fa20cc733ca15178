//! Chains stage by stage: the packets of a burst that have come to a program go through it before others run.

use paceline_frame::{Frame, MAX_BURST, Verdict};
use paceline_graph::{MAX_RUNS, Next};

use super::Shared;
use super::called::{count_overrun, count_result, decide};
use crate::host::Host;
use crate::image::Unset;

/// Bytes of a frame.
const SIZE: u64 = size_of::<Frame>() as u64;

/// Where a packet is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct At {
    /// The program that is next; `None` when there is none.
    node: Option<usize>,
    /// Programs that ran.
    runs: u32,
}

/// Runs the packets of a burst.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call, and `chain` the address of a [`Shared`] with
/// its programs.
pub(super) unsafe extern "C" fn run(
    first: u64,
    end: u64,
    chain: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for the address.
    let chain = unsafe { &*(chain as *const Shared) };
    let mut start = first;
    while start != end {
        let frames = ((end - start) / SIZE).min(MAX_BURST as u64);
        let mut all = [At { node: Some(0), runs: 0 }; MAX_BURST];
        // SAFETY: the frames are some of the burst's.
        if let Some(failed) = unsafe { run_some(chain, start, &mut all[..frames as usize], host) } {
            return failed;
        }
        start += frames * SIZE;
    }
    end
}

/// Runs packets to their ends; gives the frame at which a run failed.
///
/// # Safety
/// There must be as many frames from `first` on, which nothing else uses during the call.
unsafe fn run_some(chain: &Shared, first: u64, all: &mut [At], host: &mut Host) -> Option<u64> {
    // Programs come in the order of the chain, so that packets gather before those that come later.
    while let Some(node) = all.iter().filter_map(|at| at.node).min() {
        let mut index = 0;
        while index < all.len() {
            let len = all[index..].iter().take_while(|at| at.node == Some(node)).count();
            if len == 0 {
                index += 1;
                continue;
            }
            let start = first + index as u64 * SIZE;
            // SAFETY: the frames are some of the caller's.
            let failed = unsafe { run_group(chain, node, start, &mut all[index..index + len], host) };
            if failed.is_some() {
                return failed;
            }
            index += len;
        }
    }
    None
}

/// Runs a program over packets that have come to it, and sends them on.
///
/// # Safety
/// As for [`run_some`].
unsafe fn run_group(
    chain: &Shared,
    node: usize,
    first: u64,
    group: &mut [At],
    host: &mut Host,
) -> Option<u64> {
    let program = chain.programs.get(node)?;
    let end = first + group.len() as u64 * SIZE;
    let unset = Unset::uninit();
    // SAFETY: the caller vouches for the frames, and the token is the entry's own.
    let reached = unsafe { (program.image.burst_entry)(first, end, program.token, unset, unset, host) };
    if host.fault.is_some() {
        return Some(reached);
    }
    for (at, frame) in group.iter_mut().zip((first..end).step_by(SIZE as usize)) {
        // SAFETY: the frame is one of the caller's.
        let code = unsafe { &*(frame as *const Frame) }.code();
        count_result(host, node, code);
        at.runs += 1;
        let verdict = match chain.graph.after(node, code) {
            Next::Program(next) if at.runs < MAX_RUNS => {
                at.node = Some(next);
                continue;
            }
            Next::Program(_) => {
                count_overrun(host, chain);
                Verdict::Aborted
            }
            Next::End(verdict) => verdict,
        };
        at.node = None;
        // SAFETY: the frame is one of the caller's.
        unsafe { decide(frame, verdict) };
    }
    None
}
