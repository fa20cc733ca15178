//! A burst whose packets go to their targets.

use paceline_engine::{Fault, Host};
use paceline_frame::Burst;
use paceline_ports::Group;

use super::counted::CountedPort;
use super::counts::PipelineCounts;
use super::error::WorkerError;
use super::failures::Failures;
use super::shared::Shared;

/// A burst that is acted on.
pub(super) struct Dispatch<'a, 'b> {
    pub(super) burst: &'a mut Burst,
    /// Packets that go to more than one place, as a bit each by index: their frames stay until all are sent.
    pub(super) keep: u64,
    /// Index of the port that it came from; `None` if another CPU handed it over.
    pub(super) from: Option<usize>,
    pub(super) shared: &'a Shared,
    pub(super) host: &'a mut Host,
    pub(super) counts: &'a mut PipelineCounts,
    pub(super) failures: &'a mut Failures<'b>,
    /// Interface of the first packet, for failures of ports.
    pub(super) ifindex: u32,
}

impl Dispatch<'_, '_> {
    /// Sends packets of the burst to the port of a number.
    pub(super) fn send(&mut self, port: &mut CountedPort, number: u32, indices: &[u8]) {
        let sent = port.send(Group::new(self.burst, indices, self.keep), self.counts);
        if let Err(source) = sent {
            self.failures.add(WorkerError::Send { ifindex: self.ifindex, port: number, source });
        }
    }

    /// Sends packets of another burst.
    pub(super) fn send_copies(
        &mut self,
        port: &mut CountedPort,
        number: u32,
        copies: &mut Burst,
        indices: &[u8],
    ) {
        if let Err(source) = port.send(Group::new(copies, indices, 0), self.counts) {
            self.failures.add(WorkerError::Send { ifindex: self.ifindex, port: number, source });
        }
    }

    /// An invalid access of the program of a map's entry, with the packet's index in the burst.
    pub(super) fn fault(&mut self, index: u8, fault: Box<Fault>) {
        let index = usize::from(index);
        let ifindex = self.burst.frame(index).ingress_ifindex();
        self.failures.add(WorkerError::Fault { ifindex, index, fault });
    }
}
