//! Ports opened for a number of workers.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use paceline::capture::CaptureReader;
use paceline::device::{
    DpdkPort, Interface, MemifOptions, MemifPort, MemifRole, OpenError, SocketPort, TapPort, Umem, XdpDevice,
    XdpOptions, XdpPort,
};
use paceline::port::{
    CapturePort, Faults, Faulty, FramePool, Generator, MemoryPort, Overflow, Port, RateLimited, SpreadPort,
};

use super::awaited::Waiting;
use super::error::PortError;
use super::generate;
use super::spec::{Kind, PortSpec, Traffic, Wrapper};
use crate::common::failure::Failure;
use crate::common::files::{Opened, Taken};

/// Packets that wait in a loop.
const LOOP: usize = 1024;

/// The driver of DPDK's that attaches a program to an interface, and detaches it when it is closed.
const ATTACHES: &str = "net_af_xdp";

/// A port of one worker: the number of its queue, and the port.
pub(crate) type QueuePort = (u16, Box<dyn Port>);

/// A port that is open.
pub(crate) struct OpenedPort {
    /// As the command line has it.
    pub(crate) name: String,
    /// Index of the interface; a number that no other port has for ports that are no interface.
    pub(crate) ifindex: u32,
    /// Properties for people, such as the mode.
    pub(crate) details: String,
    /// The queues of each worker.
    pub(crate) workers: Vec<Vec<QueuePort>>,
}

/// Opens ports whose frames are of one pool.
pub(crate) struct Opening {
    umem: Option<Arc<Umem>>,
    pool: Arc<FramePool>,
    /// Frames for each queue.
    frames: u32,
    workers: usize,
    /// Whether the process can undo at the end what takes privileges.
    keep_privileges: bool,
    /// Interface numbers in use.
    numbers: Vec<(u32, String)>,
    /// Outputs of captures, opened and not emptied yet: they are emptied when all other ports are open.
    outputs: Vec<(String, Opened)>,
    waiting: Waiting,
}

impl Opening {
    /// Prepares for these ports: memory for a number of frames for each queue, and outputs that are no file in use.
    pub(crate) fn new(
        specs: &[&PortSpec],
        frames: u32,
        workers: usize,
        keep_privileges: bool,
        mut taken: Vec<Taken>,
    ) -> Result<Self, Failure> {
        taken.extend(specs.iter().filter_map(|spec| spec.input()));
        let mut outputs = Vec::new();
        for spec in specs {
            match &spec.kind {
                Kind::Pcap { output: Some(output), .. } => {
                    outputs.push((spec.text.clone(), Opened::open(output, spec.option, &mut taken)?));
                }
                Kind::Memif { socket, options } => {
                    options.check(socket).map_err(|source| open_error(spec, source))?;
                }
                _ => {}
            }
        }
        let queues = specs.iter().map(|spec| queues(spec).max(workers as u32)).fold(0, u32::saturating_add);
        let (frames_each, frames) = (frames, frames.saturating_mul(queues));
        let device = specs.iter().find(|spec| matches!(spec.kind, Kind::Xdp { .. } | Kind::Dpdk { .. }));
        let umem =
            device.map(|spec| Umem::new(frames).map_err(|source| open_error(spec, source))).transpose()?;
        let pool = umem.as_ref().map_or_else(|| FramePool::on_heap(frames), |umem| Arc::clone(umem.pool()));
        Ok(Self {
            umem,
            pool,
            frames: frames_each,
            workers,
            keep_privileges,
            numbers: Vec::new(),
            outputs,
            waiting: Waiting::default(),
        })
    }

    /// Opens ports: interfaces, then ports that get the numbers which these leave, then those that write files. The result is in the
    /// order in which they are given.
    pub(crate) fn open_all(&mut self, specs: &[&PortSpec]) -> Result<Vec<OpenedPort>, Failure> {
        let rank = |spec: &PortSpec| match &spec.kind {
            Kind::Xdp { .. } | Kind::Packet { .. } | Kind::Tap { .. } | Kind::Dpdk { .. } => 0,
            Kind::Pcap { output: Some(_), .. } => 2,
            Kind::Memif { .. } | Kind::Pcap { .. } | Kind::Generate(_) | Kind::Loop | Kind::Null => 1,
        };
        let mut order: Vec<_> = specs.iter().enumerate().collect();
        order.sort_by_key(|(_, spec)| rank(spec));
        let mut opened = Vec::new();
        for (index, spec) in order {
            opened.push((index, self.open(spec)?));
        }
        opened.sort_by_key(|(index, _)| *index);
        Ok(opened.into_iter().map(|(_, port)| port).collect())
    }

