//! Programs of device maps' entries, which run on the way out (`dev_map_bpf_prog_run` in `kernel/bpf/devmap.c`).

use paceline_engine::Target;
use paceline_frame::{Burst, MAX_BURST, Verdict};

use super::counted::CountedPort;
use super::dispatch::Dispatch;
use super::known::Cache;

/// State for running these programs, and reused buffers.
#[derive(Default)]
pub(super) struct EntryPrograms {
    programs: Cache<Target>,
    /// Copies: another device, or another program, may get the packet as it was.
    copies: Option<Burst>,
    /// Indices of the copied packets in their burst.
    copied: Vec<u8>,
    passed: Vec<u8>,
}

impl EntryPrograms {
    /// Sends the packets that the program passes, as it leaves them. If one makes it do what it may not, those before it are sent.
    pub(super) fn send(
        &mut self,
        port: &mut CountedPort,
        ifindex: u32,
        program: u32,
        indices: &[u8],
        dispatch: &mut Dispatch<'_, '_>,
    ) {
        let Some(target) = self.programs.program(program, &dispatch.shared.maps) else {
            dispatch.counts.no_target += indices.len() as u64;
            return;
        };
        let copies = self.copies.get_or_insert_default();
        let mut left = indices.len() as u64;
        // A broadcast to several entries of an interface has more packets than a burst.
        for indices in indices.chunks(MAX_BURST) {
            copy(dispatch.burst, indices, ifindex, copies, &mut self.copied);
            dispatch.counts.lost += (indices.len() - copies.len()) as u64;
            left -= indices.len() as u64;
            let ran = target.run_burst(copies, dispatch.host);
            if let Err(fault) = &ran {
                dispatch.counts.lost += left + (copies.len() - fault.index) as u64;
                copies.truncate(fault.index);
            }
            self.passed.clear();
            let passes = |&index: &usize| copies.frame(index).verdict() == Verdict::Pass;
            self.passed.extend((0..copies.len()).filter(passes).map(|index| index as u8));
            dispatch.counts.stopped += (copies.len() - self.passed.len()) as u64;
            dispatch.send_copies(port, ifindex, copies, &self.passed);
            if let Err(fault) = ran {
                dispatch.fault(self.copied[fault.index], fault.fault);
                break;
            }
        }
    }
}

/// Copies packets on their way to an interface. One that does not fit is left out, though a frame's packet fits into a frame of its length.
fn copy(burst: &Burst, indices: &[u8], egress: u32, copies: &mut Burst, copied: &mut Vec<u8>) {
    copies.clear();
    copied.clear();
    for &index in indices {
        let frame = burst.frame(usize::from(index));
        copies.set_ingress(frame.ingress_ifindex(), 0);
        if copies.push_frame(frame).is_ok() {
            copies.frame_mut(copied.len()).set_egress(egress);
            copied.push(index);
        }
    }
}
