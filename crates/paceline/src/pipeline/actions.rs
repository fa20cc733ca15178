//! Actions on the packets of a burst: each packet goes to the queue of its target, and each queue is sent once.

use std::sync::{Arc, Weak};

use paceline_frame::{Burst, FrameRef, MAX_BURST, Redirect, RedirectTarget, Verdict};
use paceline_maps::{Map, MapTarget as Element};
use paceline_ports::{Group, Port};

use super::counted::CountedPort;
use super::counts::PipelineCounts;
use super::cpus::CpuQueue;
use super::dispatch::Dispatch;
use super::entry_programs::EntryPrograms;
use super::known::Cache;
use super::queue::{Egress, Queue};
use super::shared::Shared;

/// `BPF_F_BROADCAST`: to all entries of a device map.
const BROADCAST: u32 = 1 << 3;
/// `BPF_F_EXCLUDE_INGRESS`: but not to where the packet came in.
const EXCLUDE_INGRESS: u32 = 1 << 4;

/// A port and the packets that wait to be sent to it.
pub(super) struct TxPort {
    /// The number of the interface or socket that it is.
    pub(super) number: u32,
    pub(super) port: CountedPort,
    queue: Queue,
}

impl TxPort {
    pub(super) fn new(number: u32, port: impl Port + 'static, shared: &Shared) -> Self {
        let port = CountedPort::new(port, shared.ports.register(number));
        Self { number, port, queue: Queue::default() }
    }

    fn send(&mut self, dispatch: &mut Dispatch<'_, '_>, entry_programs: &mut EntryPrograms) {
        match self.queue.plain() {
            Some(indices) => dispatch.send(&mut self.port, self.number, indices),
            None => self.send_through(dispatch, entry_programs),
        }
        self.queue.clear();
    }

    #[cold]
    fn send_through(&mut self, dispatch: &mut Dispatch<'_, '_>, entry_programs: &mut EntryPrograms) {
        for (through, indices) in self.queue.runs() {
            match through.program {
                0 => dispatch.send(&mut self.port, self.number, indices),
                program => entry_programs.send(&mut self.port, self.number, program, indices, dispatch),
            }
        }
    }
}

/// Another CPU, and the packets that wait for it.
struct CpuTx {
    cpu: u32,
    cpu_queue: Weak<CpuQueue>,
    queue: Queue,
}

impl CpuTx {
    fn send(&mut self, dispatch: &mut Dispatch<'_, '_>) {
        if self.queue.is_empty() {
            return;
        }
        let cpu_queue = self.cpu_queue.upgrade();
        for (through, indices) in self.queue.runs() {
            let group = Group::new(dispatch.burst, indices, dispatch.keep);
            let sent = cpu_queue.as_ref().map_or(0, |cpu_queue| cpu_queue.send(&group, through));
            dispatch.counts.sent += sent as u64;
            dispatch.counts.refused += (indices.len() - sent) as u64;
        }
        self.queue.clear();
    }
}

/// The verdicts of a burst, read without a branch for each packet.
struct Verdicts {
    /// Number of packets of each code, 8 bits each, and above them of those that are no verdict. They stay in a register, where counters
    /// in memory would make each packet wait for the store of the one before.
    codes: u64,
    /// Packets that go somewhere, as a bit each by index.
    going: u64,
}

/// Codes from here on are no verdict.
const UNKNOWN: u32 = Verdict::ALL.len() as u32;
const _: () = assert!(MAX_BURST < 1 << 8 && MAX_BURST <= u64::BITS as usize && UNKNOWN < 8);
const _: () = assert!(Verdict::Pass as u32 == 2 && Verdict::Tx as u32 == 3 && Verdict::Redirect as u32 == 4);

/// One packet of a code in [`Verdicts::codes`].
const ONE: [u64; UNKNOWN as usize + 1] = [1, 1 << 8, 1 << 16, 1 << 24, 1 << 32, 1 << 40];

impl Verdicts {
    fn of(burst: &Burst) -> Self {
        let (mut codes, mut going) = (0, 0);
        for frame in burst.iter() {
            let code = frame.code();
            codes += ONE[code.min(UNKNOWN) as usize];
            // Shifts by constants, which take one cycle: bits enter at the top, so that the first packet's is the lowest at the end.
            going = going >> 1 | u64::from(code.wrapping_sub(Verdict::Pass as u32) < 3) << 63;
        }
        let unused = u64::BITS as usize - burst.len();
        Self { codes, going: going.checked_shr(unused as u32).unwrap_or(0) }
    }

    fn count(&self, code: u32) -> u64 {
        self.codes >> (8 * code) & 0xff
    }

    /// Adds them to counts. There is no interface to go back to from another CPU (`cpu_map_bpf_prog_run_xdp`).
    fn add_to(&self, counts: &mut PipelineCounts, has_interface: bool) {
        for (code, count) in (0..).zip(&mut counts.verdicts) {
            *count += self.count(code);
        }
        counts.unknown += self.count(UNKNOWN);
        counts.verdicts[Verdict::Aborted as usize] += self.count(UNKNOWN);
        if !has_interface {
            counts.verdicts[Verdict::Aborted as usize] +=
                std::mem::take(&mut counts.verdicts[Verdict::Tx as usize]);
        }
    }
}

/// Output queues of a worker. The packets of a queue are in the burst's order, whatever sends them there.
#[derive(Default)]
pub(super) struct TxPorts {
    /// Interfaces. Of several queues of one the first sends.
    pub(super) ports: Vec<TxPort>,
    /// Port of passed packets.
    pub(super) passed: Option<TxPort>,
    /// Sockets, by the numbers that socket maps hold.
    pub(super) sockets: Vec<TxPort>,
    cpus: Vec<CpuTx>,
    maps: Cache<Arc<Map>>,
    entry_programs: EntryPrograms,
}