    /// The pool of all ports.
    pub(crate) fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// The threads that wait for an input.
    pub(crate) fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// Opens a port.
    fn open(&mut self, spec: &PortSpec) -> Result<OpenedPort, Failure> {
        let (ifindex, details, queues): (_, _, Vec<QueuePort>) = match &spec.kind {
            Kind::Xdp { interface, queues, options } => {
                let device = self.open_device(spec, interface, *options)?;
                let queues = queues.clone().unwrap_or(0..=device.queues() - 1);
                let ports = queues.map(|queue| XdpPort::open(&device, queue).map(|port| (queue, port)));
                let ports: Vec<_> =
                    ports.collect::<Result<_, _>>().map_err(|source| open_error(spec, source))?;
                let copies = ports.iter().any(|(_, port)| !port.is_zero_copy());
                // The ports are open: from here on nothing that arrives is lost.
                let native = device.attach().map_err(|source| open_error(spec, source))?;
                let mode = if native { "native" } else { "generic" };
                let details = format!("{mode}, {}", if copies { "copy" } else { "zero copy" });
                let boxed = |(queue, port)| (queue as u16, Box::new(port) as Box<dyn Port>);
                let ports = ports.into_iter().map(boxed).collect();
                (device.interface().index(), details, ports)
            }
            Kind::Packet { interface } => {
                let open = |_| SocketPort::open(interface, self.group());
                let ports = self.for_each_worker(spec, open, |port| port.interface().index())?;
                (ports.0, String::new(), ports.1)
            }
            Kind::Tap { name } => {
                // The kernel may complete the name (`tap%d`), and further queues are of the same interface.
                let complete = RefCell::new(name.clone());
                let open = |_| {
                    let port = TapPort::open(&complete.borrow(), &self.pool, self.workers > 1)?;
                    complete.replace(port.interface().name().to_owned());
                    Ok(port)
                };
                let ports = self.for_each_worker(spec, open, |port| port.interface().index())?;
                (ports.0, String::new(), ports.1)
            }
            Kind::Memif { socket, options } => self.memif(spec, socket, options)?,
            Kind::Dpdk { devargs } => self.dpdk(spec, devargs)?,
            Kind::Pcap { input, .. } => {
                (self.free_number(), String::new(), self.capture(spec, input.as_deref())?)
            }
            Kind::Generate(traffic) => {
                let queues = (0..).zip(generators(traffic, self.workers)).collect();
                (self.free_number(), String::new(), queues)
            }
            Kind::Loop => {
                let port = MemoryPort::loopback_in(&self.pool, LOOP);
                (self.free_number(), String::new(), vec![(0, Box::new(port) as _)])
            }
            Kind::Null => {
                let queues = (0..self.workers)
                    .map(|queue| (queue as u16, Box::new(Generator::new(Vec::new(), None)) as _));
                (self.free_number(), String::new(), queues.collect())
            }
        };
        self.add_number(spec, ifindex)?;
        let queues = wrapped(spec, queues);
        let workers = self.spread(spec, queues);
        Ok(OpenedPort { name: spec.text.clone(), ifindex, details, workers })
    }

    /// The queues of a shared-memory interface: a number, its properties, and a port for each.
    fn memif(
        &self,
        spec: &PortSpec,
        socket: &str,
        options: &MemifOptions,
    ) -> Result<(u32, String, Vec<QueuePort>), PortError> {
        let ports =
            MemifPort::open(socket, options, &self.pool).map_err(|source| open_error(spec, source))?;
        let is_connected = ports.first().is_some_and(MemifPort::is_connected);
        let details = match (options.role, is_connected) {
            (MemifRole::Server, _) => "server",
            (MemifRole::Client, true) => "client, connected",
            (MemifRole::Client, false) => "client, waiting for a server",
        };
        let boxed = |(queue, port)| (queue, Box::new(port) as _);
        Ok((self.free_number(), details.to_owned(), (0..).zip(ports).map(boxed).collect()))
    }

