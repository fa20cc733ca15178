//! Programs ready to run.

use std::num::NonZeroU64;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use paceline_epoch::{Domain, Reader, Stalled};
use paceline_frame::{Burst, Frame, FrameMut};
use paceline_isa::{Callee, Code, Imm64, Insn};
use paceline_maps::{Map, MapUser, Owner};
use paceline_spec::helper::Helper;
use paceline_spec::{Errno, ProgramSpec};

use crate::engine::Engine;
use crate::fault::Fault;
use crate::form::{Form, ProgramError, check};
use crate::host::Host;
use crate::image::{self, BurstEntry, Entry, Image, Own, Unset};
use crate::interpreter::{burst_entry, entry, tail_entry};
use crate::observe::Observed;
use crate::plain::{self, Plain};
use crate::threaded;

/// Instructions that a program may run for one packet before it is taken to loop for ever: far more than the
/// million that the kernel's verifier simulates, and a fraction of a second.
pub const DEFAULT_BUDGET: u64 = 1 << 24;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `r0` when the program exited.
    pub r0: u64,
    /// Instructions executed.
    pub instructions: u64,
}

/// A fault in the middle of a burst. The packets before have their verdicts, the others were not looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {index} of the burst: {fault}")]
pub struct BurstFault {
    /// Index of the packet in the burst.
    pub index: usize,
    /// What happened.
    #[source]
    pub fault: Box<Fault>,
}

impl BurstFault {
    /// That of the first packet.
    #[cold]
    pub(crate) fn of_first(fault: Box<Fault>) -> Self {
        Self { index: 0, fault }
    }
}

/// A program bound to its maps, ready to run.
#[derive(Clone)]
pub struct Program {
    /// Where a single packet enters: that of the image, one load nearer, unless it must be pinned first.
    pub(crate) entry: Entry,
    /// Address of the image.
    pub(crate) token: u64,
    pub(crate) image: Arc<Image>,
    /// That of the image.
    own: Option<Own>,
    /// Whether it can come to programs or elements of maps that others may take away meanwhile.
    pub(crate) pins: bool,
    /// Keeps the programs in the maps that it uses.
    _tables: Arc<[MapUser]>,
}

/// An image in a program array. Who read its token before it went may still run it.
struct Installed(Option<Arc<Image>>);

impl Drop for Installed {
    fn drop(&mut self) {
        if let Some(image) = self.0.take() {
            Domain::global().retire(image);
        }
    }
}

