//! The surroundings of a run beyond the program's own memory: time, random numbers, network, traces, events, stack.

use std::alloc::{self, handle_alloc_error};
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use paceline_epoch::{Domain, Reader};
use paceline_frame::{Burst, Frame};
use paceline_isa::Size;
use paceline_maps::{Origin, Walks};
use paceline_network::{Connection, Network};
use paceline_spec::context::{Layout, SkBuff};
use zerocopy::FromZeros;

use crate::context;
use crate::fault::{Fault, FaultKind};
use crate::kernel_context::KernelContext;
use crate::machine::Machine;
use crate::memory;
use crate::per_cpu::Claims;
use crate::readable::{Readable, longest, readable_at};
use crate::region::Regions;
use crate::run_rules::RunRules;
use crate::stack::{MAX_FRAMES, STACK_FRAME};
use crate::time::{Arrivals, Clock, TimeSource};
use crate::timers::Timers;
use crate::trials::Trials;
use crate::tunnel_key::Tunnel;

/// Most tail calls of one run (`MAX_TAIL_CALL_CNT`).
pub const MAX_TAIL_CALLS: u32 = 33;

/// Frames of the interpreters' stack: each tail called program may make calls of its own.
const STACK_FRAMES: usize = MAX_FRAMES * (MAX_TAIL_CALLS as usize + 1);

/// An event that a program sends to a perf event array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the map.
    pub map: &'a str,
    /// Index of the buffer, usually that of the program's CPU.
    pub cpu: u32,
    /// Number of the packet, from 1, if the host was told of it ([`Host::arrive`]).
    pub packet: Option<u64>,
    /// Nanoseconds of the clock that programs see.
    pub time_ns: u64,
    /// Time at which that packet was received in nanoseconds since the epoch; 0 if it is unknown.
    pub received_ns: u64,
    /// The program's data.
    pub data: &'a [u8],
    /// Bytes of the packet, as many as the program asked for.
    pub captured: &'a [u8],
}