    /// The queues of a DPDK device: its number, its properties, and a port for each.
    fn dpdk(&self, spec: &PortSpec, devargs: &str) -> Result<(u32, String, Vec<QueuePort>), PortError> {
        let ports = DpdkPort::open(devargs, &self.pool, self.workers, self.frames)
            .map_err(|source| open_error(spec, source))?;
        let is_attached = ports.iter().any(|port| port.driver() == ATTACHES);
        if is_attached && !self.keep_privileges {
            return Err(PortError::StaysAttached { port: spec.told() });
        }
        let number = ports.first().map_or(0, DpdkPort::ifindex);
        let number = if number == 0 { self.free_number() } else { number };
        let details = ports.first().map_or_else(String::new, |port| {
            format!("{}, {}", port.driver(), if port.is_in_place() { "in place" } else { "copy" })
        });
        Ok((number, details, (0..).zip(ports).map(|(queue, port)| (queue, Box::new(port) as _)).collect()))
    }

    /// A port of captures, a queue for each worker unless a rate or faults are for all; its output is emptied.
    fn capture(&mut self, spec: &PortSpec, input: Option<&Path>) -> Result<Vec<QueuePort>, Failure> {
        let reader = input.map(|path| reader(spec, path, &self.waiting)).transpose()?;
        let output = self.outputs.iter().position(|(name, _)| *name == spec.text);
        let writer = match output.map(|index| self.outputs.swap_remove(index).1.start_text()) {
            Some(started) => Some(Box::new(started?.0) as Box<dyn Write + Send>),
            None => None,
        };
        let error = |source| PortError::Write { port: spec.told(), source };
        if self.workers == 1 || !spec.wrappers.is_empty() {
            let port = CapturePort::new(reader, writer).map_err(error)?;
            return Ok(vec![(0, Box::new(port))]);
        }
        let queues = CapturePort::queues(reader, writer, self.workers).map_err(error)?;
        Ok((0..).zip(queues).map(|(number, queue)| (number, Box::new(queue) as _)).collect())
    }

    fn open_device(
        &self,
        spec: &PortSpec,
        interface: &str,
        options: XdpOptions,
    ) -> Result<Arc<XdpDevice>, PortError> {
        let opened = match &self.umem {
            Some(umem) => XdpDevice::open(interface, umem, options),
            None => Err(OpenError::ForeignPool),
        };
        opened.map_err(|source| open_error(spec, source))
    }

    /// Opens a queue for each worker.
    fn for_each_worker<P: Port + 'static>(
        &self,
        spec: &PortSpec,
        open: impl Fn(usize) -> Result<P, OpenError>,
        ifindex: impl Fn(&P) -> u32,
    ) -> Result<(u32, Vec<QueuePort>), PortError> {
        let ports = (0..self.workers).map(open).collect::<Result<Vec<_>, _>>();
        let ports = ports.map_err(|source| open_error(spec, source))?;
        let number = ports.first().map_or(0, ifindex);
        Ok((number, (0..).zip(ports).map(|(queue, port)| (queue, Box::new(port) as _)).collect()))
    }

    /// The group by which several packet sockets share an interface's packets.
    fn group(&self) -> Option<u16> {
        // The lower half of the process id; the kernel refuses a group of another process with other settings.
        (self.workers > 1).then(|| std::process::id() as u16)
    }

    /// A number that no interface has so far.
    fn free_number(&self) -> u32 {
        (1..).find(|number| self.numbers.iter().all(|(used, _)| used != number)).unwrap_or(0)
    }

    fn add_number(&mut self, spec: &PortSpec, number: u32) -> Result<(), PortError> {
        if let Some((_, other)) = self.numbers.iter().find(|(used, _)| *used == number) {
            return Err(PortError::Twice { port: other.clone(), other: spec.told() });
        }
        self.numbers.push((number, spec.told()));
        Ok(())
    }

    /// Deals queues out to the workers. If there are more workers than queues, workers share a queue's packets by flow.
    fn spread(&self, spec: &PortSpec, queues: Vec<QueuePort>) -> Vec<Vec<QueuePort>> {
        let mut spread: Vec<Vec<QueuePort>> = (0..self.workers).map(|_| Vec::new()).collect();
        let count = queues.len();
        for (index, (number, port)) in queues.into_iter().enumerate() {
            let sharers = (index % self.workers..self.workers).step_by(count);
            if sharers.len() == 1 {
                spread[index % self.workers].push((number, port));
                continue;
            }
            let shares = SpreadPort::spread(port, &self.pool, sharers.len(), overflow(spec));
            for (worker, share) in sharers.zip(shares) {
                spread[worker].push((number, Box::new(share)));
            }
        }
        spread
    }
}

