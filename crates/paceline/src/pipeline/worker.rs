//! A thread of a pipeline.

use std::fmt;
use std::sync::Arc;

use paceline_frame::{Burst, MAX_BURST};
use paceline_port::{Port, PortError};
use paceline_vm::{ByKey, Caller, Fault, Host};

use super::Shared;
use super::actions::{Outlet, Outlets};
use super::counts::{Counts, PipelineCounts};

/// Why a worker did not finish a burst.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A port does not work any more.
    #[error("interface {ifindex}: {source}")]
    Receive {
        /// The interface.
        ifindex: u32,
        /// Why.
        source: PortError,
    },
    /// A port that packets go to does not work any more.
    #[error("sending packets of interface {ifindex}: {source}")]
    Send {
        /// Where the packets came in.
        ifindex: u32,
        /// Why.
        source: PortError,
    },
    /// A packet made the program do what it may not. The packets before were acted on; it and those behind it in the burst are
    /// lost.
    #[error("interface {ifindex}, packet {index} of the burst: {fault}")]
    Fault {
        /// Where the packet came in.
        ifindex: u32,
        /// Its index in the burst.
        index: usize,
        /// What happened.
        #[source]
        fault: Box<Fault>,
    },
    /// What a timer called did what it may not.
    #[error("timer: {fault}")]
    Timer {
        /// What happened.
        #[source]
        fault: Box<Fault>,
    },
}

/// Runs the packets of its ports through their programs, on one thread. It has a port for each interface that it sends to.
pub struct Worker {
    shared: Arc<Shared>,
    caller: Caller<ByKey>,
    host: Host,
    burst: Burst,
    outlets: Outlets,
    /// Queues of the ports, by index.
    queues: Vec<u16>,
    counts: Arc<Counts>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, cpu: usize) -> Self {
        Self {
            caller: shared.site.caller(),
            counts: shared.totals.register(),
            shared,
            host: Host::new(cpu),
            burst: Burst::new(MAX_BURST),
            outlets: Outlets::default(),
            queues: Vec::new(),
        }
    }

    /// Receives from a port, as a queue of an interface, and sends to it what goes to the interface.
    pub fn attach(&mut self, ifindex: u32, queue: u16, port: impl Port + 'static) {
        self.outlets.ports.push((ifindex, Outlet::new(port)));
        self.queues.push(queue);
    }

    /// Sends packets that pass to a port. Without one they are counted and released.
    pub fn deliver_to(&mut self, port: impl Port + 'static) {
        self.outlets.passed = Some(Outlet::new(port));
    }

    /// Takes no more packets at once than this.
    ///
    /// # Panics
    /// If it is 0 or more than [`MAX_BURST`].
    pub fn set_burst(&mut self, most: usize) {
        self.burst = Burst::new(most);
    }

    /// Acts on each packet before it looks at the next one's verdict: to measure what groups are worth.
    #[doc(hidden)]
    pub fn act_on_each(&mut self) {
        self.outlets.each_alone = true;
    }

    /// What the programs' helpers see of the world.
    pub fn host_mut(&mut self) -> &mut Host {
        &mut self.host
    }

    /// One burst of each port: receives, runs, acts; before that, timers that are due fire. Says how many packets that were; 0
    /// means that nothing has arrived.
    ///
    /// # Errors
    /// [`WorkerError`] of the first port at fault; it may be called again.
    pub fn poll(&mut self) -> Result<usize, WorkerError> {
        self.host.fire_timers().map_err(|fault| WorkerError::Timer { fault })?;
        let mut packets = 0;
        for index in 0..self.outlets.ports.len() {
            packets += self.poll_port(index)?;
        }
        Ok(packets)
    }

    fn poll_port(&mut self, index: usize) -> Result<usize, WorkerError> {
        let (ifindex, outlet) = &mut self.outlets.ports[index];
        let ifindex = *ifindex;
        self.burst.clear();
        let received = outlet.port.receive(&mut self.burst);
        if self.burst.is_empty() {
            return received.map_err(|source| WorkerError::Receive { ifindex, source });
        }
        let queue = self.queues[index];
        self.burst.iter_mut().for_each(|mut frame| frame.set_ingress(ifindex, queue));
        let ran = self.caller.run_burst(u64::from(ifindex), &mut self.burst, &mut self.host);
        let ran = ran.map_err(|fault| {
            self.burst.truncate(fault.index);
            WorkerError::Fault { ifindex, index: fault.index, fault: Box::new(fault.fault) }
        });
        let mut counts = PipelineCounts { bursts: 1, ..PipelineCounts::default() };
        let acted = self.outlets.act(&self.burst, index, &self.shared.maps, &mut counts);
        self.counts.commit(counts);
        let packets = self.burst.len();
        ran?;
        acted.map_err(|source| WorkerError::Send { ifindex, source })?;
        received.map_err(|source| WorkerError::Receive { ifindex, source })?;
        Ok(packets)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("ports", &self.outlets.ports.len()).finish_non_exhaustive()
    }
}
