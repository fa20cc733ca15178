//! What helpers reach beyond the program's own memory: the time, random numbers, where traces and events go.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use paceline_epoch::{Domain, Reader};
use paceline_frame::{Burst, Frame};
use paceline_isa::Size;
use paceline_maps::Origin;
use paceline_network::{Connection, Network};
use paceline_spec::context::{Layout, SkBuff};

use crate::context;
use crate::fault::{Fault, FaultKind};
use crate::kernel_context::KernelContext;
use crate::machine::Machine;
use crate::memory;
use crate::readable::{Readable, longest, readable_at};
use crate::region::Regions;
use crate::run_rules::RunRules;
use crate::stack::{MAX_FRAMES, STACK_FRAME};
use crate::time::{Arrivals, Clock, TimeSource};
use crate::timers::Timers;

/// Most tail calls of one run (`MAX_TAIL_CALL_CNT`).
pub const MAX_TAIL_CALLS: u32 = 33;

/// Frames of the interpreters' stack: each program that a run comes to by a tail call may have its own calls.
const STACK_FRAMES: usize = MAX_FRAMES * (MAX_TAIL_CALLS as usize + 1);

/// What a program sends to a perf event array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Name of the map.
    pub map: &'a str,
    /// Which of its buffers the program chose, mostly that of its CPU.
    pub cpu: u32,
    /// Number of the packet that was run, from 1, if the host was told of it ([`Host::arrive`]).
    pub packet: Option<u64>,
    /// Nanoseconds of the clock that programs see.
    pub time_ns: u64,
    /// The program's data.
    pub data: &'a [u8],
    /// As much of the packet as the program asked for.
    pub captured: &'a [u8],
}