impl TxPorts {
    /// Acts on a burst. A place at fault keeps no other one from what is for it.
    #[inline(never)]
    pub(super) fn act(&mut self, dispatch: &mut Dispatch<'_, '_>) {
        self.maps.follow_maps(&dispatch.shared.maps);
        let verdicts = Verdicts::of(dispatch.burst);
        verdicts.add_to(dispatch.counts, dispatch.from.is_some());
        // The others are released with the burst.
        let mut going = verdicts.going;
        while going != 0 {
            let index = going.trailing_zeros() as usize;
            going &= going - 1;
            let frame = dispatch.burst.frame(index);
            match frame.verdict() {
                Verdict::Aborted | Verdict::Drop => {}
                Verdict::Pass => {
                    let passes = push(self.passed.as_mut(), index, Egress::default());
                    dispatch.counts.released += u64::from(!passes);
                }
                Verdict::Tx => {
                    // From another CPU it counts as aborted.
                    let Some(from) = dispatch.from else { continue };
                    let is_sent = push(self.ports.get_mut(from), index, Egress::default());
                    dispatch.counts.no_target += u64::from(!is_sent);
                }
                Verdict::Redirect => {
                    let places = self.redirect(frame, index, dispatch.shared);
                    dispatch.counts.no_target += u64::from(places == 0);
                    dispatch.counts.copies += places.saturating_sub(1) as u64;
                    dispatch.keep |= u64::from(places > 1) << index;
                }
            }
        }
        self.send(dispatch);
    }

    /// Queues a packet for all places that it is redirected to, and returns their number.
    fn redirect(&mut self, frame: FrameRef<'_>, index: usize, shared: &Shared) -> usize {
        match frame.redirect() {
            None => 0,
            // Nothing here writes the neighbor's header.
            Some(Redirect { target: RedirectTarget::Interface { .. }, flags })
                if flags & Redirect::NEIGHBOR != 0 =>
            {
                0
            }
            Some(Redirect { target: RedirectTarget::Interface { ifindex }, .. }) => {
                usize::from(self.redirect_to(Element::Device { ifindex, program: 0 }, index, shared))
            }
            Some(Redirect { target: RedirectTarget::Map { map, key }, flags }) => {
                let map = self.maps.get(map, &shared.maps);
                if flags & BROADCAST == 0 {
                    let element = map.and_then(|map| map.redirect_target(key));
                    return element.map_or(0, |element| self.redirect_to(element, index, shared).into());
                }
                let excluded = (flags & EXCLUDE_INGRESS != 0).then(|| frame.ingress_ifindex());
                let all = map.map(|map| elements(map)).unwrap_or_default();
                let others = all.into_iter().filter(
                    |element| !matches!(element, Element::Device { ifindex, .. } if Some(*ifindex) == excluded),
                );
                others.filter(|&element| self.redirect_to(element, index, shared)).count()
            }
        }
    }

    /// Puts a packet before the place of a map's entry, if there is one.
    fn redirect_to(&mut self, element: Element, index: usize, shared: &Shared) -> bool {
        match element {
            Element::Device { ifindex, program } => {
                push(find(&mut self.ports, ifindex), index, Egress { program, room: 0 })
            }
            Element::Socket { socket } => push(find(&mut self.sockets, socket), index, Egress::default()),
            Element::Cpu { cpu, queue_size, program } => {
                let tx_port = self.cpu(cpu, shared);
                let through = Egress { program, room: queue_size };
                tx_port.map(|tx_port| tx_port.queue.push(index, through)).is_some()
            }
        }
    }

    fn cpu(&mut self, cpu: u32, shared: &Shared) -> Option<&mut CpuTx> {
        let known = self.cpus.iter().position(|tx_port| tx_port.cpu == cpu);
        let Some(known) = known else {
            self.cpus.push(CpuTx { cpu, cpu_queue: shared.cpu_queues.get(cpu)?, queue: Queue::default() });
            return self.cpus.last_mut();
        };
        let tx_port = &mut self.cpus[known];
        if tx_port.cpu_queue.strong_count() == 0 {
            // Its worker has gone; there may be another.
            tx_port.cpu_queue = shared.cpu_queues.get(cpu)?;
        }
        Some(tx_port)
    }

    fn send(&mut self, dispatch: &mut Dispatch<'_, '_>) {
        let Self { ports, passed, sockets, cpus, entry_programs, .. } = self;
        for tx_ports in [ports.as_mut_slice(), passed.as_mut_slice(), sockets.as_mut_slice()] {
            for tx_port in tx_ports.iter_mut().filter(|tx_port| !tx_port.queue.is_empty()) {
                tx_port.send(dispatch, entry_programs);
            }
        }
        cpus.iter_mut().for_each(|tx_port| tx_port.send(dispatch));
    }
}

fn find(tx_ports: &mut [TxPort], number: u32) -> Option<&mut TxPort> {
    tx_ports.iter_mut().find(|tx_port| tx_port.number == number)
}

fn push(tx_port: Option<&mut TxPort>, index: usize, through: Egress) -> bool {
    tx_port.map(|tx_port| tx_port.queue.push(index, through)).is_some()
}

/// All entries of a device map.
fn elements(map: &Map) -> Vec<Element> {
    let key = |key: Vec<u8>| map.redirect_target(u32::from_ne_bytes(key.try_into().ok()?));
    map.for_programs().keys().filter_map(key).collect()
}
