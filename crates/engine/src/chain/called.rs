//! Chains whose programs are called one by one.

use paceline_frame::{Frame, Verdict};
use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::Unset;
use paceline_spec::graph::{COUNTS, MAX_RUNS, Next, Node};

use super::shared::Shared;
use crate::program::Program;

/// Runs the packets of a burst one by one.
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
    // SAFETY: the address is guaranteed by the caller.
    let chain = unsafe { &*(chain as *const Shared) };
    let mut frame = first;
    while frame != end {
        // SAFETY: the frame is one of the burst's.
        let Some(verdict) = (unsafe { run_packet(chain, frame, host) }) else { return frame };
        // SAFETY: the frame is one of the burst's, and the run has ended.
        unsafe { decide(frame, verdict) };
        frame += size_of::<Frame>() as u64;
    }
    end
}

/// Stores the verdict of a packet. Only redirected packets keep a target.
///
/// # Safety
/// `frame` must be the address of a frame that nothing else uses during the call.
pub(super) unsafe fn decide(frame: u64, verdict: Verdict) {
    // SAFETY: the address is guaranteed by the caller.
    let descriptor = unsafe { &mut *(frame as *mut Frame) };
    descriptor.set_code(verdict as u32);
    if verdict != Verdict::Redirect {
        descriptor.set_redirect(None);
    }
}

/// Runs the chain over one packet; `None` if a run failed.
///
/// # Safety
/// `frame` must be the address of a frame that nothing else uses during the call.
unsafe fn run_packet(chain: &Shared, frame: u64, host: &mut Host) -> Option<Verdict> {
    let unset = Unset::uninit();
    let mut node = Node::ENTRY;
    for _ in 0..MAX_RUNS {
        let program: &Program = chain.programs.get(node.index())?;
        // SAFETY: the frame is guaranteed by the caller, and the token is the entry's own.
        let r0 = unsafe { (program.image.verdict_entry())(frame, program.token, unset, unset, unset, host) }
            as u32;
        if host.run.fault.is_some() {
            return None;
        }
        count_result(host, node, r0);
        match chain.graph.after(node, r0) {
            Next::Program(next) => node = next,
            Next::End(verdict) => return Some(verdict),
        }
    }
    count_overrun(host, chain);
    Some(Verdict::Aborted)
}

/// Counts a return value.
pub(super) fn count_result(host: &Host, node: Node, code: u32) {
    count(host, node.index() * COUNTS + (code as usize).min(COUNTS - 1));
}

/// Counts a packet for which too many programs would run.
pub(super) fn count_overrun(host: &Host, chain: &Shared) {
    count(host, chain.graph.nodes().len() * COUNTS);
}

fn count(host: &Host, index: usize) {
    if !host.chain_counts().is_null() {
        // SAFETY: the counts were made for a chain of this length, and are borrowed while the chain runs.
        unsafe { *host.chain_counts().add(index) += 1 };
    }
}