/// A program cannot be put into a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The map holds no programs.
    #[error("the map is no program array")]
    NoProgramArray,
    /// The index is out of range.
    #[error("index {index} is not below the map's {entries} entries")]
    Index {
        /// Index.
        index: u32,
        /// Entries of the map.
        entries: usize,
    },
    /// The other programs that use the map are of another type.
    #[error("the map is used by programs of another type")]
    Kind,
    /// User space may not change the map: `EPERM`.
    #[error("the map is frozen, or user space may only read it: {0}")]
    Refused(Errno),
    /// Workers that stall keep too much of what was replaced before.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl Program {
    /// Binds a program to its maps, which its instructions name by index, for the plain interpreter.
    ///
    /// Only the form is checked: that every slot decodes, every jump leads to an instruction, every helper and map
    /// is there. What the program does at run time is checked as it runs.
    ///
    /// # Errors
    /// [`ProgramError`] names the first instruction at fault.
    pub fn new(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, ProgramError> {
        Self::checked(spec, maps, Form::Packet, usize::MAX)
    }

    /// A program for the plain interpreter, which runs for CPUs below a number.
    pub(crate) fn checked(
        spec: Arc<ProgramSpec>,
        maps: Vec<Arc<Map>>,
        form: Form<'_>,
        cpus: usize,
    ) -> Result<Self, ProgramError> {
        let code = check(&spec, &maps, form)?;
        let image = Image {
            entry: entry::<Plain>,
            tail_entry: tail_entry::<Plain>,
            burst_entry: burst_entry::<Plain>,
            id: Image::next_id(),
            engine: Engine::Plain,
            own: Own::of(spec.kind),
            spec,
            code,
            operations: None,
            cpus,
            maps: maps.into(),
            budget: DEFAULT_BUDGET,
            _home: None,
            native: None,
        };
        Self::with_image(image)
    }

    /// A program that nobody verified, as native code that checks every access as it happens. Otherwise as [`new`](Self::new).
    ///
    /// # Errors
    /// [`LoadError`](crate::LoadError): it is malformed, or there is no native code on this machine.
    #[cfg(feature = "testing")]
    pub fn checked_jit(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, crate::LoadError> {
        // SAFETY: the code is checked.
        unsafe { crate::native::load_unverified(spec, maps, Engine::CheckedJit, Form::Packet) }
    }

    /// A program of an image, as a user of its program arrays.
    pub(crate) fn with_image(image: Image) -> Result<Self, ProgramError> {
        let uses = Uses::of(&image.code, &image.maps, image.kind())?;
        let entry = if uses.pins { pinned_entry } else { image.entry };
        let image = Arc::new(image);
        let token = Arc::as_ptr(&image) as u64;
        let own = image.own;
        let program = Self { entry, token, image, own, pins: uses.pins, _tables: uses.tables.into() };
        program.announce();
        Ok(program)
    }

    /// Changes how many instructions the program may run for one packet, on engines that count.
    #[must_use]
    pub fn with_budget(mut self, instructions: u64) -> Self {
        // Nobody else has it yet, or else they keep theirs.
        match Arc::get_mut(&mut self.image) {
            Some(image) => image.budget = instructions,
            None => self.image = Arc::new(Image { budget: instructions, ..(*self.image).clone() }),
        }
        self.token = Arc::as_ptr(&self.image) as u64;
        self.announce();
        self
    }

    /// What the program was made from.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProgramSpec> {
        &self.image.spec
    }

    /// The program's maps.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.image.maps
    }

    /// The engine that runs it.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.image.engine
    }

    /// Number of the program, unique in the process and never 0: what a program array that holds it shows, and what entries of
    /// device and CPU maps name it by.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.image.id
    }

    /// Puts the program into a program array, from where it can be tail called. The array keeps it, until it is
    /// replaced or the last program and user of the array has gone.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn install(&self, map: &Map, index: u32) -> Result<(), InstallError> {
        let array = map.for_programs().prog_array().ok_or(InstallError::NoProgramArray)?;
        if !array.admits(self.image.kind()) {
            return Err(InstallError::Kind);
        }
        Domain::global().admit()?;
        let owner: Owner = Box::new(Installed(Some(self.image.clone())));
        let token = NonZeroU64::new(Arc::as_ptr(&self.image) as u64).ok_or(InstallError::NoProgramArray)?;
        // SAFETY: the token is the address of the image, which the owner keeps until no run that is pinned now is left.
        let installed = unsafe { map.for_programs().install_program(index, self.image.id, token, owner) };
        installed.map_err(|errno| match errno {
            Errno::E2BIG => InstallError::Index { index, entries: array.len() },
            errno => InstallError::Refused(errno),
        })
    }

    /// Runs the program over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made the program do what it may not.
    #[inline]
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        if let [frame] = frames {
            // SAFETY: the image is the entry's own.
            let r0 =
                unsafe { run_packet(self.entry, self.token, frame, host) }.map_err(BurstFault::of_first)?;
            self.end(frame, r0, host);
            return Ok(());
        }
        // SAFETY: the image is the entry's own.
        self.pinned(host, |host| unsafe { run_frames(self.image.burst_entry, self.token, frames, host) })
    }

    /// Lets the program run so that what it comes to stays until it is done.
    #[inline]
    pub(crate) fn pinned<T>(&self, host: &mut Host, run: impl FnOnce(&mut Host) -> T) -> T {
        if self.pins { pinned(host, run) } else { run(host) }
    }

    /// Runs the program over one packet and gives what it returned. The frame gets the verdict, by the table of the program's
    /// type ([`Meaning`](paceline_spec::Meaning)). [`Frame::code`] tells it as it is: for socket filters the number of bytes to
    /// keep, 0 to drop the packet.
    ///
    /// A socket filter sees the packet from its Ethernet header on, as on a packet socket.
    ///
    /// # Errors
    /// The packet made the program do what it may not, which verified programs never do.
    #[inline]
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<u64, Box<Fault>> {
        // SAFETY: the frame stays in its place; programs and helpers only change what it describes.
        let frame = unsafe { frame.descriptor_mut() };
        // SAFETY: the image is the program's.
        let r0 = unsafe { run_packet(self.entry, self.token, frame, host) }?;
        self.end(frame, r0, host);
        Ok(r0)
    }

    /// Ends the run of one packet whose frame has what the program returned: stores the verdict, where that is another number.
    #[inline]
    fn end(&self, frame: &mut Frame, r0: u64, host: &mut Host) {
        if let Some(own) = &self.own {
            frame.set_code(own.end(r0, host));
        }
    }

    /// Runs the program over one packet as [`run`](Self::run) does, and counts its instructions. Those of programs that
    /// it comes to by tail calls do not count. `None` on engines that run native code, which does not count.
    ///
    /// # Errors
    /// The packet made the program do what it may not.
    pub fn run_counted(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Option<Result<Exit, Box<Fault>>> {
        match &self.image.operations {
            None if self.image.engine == Engine::Plain => Some(self.run_observed(frame, host, |_| {})),
            None => None,
            Some(operations) => {
                // SAFETY: as in `run`.
                let frame: *mut Frame = unsafe { frame.descriptor_mut() };
                host.begin(frame as u64, self.image.own.as_ref());
                // SAFETY: the frame is borrowed for the run and the host runs it, and the image keeps the maps.
                let run = |host: &mut Host| unsafe {
                    threaded::run_counted(&self.image, operations, frame as u64, host)
                };
                let exit = self.pinned(host, run);
                if host.fault.is_some()
                    && let Some(fault) = host.take_fault()
                {
                    return Some(Err(fault));
                }
                let code = image::end_run(self.image.own.as_ref(), exit.r0, host);
                // SAFETY: the pointer comes from a reference that is still borrowed.
                unsafe { &mut *frame }.set_code(code);
                Some(Ok(exit))
            }
        }
    }

    /// Runs the program over one packet on the plain interpreter, whatever its engine, and `observe` looks at the machine
    /// before each instruction: for tests and traces. Programs that it comes to by tail calls are not observed. If `observe`
    /// panics, it is not called again, and the panic goes on when the run has ended: a lock that the program has is given back.
    ///
    /// # Errors
    /// The packet made the program do what it may not.
    pub fn run_observed(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        mut observe: impl FnMut(&Observed<'_>),
    ) -> Result<Exit, Box<Fault>> {
        // SAFETY: as in `run`.
        let frame: *mut Frame = unsafe { frame.descriptor_mut() };
        if !self.image.admits(host)
            && let Some(fault) = host.take_fault()
        {
            return Err(fault);
        }
        host.begin(frame as u64, self.image.own.as_ref());
        let mut panic = None;
        let observe = |observed: &Observed<'_>| {
            if panic.is_none() {
                panic = catch_unwind(AssertUnwindSafe(|| observe(observed))).err();
            }
        };
        let exit = self.pinned(host, |host| plain::run_packet(&self.image, frame as u64, host, observe));
        host.resume_panic();
        if let Ok(exit) = &exit {
            let code = image::end_run(self.image.own.as_ref(), exit.r0, host);
            // SAFETY: the pointer comes from a reference that is still borrowed.
            unsafe { &mut *frame }.set_code(code);
        }
        panic.map_or(exit, |panic| resume_unwind(panic))
    }
}

