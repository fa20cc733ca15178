//! What is done with the packets of a burst: each goes to the queue of its target, and each queue is sent once.

use paceline_frame::{Burst, FrameRef, Redirect, RedirectTarget, Verdict};
use paceline_maps::{Map, RedirectTarget as Element};
use paceline_port::{Group, Port, PortError};

use super::counts::PipelineCounts;
use super::maps::{RedirectMaps, Seen};

/// `BPF_F_BROADCAST`: to all entries of a device map.
const BROADCAST: u32 = 1 << 3;
/// `BPF_F_EXCLUDE_INGRESS`: but not to where the packet came in.
const EXCLUDE_INGRESS: u32 = 1 << 4;

/// A port and what waits to be sent to it, by index in the burst.
pub(super) struct Outlet {
    pub(super) port: Box<dyn Port>,
    waiting: Vec<u8>,
}

impl Outlet {
    pub(super) fn new(port: impl Port + 'static) -> Self {
        Self { port: Box::new(port), waiting: Vec::new() }
    }

    fn send(&mut self, burst: &Burst, counts: &mut PipelineCounts) -> Result<(), PortError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let sent = self.port.send(Group::new(burst, &self.waiting));
        let waiting = self.waiting.len() as u64;
        self.waiting.clear();
        let sent = sent? as u64;
        counts.sent += sent;
        counts.refused += waiting - sent;
        Ok(())
    }
}

/// Where a worker's packets go. The order of packets that go to one port is that of the burst, whatever sends them there.
#[derive(Default)]
pub(super) struct Outlets {
    /// With their interfaces. Of several queues of one the first sends.
    pub(super) ports: Vec<(u32, Outlet)>,
    /// Where packets go that pass.
    pub(super) passed: Option<Outlet>,
    pub(super) seen: Seen,
    /// Sends each packet before it looks at the next one: what groups are measured against.
    pub(super) each_alone: bool,
}

impl Outlets {
    /// Acts on a burst that came from the port of this index.
    ///
    /// # Errors
    /// A port does not work any more. The others have what was for them.
    pub(super) fn act(
        &mut self,
        burst: &Burst,
        from: usize,
        maps: &RedirectMaps,
        counts: &mut PipelineCounts,
    ) -> Result<(), PortError> {
        self.seen.follow(maps);
        let mut result = Ok(());
        for (index, frame) in burst.iter().enumerate() {
            let verdict = frame.verdict();
            counts.verdicts[verdict as usize] += 1;
            match verdict {
                // They are released with the burst.
                Verdict::Drop => {}
                Verdict::Aborted => counts.unknown += u64::from(Verdict::from_code(frame.code()).is_none()),
                Verdict::Pass => self.passed.iter_mut().for_each(|outlet| outlet.waiting.push(index as u8)),
                Verdict::Tx => self.queue(from, index),
                Verdict::Redirect => self.redirect(frame, index, maps, counts),
            }
            if self.each_alone {
                result = result.and(self.send(burst, counts));
            }
        }
        result.and(self.send(burst, counts))
    }

    fn queue(&mut self, port: usize, index: usize) {
        if let Some((_, outlet)) = self.ports.get_mut(port) {
            outlet.waiting.push(index as u8);
        }
    }

    /// Puts a packet before the port of an interface, if there is one.
    fn queue_for(&mut self, ifindex: u32, index: usize) -> bool {
        let port = self.ports.iter().position(|&(own, _)| own == ifindex);
        port.map(|port| self.queue(port, index)).is_some()
    }

    fn redirect(
        &mut self,
        frame: FrameRef<'_>,
        index: usize,
        maps: &RedirectMaps,
        counts: &mut PipelineCounts,
    ) {
        let found = match frame.redirect() {
            None => false,
            Some(Redirect { target: RedirectTarget::Interface { ifindex }, .. }) => {
                self.queue_for(ifindex, index)
            }
            Some(Redirect { target: RedirectTarget::Map { map, key }, flags }) => {
                let map = self.seen.get(map, maps);
                if flags & BROADCAST == 0 {
                    let ifindex = map.and_then(|map| device(map, key));
                    ifindex.is_some_and(|ifindex| self.queue_for(ifindex, index))
                } else {
                    let excluded = (flags & EXCLUDE_INGRESS != 0).then(|| frame.ingress_ifindex());
                    let all = map.map(devices).unwrap_or_default();
                    let others = all.into_iter().filter(|&ifindex| Some(ifindex) != excluded);
                    others.filter(|&ifindex| self.queue_for(ifindex, index)).count() > 0
                }
            }
        };
        counts.no_target += u64::from(!found);
    }

    fn send(&mut self, burst: &Burst, counts: &mut PipelineCounts) -> Result<(), PortError> {
        let mut result = Ok(());
        for outlet in self.ports.iter_mut().map(|(_, outlet)| outlet).chain(&mut self.passed) {
            result = result.and(outlet.send(burst, counts));
        }
        result
    }
}

/// The interface of a device map's entry.
fn device(map: &Map, key: u32) -> Option<u32> {
    match map.redirect_target(key) {
        Some(Element::Device { ifindex, .. }) => Some(ifindex),
        _ => None,
    }
}

/// Those of all entries.
fn devices(map: &Map) -> Vec<u32> {
    let key = |key: Vec<u8>| device(map, u32::from_ne_bytes(key.try_into().ok()?));
    map.program_keys().filter_map(key).collect()
}
