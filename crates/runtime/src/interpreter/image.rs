//! A program as an engine runs it.
//!
//! Programs of all engines are called in the same way: by the function pointer in the image. So
//! programs of different engines can tail call each other, and callers do not distinguish engines.

use std::any::Any;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::callback::CallbackCode;
use crate::host::Host;
use crate::per_cpu::PerCpuMaps;
use crate::run_rules::RunRules;
use paceline_frame::Frame;
use paceline_isa::{Callee, Code, Imm64, Insn};
use paceline_maps::{EntryProgram, Map};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

use crate::interpreter::operations::Operations;

/// An uninitialized argument register.
pub type Unset = MaybeUninit<u64>;

/// Signature of programs: the context in the first argument (the packet's [`Frame`],
/// whatever the program's type) and the address of the [`Image`] in the second. The registers are those of a call to
/// a helper: `r1` to `r5`, and the host.
pub type Entry = unsafe extern "C" fn(u64, u64, Unset, Unset, Unset, &mut Host) -> u64;

/// Signature of bursts of one frame or more: the address of the first frame, the address past the last one, and the
/// address of the image.
/// Each frame gets the program's return value. The result is the address of the frame at which a run failed, with the
/// fault in the host, and otherwise the address past the last frame.
pub type BurstEntry = unsafe extern "C" fn(u64, u64, u64, Unset, Unset, &mut Host) -> u64;

/// Instructions that a program may run for one packet before the run fails as endless: far more than the
/// million that the kernel's verifier simulates, and a fraction of a second.
pub const DEFAULT_BUDGET: u64 = 1 << 24;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `r0` when the program exited.
    pub r0: u64,
    /// Number of executed instructions.
    pub instructions: u64,
}

/// Number of the last program of this process.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

/// Where a program is entered.
#[derive(Clone, Copy)]
pub struct Entries {
    /// Entry of packets: begins the run, then as that of tail calls.
    pub packet: Entry,
    /// Entry of tail calls.
    pub tail: Entry,
    /// Entry of bursts.
    pub burst: BurstEntry,
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").finish_non_exhaustive()
    }
}

/// A program made ready for an engine. Its address is the token in program arrays.
#[derive(Clone)]
pub struct Image {
    /// Where it is entered.
    pub entries: Entries,
    /// Number of the program, unique in the process and never 0.
    pub id: u32,
    /// The specification that the program was made from.
    pub spec: Arc<ProgramSpec>,
    /// The decoded instructions.
    pub code: Code,
    /// Operations, for the threaded interpreter.
    pub operations: Option<Operations>,
    /// Whether a tail call from the threaded interpreter continues in the operations on the same machine.
    pub shares_machine: bool,
    /// The maps, in the order of the program's indices.
    pub maps: Arc<[Arc<Map>]>,
    /// The per-CPU maps that the program may use: it runs where the host has their CPU.
    pub per_cpu: PerCpuMaps,
    /// Rules of the program's type beyond the frame with its verdict.
    pub rules: Option<RunRules>,
    /// Maximum number of instructions per packet, on engines that count.
    pub budget: u64,
    /// The functions that timers may call, in compiled code.
    pub callbacks: Option<Arc<CallbackCode>>,
    /// The program's native code, if any.
    pub native: Option<Native>,
    /// Look-ups ahead of its bursts; its entry of bursts makes them then.
    pub staged: Option<Staged>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").finish_non_exhaustive()
    }
}

/// Look-ups ahead of a burst.
pub struct Ahead {
    pub(super) slice: Image,
    pub(super) maps: Box<[Arc<Map>]>,
    pub(super) from_bytes: u64,
    pub(super) from_packets: u64,
    /// Whether it is found by trials if they pay.
    pub(super) tries: bool,
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

/// A program or chain whose bursts run in stages.
#[derive(Clone)]
pub struct Staged {
    /// What comes before.
    pub ahead: Arc<Ahead>,
    /// Its own entry of bursts.
    pub burst_entry: BurstEntry,
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged").finish_non_exhaustive()
    }
}

/// Native code of a program.
#[derive(Clone)]
pub struct Native {
    /// The memory of the code, as the compiler's runtime knows it.
    pub block: Arc<dyn Any + Send + Sync>,
    /// Address at which the code is entered.
    pub entry: usize,
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").finish_non_exhaustive()
    }
}

/// CPUs that a per-CPU array has values for; `None` for other maps.
pub fn cpus_of(map: &Map) -> Option<usize> {
    let is_array = map.for_programs().array_layout().is_some() && map.spec().kind.is_per_cpu();
    // User space reads the values of all CPUs at once.
    is_array.then(|| map.user_value_size() / map.value_stride())
}

