//! Programs ready to run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use paceline_frame::{Burst, Frame, FrameMut, Verdict};
use paceline_maps::{Map, MapUser};
use paceline_runtime::fault::Fault;
#[cfg(feature = "testing")]
use paceline_runtime::fault::FaultKind;
use paceline_runtime::host as runtime;
use paceline_runtime::interpreter::entry::entries;
#[cfg(feature = "testing")]
use paceline_runtime::interpreter::image::{Entries, Native};
use paceline_runtime::interpreter::image::{Entry, Exit, Image, Unset};
use paceline_runtime::interpreter::observe::{Observed, Steer};
use paceline_runtime::interpreter::plain::{self, Plain};
use paceline_spec::ProgramSpec;

use crate::engine::Engine;
use crate::form::{Form, MalformedProgram, check};
use crate::host::Host;
use crate::install::{InstallError, install};
use crate::look_ahead::{LookAhead, NoSlice};
use crate::packet_entry::entry_of;
use crate::run::{BurstFault, run_frames};
use crate::uses::Uses;

/// Whether bursts run in stages.
#[derive(Clone)]
struct Stages {
    asked: LookAhead,
    /// Why they run without look-ups ahead, if they do.
    no_slice: Option<Arc<NoSlice>>,
}

/// A program bound to its maps, ready to run.
///
/// | to run | use |
/// |---|---|
/// | a burst, on the program's engine | [`run_burst`](Self::run_burst) |
/// | a packet, on the program's engine | [`run`](Self::run), and [`run_raw`](Self::run_raw) for its value |
/// | a packet, counting instructions, if the engine does | [`run_counted`](Self::run_counted) |
/// | a packet, plainly, watching each instruction | [`run_observed`](Self::run_observed) |
/// | a packet, plainly, choosing the sides of branches | [`run_steered`](Self::run_steered) |
/// | a packet, plainly, executing what a test says | `run_driven`, with the feature `testing` |
///
/// The first two rows enter the engine's code; all others are one run of the plain interpreter, whatever the program's engine.
#[derive(Clone)]
pub struct Program {
    /// Entry of single packets: a copy of the image's, which saves a load, or one that pins the run first, or has its value translated.
    pub(crate) entry: Entry,
    /// Address of the image.
    pub(crate) token: u64,
    pub(crate) image: Arc<Image>,
    engine: Engine,
    stages: Stages,
    /// Why it is interpreted although native code was asked for.
    #[cfg(feature = "jit")]
    pub(crate) unsupported: Option<paceline_compiler::native::Unsupported>,
    /// Whether runs are pinned, because others may remove programs or elements of maps that the program uses.
    pub(crate) pins: bool,
    /// Keeps the programs in the maps that the program uses.
    _tables: Arc<[MapUser]>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.image.spec.name)
            .field("engine", &self.engine)
            .field("id", &self.image.id)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// Binds a program to its maps, which its instructions name by index, for the plain interpreter.
    ///
    /// Only the form is checked: that every slot decodes, every jump leads to an instruction, every helper and map
    /// exists. Everything else is checked at run time.
    ///
    /// # Errors
    /// [`MalformedProgram`] names the first instruction at fault.
    pub fn new(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, MalformedProgram> {
        Self::checked(spec, maps, Form::Packet)
    }

    /// A program for the plain interpreter.
    pub(crate) fn checked(
        spec: Arc<ProgramSpec>,
        maps: Vec<Arc<Map>>,
        form: Form<'_>,
    ) -> Result<Self, MalformedProgram> {
        let code = check(&spec, &maps, form)?;
        let entries = entries::<Plain>(spec.kind);
        let image = Image::new(spec, code, maps.into(), entries);
        Self::with_image(image, Engine::Plain)
    }

    /// A program of an image, as a user of its program arrays.
    pub(crate) fn with_image(image: Image, engine: Engine) -> Result<Self, MalformedProgram> {
        let uses = Uses::of(&image.code, &image.maps, image.kind())?;
        let entry = entry_of(&image, uses.pins);
        let image = Arc::new(image);
        let token = Arc::as_ptr(&image) as u64;
        let stages = Stages { asked: LookAhead::Never, no_slice: Some(Arc::new(NoSlice::NotAsked)) };
        let program = Self {
            entry,
            token,
            image,
            engine,
            stages,
            #[cfg(feature = "jit")]
            unsupported: None,
            pins: uses.pins,
            _tables: uses.tables.into(),
        };
        program.announce();
        Ok(program)
    }

    /// Changes how many instructions the program may run for one packet, on engines that count. If others have the program too, or may
    /// find it by its number, they keep it as it was, and this is another program with a [number](Self::id) of its own.
    #[must_use]
    pub fn with_budget(mut self, instructions: u64) -> Self {
        match Arc::get_mut(&mut self.image) {
            Some(image) => image.budget = instructions,
            None => self.become_another(Image { budget: instructions, ..(*self.image).clone() }),
        }
        self
    }

    /// Takes another image, with a number of its own: the earlier image may have other owners, and entries that name it.
    fn become_another(&mut self, image: Image) {
        self.image = Arc::new(Image { id: Image::next_id(), ..image });
        self.token = self.image.token();
        self.announce();
    }

    /// The same with an image that differs in how bursts run.
    #[cfg(feature = "jit")]
    pub(crate) fn with_bursts_of(
        mut self,
        image: Image,
        look_ahead: LookAhead,
        no_slice: Option<NoSlice>,
    ) -> Self {
        self.become_another(image);
        self.stages = Stages { asked: look_ahead, no_slice: no_slice.map(Arc::new) };
        self
    }

    /// The setting of look-ups ahead; [`slice`](Self::slice) says whether there are some.
    #[must_use]
    pub fn look_ahead(&self) -> LookAhead {
        self.stages.asked
    }

    /// The slice of the program that runs ahead of bursts, if there is one.
    #[must_use]
    pub fn slice(&self) -> Option<&ProgramSpec> {
        self.image.staged.as_ref().map(|staged| &*staged.ahead.slice().spec)
    }

    /// Why there is no [`slice`](Self::slice); `None` if there is one.
    #[must_use]
    pub fn no_slice(&self) -> Option<&NoSlice> {
        self.stages.no_slice.as_deref()
    }

    /// The specification that the program was made from.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProgramSpec> {
        &self.image.spec
    }

    /// The program's maps.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.image.maps
    }

    /// The engine that runs the program.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Number of the program, unique in the process and never 0. User space reads it from a program array, and entries of
    /// device and CPU maps name the program by it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.image.id
    }

    /// Stores the program in a program array, for tail calls. The array keeps it until it is
    /// replaced, or until the last program and user of the array is dropped.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn install(&self, map: &Map, index: u32) -> Result<(), InstallError> {
        install(&self.image, map, index)
    }

    /// Runs the program over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    #[inline]
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let host = &mut host.runtime;
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        if let [frame] = frames {
            return self.run_frame(frame, host).map(drop).map_err(BurstFault::of_only);
        }
        self.run_several(frames, host)
    }

    /// Runs the packets of a longer burst: a function of its own, so that a single packet saves no registers for it.
    #[inline(never)]
    fn run_several(&self, frames: &mut [Frame], host: &mut runtime::Host) -> Result<(), BurstFault> {
        if let Err(fault) = host.admit(&self.image.per_cpu) {
            return Err(BurstFault::of_all(frames, fault));
        }
        // SAFETY: the image is the entry's own.
        self.pinned(host, |host| unsafe { run_frames(self.image.entries.burst, self.token, frames, host) })
    }

    /// Runs something pinned, if the program needs it.
    #[inline]
    pub(crate) fn pinned<T>(&self, host: &mut runtime::Host, run: impl FnOnce(&mut runtime::Host) -> T) -> T {
        // SAFETY: programs do not pin.
        if self.pins { unsafe { host.pinned(run) } } else { run(host) }
    }

    /// Runs the program over one packet and returns its verdict, by the table of the program's type
    /// ([`Meaning`](paceline_spec::Meaning)); values that are no verdict count as aborted. The frame has the verdict too.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use paceline_engine::{Host, Program};
    /// # use paceline_frame::{Burst, FrameMeta, Verdict};
    /// # use paceline_spec::{ProgramKind, ProgramSpec};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let code = paceline_isa::assemble("r0 = 2\n exit", &())?; // TC_ACT_SHOT
    /// let spec = ProgramSpec::new("shot", ProgramKind::SchedCls, code.encode()?);
    /// let shot = Program::new(Arc::new(spec), Vec::new())?;
    /// let mut burst = Burst::default();
    /// burst.push(&[0; 60], FrameMeta::default())?;
    /// let mut host = Host::default();
    /// assert_eq!(shot.run(&mut burst.frame_mut(0), &mut host)?, Verdict::Drop);
    /// assert_eq!(shot.run_raw(&mut burst.frame_mut(0), &mut host)?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The run ended with a fault, which those of verified programs never do.
    #[inline]
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<Verdict, Box<Fault>> {
        self.run_raw(frame, host)?;
        Ok(self.spec().kind.rules().meaning.verdict(frame.code()))
    }

    /// Runs the program over one packet and returns its value, `r0`. The frame gets the verdict as with [`run`](Self::run);
    /// [`Frame::code`] is the stored number: for socket filters the number of bytes to keep, 0 to drop the packet.
    ///
    /// A socket filter sees the packet from its Ethernet header on, as on a packet socket.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    #[inline]
    pub fn run_raw(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<u64, Box<Fault>> {
        let host = &mut host.runtime;
        // SAFETY: the frame stays in its place; programs and helpers only change what it describes.
        self.run_frame(unsafe { frame.descriptor_mut() }, host)
    }

    #[inline]
    fn run_frame(&self, frame: &mut Frame, host: &mut runtime::Host) -> Result<u64, Box<Fault>> {
        let frame: *mut Frame = frame;
        let unset = Unset::uninit();
        // SAFETY: the frame is borrowed for the run and the host runs it; the image is the program's.
        let r0 = unsafe { (self.entry)(frame as u64, self.token, unset, unset, unset, host) };
        // SAFETY: the pointer comes from a reference that is still borrowed.
        let frame = unsafe { &mut *frame };
        if host.run.ends_specially {
            self.end_specially(frame, r0, host)?;
        } else {
            frame.set_code(r0 as u32);
        }
        Ok(r0)
    }

    /// Ends a run with a fault, or with a return value that is no verdict.
    #[cold]
    #[inline(never)]
    fn end_specially(&self, frame: &mut Frame, r0: u64, host: &mut runtime::Host) -> Result<(), Box<Fault>> {
        if host.run.fault.is_some() {
            // Before a panic can go on.
            frame.abort();
        }
        if let Some(fault) = host.run.take_fault() {
            return Err(fault);
        }
        frame.set_code(host.end_run(self.image.rules.as_ref(), r0));
        Ok(())
    }

    /// Runs the program over one packet as [`run`](Self::run) does, and counts its instructions. Those of programs that
    /// it tail calls do not count. `None` for engines that do not count: all but the plain interpreter.
    ///
    /// # Errors
    /// The run ended with a fault.
    pub fn run_counted(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Option<Result<Exit, Box<Fault>>> {
        (self.engine == Engine::Plain).then(|| self.run_observed(frame, host, |_| {}))
    }

    /// Runs the program over one packet on the plain interpreter, whatever its engine, and `observe` looks at the machine
    /// before each instruction: for tests and traces. Tail called programs are not observed. If `observe`
    /// panics, it is not called again, and the panic is resumed when the run has ended, which releases a lock that the program holds.
    ///
    /// # Errors
    /// The run ended with a fault.
    pub fn run_observed(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        mut observe: impl FnMut(&Observed<'_>),
    ) -> Result<Exit, Box<Fault>> {
        let id = self.id();
        self.run_steered(frame, host, |observed| {
            if observed.program_id() == id {
                observe(observed);
            }
            Steer::Follow
        })
    }

    /// As [`run_observed`](Self::run_observed), also of the programs that are tail called, and `steer` may take the other side of a
    /// conditional jump. Such a run may end in a fault, and stays within the memory that the program may touch.
    ///
    /// # Errors
    /// The run ended with a fault.
    pub fn run_steered(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        mut steer: impl FnMut(&Observed<'_>) -> Steer,
    ) -> Result<Exit, Box<Fault>> {
        let mut panic = None;
        let mut observe = |observed: &Observed<'_>| {
            if panic.is_some() {
                return Steer::Follow;
            }
            match catch_unwind(AssertUnwindSafe(|| steer(observed))) {
                Ok(steer) => steer,
                Err(payload) => {
                    panic = Some(payload);
                    Steer::Follow
                }
            }
        };
        // SAFETY: `run_plainly` has begun the packet's run.
        let run =
            |host: &mut runtime::Host| unsafe { plain::run_packet(&self.image, host, Some(&mut observe)) };
        let exit = self.run_plainly(frame, host, run);
        panic.map_or(exit, |panic| resume_unwind(panic))
    }

    /// Begins a run of the plain interpreter's, lets `run` make it, and ends it.
    fn run_plainly(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        run: impl FnOnce(&mut runtime::Host) -> Result<Exit, Box<Fault>>,
    ) -> Result<Exit, Box<Fault>> {
        let host = &mut host.runtime;
        // SAFETY: as in `run`.
        let frame = unsafe { frame.descriptor_mut() };
        if let Err(fault) = host.admit(&self.image.per_cpu) {
            frame.abort();
            return Err(fault);
        }
        let frame: *mut Frame = frame;
        // SAFETY: the frame is borrowed for the run.
        unsafe { host.begin(frame, self.image.rules.as_ref()) };
        let exit = self.pinned(host, run);
        // SAFETY: the pointer comes from a reference that is still borrowed.
        let frame = unsafe { &mut *frame };
        match &exit {
            Ok(exit) if host.run.fault.is_none() => {
                frame.set_code(host.end_run(self.image.rules.as_ref(), exit.r0));
            }
            _ => frame.abort(),
        }
        host.run.resume_panic();
        exit
    }

    /// Runs the program over one packet on the plain interpreter's machine, which `drive` lets execute instructions in place of the
    /// interpreter's loop: all accesses and calls are checked. `drive` returns the program's value.
    ///
    /// # Errors
    /// The run ended with a fault.
    #[cfg(feature = "testing")]
    pub fn run_driven(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        drive: impl FnOnce(&mut plain::Machine<'_>) -> Result<u64, FaultKind>,
    ) -> Result<u64, Box<Fault>> {
        let run = |host: &mut runtime::Host| {
            // SAFETY: `run_plainly` has begun the packet's run.
            let mut machine = unsafe { plain::Machine::on_packet(&self.image, host) };
            let r0 = drive(&mut machine);
            let fault = |kind| Box::new(Fault { slot: machine.slot, kind, tail_called: None });
            // A tail called program has stored its fault already.
            let r0 = r0.map_err(|kind| machine.host.run.fault.take().unwrap_or_else(|| fault(kind)))?;
            Ok(Exit { r0, instructions: 0 })
        };
        self.run_plainly(frame, host, run).map(|exit| exit.r0)
    }

    /// The decoded instructions.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn code(&self) -> &paceline_isa::Code {
        &self.image.code
    }

    /// The program with code and entries of an engine that only tests have. [`engine`](Self::engine) says `Threaded` then, as nothing
    /// counts its instructions.
    ///
    /// # Safety
    /// The entries must run an image of this program that has this code.
    #[cfg(feature = "testing")]
    #[must_use]
    pub unsafe fn with_entries(mut self, entries: Entries, native: Native) -> Self {
        self.become_another(Image { entries, native: Some(native), ..(*self.image).clone() });
        self.entry = entry_of(&self.image, self.pins);
        self.engine = Engine::Threaded;
        self
    }
}

/// A program of the threaded interpreter with dispatch by a `match`; `None` if it is not one. For measurements
/// of handlers that jump to each other.
#[cfg(feature = "variants")]
#[must_use]
pub fn by_match(program: &Program) -> Option<Program> {
    let image = paceline_runtime::interpreter::threaded::by_match(&program.image)?;
    Program::with_image(Image { id: Image::next_id(), ..image }, Engine::Threaded).ok()
}
