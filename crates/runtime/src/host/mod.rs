//! The surroundings of a run beyond the program's own memory.
//!
//! A [`Host`] has a part for each concern: the run ([`Run`]), the packet's own area ([`Area`]), what programs observe ([`World`]) and
//! hold ([`Held`]), who receives what they send ([`Receivers`]), and memory that is reused from run to run.

mod area;
mod held;
mod receivers;
mod run;
mod stack;
mod world;

use std::mem::offset_of;

use paceline_epoch::{Domain, Reader};
use paceline_frame::{Burst, Frame};
use paceline_maps::{Origin, Walks};

use crate::fault::{Fault, FaultKind};
use crate::machine::Machine;
use crate::memory;
use crate::per_cpu::Claims;
use crate::readable::{longest, readable_at};
use crate::run_rules::RunRules;
use crate::stack::STACK_FRAME;
use crate::time::Clock;
use crate::timers::Timers;
use crate::trials::Trials;

pub use area::Area;
pub use held::Held;
pub use receivers::{Event, EventSink, Receivers};
pub use run::Run;
pub use stack::{MAX_TAIL_CALLS, Stack};
pub use world::World;

/// Receivers and random state that [`Host::hold_effects`] detaches.
pub struct Effects {
    random: u64,
    receivers: Receivers,
}

impl std::fmt::Debug for Effects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Effects").finish_non_exhaustive()
    }
}

/// What chains and dispatchers count.
pub struct Counts {
    /// The counters of the running chain, by node and verdict; null if nothing is counted.
    chain: *mut u64,
    /// Calls for which a dispatcher had no direct jump.
    pub misses: u64,
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").finish_non_exhaustive()
    }
}

/// Look-ups that run ahead of a burst.
#[derive(Default)]
pub struct LookAhead {
    /// Their walks; empty until the first.
    pub walks: Option<Box<Walks>>,
    /// Whether they pay, by program.
    pub trials: Trials,
}

impl std::fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookAhead").finish_non_exhaustive()
    }
}

/// The surroundings of one worker. Programs that run on different threads have different hosts.
pub struct Host {
    /// State of the threaded interpreter.
    pub machine: Machine,
    /// The run.
    pub run: Run,
    /// The packet's own area.
    pub area: Area,
    /// Pins the programs and elements of maps that a run uses.
    pub reader: Reader,
    /// What chains and dispatchers count.
    pub counts: Counts,
    /// Look-ups ahead of bursts.
    pub ahead: LookAhead,
    /// The timers that programs started on this host.
    pub timers: Timers,
    pub(crate) claims: Claims,
    /// What programs observe.
    pub world: World,
    /// What the running program holds.
    pub held: Held,
    /// Who receives what programs send.
    pub receivers: Receivers,
    /// The stack of all functions.
    pub stack: Stack,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

// SAFETY: the pointers to the frame and to maps are used during a run only, which borrows host and frame and keeps the maps.
unsafe impl Send for Host {}

impl Default for Host {
    /// A host with the lowest number that no other host has in the per-CPU maps that it runs over: 0 until it runs over one. It may get
    /// another number between two runs.
    fn default() -> Self {
        Self::of_worker(0, true)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.give_back_cpu();
    }
}

impl Host {
    /// A host for the worker of a number, which `bpf_get_smp_processor_id` returns and per-CPU maps go by.
    /// Traces go to standard error, events nowhere; random numbers are seeded by the time.
    #[must_use]
    pub fn new(cpu: usize) -> Self {
        Self::of_worker(cpu, false)
    }

    fn of_worker(cpu: usize, is_lent: bool) -> Self {
        let stack = Stack::default();
        Self {
            machine: Machine::new(stack.top()),
            run: Run::default(),
            area: Area::default(),
            reader: Domain::global().reader(),
            counts: Counts { chain: std::ptr::null_mut(), misses: 0 },
            ahead: LookAhead::default(),
            timers: Timers::default(),
            claims: Claims::new(is_lent),
            world: World::new(cpu),
            held: Held::default(),
            receivers: Receivers::default(),
            stack,
        }
    }

    /// Offset in bytes of the packet's frame, for generated code.
    pub const OFFSET_FRAME: usize = offset_of!(Self, run) + Run::OFFSET_FRAME;

    /// Offset in bytes of the chain's counters.
    pub const OFFSET_CHAIN_COUNTS: usize = offset_of!(Self, counts) + offset_of!(Counts, chain);

    /// Offset in bytes of the worker's number, for generated code.
    pub const OFFSET_CPU: usize = offset_of!(Self, world) + World::OFFSET_CPU;

    /// The worker's number.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.world.cpu()
    }

    /// The frame of the running packet; null or dangling without one.
    #[inline]
    pub fn frame(&self) -> *mut Frame {
        self.run.frame()
    }

    /// Ends a run with a fault; returns the value of `r0`.
    #[cold]
    pub fn fail(&mut self, fault: Box<Fault>) -> u64 {
        self.run.fail(fault)
    }