/// The per-CPU maps of a program: those that it names, and if it makes tail calls all of its object, which the programs that it calls may
/// name.
pub fn per_cpu_maps(code: &Code, maps: &[Arc<Map>]) -> PerCpuMaps {
    let owners = |map: &Arc<Map>| map.for_programs().cpu_owners().cloned();
    let is_tail_call = |insn: &Insn| matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL)));
    if code.iter().any(|(_, insn)| is_tail_call(insn)) {
        return PerCpuMaps::new(maps.iter().filter_map(owners));
    }
    let named = code.iter().filter_map(|(_, insn)| match insn {
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => maps.get(usize::try_from(*index).ok()?),
        _ => None,
    });
    PerCpuMaps::new(named.filter_map(owners))
}

/// Whether a program sets functions of its own as timer callbacks.
#[must_use]
pub fn sets_callbacks(code: &Code) -> bool {
    let sets =
        |(_, insn): (usize, &Insn)| matches!(insn, Insn::Call(Callee::Helper(Helper::TIMER_SET_CALLBACK)));
    code.iter().any(sets)
}

impl Image {
    /// A program with these entries, and nothing that only some engines have. The fields of an engine are set after it:
    /// `Image { native, ..Image::new(..) }`.
    #[must_use]
    pub fn new(spec: Arc<ProgramSpec>, code: Code, maps: Arc<[Arc<Map>]>, entries: Entries) -> Self {
        Self {
            entries,
            id: Self::next_id(),
            rules: RunRules::of(spec.kind),
            spec,
            per_cpu: per_cpu_maps(&code, &maps),
            code,
            operations: None,
            shares_machine: false,
            maps,
            budget: DEFAULT_BUDGET,
            callbacks: None,
            native: None,
            staged: None,
        }
    }

    /// Whether the program can run on a host; the host has the fault otherwise.
    #[inline]
    pub fn admits(&self, host: &mut Host) -> bool {
        host.is_admitted(&self.per_cpu) || self.claims(host)
    }

    #[cold]
    #[inline(never)]
    fn claims(&self, host: &mut Host) -> bool {
        let claimed = host.admit_within(&self.per_cpu).map_err(|fault| host.fail(fault));
        claimed.is_ok()
    }

    /// The next number of a program. Numbers start over after 2^32 programs; 0 is left out.
    #[must_use]
    pub fn next_id() -> u32 {
        LAST_ID.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
    }

    /// Its address, which entries take.
    #[must_use]
    pub fn token(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Entry of packets that returns a verdict, also for program types whose return values are other numbers.
    pub fn verdict_entry(&self) -> Entry {
        if self.translates() { verdict_of } else { self.entries.packet }
    }

    /// Whether return values of the program's type are other numbers than verdicts.
    pub fn translates(&self) -> bool {
        self.rules.is_some_and(|rules| rules.meaning.translated().is_some())
    }

    /// Key of the program type in program arrays: programs of one array must take the same context.
    pub fn kind(&self) -> u64 {
        u64::from(self.spec.kind.rules().number)
    }
}

impl Image {
    /// The maps whose entries the program was made for, if any.
    #[must_use]
    pub fn attach_of_entries(&self) -> Option<XdpAttach> {
        match self.spec.kind {
            ProgramKind::Xdp { attach: attach @ (XdpAttach::DevMap | XdpAttach::CpuMap), .. } => Some(attach),
            _ => None,
        }
    }
}

impl EntryProgram for Image {
    fn attach(&self) -> XdpAttach {
        // default: other programs are for interfaces.
        self.attach_of_entries().unwrap_or(XdpAttach::Interface)
    }
}

/// Runs a packet and returns the verdict.
///
/// # Safety
/// As for the entry of the image whose address is the second argument.
unsafe extern "C" fn verdict_of(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let Image { entries, rules, .. } = unsafe { &*(image as *const Image) };
    // SAFETY: guaranteed by the caller.
    let r0 = unsafe { (entries.packet)(context, image, r3, r4, r5, host) };
    u64::from(host.end_run(rules.as_ref(), r0))
}

/// Runs the packets of a burst one by one, for engines without a loop of their own.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call, and `image` the address of an image.
pub unsafe extern "C" fn packet_by_packet(
    first: u64,
    end: u64,
    image: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    let unset = Unset::uninit();
    // SAFETY: the address is guaranteed by the caller.
    let Image { entries, rules, .. } = unsafe { &*(image as *const Image) };
    let mut frame = first;
    while frame != end {
        // SAFETY: the frame is one of the burst's, and the image is the entry's own.
        let r0 = unsafe { (entries.packet)(frame, image, unset, unset, unset, host) };
        if host.run.fault.is_some() {
            return frame;
        }
        let code = host.end_run(rules.as_ref(), r0);
        // SAFETY: as above; the run has ended.
        unsafe { &mut *(frame as *mut Frame) }.set_code(code);
        frame += size_of::<Frame>() as u64;
    }
    end
}