/// What a program's maps ask of those who run it.
pub(crate) struct Uses {
    /// What makes it a user of the maps that it names which hold programs.
    pub(crate) tables: Vec<MapUser>,
    /// Whether it must be pinned, because it can come to programs or elements that others may take away.
    pub(crate) pins: bool,
}

impl Uses {
    /// Of a program with a context of this type.
    pub(crate) fn of(code: &Code, maps: &[Arc<Map>], kind: u64) -> Result<Self, ProgramError> {
        // Those that it names: an object's programs of other types may use its other maps.
        let named = code.iter().filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => maps.get(usize::try_from(*index).ok()?),
            _ => None,
        });
        let is_tail_call = |insn: &Insn| matches!(insn, Insn::Call(Callee::Helper(Helper::TAIL_CALL)));
        let tail_calls = code.iter().any(|(_, insn)| is_tail_call(insn));
        let mut uses = Self { tables: Vec::new(), pins: tail_calls };
        for map in named {
            uses.pins |= map.for_programs().frees_values();
            if map.for_programs().prog_array().is_some_and(|array| !array.admits(kind)) {
                return Err(ProgramError::ProgramArray { map: map.spec().name.clone() });
            }
            uses.tables.extend(MapUser::new(map));
        }
        Ok(uses)
    }
}