    /// Runs something so that the programs and elements of maps that it reads stay until it is done.
    ///
    /// # Safety
    /// It must not pin the same host again.
    #[inline]
    pub unsafe fn pinned<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let reader: *mut Reader = &mut self.reader;
        // SAFETY: the host is borrowed until this returns, and the caller guarantees that nothing else uses the reader while it is
        // pinned.
        let _pin = unsafe { &mut *reader }.pin();
        run(self)
    }

    /// Begins the run of a packet.
    ///
    /// # Safety
    /// The frame must be one that nothing else uses until the run has ended, and no helper may be called with this host afterwards
    /// before the next run begins.
    #[inline]
    pub unsafe fn begin(&mut self, frame: *mut Frame, rules: Option<&RunRules>) {
        self.run.begin(frame);
        let Some(rules) = rules else { return };
        // SAFETY: the frame is the run's, and no other reference to it is in use yet.
        if let Some(frame) = unsafe { frame.as_ref() } {
            self.area.enter(frame, rules.area);
        }
    }

    /// Ends a run that returned `r0`: finishes deferred work before anything else sees the packet, and returns the value that its
    /// frame gets.
    #[inline(always)]
    pub fn end_run(&mut self, rules: Option<&RunRules>, r0: u64) -> u32 {
        rules.map_or(r0 as u32, |rules| {
            if rules.layout.waits_for_end {
                self.put_tag();
            }
            self.run.returned = r0 as u32;
            rules.meaning.code(r0)
        })
    }

    /// Copies bytes from an unchecked address, and returns the number of readable bytes. On every engine a program may read the
    /// packet, its connections, values of its maps and the stack of the running function.
    pub(crate) fn read_unchecked(&self, address: u64, bytes: &mut [u8]) -> usize {
        let own = match self.run.regions() {
            Some(regions) => {
                let (maps, end) = (&*regions.maps, regions.frame_pointer);
                readable_at(address, bytes.len(), maps, end - STACK_FRAME as u64..end)
            }
            // SAFETY: engines set the readable memory before they run a program that formats text.
            None => unsafe { self.run.readable.at(address, bytes.len()) },
        };
        // SAFETY: the program may read these bytes.
        unsafe { memory::copy_from(&mut bytes[..own], address) };
        if own != 0 {
            return own;
        }
        let len = longest(bytes.len(), |len| self.copy_kernel_memory(address, &mut vec![0; len]));
        self.copy_kernel_memory(address, &mut bytes[..len]);
        len
    }

    /// Copies bytes of kernel memory that a program may read on every engine: the packet, its context, and the program's
    /// connections. False if the bytes are not all in one of these.
    pub(crate) fn copy_kernel_memory(&self, address: u64, bytes: &mut [u8]) -> bool {
        if self.held.copy(address, bytes) {
            return true;
        }
        let offset_in = |start: u64| usize::try_from(address.checked_sub(start)?).ok();
        // SAFETY: the frame is null or the run's, and only the helper uses it during the call.
        let Some(frame) = (unsafe { self.frame().as_ref() }) else { return false };
        [(frame.data(), frame.packet()), (frame.data_meta(), frame.metadata())].into_iter().any(
            |(start, there)| {
                let end = |offset: usize| offset.checked_add(bytes.len());
                let found = offset_in(start as u64).and_then(|offset| there.get(offset..end(offset)?));
                found.inspect(|found| bytes.copy_from_slice(found)).is_some()
            },
        )
    }

    /// Ends a run for a CPU that the program's per-CPU arrays lack.
    #[cold]
    pub fn lacks_cpu(&mut self) -> u64 {
        let kind = FaultKind::NoCpu(self.cpu());
        self.fail(Box::new(Fault { slot: 0, kind, tail_called: None }))
    }

    /// The counters of the running chain; null if nothing is counted.
    #[inline]
    pub fn chain_counts(&self) -> *mut u64 {
        self.counts.chain
    }

    /// Sets the counters of the chain that runs next, or null.
    ///
    /// # Safety
    /// They must be those of a chain of that length, and exist until others are set.
    pub unsafe fn set_chain_counts(&mut self, counts: *mut u64) {
        self.counts.chain = counts;
    }

    /// Notes the packets that are run next, for their times and numbers. Without it the time from packets stands still,
    /// and events have no packet number.
    pub fn arrive(&mut self, burst: &Burst) {
        self.world.arrive(burst, self.receivers.events.is_some());
    }

    /// The time that programs see on a clock, in nanoseconds.
    #[must_use]
    pub fn now(&self, clock: Clock) -> u64 {
        self.world.now(clock, self.frame())
    }

    /// Detaches the receivers of events and traces. Programs see whether there is a receiver, so another one takes its place.
    pub fn hold_effects(&mut self) -> Effects {
        Effects { random: self.world.random, receivers: self.receivers.hold() }
    }

    /// Attaches the receivers again, and winds the random numbers back.
    pub fn release_effects(&mut self, effects: Effects) {
        (self.world.random, self.receivers) = (effects.random, effects.receivers);
    }

    /// Writes one trace. Errors are ignored: programs do not depend on the receiver.
    pub fn trace(&mut self, text: &[u8]) {
        let trace = &mut self.receivers.trace;
        self.run.call_out(|| drop(trace.write_all(text)));
    }

    /// The origin of an event of the running program.
    pub fn origin(&self) -> Origin {
        self.world.origin(self.frame())
    }

    /// Sends an event; false if there is no receiver.
    pub fn event(&mut self, map: &str, cpu: u32, data: &[u8], captured: &[u8]) -> bool {
        let Origin { packet, time_ns, received_ns, .. } = self.origin();
        let event = Event { map, cpu, packet, time_ns, received_ns, data, captured };
        let Some(events) = &mut self.receivers.events else { return false };
        self.run.call_out(|| events(&event))
    }
}
