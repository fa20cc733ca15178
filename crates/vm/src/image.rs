//! A program as an engine runs it.
//!
//! There is one way to call a program, whatever engine it was made for: as the function that its image names. So
//! programs of different engines can follow each other in tail calls, and whoever runs one does not ask which it is.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use paceline_exec::CodeBlock;
use paceline_frame::Frame;
use paceline_isa::{Code, Imm64, Insn};
use paceline_maps::Map;
use paceline_spec::context::Layout;
use paceline_spec::{Meaning, ProgramKind, ProgramSpec, Rules};

use crate::engine::Engine;
use crate::host::Host;
use crate::later::CallbackCode;
use crate::threaded::Operations;

/// An argument register that nothing was put into.
pub(crate) type Unset = MaybeUninit<u64>;

/// How programs are called: with the context in the first argument (the packet's [`Frame`](paceline_frame::Frame),
/// whatever the program's type) and the address of the [`Image`] in the second. The registers are those of a call to
/// a helper: `r1` to `r5`, and the host.
pub(crate) type Entry = unsafe extern "C" fn(u64, u64, Unset, Unset, Unset, &mut Host) -> u64;

/// How bursts of one frame or more are run: with the address of the first frame, the address past the last one, and the
/// address of the image.
/// Each frame gets what the program returned for it. It gives the address of the frame at which a run failed, with the
/// fault in the host, and otherwise the address past the last frame.
pub(crate) type BurstEntry = unsafe extern "C" fn(u64, u64, u64, Unset, Unset, &mut Host) -> u64;

/// Programs made so far in this process.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

/// What programs of a type have beyond a frame and a verdict in it; most have nothing.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    /// The context, with fields in the packet's own area.
    pub(crate) layout: &'static Layout,
    pub(crate) meaning: Meaning,
}

impl Own {
    pub(crate) fn of(kind: ProgramKind) -> Option<Self> {
        let Rules { context, meaning, .. } = *kind.rules();
        let has = !context.area.is_empty() || meaning.translated().is_some();
        has.then_some(Self { layout: context, meaning })
    }

    /// Ends a run: does what it has left to its end, and gives what the frame gets.
    pub(crate) fn end(&self, r0: u64, host: &mut Host) -> u32 {
        host.end(self.layout);
        self.meaning.code(r0)
    }
}

/// What a frame gets when a run ends.
#[inline(always)]
pub(crate) fn end_run(own: Option<&Own>, r0: u64, host: &mut Host) -> u32 {
    own.map_or(r0 as u32, |own| own.end(r0, host))
}

/// A program made ready for an engine. Its address is the token in program arrays.
#[derive(Clone)]
pub(crate) struct Image {
    /// Where a packet enters: what belongs to a packet's run is set up, then as [`tail_entry`](Self::tail_entry).
    pub(crate) entry: Entry,
    /// Where tail calls enter.
    pub(crate) tail_entry: Entry,
    /// Where a burst enters.
    pub(crate) burst_entry: BurstEntry,
    /// Number of the program, unique in the process and never 0.
    pub(crate) id: u32,
    pub(crate) engine: Engine,
    pub(crate) spec: Arc<ProgramSpec>,
    pub(crate) code: Code,
    /// For the threaded interpreter.
    pub(crate) operations: Option<Operations>,
    pub(crate) maps: Arc<[Arc<Map>]>,
    /// The program runs for CPUs below this one only: proofs take the values of its per-CPU arrays to be there. Native
    /// code looks itself; what nobody verified finds no value where there is none.
    pub(crate) cpus: usize,
    /// What the program's type has beyond a frame and a verdict in it.
    pub(crate) own: Option<Own>,
    /// Instructions that an engine that counts runs for one packet.
    pub(crate) budget: u64,
    /// Where the functions are that timers may call, in code that is compiled.
    pub(crate) _home: Option<Arc<CallbackCode>>,
    /// The program's native code, where it has some.
    pub(crate) native: Option<Native>,
}

/// Native code of a program.
#[derive(Clone)]
pub(crate) struct Native {
    /// What keeps it.
    pub(crate) block: Arc<CodeBlock>,
    /// Address at which it is entered.
    pub(crate) entry: usize,
}

/// CPUs that a per-CPU array has values for; `None` for other maps.
pub(crate) fn cpus_of(map: &Map) -> Option<usize> {
    let is_array = map.for_programs().array_layout().is_some() && map.spec().kind.is_per_cpu();
    // User space sees the values of all CPUs side by side.
    is_array.then(|| map.user_value_size() / map.value_stride())
}

/// CPUs that all per-CPU arrays which a program names have values for: compiled code indexes these by the CPU without a
/// check, so that each way into it asks once.
pub(crate) fn least_cpus(code: &Code, maps: &[Arc<Map>]) -> usize {
    let named = code.iter().filter_map(|(_, insn)| match insn {
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => maps.get(usize::try_from(*index).ok()?),
        _ => None,
    });
    named.filter_map(|map| cpus_of(map)).min().unwrap_or(usize::MAX)
}

impl Image {
    /// Whether the program can run on a host, which has the fault otherwise.
    #[inline]
    pub(crate) fn admits(&self, host: &mut Host) -> bool {
        let admits = host.cpu() < self.cpus;
        if !admits {
            host.lacks_cpu();
        }
        admits
    }

    pub(crate) fn next_id() -> u32 {
        // After four thousand million programs numbers start over; 0 is left out.
        LAST_ID.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
    }

    /// Where packets enter whose frames get what it gives: a verdict, where the program's type has other actions.
    pub(crate) fn verdict_entry(&self) -> Entry {
        if self.own.is_some_and(|own| own.meaning.translated().is_some()) { verdict_of } else { self.entry }
    }

    /// What program arrays tell their users apart by: programs of one array must take the same context.
    pub(crate) fn kind(&self) -> u64 {
        u64::from(self.spec.kind.rules().number)
    }
}

/// Runs a packet and gives the verdict.
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
    // SAFETY: the caller vouches for the address.
    let Image { entry, own, .. } = unsafe { &*(image as *const Image) };
    // SAFETY: the caller vouches for it.
    let r0 = unsafe { entry(context, image, r3, r4, r5, host) };
    u64::from(end_run(own.as_ref(), r0, host))
}

/// Runs the packets of a burst one by one, for engines without a loop of their own.
///
/// # Safety
/// The frames must be those of a burst that nothing else uses during the call, and `image` the address of an image.
pub(crate) unsafe extern "C" fn packet_by_packet(
    first: u64,
    end: u64,
    image: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    let unset = Unset::uninit();
    // SAFETY: the caller vouches for the address.
    let Image { entry, own, .. } = unsafe { &*(image as *const Image) };
    let mut frame = first;
    while frame != end {
        // SAFETY: the frame is one of the burst's, and the image is the entry's own.
        let r0 = unsafe { entry(frame, image, unset, unset, unset, host) };
        if host.fault.is_some() {
            return frame;
        }
        let code = end_run(own.as_ref(), r0, host);
        // SAFETY: as above; the run has ended.
        unsafe { &mut *(frame as *mut Frame) }.set_code(code);
        frame += size_of::<Frame>() as u64;
    }
    end
}