/// Receives what programs send to perf event arrays.
pub type EventSink = Box<dyn FnMut(&Event<'_>) + Send>;

/// The surroundings of one worker. Programs that run on different threads have different hosts.
pub struct Host {
    /// What the threaded interpreter runs programs in.
    pub machine: Machine,
    /// The packet that is being run; null without one. Native code that calls nothing leaves it as it was.
    pub frame: *mut Frame,
    /// Tail calls of this run.
    pub tail_calls: u32,
    /// Frames of the interpreters' stack that are in use below the running program.
    pub depth: usize,
    /// The packet's own area ([`SkBuff`]), as far as the context of the program has fields there.
    pub area: [AtomicU64; SkBuff::WORDS],
    /// Why the run that just ended has no result.
    pub fault: Option<Box<Fault>>,
    /// A panic of what the embedder gave, which waits for native code to return: that cannot be unwound. There is a fault as
    /// long as it waits.
    panic: Option<Box<dyn Any + Send>>,
    /// The memory of the running program, for helpers that are given addresses that nobody checked; unset on engines
    /// that know no regions.
    pub regions: Option<Regions>,
    /// What there is of it on these.
    pub readable: Readable,
    /// Address of the spin lock that the running program has; 0 for none.
    pub held_lock: u64,
    /// What keeps the programs and elements of maps that a run comes to.
    pub reader: Reader,
    /// The counters of the running chain, by node and verdict; null if nothing is counted.
    pub chain_counts: *mut u64,
    /// Calls that a dispatcher had no direct jump for.
    pub misses: u64,
    /// The timers that programs started on this host.
    pub timers: Timers,
    cpu: usize,
    random: u64,
    /// What hosts use that sign something for each other, such as cookies.
    secret: u64,
    network: Arc<Network>,
    /// The connections that the running program has.
    connections: Vec<Arc<Connection>>,
    /// The packet as the kernel's structures say it, from the first time on that a program asked.
    kernel_context: Option<Box<KernelContext>>,
    time: TimeSource,
    arrivals: Arrivals,
    trace: Box<dyn Write + Send>,
    events: Option<EventSink>,
    /// The stack of all functions, reused from run to run. Programs reach it by address, hence the atomics.
    stack: Box<[AtomicU64]>,
}

// SAFETY: the pointers to the frame and to maps are used during a run only, which borrows host and frame and keeps the maps.
unsafe impl Send for Host {}

/// A secret that is not to be guessed, the same for all that this process runs.
fn common_secret() -> u64 {
    static SECRET: OnceLock<u64> = OnceLock::new();
    *SECRET.get_or_init(|| RandomState::new().hash_one(()))
}

fn empty_network() -> Arc<Network> {
    static EMPTY: OnceLock<Arc<Network>> = OnceLock::new();
    EMPTY.get_or_init(Arc::default).clone()
}

impl Default for Host {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Host {
    /// A host for the worker of a number, which `bpf_get_smp_processor_id` returns and per-CPU maps go by.
    /// Traces go to standard error, events nowhere; random numbers are seeded by the time.
    #[must_use]
    pub fn new(cpu: usize) -> Self {
        let stack: Box<[AtomicU64]> =
            (0..STACK_FRAMES * STACK_FRAME / 8).map(|_| AtomicU64::new(0)).collect();
        let mut host = Self {
            machine: Machine::new(stack.as_ptr_range().end as u64),
            frame: std::ptr::null_mut(),
            tail_calls: 0,
            depth: 0,
            area: [const { AtomicU64::new(0) }; _],
            fault: None,
            panic: None,
            regions: None,
            readable: Readable::default(),
            held_lock: 0,
            reader: Domain::global().reader(),
            chain_counts: std::ptr::null_mut(),
            misses: 0,
            timers: Timers::default(),
            cpu,
            random: 0,
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

    /// Offset in bytes of the worker's number, for generated code.
    pub const OFFSET_CPU: usize = std::mem::offset_of!(Self, cpu);

    /// The worker's number.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Moves the worker to the CPU of a number, between runs: helpers and per-CPU maps go by it from then on.
    pub fn set_cpu(&mut self, cpu: usize) {
        self.cpu = cpu;
    }

    /// Sets the seed of all that is left to chance: of `bpf_get_prandom_u32`, whose numbers differ between workers, and of the
    /// secret in TCP's cookies, which is the same for all hosts of one seed. Without a seed all hosts of a process have one.
    pub fn seed(&mut self, seed: u64) {
        (self.random, self.secret) = (seed.wrapping_add(self.cpu as u64), seed);
    }

    /// The secret of what hosts sign for each other.
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// What programs see of the network, an empty namespace if nothing is set: a loopback interface that forwards nothing.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.network = network;
    }

    /// The network that programs see.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Keeps a connection for the program that gets it; gives the address of its record.
    pub fn keep_connection(&mut self, connection: Arc<Connection>) -> u64 {
        let address = connection.record().expose_provenance() as u64;
        self.connections.push(connection);
        address
    }

    /// The connection of a record that the program has.
    pub fn connection(&self, record: u64) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|connection| connection.record().addr() as u64 == record)
    }

    /// The program no longer has a connection, or has it once less.
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

    /// The packet's ends were moved.
    pub fn packet_moved(&self, frame: &Frame) {
        if let Some(context) = &self.kernel_context {
            context.follow(frame);
        }
    }

    /// Says where the time comes from that programs see; from the system's clocks if nothing is said.
    pub fn set_time(&mut self, source: TimeSource) {
        self.time = source;
    }

    /// Tells of the packets that are run next, for their times and numbers. Without it the time from packets stands still,
    /// and events have no packet's number.
    pub fn arrive(&mut self, burst: &Burst) {
        self.arrivals.arrive(burst, self.time);
    }

    /// Runs something so that the programs and elements of maps that it reads stay until it is done.
    #[inline]
    pub fn pinned<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let reader: *mut Reader = &mut self.reader;
        // SAFETY: the host is borrowed until this returns, and what runs has no way back to here with the same host: nothing
        // else uses its reader while it is pinned.
        let _pin = unsafe { &mut *reader }.pin();
        run(self)
    }

    /// Sends the lines of `bpf_trace_printk` elsewhere.
    pub fn set_trace(&mut self, trace: impl Write + Send + 'static) {
        self.trace = Box::new(trace);
    }

    /// Receives the events that programs send to perf event arrays. Without a receiver `bpf_perf_event_output` fails
    /// with `-ENOENT`, as in the kernel when no event is attached.
    pub fn set_events(&mut self, events: EventSink) {
        self.events = Some(events);
    }

    /// Address past the stack that programs on this host run on.
    pub fn stack_top(&self) -> u64 {
        self.stack.as_ptr_range().end as u64
    }

    /// Sets up what belongs to a packet's run: `context` is the address of its frame.
    #[inline]
    pub fn begin(&mut self, context: u64, rules: Option<&RunRules>) {
        self.frame = context as *mut Frame;
        self.tail_calls = 0;
        let Some(rules) = rules else { return };
        // SAFETY: the frame is the run's, which nothing else looks at yet.
        if let Some(frame) = unsafe { self.frame.as_ref() } {
            self.enter(frame, rules.layout);
        }
    }

    /// Sets up the packet's own area for programs with a context of this layout.
    pub fn enter(&mut self, frame: &Frame, layout: &Layout) {
        let words = usize::from(layout.area.start)..usize::from(layout.area.end);
        let words = self.area.get(words).unwrap_or_default();
        words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
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
            rules.meaning.code(r0)
        })
    }

    /// Address of the packet's own area.
    pub fn area(&self) -> u64 {
        self.area.as_ptr() as u64
    }

    /// What the last program left of its packet's `sk_buff`, if the program's type has one that programs write.
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

    /// Zeroes the stack frame of the function at a call depth, which starts at 0.
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

    /// The next random number: splitmix64, whose every seed is a good one.
    pub fn random(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }

    /// Copies bytes from an address that a program gave without anybody checking it; tells how many can be read. The packet, the
    /// connections that the program has, values of its maps and the stack of the running function are its to read, on every
    /// engine.
    pub fn read_unchecked(&self, address: u64, bytes: &mut [u8]) -> usize {
        let own = match &self.regions {
            Some(regions) => {
                let (maps, end) = (&*regions.maps, regions.frame_pointer);
                readable_at(address, bytes.len(), maps, end - STACK_FRAME as u64..end)
            }
            // SAFETY: whoever runs a program that prints has said what it may read.
            None => unsafe { self.readable.at(address, bytes.len()) },
        };
        // SAFETY: these bytes are the program's to read.
        unsafe { memory::copy_from(&mut bytes[..own], address) };
        if own != 0 {
            return own;
        }
        let len = longest(bytes.len(), |len| self.copy_kernel_memory(address, &mut vec![0; len]));
        self.copy_kernel_memory(address, &mut bytes[..len]);
        len
    }

    /// Copies bytes of what a kernel would have in its memory and every engine knows to be the program's to read: the packet, its
    /// context, and the connections that it has. False if they are not in one of these.
    pub fn copy_kernel_memory(&self, address: u64, bytes: &mut [u8]) -> bool {
        let offset_in = |start: u64| usize::try_from(address.checked_sub(start)?).ok();
        let copied = self.connections.iter().any(|connection| {
            let offset = offset_in(connection.record().addr() as u64);
            offset.is_some_and(|offset| connection.copy_record(offset, bytes))
        });
        let copied =
            copied || self.kernel_context.as_ref().is_some_and(|context| context.copy(address, bytes));
        // SAFETY: the frame is null or the run's, which nothing else looks at while a helper does.
        let Some(frame) = (unsafe { self.frame.as_ref() }).filter(|_| !copied) else { return copied };
        [(frame.data(), frame.packet()), (frame.data_meta(), frame.metadata())].into_iter().any(
            |(start, there)| {
                let end = |offset: usize| offset.checked_add(bytes.len());
                let found = offset_in(start as u64).and_then(|offset| there.get(offset..end(offset)?));
                found.inspect(|found| bytes.copy_from_slice(found)).is_some()
            },
        )
    }

    /// Ends a run without a result.
    #[cold]
    pub fn fail(&mut self, fault: Box<Fault>) -> u64 {
        self.fault = Some(fault);
        0
    }

    /// Ends a run for a CPU that the program's per-CPU arrays lack.
    #[cold]
    pub fn lacks_cpu(&mut self) -> u64 {
        let kind = FaultKind::NoCpu(self.cpu);
        self.fail(Box::new(Fault { slot: 0, kind, tail_called: None }))
    }

    /// Takes the fault of a run that has ended; a panic goes on here, and nothing of the run is left in the host.
    #[cold]
    pub fn take_fault(&mut self) -> Option<Box<Fault>> {
        let fault = self.fault.take();
        self.panic.take().map_or(fault, |panic| resume_unwind(panic))
    }

    /// Lets a panic go on, after a run that gave its fault itself.
    #[inline]
    pub fn resume_panic(&mut self) {
        if self.panic.is_some() {
            self.take_fault();
        }
    }

    /// Calls what the embedder gave, unless it has panicked in this run. Whether it returned.
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
        let fault = || Box::new(Fault { slot: 0, kind: FaultKind::Panicked, tail_called: None });
        self.fault.get_or_insert_with(fault);
    }

    /// Writes one trace. That the trace cannot be written is no matter of the program's.
    pub fn trace(&mut self, text: &[u8]) {
        self.call_out(|host| drop(host.trace.write_all(text)));
    }

    /// What an event of the program that runs comes from.
    pub fn origin(&mut self) -> Origin {
        let (packet, time_ns) = (self.arrivals.number(self.frame), self.now(Clock::Monotonic));
        Origin { packet, cpu: self.cpu() as u32, time_ns }
    }

    /// Sends an event, or tells that nobody listens.
    pub fn event(&mut self, map: &str, cpu: u32, data: &[u8], captured: &[u8]) -> bool {
        let Origin { packet, time_ns, .. } = self.origin();
        let event = Event { map, cpu, packet, time_ns, data, captured };
        self.events.is_some()
            && self.call_out(|host| host.events.iter_mut().for_each(|events| events(&event)))
    }
}
