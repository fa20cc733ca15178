//! Programs of device maps' entries, which run on the way out (`dev_map_bpf_prog_run` in `kernel/bpf/devmap.c`).

use paceline_frame::{Burst, Verdict};
use paceline_port::Group;
use paceline_vm::Target;

use super::actions::{Act, SendError};
use super::counted::CountedPort;
use super::known::Seen;

/// State for running these programs, and reused buffers.
#[derive(Default)]
pub(super) struct EntryPrograms {
    programs: Seen<Target>,
    /// Copies: another device, or another program, may get the packet as it was.
    copies: Option<Burst>,
    passed: Vec<u8>,
}

impl EntryPrograms {
    /// Sends the packets that the program passes, as it leaves them.
    ///
    /// # Errors
    /// The port does not work any more, or a packet made the program do what it may not: those before it are sent.
    pub(super) fn send(
        &mut self,
        port: &mut CountedPort,
        ifindex: u32,
        program: u32,
        indices: &[u8],
        act: &mut Act<'_>,
    ) -> Result<(), SendError> {
        let Some(target) = self.programs.program(program, &act.shared.maps) else {
            act.counts.no_target += indices.len() as u64;
            return Ok(());
        };
        let copies = self.copies.get_or_insert_default();
        copies.clear();
        for frame in Group::new(act.burst, indices, act.keep).iter() {
            let index = copies.len();
            // A packet of one frame fits into another with the same headroom.
            if copies.push(frame.packet(), *frame.meta()).is_ok() {
                let mut copy = copies.frame_mut(index);
                let _ = copy.set_metadata(frame.metadata());
                copy.set_ingress(frame.ingress_ifindex(), 0);
                copy.set_egress(ifindex);
            }
        }
        let ran = target.run_burst(copies, act.host);
        if let Err(fault) = &ran {
            act.counts.lost += (copies.len() - fault.index) as u64;
            copies.truncate(fault.index);
        }
        self.passed.clear();
        let passes = |&index: &usize| copies.frame(index).verdict() == Verdict::Pass;
        self.passed.extend((0..copies.len()).filter(passes).map(|index| index as u8));
        act.counts.stopped += (copies.len() - self.passed.len()) as u64;
        let sent = act.send_copies(port, copies, &self.passed);
        sent.map_err(|source| SendError::Port { number: ifindex, source })?;
        ran.map_err(|fault| SendError::Fault {
            index: indices.get(fault.index).map_or(0, |&index| usize::from(index)),
            fault: fault.fault,
        })
    }
}
