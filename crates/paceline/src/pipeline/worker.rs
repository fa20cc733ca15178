//! A thread of a pipeline.

use std::fmt;
use std::sync::Arc;

use paceline_engine::{BurstFault, ByKey, Caller, Host, Target};
use paceline_frame::{Burst, FramePool, MAX_BURST, Verdict};
use paceline_ports::{Group, Port};

use super::actions::{TxPort, TxPorts};
use super::counted::CountedPort;
use super::counts::{Counts, PipelineCounts};
use super::cpus::CpuQueue;
use super::dispatch::Dispatch;
use super::error::WorkerError;
use super::failures::Failures;
use super::follow::Sampler;
use super::known::Cache;
use super::polls::Polls;
use super::shared::Shared;

/// More packets than a port in memory holds for a worker.
const HELD: usize = 2048;

/// Runs the packets of its ports through their programs, on one thread. It has a port for each interface that it sends to.
pub struct Worker {
    shared: Arc<Shared>,
    number: usize,
    caller: Caller<ByKey>,
    host: Host,
    burst: Burst,
    tx_ports: TxPorts,
    /// Queues of the ports, by index; `None` for those that are sent to alone.
    queues: Vec<Option<u16>>,
    /// Whether packets from the port of passed packets are sent.
    has_stack: bool,
    /// Further queues of that port, which are received from only.
    stack_queues: Vec<CountedPort>,
    /// Packets from other CPUs.
    cpu_queue: Arc<CpuQueue>,
    /// The programs that it goes through.
    arrival: Cache<Target>,
    counts: Arc<Counts>,
    polls: Polls,
    sampler: Sampler,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, cpu: usize) -> Self {
        Self {
            caller: shared.site.caller(),
            counts: shared.totals.register(cpu),
            cpu_queue: shared.cpu_queues.open(cpu as u32),
            shared,
            number: cpu,
            host: Host::new(cpu),
            burst: Burst::new(MAX_BURST),
            tx_ports: TxPorts::default(),
            queues: Vec::new(),
            has_stack: false,
            stack_queues: Vec::new(),
            arrival: Cache::default(),
            polls: Polls::default(),
            sampler: Sampler::default(),
        }
    }

    /// Receives from a port, as a queue of an interface, and sends to it what goes to the interface.
    pub fn attach(&mut self, ifindex: u32, queue: u16, port: impl Port + 'static) {
        self.tx_ports.ports.push(TxPort::new(ifindex, port, &self.shared));
        self.queues.push(Some(queue));
    }

    /// Sends to a port what goes to the interface, and leaves it to another worker to receive from it.
    pub fn attach_to_send(&mut self, ifindex: u32, port: impl Port + 'static) {
        self.tx_ports.ports.push(TxPort::new(ifindex, port, &self.shared));
        self.queues.push(None);
    }

    /// Sends packets that pass to a port, as [`deliver_to`](Self::deliver_to), and packets that arrive from it to the first attached
    /// port, through no program: such as those of the host's network stack behind a TAP interface.
    pub fn connect_stack(&mut self, port: impl Port + 'static) {
        self.deliver_to(port);
        self.has_stack = true;
    }

    /// Receives from a further queue of the port that [`connect_stack`](Self::connect_stack) connected.
    pub fn connect_stack_queue(&mut self, port: impl Port + 'static) {
        self.stack_queues.push(CountedPort::new(port, self.shared.ports.register(0)));
    }

    /// Sends packets that pass to a port. Without one they are counted and released.
    pub fn deliver_to(&mut self, port: impl Port + 'static) {
        self.has_stack = false;
        self.tx_ports.passed = Some(TxPort::new(0, port, &self.shared));
    }

    /// Sends to a port what programs redirect to the socket of this number: the one that was stored in a socket map. Where the
    /// kernel has sockets of an interface's queue, there are the ports of the worker that has the queue. Packets that arrive from it
    /// are sent to the first attached port, through no program, as those of a socket are.
    pub fn attach_socket(&mut self, socket: u32, port: impl Port + 'static) {
        self.tx_ports.sockets.push(TxPort::new(socket, port, &self.shared));
    }

    /// The ports whose packets run through programs.
    pub(super) fn attached(&self) -> impl Iterator<Item = &dyn Port> {
        let ports = self.tx_ports.ports.iter().zip(&self.queues).filter(|(_, queue)| queue.is_some());
        ports.map(|(tx_port, _)| tx_port.port.port())
    }

    /// The ports that packets are received from.
    pub(super) fn receiving(&self) -> impl Iterator<Item = &dyn Port> {
        let stack = self.tx_ports.passed.iter().filter(|_| self.has_stack);
        let stack = stack.map(|stack| &stack.port).chain(&self.stack_queues);
        let sockets = self.tx_ports.sockets.iter().map(|socket| &socket.port);
        self.attached().chain(stack.chain(sockets).map(CountedPort::port))
    }

    /// Lets the ports accept no more packets. Those of the host's network stack and of sockets go on: their answers are sent.
    pub(super) fn stop_ports(&mut self) {
        self.tx_ports.ports.iter_mut().for_each(|tx_port| tx_port.port.stop());
    }

    /// Leaves to other workers what is to come to ports that they share; false if packets wait for this one.
    pub(super) fn leave_ports(&mut self) -> bool {
        let Self {
            tx_ports: TxPorts { ports, passed, sockets, .. }, queues, has_stack, stack_queues, ..
        } = self;
        // The host's side is not received from without a port to send to.
        let has_port = !ports.is_empty();
        let attached =
            ports.iter_mut().zip(queues).filter(|(_, queue)| queue.is_some()).map(|(port, _)| port);
        let host_side = passed.iter_mut().filter(|_| *has_stack).chain(sockets).filter(|_| has_port);
        let mut all = attached.chain(host_side).map(|tx_port| &mut tx_port.port);
        all.all(CountedPort::leave) && (!has_port || stack_queues.iter_mut().all(CountedPort::leave))
    }

    /// Publishes what the ports themselves count ([`Pipeline::ports`](super::Pipeline::ports)), which may take system calls.
    pub fn update_counts(&mut self) {
        let TxPorts { ports, passed, sockets, .. } = &mut self.tx_ports;
        let ports = ports.iter_mut().chain(passed).chain(sockets).map(|tx_port| &mut tx_port.port);
        ports.chain(&mut self.stack_queues).for_each(CountedPort::update_counts);
    }

    /// Takes no more packets at once than this.
    ///
    /// # Panics
    /// If it is 0 or more than [`MAX_BURST`].
    pub fn set_burst(&mut self, most: usize) {
        self.burst = Burst::new(most);
    }

    /// Lets packets that a port copies into the burst be copied into frames of a pool, so that ports of the pool send them without
    /// another copy. False, and without effect, if the pool has too few free frames.
    pub fn use_pool(&mut self, pool: &Arc<FramePool>) -> bool {
        let burst = Burst::in_pool(self.burst.room() + self.burst.len(), pool);
        let has_room = burst.is_some();
        self.burst = burst.unwrap_or_else(|| std::mem::take(&mut self.burst));
        has_room
    }

    /// The host of the programs: CPU, time, random numbers, network, events.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Number of its calls of [`poll`](Self::poll), for other threads.
    #[must_use]
    pub fn polls(&self) -> Polls {
        self.polls.clone()
    }

    /// One burst of each port, and one of what other CPUs handed over: receives, runs, acts; before that, timers that are due fire.
    /// Returns the number of packets; 0 means that none has arrived.
    ///
    /// A fault of a timer, or of one port or its packets, keeps no other port from its turn; [`Pipeline::errors`] counts all.
    ///
    /// # Errors
    /// The first [`WorkerError`], when all had their turn; it may be called again.
    ///
    /// [`Pipeline::errors`]: super::Pipeline::errors
    pub fn poll(&mut self) -> Result<usize, WorkerError> {
        self.polls.add_one();
        let shared = Arc::clone(&self.shared);
        let mut failures = Failures::new(&shared.errors);
        if let Err(fault) = self.host.fire_timers() {
            failures.add(WorkerError::Timer { fault });
        }
        let ports = 0..self.tx_ports.ports.len();
        let mut packets: usize = ports.map(|index| self.poll_port(index, &mut failures)).sum();
        let host_sides = 0..self.host_sides();
        packets += host_sides.map(|index| self.poll_host_side(index, &mut failures)).sum::<usize>();
        packets += self.poll_cpu_queue(&mut failures);
        failures.or(packets)
    }

    fn poll_port(&mut self, index: usize, failures: &mut Failures<'_>) -> usize {
        let Some(queue) = self.queues[index] else { return 0 };
        let tx_port = &mut self.tx_ports.ports[index];
        let ifindex = tx_port.number;
        self.burst.clear();
        self.burst.set_ingress(ifindex, queue);
        if let Err(source) = tx_port.port.receive(&mut self.burst) {
            failures.add(WorkerError::Receive { ifindex, source });
        }
        let received = self.burst.len();
        if received == 0 {
            return 0;
        }
        let ran = if self.shared.observers.any() {
            let from = (ifindex, self.number);
            self.shared.observers.run_burst(&mut self.caller, from, &mut self.burst, &mut self.host)
        } else if self.sampler.is_due(&self.shared.follow) {
            let Self { sampler, shared, caller, burst, host, .. } = self;
            sampler.run_burst(&shared.follow, caller, u64::from(ifindex), burst, host)
        } else {
            self.caller.run_burst(u64::from(ifindex), &mut self.burst, &mut self.host)
        };
        self.act(Some(index), ran, failures);
        received
    }

    /// Number of ports of the host's side.
    fn host_sides(&self) -> usize {
        1 + self.stack_queues.len() + self.tx_ports.sockets.len()
    }

    /// Counts what waits in these ports as lost, when nothing is sent any more.
    pub(super) fn discard_host_side(&mut self) {
        for index in 0..self.host_sides() {
            let Self { tx_ports, stack_queues, has_stack, burst, .. } = self;
            let Some((ifindex, source, _)) = host_side(tx_ports, stack_queues, *has_stack, index) else {
                continue;
            };
            // A device may go on to receive, and another worker to send to the port.
            for _ in 0..HELD / MAX_BURST {
                burst.clear();
                let result = source.receive(burst);
                let lost = burst.len() as u64;
                self.counts.commit(PipelineCounts { received: lost, lost, ..PipelineCounts::default() });
                if let Err(source) = result {
                    self.shared.errors.note(&WorkerError::Receive { ifindex, source });
                }
                if lost == 0 {
                    break;
                }
            }
        }
        self.burst.clear();
    }

    /// Sends packets of the host to the first port.
    fn poll_host_side(&mut self, index: usize, failures: &mut Failures<'_>) -> usize {
        let Self { tx_ports, stack_queues, has_stack, .. } = self;
        let Some((ifindex, source, first)) = host_side(tx_ports, stack_queues, *has_stack, index) else {
            return 0;
        };
        self.burst.clear();
        if let Err(source) = source.receive(&mut self.burst) {
            failures.add(WorkerError::Receive { ifindex, source });
        }
        let of = self.burst.len();
        let mut counts = PipelineCounts { received: of as u64, ..PipelineCounts::default() };
        let all: [u8; MAX_BURST] = std::array::from_fn(|index| index as u8);
        if let Err(source) = first.port.send(Group::new(&mut self.burst, &all[..of], 0), &mut counts) {
            failures.add(WorkerError::Send { ifindex, port: first.number, source });
        }
        self.counts.commit(counts);
        of
    }

    /// Packets from other CPUs run through the program of the CPU map's entry, or pass.
    fn poll_cpu_queue(&mut self, failures: &mut Failures<'_>) -> usize {
        self.burst.clear();
        let (program, lost) = self.cpu_queue.receive(&mut self.burst);
        if lost > 0 {
            self.counts.commit(PipelineCounts { received: lost, lost, ..PipelineCounts::default() });
        }
        if self.burst.is_empty() {
            return 0;
        }
        let received = self.burst.len();
        let ran = match program {
            0 => {
                self.burst.iter_mut().for_each(|mut frame| frame.set_verdict(Verdict::Pass));
                Ok(())
            }
            program => match self.arrival.program(program, &self.shared.maps) {
                Some(target) => target.run_burst(&mut self.burst, &mut self.host),
                None => {
                    let (received, no_target) = (received as u64, received as u64);
                    self.counts.commit(PipelineCounts { received, no_target, ..PipelineCounts::default() });
                    return self.burst.len();
                }
            },
        };
        self.act(None, ran, failures);
        received
    }

    /// Acts on the burst as far as it was run.
    fn act(&mut self, from: Option<usize>, ran: Result<(), BurstFault>, failures: &mut Failures<'_>) {
        let received = self.burst.len() as u64;
        let mut counts = PipelineCounts { received, bursts: 1, ..PipelineCounts::default() };
        if let Err(BurstFault { index, fault, .. }) = ran {
            let ifindex = self.burst.frame(index).ingress_ifindex();
            counts.lost = (self.burst.len() - index) as u64;
            self.burst.truncate(index);
            failures.add(WorkerError::Fault { ifindex, index, fault });
        }
        // Afterwards its frame may have gone to a port.
        let ifindex = self.burst.iter().next().map_or(0, |frame| frame.ingress_ifindex());
        self.tx_ports.act(&mut Dispatch {
            burst: &mut self.burst,
            keep: 0,
            from,
            shared: &self.shared,
            host: &mut self.host,
            counts: &mut counts,
            failures,
            ifindex,
        });
        if counts.of(Verdict::Aborted) > 0 {
            self.sampler.arm();
        }
        self.counts.commit(counts);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("ports", &self.tx_ports.ports.len()).finish_non_exhaustive()
    }
}

/// A port of the host's side, with the number of its interface or socket: a queue of the port of passed packets, or behind these a socket;
/// and the first port, which its packets are sent to.
fn host_side<'a>(
    tx_ports: &'a mut TxPorts,
    stack_queues: &'a mut [CountedPort],
    has_stack: bool,
    index: usize,
) -> Option<(u32, &'a mut CountedPort, &'a mut TxPort)> {
    let TxPorts { ports, passed, sockets, .. } = tx_ports;
    let queues = stack_queues.len();
    let (ifindex, source) = match index {
        0 => passed.as_mut().filter(|_| has_stack).map(|passed| (0, &mut passed.port))?,
        _ if index <= queues => stack_queues.get_mut(index - 1).map(|queue| (0, queue))?,
        _ => sockets.get_mut(index - queues - 1).map(|socket| (socket.number, &mut socket.port))?,
    };
    Some((ifindex, source, ports.first_mut()?))
}