/// Adds to each queue what the port's name says; queues share a rate.
fn wrapped(spec: &PortSpec, queues: Vec<QueuePort>) -> Vec<QueuePort> {
    let count = queues.len() as u64;
    let wrap = |(number, port): QueuePort| {
        let wrap = |port: Box<dyn Port>, wrapper: &Wrapper| -> Box<dyn Port> {
            match *wrapper {
                Wrapper::Rate(rate) => Box::new(RateLimited::new(port, (rate / count).max(1))),
                Wrapper::Faults(faults) => {
                    let seed = faults.seed.wrapping_add(u64::from(number));
                    Box::new(Faulty::new(port, Faults { seed, ..faults }))
                }
            }
        };
        (number, spec.wrappers.iter().rev().fold(port, wrap))
    };
    queues.into_iter().map(wrap).collect()
}

/// Devices do not wait for a slow worker.
fn overflow(spec: &PortSpec) -> Overflow {
    match spec.kind {
        Kind::Pcap { .. } | Kind::Loop => Overflow::Wait,
        Kind::Xdp { .. }
        | Kind::Packet { .. }
        | Kind::Tap { .. }
        | Kind::Memif { .. }
        | Kind::Dpdk { .. }
        | Kind::Generate(_)
        | Kind::Null => Overflow::Drop,
    }
}

/// Number of queues of a port, if it does not depend on the workers.
fn queues(spec: &PortSpec) -> u32 {
    match &spec.kind {
        Kind::Xdp { queues: Some(queues), .. } => queues.end() - queues.start() + 1,
        Kind::Memif { options, .. } => u32::from(options.queues),
        // Without the interface, opening fails.
        Kind::Xdp { interface, .. } => {
            Interface::by_name(interface).map_or(1, |found| found.receive_queues())
        }
        _ => 1,
    }
}

fn open_error(spec: &PortSpec, source: OpenError) -> PortError {
    PortError::Open { port: spec.told(), source }
}

/// A generator for each worker: flows, number of packets and rate are divided among them.
fn generators(traffic: &Traffic, workers: usize) -> impl Iterator<Item = Box<dyn Port>> {
    let packets = generate::packets(traffic);
    let (count, rate) = (traffic.count, traffic.rate);
    let share = move |amount: u64, worker: usize| {
        amount / workers as u64 + u64::from((worker as u64) < amount % workers as u64)
    };
    (0..workers).map(move |worker| {
        let mut own: Vec<_> = packets.iter().skip(worker).step_by(workers).cloned().collect();
        if own.is_empty() {
            own.clone_from(&packets);
        }
        let generator = Generator::new(own, count.map(|count| share(count, worker)));
        let port: Box<dyn Port> = match rate {
            Some(rate) => Box::new(RateLimited::new(generator, share(rate, worker).max(1))),
            None => Box::new(generator),
        };
        port
    })
}

fn reader(spec: &PortSpec, path: &Path, waiting: &Waiting) -> Result<CaptureReader<'static>, PortError> {
    let (port, name) = (spec.told(), path.display().to_string());
    let opened = match path == Path::new("-") {
        true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(path),
    };
    let source = match opened {
        Ok(file) => waiting.input(file),
        Err(source) => return Err(PortError::File { port, name, source }),
    };
    CaptureReader::new(source).map_err(|source| PortError::Read { port, name, source: Box::new(source) })
}
