//! The surroundings of a worker, as its user sets them.

use std::io::Write;
use std::sync::Arc;

use paceline_frame::Burst;
use paceline_maps::Map;
use paceline_network::Network;
use paceline_runtime::fault::Fault;
use paceline_runtime::host::{self, EventSink};
use paceline_runtime::per_cpu::PerCpuMaps;
use paceline_runtime::time::TimeSource;
use paceline_spec::context::{AreaUse, SkBuff, TC_SK_BUFF};

/// The surroundings of one worker: all that its programs observe besides packets and maps. Programs that run on different threads
/// have different hosts.
///
/// Hosts that run over the same per-CPU maps have different numbers, as the kernel runs one program at a time on a CPU. A host has its
/// number alone, from its first run over them until it gives the CPU back ([`give_back_cpu`](Self::give_back_cpu)), moves or is dropped:
/// the run of another with that number fails ([`FaultKind::CpuInUse`](crate::FaultKind::CpuInUse)). A default host takes the lowest
/// number that is free.
#[derive(Default)]
pub struct Host {
    pub(crate) runtime: host::Host,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("cpu", &self.cpu()).finish_non_exhaustive()
    }
}

impl Host {
    /// A host for the worker of a number, which `bpf_get_smp_processor_id` returns and per-CPU maps go by; below `LoadOptions::cpus` of
    /// the collections that it runs.
    /// Traces go to standard error, events nowhere; random numbers are seeded by the time.
    #[must_use]
    pub fn new(cpu: usize) -> Self {
        Self { runtime: host::Host::new(cpu) }
    }

    /// The worker's number; of a default host 0, or that of the last run.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.runtime.cpu()
    }

    /// Moves the worker to the CPU of a number, between runs: helpers and per-CPU maps go by it from then on.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.runtime.set_cpu(cpu);
    }

    /// Takes a CPU in per-CPU maps at once, which the first run over them does otherwise: the number of the host, or of a default host the
    /// lowest that is free in all of them.
    ///
    /// # Errors
    /// [`FaultKind::NoCpu`](crate::FaultKind::NoCpu), [`FaultKind::CpuInUse`](crate::FaultKind::CpuInUse) or
    /// [`FaultKind::NoFreeCpu`](crate::FaultKind::NoFreeCpu).
    pub fn take_cpu(&mut self, maps: &[Arc<Map>]) -> Result<(), Box<Fault>> {
        let owners = maps.iter().filter_map(|map| map.for_programs().cpu_owners().cloned());
        self.runtime.admit(&PerCpuMaps::new(owners))
    }

    /// Takes their CPUs from all hosts that there are. The child of a fork calls it before it runs packets, as threads that ran hosts are in
    /// its parent alone; a host from before the fork gives its CPU back first if it is to run again.
    pub fn take_all_cpus() {
        host::Host::take_all_cpus();
    }

    /// Gives the CPU back to other hosts until the next run, which fails if another has it then.
    pub fn give_back_cpu(&mut self) {
        self.runtime.give_back_cpu();
    }

    /// Sets the seed of all that is random: of `bpf_get_prandom_u32`, whose numbers differ between workers, and of the
    /// secret in TCP's cookies, which is the same for all hosts of one seed. Without a seed all hosts of a process have one.
    pub fn seed(&mut self, seed: u64) {
        self.runtime.world.seed(seed);
    }

    /// The first random numbers that programs of the first worker get after [`seed`](Self::seed).
    #[must_use]
    pub fn randoms_of(seed: u64, count: usize) -> Vec<u32> {
        host::World::randoms_of(seed, count)
    }

    /// Sets the network that programs see. The default is an empty namespace: a loopback interface that forwards nothing.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.runtime.world.set_network(network);
    }

    /// Sets the source of the time that programs see. The default is the system's clocks.
    pub fn set_time(&mut self, source: TimeSource) {
        self.runtime.world.set_time(source);
    }

    /// Notes the packets that are run next, for their times and numbers. Without it the time from packets does not advance,
    /// and events have no packet's number. If the burst has one packet, its `sk_buff` is set here, so that
    /// [`sk_buff`](Self::sk_buff) is right also after a program that does not use it.
    pub fn arrive(&mut self, burst: &Burst) {
        self.runtime.arrive(burst);
        if burst.len() == 1 {
            self.runtime.area.enter(&burst.frame(0), AreaUse::all(&TC_SK_BUFF));
        }
    }

    /// Sends the lines of `bpf_trace_printk` elsewhere.
    pub fn set_trace(&mut self, trace: impl Write + Send + 'static) {
        self.runtime.receivers.set_trace(trace);
    }

    /// Receives the events that programs send to perf event arrays. Without a receiver `bpf_perf_event_output` fails
    /// with `-ENOENT`, as in the kernel when no event is attached.
    pub fn set_events(&mut self, events: EventSink) {
        self.runtime.receivers.set_events(events);
    }

    /// Runs something that leaves no trace in the host: random numbers come again, events and the lines of `bpf_trace_printk` reach
    /// nobody. Timers that it starts stay.
    pub fn rehearse<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let effects = self.runtime.hold_effects();
        let result = run(self);
        self.runtime.release_effects(effects);
        result
    }

    /// Calls the functions of all due timers that programs started on this host (`bpf_timer_start`), between bursts. Timers that
    /// these functions start are left to the next call. Returns the number of calls.
    ///
    /// With [time from packets](TimeSource::Packets) the time is that of the last packet that the host was
    /// [told of](Self::arrive).
    ///
    /// # Errors
    /// A function made an invalid access, which those of verified programs never do. The other due timers stay due.
    #[inline]
    pub fn fire_timers(&mut self) -> Result<u64, Box<Fault>> {
        self.runtime.fire_timers()
    }

    /// Number of timers that programs started on this host and that are not due yet.
    #[must_use]
    pub fn running_timers(&self) -> usize {
        self.runtime.running_timers()
    }

    /// Sets what the packets of TC classifiers arrive with in `mark`, `priority`, `cb` and the other members that do not come from the
    /// packet: those that an earlier program left, say. All are zero unless set; socket filters get `cb` of it.
    pub fn set_arriving(&mut self, skb: SkBuff) {
        self.runtime.area.set_arriving(skb);
    }

    /// What packets arrive with, as [`set_arriving`](Self::set_arriving) has it.
    #[must_use]
    pub fn arriving(&self) -> SkBuff {
        self.runtime.area.arriving()
    }

    /// The `sk_buff` of a packet that ran alone, if programs of its type write one: in a burst of several native code keeps only what
    /// its program uses.
    #[must_use]
    pub fn sk_buff(&self) -> SkBuff {
        self.runtime.area.sk_buff()
    }

    /// The return value of the last program that ran over a packet alone, if its type has other numbers than verdicts.
    pub(crate) fn returned(&self) -> u32 {
        self.runtime.run.returned()
    }
}