/// Receiver of the events that programs send to perf event arrays.
pub type EventSink = Box<dyn FnMut(&Event<'_>) + Send>;

/// Receivers and random state that [`Host::hold_effects`] detaches.
pub struct Effects {
    random: u64,
    rehearses: bool,
    trace: Box<dyn Write + Send>,
    events: Option<EventSink>,
}

/// The surroundings of one worker. Programs that run on different threads have different hosts.
pub struct Host {
    /// State of the threaded interpreter.
    pub machine: Machine,
    /// Frame of the running packet; null without one. Native code without calls leaves the previous one.
    frame: *mut Frame,
    /// Tail calls of this run.
    pub tail_calls: u32,
    /// Frames of the interpreters' stack in use by the callers of the running program.
    depth: usize,
    /// The packet's own area ([`SkBuff`]); words are valid if the program's context has fields in them.
    pub area: [AtomicU64; SkBuff::WORDS],
    /// The tunnel key that a program gave the packet, if [`SkBuff::has_tunnel`] says so.
    pub(crate) tunnel: Tunnel,
    /// Contents of that area when packets arrive; zero unless set.
    arriving: [u64; SkBuff::WORDS],
    /// Return value of the last packet's program, if frames of its type have another code.
    returned: u32,
    /// Fault that ended the last run; only [`fail`](Self::fail) sets it.
    pub fault: Option<Box<Fault>>,
    /// Whether the last run ended with a fault, or its return value is to be translated to a verdict: one branch for both.
    pub ends_specially: bool,
    /// A panic of an embedder's callback, kept until native code, which cannot be unwound, has returned. `fault` is set meanwhile.
    panic: Option<Box<dyn Any + Send>>,
    /// Memory of the running program, for helpers with unchecked addresses; only the plain interpreter sets it.
    regions: Option<Regions>,
    /// Memory that such helpers may read on the other engines.
    pub readable: Readable,
    /// Address of the spin lock that the running program holds; 0 for none.
    pub(crate) held_lock: u64,
    /// Pins the programs and elements of maps that a run uses.
    pub reader: Reader,
    /// The counters of the running chain, by node and verdict; null if nothing is counted.
    chain_counts: *mut u64,
    /// Calls for which a dispatcher had no direct jump.
    pub misses: u64,
    /// Look-ups that run ahead of a burst; empty until the first.
    pub walks: Option<Box<Walks>>,
    /// Whether they pay, by program.
    pub trials: Trials,
    /// The timers that programs started on this host.
    pub timers: Timers,
    cpu: usize,
    pub(crate) claims: Claims,
    random: u64,
    /// Whether effects are held.
    rehearses: bool,
    /// Key of signatures that hosts exchange, such as cookies.
    secret: u64,
    network: Arc<Network>,
    /// Connections that the running program holds.
    connections: Vec<Arc<Connection>>,
    /// The packet as kernel structures, from the first request of a program on.
    kernel_context: Option<Box<KernelContext>>,
    time: TimeSource,
    arrivals: Arrivals,
    trace: Box<dyn Write + Send>,
    events: Option<EventSink>,
    /// The stack of all functions, reused from run to run. Atomics, because programs access it by address.
    stack: Box<[AtomicU64]>,
}

// SAFETY: the pointers to the frame and to maps are used during a run only, which borrows host and frame and keeps the maps.
unsafe impl Send for Host {}

/// A random secret of this process.
fn common_secret() -> u64 {
    static SECRET: OnceLock<u64> = OnceLock::new();
    *SECRET.get_or_init(|| RandomState::new().hash_one(()))
}

fn empty_network() -> Arc<Network> {
    static EMPTY: OnceLock<Arc<Network>> = OnceLock::new();
    EMPTY.get_or_init(Arc::default).clone()
}

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

fn next_random(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32
}

/// Zeroed pages of the system, which are committed when they are used.
fn zeroed_stack() -> Box<[AtomicU64]> {
    const WORDS: usize = STACK_FRAMES * STACK_FRAME / 8;
    let stack = <[AtomicU64]>::new_box_zeroed_with_elems(WORDS);
    stack.unwrap_or_else(|_| handle_alloc_error(alloc::Layout::new::<[AtomicU64; WORDS]>()))
}

impl Host {
    /// A host for the worker of a number, which `bpf_get_smp_processor_id` returns and per-CPU maps go by.
    /// Traces go to standard error, events nowhere; random numbers are seeded by the time.
    #[must_use]
    pub fn new(cpu: usize) -> Self {
        Self::of_worker(cpu, false)
    }

    fn of_worker(cpu: usize, is_lent: bool) -> Self {
        let stack = zeroed_stack();
        let mut host = Self {
            machine: Machine::new(stack.as_ptr_range().end as u64),
            frame: std::ptr::null_mut(),
            tail_calls: 0,
            depth: 0,
            area: [const { AtomicU64::new(0) }; _],
            tunnel: Tunnel::default(),
            arriving: [0; _],
            returned: 0,
            fault: None,
            ends_specially: false,
            panic: None,
            regions: None,
            readable: Readable::default(),
            held_lock: 0,
            reader: Domain::global().reader(),
            chain_counts: std::ptr::null_mut(),
            misses: 0,
            walks: None,
            trials: Trials::default(),
            timers: Timers::default(),
            cpu,
            claims: Claims::new(is_lent),
            random: 0,
            rehearses: false,
            secret: common_secret(),
            network: empty_network(),
            connections: Vec::new(),
            kernel_context: None,
            time: TimeSource::System,
            arrivals: Arrivals::default(),
            trace: Box::new(std::io::stderr()),
            events: None,
            stack,
        };
        host.random = host.now(Clock::Monotonic);
        host
    }

    /// Offset in bytes of the packet's frame, for generated code.
    pub const OFFSET_FRAME: usize = std::mem::offset_of!(Self, frame);

    /// Offset in bytes of the chain's counters.
    pub const OFFSET_CHAIN_COUNTS: usize = std::mem::offset_of!(Self, chain_counts);

    /// Offset in bytes of the worker's number, for generated code.
    pub const OFFSET_CPU: usize = std::mem::offset_of!(Self, cpu);

    /// The worker's number.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Changes the number, which belongs to the host in the maps that it has been admitted to.
    pub(crate) fn move_to(&mut self, cpu: usize) {
        self.cpu = cpu;
    }

    /// Sets the seed of all random numbers: of `bpf_get_prandom_u32`, whose numbers differ between workers, and of the
    /// secret in TCP's cookies, which is the same for all hosts of one seed. Without a seed all hosts of a process have one.
    pub fn seed(&mut self, seed: u64) {
        (self.random, self.secret) = (seed.wrapping_add(self.cpu as u64), seed);
    }

    /// Key of signatures that hosts exchange.
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// Sets the network. The default is an empty namespace: a loopback interface that forwards nothing.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.network = network;
    }

    /// The network that programs see.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Keeps a connection for the running program, and returns the address of its record.
    pub fn keep_connection(&mut self, connection: Arc<Connection>) -> u64 {
        let address = connection.record().expose_provenance() as u64;
        self.connections.push(connection);
        address
    }

    /// The connection of a record, if the program holds it.
    pub fn connection(&self, record: u64) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|connection| connection.record().addr() as u64 == record)
    }

    /// Drops one reference of the program to a connection.
    pub fn drop_connection(&mut self, record: u64) {
        let found = self.connections.iter().position(|known| known.record().addr() as u64 == record);
        if let Some(index) = found {
            self.connections.swap_remove(index);
        }
    }

    /// The address of a packet's `struct xdp_buff`.
    pub fn kernel_context(&mut self, frame: &Frame) -> u64 {
        self.kernel_context.get_or_insert_with(KernelContext::new).describe(frame)
    }

    /// Updates the kernel structures after the packet's ends moved.
    pub fn packet_moved(&self, frame: &Frame) {
        if let Some(context) = &self.kernel_context {
            context.follow(frame);
        }
    }

    /// Sets the source of the time that programs see. The default is the system's clocks.
    pub fn set_time(&mut self, source: TimeSource) {
        self.time = source;
    }

    /// Notes the packets that are run next, for their times and numbers. Without it the time from packets does not advance,
    /// and events have no packet number.
    pub fn arrive(&mut self, burst: &Burst) {
        self.arrivals.arrive(burst, self.time, self.events.is_some());
    }

    /// Runs something so that the programs and elements of maps that it reads stay until it is done.
    ///
    /// # Safety
    /// It must not pin the same host again.
    #[inline]
    pub unsafe fn pinned<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let reader: *mut Reader = &mut self.reader;
        // SAFETY: the host is borrowed until this returns; that nothing else uses the reader while it is pinned is guaranteed by the
        // caller.
        let _pin = unsafe { &mut *reader }.pin();
        run(self)
    }

    /// Sends the lines of `bpf_trace_printk` elsewhere.
    pub fn set_trace(&mut self, trace: impl Write + Send + 'static) {
        self.trace = Box::new(trace);
    }

    /// Whether [effects are held](Self::hold_effects): what runs is undone, and does not count.
    #[must_use]
    pub fn rehearses(&self) -> bool {
        self.rehearses
    }

    /// Detaches the receivers of events and traces. Programs see whether there is a receiver, so another one takes its place.
    pub fn hold_effects(&mut self) -> Effects {
        let events = self.events.take();
        self.events = events.is_some().then(|| -> EventSink { Box::new(|_| {}) });
        let trace = std::mem::replace(&mut self.trace, Box::new(std::io::sink()));
        let rehearses = std::mem::replace(&mut self.rehearses, true);
        Effects { random: self.random, rehearses, trace, events }
    }

    /// Attaches the receivers again, and winds the random numbers back.
    pub fn release_effects(&mut self, effects: Effects) {
        (self.random, self.trace, self.events) = (effects.random, effects.trace, effects.events);
        self.rehearses = effects.rehearses;
    }

    /// Receives the events that programs send to perf event arrays. Without a receiver `bpf_perf_event_output` fails
    /// with `-ENOENT`, as in the kernel when no event is attached.
    pub fn set_events(&mut self, events: EventSink) {
        self.events = Some(events);
    }

    /// Address past the end of the stack.
    #[inline]
    pub fn stack_top(&self) -> u64 {
        self.stack.as_ptr_range().end as u64
    }

    /// Begins the run of a packet.
    ///
    /// # Safety
    /// The frame must be one that nothing else uses until the run has ended, and no helper may be called with this host afterwards
    /// before the next run begins.
    #[inline]
    pub unsafe fn begin(&mut self, frame: *mut Frame, rules: Option<&RunRules>) {
        self.frame = frame;
        self.tail_calls = 0;
        let Some(rules) = rules else { return };
        // SAFETY: the frame is the run's, and no other reference to it is in use yet.
        if let Some(frame) = unsafe { self.frame.as_ref() } {
            self.enter(frame, rules.layout);
        }
    }

    /// Begins or ends a run without a packet.
    pub fn leave_packet(&mut self) {
        self.frame = std::ptr::null_mut();
    }

    /// The frame of the running packet; null or dangling without one.
    #[inline]
    pub fn frame(&self) -> *mut Frame {
        self.frame
    }

    /// The counters of the running chain; null if nothing is counted.
    #[inline]
    pub fn chain_counts(&self) -> *mut u64 {
        self.chain_counts
    }

    /// Sets the counters of the chain that runs next, or null.
    ///
    /// # Safety
    /// They must be those of a chain of that length, and exist until others are set.
    pub unsafe fn set_chain_counts(&mut self, counts: *mut u64) {
        self.chain_counts = counts;
    }

    /// Address of the spin lock that the running program holds; 0 for none.
    #[must_use]
    pub fn held_lock(&self) -> u64 {
        self.held_lock
    }

    /// Frames of the interpreters' stack in use by the callers of the running program.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Sets that number.
    ///
    /// # Safety
    /// The frames above it must be no others', and so many as the running program and those that it calls need be below it.
    #[inline]
    pub unsafe fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// Memory of the running program, if its accesses are checked.
    #[must_use]
    pub fn regions(&self) -> Option<&Regions> {
        self.regions.as_ref()
    }

    /// Sets the memory that helpers with unchecked addresses may use, for one call of a helper.
    ///
    /// # Safety
    /// It must be memory of the running program, which exists during the call.
    #[inline]
    pub unsafe fn set_regions(&mut self, regions: Option<Regions>) {
        self.regions = regions;
    }

    /// Initializes the packet's own area for a context of this layout.
    pub fn enter(&mut self, frame: &Frame, layout: &Layout) {
        let words = usize::from(layout.area.start)..usize::from(layout.area.end);
        let given = self.arriving.get(words.clone()).unwrap_or_default();
        let words = self.area.get(words).unwrap_or_default();
        words.iter().zip(given).for_each(|(word, given)| word.store(*given, Ordering::Relaxed));
        for (offset, size, rule) in layout.entries() {
            let (address, number) =
                (self.area() + u64::from(offset), u64::from(context::number(frame, rule)));
            // SAFETY: the member lies in the area.
            Size::from_bytes(size.into())
                .into_iter()
                .for_each(|size| unsafe { memory::store(address, size, number) });
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
            self.returned = r0 as u32;
            rules.meaning.code(r0)
        })
    }

    /// The return value of the last packet's program, if it is of a type whose frames have another code than that
    /// ([`Meaning::translated`](paceline_spec::Meaning::translated)), and ran over that packet alone.
    #[must_use]
    pub fn returned(&self) -> u32 {
        self.returned
    }

    /// Address of the packet's own area.
    pub fn area(&self) -> u64 {
        self.area.as_ptr() as u64
    }

    /// The `sk_buff` of the last program's packet, if programs of its type write one.
    #[must_use]
    pub fn sk_buff(&self) -> SkBuff {
        let words = self.area.each_ref().map(|word| word.load(Ordering::Relaxed));
        // SAFETY: both have this size, and any bytes are integers, which all members are.
        unsafe { std::mem::transmute::<[u64; SkBuff::WORDS], SkBuff>(words) }
    }

    /// Changes the packet's own area.
    pub fn set_sk_buff(&mut self, skb: SkBuff) {
        // SAFETY: as above; the area has no padding.
        let words = unsafe { std::mem::transmute::<SkBuff, [u64; SkBuff::WORDS]>(skb) };
        for (word, value) in self.area.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Sets what packets arrive with in their own area: all but a tunnel key.
    pub fn set_arriving(&mut self, mut skb: SkBuff) {
        (skb.has_tunnel, skb.behind) = (0, 0);
        // SAFETY: as above.
        self.arriving = unsafe { std::mem::transmute::<SkBuff, [u64; SkBuff::WORDS]>(skb) };
    }

    /// What packets arrive with in their own area.
    #[must_use]
    pub fn arriving(&self) -> SkBuff {
        // SAFETY: both have this size, and any bytes are integers, which all members are.
        unsafe { std::mem::transmute::<[u64; SkBuff::WORDS], SkBuff>(self.arriving) }
    }

    /// Zeroes the stack frame of the function at a call depth, which starts at 0.
    #[inline]
    pub fn clear_stack_frame(&self, depth: usize) {
        let words = STACK_FRAME / 8;
        let end = self.stack.len() - depth * words;
        self.stack[end - words..end].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Eight bytes of the stack frame at a call depth; word 0 is the one below the frame pointer.
    pub fn stack_word(&self, depth: usize, word: usize) -> Option<u64> {
        let below = (depth * STACK_FRAME / 8).checked_add(word)?.checked_add(1)?;
        let index = self.stack.len().checked_sub(below)?;
        self.stack.get(index).map(|word| word.load(Ordering::Relaxed))
    }

    /// The time that programs see on a clock, in nanoseconds.
    #[must_use]
    pub fn now(&self, clock: Clock) -> u64 {
        match self.time {
            TimeSource::System => clock.system(),
            TimeSource::Packets => self.arrivals.time(self.frame),
        }
    }

    /// The next random number: splitmix64, which accepts any seed.
    pub fn random(&mut self) -> u32 {
        next_random(&mut self.random)
    }

    /// The first random numbers of the first worker after [`seed`](Self::seed).
    #[must_use]
    pub fn randoms_of(seed: u64, count: usize) -> Vec<u32> {
        let mut state = seed;
        std::iter::repeat_with(|| next_random(&mut state)).take(count).collect()
    }

    /// Copies bytes from an unchecked address, and returns the number of readable bytes. On every engine a program may read the
    /// packet, its connections, values of its maps and the stack of the running function.
    pub(crate) fn read_unchecked(&self, address: u64, bytes: &mut [u8]) -> usize {
        let own = match &self.regions {
            Some(regions) => {
                let (maps, end) = (&*regions.maps, regions.frame_pointer);
                readable_at(address, bytes.len(), maps, end - STACK_FRAME as u64..end)
            }
            // SAFETY: engines set the readable memory before they run a program that formats text.
            None => unsafe { self.readable.at(address, bytes.len()) },
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
        let offset_in = |start: u64| usize::try_from(address.checked_sub(start)?).ok();
        let copied = self.connections.iter().any(|connection| {
            let offset = offset_in(connection.record().addr() as u64);
            offset.is_some_and(|offset| connection.copy_record(offset, bytes))
        });
        let copied =
            copied || self.kernel_context.as_ref().is_some_and(|context| context.copy(address, bytes));
        // SAFETY: the frame is null or the run's, and only the helper uses it during the call.
        let Some(frame) = (unsafe { self.frame.as_ref() }).filter(|_| !copied) else { return copied };
        [(frame.data(), frame.packet()), (frame.data_meta(), frame.metadata())].into_iter().any(
            |(start, there)| {
                let end = |offset: usize| offset.checked_add(bytes.len());
                let found = offset_in(start as u64).and_then(|offset| there.get(offset..end(offset)?));
                found.inspect(|found| bytes.copy_from_slice(found)).is_some()
            },
        )
    }

    /// Ends a run with a fault; returns the value of `r0`.
    #[cold]
    pub fn fail(&mut self, fault: Box<Fault>) -> u64 {
        self.fault = Some(fault);
        self.ends_specially = true;
        0
    }

    /// Ends a run for a CPU that the program's per-CPU arrays lack.
    #[cold]
    pub fn lacks_cpu(&mut self) -> u64 {
        let kind = FaultKind::NoCpu(self.cpu);
        self.fail(Box::new(Fault { slot: 0, kind, tail_called: None }))
    }

    /// Takes the fault of a run that has ended, and resumes a panic. Afterwards the host has no state of the run.
    #[cold]
    pub fn take_fault(&mut self) -> Option<Box<Fault>> {
        let fault = self.fault.take();
        self.ends_specially = false;
        self.panic.take().map_or(fault, |panic| resume_unwind(panic))
    }

    /// Resumes a panic, after a run that returned its fault itself.
    #[inline]
    pub fn resume_panic(&mut self) {
        if self.panic.is_some() {
            self.take_fault();
        }
    }

    /// Calls an embedder's callback, unless one has panicked in this run. Returns whether the callback returned.
    fn call_out(&mut self, call: impl FnOnce(&mut Self)) -> bool {
        if self.panic.is_some() {
            return false;
        }
        let result = catch_unwind(AssertUnwindSafe(|| call(self)));
        result.map_err(|panic| self.wait_with(panic)).is_ok()
    }

    #[cold]
    fn wait_with(&mut self, panic: Box<dyn Any + Send>) {
        self.panic = Some(panic);
        if self.fault.is_none() {
            self.fail(Box::new(Fault { slot: 0, kind: FaultKind::Panicked, tail_called: None }));
        }
    }

    /// Writes one trace. Errors are ignored: programs do not depend on the receiver.
    pub fn trace(&mut self, text: &[u8]) {
        self.call_out(|host| drop(host.trace.write_all(text)));
    }

    /// The origin of an event of the running program.
    pub fn origin(&mut self) -> Origin {
        let (packet, time_ns) = (self.arrivals.number(self.frame), self.now(Clock::Monotonic));
        let received_ns = self.arrivals.received(self.frame);
        Origin { packet, cpu: self.cpu() as u32, time_ns, received_ns }
    }

    /// Sends an event; false if there is no receiver.
    pub fn event(&mut self, map: &str, cpu: u32, data: &[u8], captured: &[u8]) -> bool {
        let Origin { packet, time_ns, received_ns, .. } = self.origin();
        let event = Event { map, cpu, packet, time_ns, received_ns, data, captured };
        self.events.is_some()
            && self.call_out(|host| host.events.iter_mut().for_each(|events| events(&event)))
    }
}