/// Runs a packet, and stores in its frame what was returned.
///
/// # Safety
/// `token` must be what the entry takes.
#[inline]
unsafe fn run_packet(
    entry: Entry,
    token: u64,
    frame: &mut Frame,
    host: &mut Host,
) -> Result<u64, Box<Fault>> {
    let (frame, unset): (*mut Frame, _) = (frame, Unset::uninit());
    // SAFETY: the frame is borrowed for the run and the host runs it; the caller vouches for the token.
    let r0 = unsafe { entry(frame as u64, token, unset, unset, unset, host) };
    if host.fault.is_some() {
        return fault(host, r0);
    }
    // SAFETY: the pointer comes from a reference that is still borrowed.
    unsafe { &mut *frame }.set_code(r0 as u32);
    Ok(r0)
}

/// Runs the only packet of a burst, for which a loop would be set up in vain.
///
/// # Safety
/// As for [`run_packet`].
#[inline]
pub(crate) unsafe fn run_alone(
    entry: Entry,
    token: u64,
    frame: &mut Frame,
    host: &mut Host,
) -> Result<(), BurstFault> {
    // SAFETY: the caller vouches for the token.
    let run = unsafe { run_packet(entry, token, frame, host) };
    run.map(drop).map_err(BurstFault::of_first)
}

/// Runs a burst's frames.
///
/// # Safety
/// `token` must be what the entry takes.
#[inline]
pub(crate) unsafe fn run_frames(
    entry: BurstEntry,
    token: u64,
    frames: &mut [Frame],
    host: &mut Host,
) -> Result<(), BurstFault> {
    let frames = frames.as_mut_ptr_range();
    // SAFETY: the frames are borrowed for the call, and the caller vouches for the token.
    let reached = unsafe { enter_frames(entry, token, frames.clone(), host) };
    burst_result(frames.start as u64, reached, host)
}

/// Lets a burst's frames through an entry; says which was reached, or where the run has failed, with the fault in the host.
///
/// # Safety
/// `token` must be what the entry takes, and the frames those of a burst that nothing else uses during the call.
#[inline]
pub(crate) unsafe fn enter_frames(
    entry: BurstEntry,
    token: u64,
    frames: Range<*mut Frame>,
    host: &mut Host,
) -> u64 {
    let (first, end) = (frames.start as u64, frames.end as u64);
    // Loops are entered for one frame or more.
    if first == end {
        return end;
    }
    let unset = Unset::uninit();
    // SAFETY: the caller vouches for both.
    unsafe { entry(first, end, token, unset, unset, host) }
}

/// What became of a burst that began at a frame and came to another.
#[inline]
pub(crate) fn burst_result(first: u64, reached: u64, host: &mut Host) -> Result<(), BurstFault> {
    if host.fault.is_some() {
        return burst_fault(host, (reached - first) as usize / size_of::<Frame>());
    }
    Ok(())
}

/// Takes the fault of the run for a packet of a burst.
#[cold]
#[inline(never)]
fn burst_fault(host: &mut Host, index: usize) -> Result<(), BurstFault> {
    host.take_fault().map_or(Ok(()), |fault| Err(BurstFault { index, fault }))
}

/// Takes the fault of a run.
#[cold]
#[inline(never)]
pub(crate) fn fault(host: &mut Host, r0: u64) -> Result<u64, Box<Fault>> {
    host.take_fault().map_or(Ok(r0), Err)
}

/// Where single packets enter programs that can come to what others may take away, and that must stay until the run is done.
///
/// # Safety
/// As for the entry of the image whose address is the second argument.
unsafe extern "C" fn pinned_entry(
    context: u64,
    image: u64,
    r3: Unset,
    r4: Unset,
    r5: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for it.
    pinned(host, |host| unsafe { ((*(image as *const Image)).entry)(context, image, r3, r4, r5, host) })
}

/// Runs something so that the programs and elements of maps that it comes to stay until it is done.
#[inline]
pub(crate) fn pinned<T>(host: &mut Host, run: impl FnOnce(&mut Host) -> T) -> T {
    let reader: *mut Reader = &mut host.reader;
    // SAFETY: the host is borrowed until this returns, and what runs has no way back to here with the same host: nothing
    // else uses its reader while it is pinned.
    let _pin = unsafe { &mut *reader }.pin();
    run(host)
}
