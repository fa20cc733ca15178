//! Cases on our engines.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use paceline::chain::Graph;
use paceline_compiler::ir::{Module, Passes, build, optimize, parse};
use paceline_engine::{
    Chain, ChainError, CompileError, DEFAULT_BUDGET, Engine as VmEngine, EngineError, Host, LookAhead,
    Machine, MemoryProgram, OptLevel, Program,
};
use paceline_frame::{Burst, FrameMeta, FrameRef, MAX_BURST, RedirectTarget, Verdict};
use paceline_maps::Map;
use paceline_spec::{InitialValue, ProgramSpec};
use paceline_verifier::{Options, Verified, verify};

use super::interface::{Engine, Unsupported};
use super::maps::{create_maps, map_contents, set, set_map, set_program};
use crate::case::{Case, CaseKind, Change, Context, Run};
use crate::checked::{self, CheckedMemory};
use crate::ir::run_on;
use crate::kernel;
use crate::outcome::{Finished, Outcome, Ran, Refusal, Return};

/// Way of a program to its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Unverified, to the plain interpreter. This makes it the oracle of the other engines and of the verifier.
    Unverified,
    /// Unverified, to checked code.
    Checked,
    /// Verified.
    Verified(VmEngine),
    /// Verified, with packets in bursts.
    Burst(VmEngine),
    /// Verified, to native code with packets in bursts in stages: look-ups ahead, then the program.
    Staged,
    /// Verified, to native code without the passes of `paceline-compiler`.
    Unoptimized,
    /// Verified, in the form of `paceline-compiler` after all passes, on the plain interpreter's machine.
    Form,
}

impl Way {
    /// The engines of cases; the verifier with the plain interpreter is named `paceline`.
    const ALL: [Self; 10] = [
        Self::Unverified,
        Self::Checked,
        Self::Verified(VmEngine::Plain),
        Self::Verified(VmEngine::Threaded),
        Self::Verified(VmEngine::Jit),
        Self::Burst(VmEngine::Jit),
        Self::Burst(VmEngine::Threaded),
        Self::Staged,
        Self::Unoptimized,
        Self::Form,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Verified(VmEngine::Plain) => "paceline",
            Self::Verified(engine) => engine.name(),
            Self::Unverified => VmEngine::Plain.name(),
            Self::Checked => checked::NAME,
            Self::Burst(VmEngine::Jit) => "jit-burst",
            Self::Burst(_) => "threaded-burst",
            Self::Staged => "jit-staged",
            Self::Unoptimized => native_name(OptLevel::None),
            Self::Form => "ir",
        }
    }

    /// Whether packets run in bursts.
    fn is_burst(self) -> bool {
        matches!(self, Self::Burst(_) | Self::Staged)
    }

    fn verifies(self) -> bool {
        !matches!(self, Self::Unverified | Self::Checked)
    }

    /// Whether instructions are counted, and the counts compared.
    fn counts(self) -> bool {
        self == Self::Unverified
    }
}

/// An engine of ours, or two: one for the first program, one for the targets of its tail calls.
#[derive(Clone, Debug)]
pub struct OurEngine {
    name: String,
    main: Way,
    targets: Way,
}

impl OurEngine {
    /// The unverified plain interpreter.
    #[must_use]
    pub fn plain() -> Self {
        Self::of(Way::Unverified, Way::Unverified)
    }

    /// All of them: each alone, then each pair for cases with tail calls.
    pub fn all() -> impl Iterator<Item = Self> {
        let alone = Way::ALL.into_iter().map(|way| Self::of(way, way));
        // The verifier does not change the plain interpreter, and the form runs on it.
        let alike = [Way::Verified(VmEngine::Plain), Way::Form, Way::Unoptimized];
        let mixable = move || Way::ALL.into_iter().filter(move |way| !alike.contains(way));
        // Bursts make no difference to targets of tail calls.
        let targets = move || mixable().filter(|way| !way.is_burst());
        let pairs = mixable().flat_map(move |main| targets().map(move |targets| (main, targets)));
        alone.chain(
            pairs.filter(|(main, targets)| main != targets).map(|(main, targets)| Self::of(main, targets)),
        )
    }

    fn of(main: Way, targets: Way) -> Self {
        let name = if main == targets {
            main.name().to_owned()
        } else {
            format!("{}+{}", main.name(), targets.name())
        };
        Self { name, main, targets }
    }

    fn check(&self, case: &Case) -> Result<(), Unsupported> {
        // Native code of an unverified program only runs cases without errors.
        let ends_well = || case.runs.iter().all(|run| run.expect.error.is_none());
        let trusted = self.main == Way::Verified(VmEngine::Jit) && ends_well();
        if case.kind == CaseKind::Raw && (self.verifies() && !trusted || self.main.is_burst()) {
            return Err(Unsupported::RawMemory);
        }
        let compiles =
            self.main == self.targets && matches!(self.main, Way::Verified(_) | Way::Unoptimized | Way::Form);
        if case.runs.is_empty() && !compiles {
            return Err(Unsupported::NothingToRun);
        }
        Ok(())
    }

    /// For cases that only test the verdict: engines must load each accepted program, unless it needs an unsupported
    /// feature.
    fn only_load(&self, case: &Case, verified: &[Verified]) -> Result<Outcome, Unsupported> {
        let accepted = Outcome::Ran(Ran { runs: Vec::new(), maps: Vec::new() });
        if self.main == Way::Form {
            let failed = verified.iter().find_map(|verified| form(verified).err());
            return Ok(failed.map_or(accepted, |reason| Outcome::Refused(reason.into())));
        }
        if !matches!(self.main, Way::Verified(_) | Way::Unoptimized)
            || self.main == Way::Verified(VmEngine::Plain)
        {
            return Ok(accepted);
        }
        let Ok(maps) = create_maps(&case.maps, 0)? else { return Err(Unsupported::Lacks) };
        for verified in verified {
            let maps = maps.clone();
            let loaded = match self.main {
                Way::Unoptimized => load_native(verified, maps, OptLevel::None),
                Way::Verified(engine) => load_on(verified, maps, engine),
                _ => return Ok(accepted),
            };
            match loaded {
                Ok(_) => {}
                Err(EngineError::Program(_)) => return Err(Unsupported::Lacks),
                Err(error) => return Ok(Outcome::Refused(error.to_string().into())),
            }
        }
        Ok(accepted)
    }

    /// The case's programs, the first one for the first engine. The outer error is an error of the case.
    fn load(
        &self,
        case: &Case,
        verified: &[Verified],
        maps: &[Arc<Map>],
    ) -> Result<Result<Programs, String>, Unsupported> {
        if let (CaseKind::Raw, Some(spec)) = (case.kind, case.programs.first()) {
            return Ok(load_memory(self.main, spec, maps.to_vec()));
        }
        let mut programs = Vec::new();
        for (index, spec) in case.programs.iter().enumerate() {
            let way = if index == 0 { self.main } else { self.targets };
            let verified = verified.get(index);
            let verified = || verified.unwrap_or_else(|| unreachable!("all programs were verified"));
            let loaded = match way {
                Way::Verified(engine) | Way::Burst(engine) => load(verified(), maps.to_vec(), engine)?,
                Way::Staged => load(verified(), maps.to_vec(), VmEngine::Jit)?.and_then(|program| {
                    crate::staged::in_stages(program).map_err(|no_slice| no_slice.to_string())
                }),
                Way::Form => load(verified(), maps.to_vec(), VmEngine::Plain)?,
                Way::Unoptimized => available(load_native(verified(), maps.to_vec(), OptLevel::None))?,
                Way::Unverified => Program::new(Arc::new(spec.clone()), maps.to_vec())
                    .map_err(|error| paceline::with_causes(&error)),
                Way::Checked => checked::load_unverified(Arc::new(spec.clone()), maps.to_vec())
                    .map_err(|error| paceline::with_causes(&error)),
            };
            match loaded {
                Ok(program) => programs.push(program),
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Ok(Ok(Programs::Packets(programs)))
    }
}

/// The host of a case, with its own network.
fn host(case: &Case, cpu: usize) -> Host {
    let mut host = Host::new(cpu);
    if let Some(found) = &case.network {
        host.set_network(Arc::new((*found.network).clone()));
    }
    host
}

impl Engine for OurEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn answers_to(&self, name: &str) -> bool {
        let verifier = Way::Verified(VmEngine::Plain).name();
        [self.main.name(), self.targets.name()].contains(&name) || self.verifies() && name == verifier
    }

    fn concerns(&self, case: &Case) -> bool {
        // Pairs of engines only run cases with tail calls.
        self.main == self.targets || case.programs.len() > 1
    }

    fn verifies(&self) -> bool {
        self.main.verifies() || self.targets.verifies()
    }

    fn run(&self, case: &Case) -> Result<Outcome, Unsupported> {
        self.check(case)?;
        if let Some((index, reason)) = case.classic.as_ref().and_then(|classic| classic.refusal.clone()) {
            let place = index.map(|index| (0, index));
            return Ok(Outcome::Refused(Refusal { reason, place, in_our_words: true }));
        }
        let verified = match if self.verifies() && case.kind != CaseKind::Raw {
            verify_all(case)
        } else {
            Ok(Vec::new())
        } {
            Ok(verified) => verified,
            Err(refusal) => return Ok(Outcome::Refused(refusal)),
        };
        if case.runs.is_empty() {
            return self.only_load(case, &verified);
        }
        // The CPU of the kernel's runs, because programs can read its number.
        let cpu = kernel::pin().cpu();
        let maps = match create_maps(&case.maps, cpu)? {
            Ok(maps) => maps,
            Err(reason) => return Ok(Outcome::Refused(reason.into())),
        };
        let programs = match self.load(case, &verified, &maps)? {
            Ok(programs) => programs,
            Err(reason) => return Ok(Outcome::Refused(reason.into())),
        };
        let form = match (self.main, verified.first()) {
            (Way::Form, Some(main)) => match form(main) {
                Ok(form) => Some(form),
                Err(reason) => return Ok(Outcome::Refused(reason.into())),
            },
            _ => None,
        };
        let mut loaded = Loaded { case, maps, programs, host: host(case, cpu), cpu, way: self.main, form };
        Ok(match loaded.install_initial() {
            Ok(()) => Outcome::Ran(loaded.run()?),
            Err(reason) => Outcome::Refused(reason.into()),
        })
    }
}

/// Name of native code.
pub(crate) const fn native_name(level: OptLevel) -> &'static str {
    match level {
        OptLevel::Full => "jit",
        OptLevel::None => "jit-o0",
    }
}

/// A program on an engine. That of native code has its allocation of registers checked, and is not interpreted instead.
fn load_on(verified: &Verified, maps: Vec<Arc<Map>>, engine: VmEngine) -> Result<Program, EngineError> {
    match engine {
        VmEngine::Jit => load_native(verified, maps, OptLevel::Full),
        _ => Program::load(verified, maps, engine),
    }
}

/// A program as native code, whose allocation of registers is checked.
///
/// # Errors
/// As [`Program::load`].
pub fn load_native(
    verified: &Verified,
    maps: Vec<Arc<Map>>,
    level: OptLevel,
) -> Result<Program, EngineError> {
    Program::load_with_settings(verified, maps, |settings| {
        (settings.opt_level, settings.verify_allocation) = (level, true);
    })
}

/// A chain as native code, whose allocation of registers is checked.
///
/// # Errors
/// As [`Chain::load`].
pub fn load_native_chain(
    parts: &[(&Verified, Vec<Arc<Map>>)],
    graph: Graph,
    look_ahead: LookAhead,
    level: OptLevel,
) -> Result<Chain, ChainError> {
    Chain::load_with_settings(parts, graph, look_ahead, |settings| {
        (settings.opt_level, settings.verify_allocation) = (level, true);
    })
}

/// The verifier's verdict on the case's programs.
fn verify_all(case: &Case) -> Result<Vec<Verified>, Refusal> {
    let verify = |(program, spec)| {
        verify(spec, &case.maps, Some(&case.btf), &Options::default()).map_err(|refusal| Refusal {
            reason: refusal.to_string(),
            place: Some((program, refusal.slot)),
            in_our_words: true,
        })
    };
    case.programs.iter().enumerate().map(verify).collect()
}

/// A program in the form of `paceline-compiler`, after all passes.
fn form(verified: &Verified) -> Result<Module, String> {
    let mut module = build(verified).map_err(|error| paceline::with_causes(&error))?;
    optimize(&mut module, &Passes::default().checked(true)).map_err(|error| format!("{error}\n{module}"))?;
    // What is printed is what runs.
    parse(&module.to_string()).map_err(|error| format!("{error}\n{module}"))
}

fn load(
    verified: &Verified,
    maps: Vec<Arc<Map>>,
    engine: VmEngine,
) -> Result<Result<Program, String>, Unsupported> {
    available(load_on(verified, maps, engine))
}

fn available(loaded: Result<Program, EngineError>) -> Result<Result<Program, String>, Unsupported> {
    match loaded {
        Err(EngineError::Unavailable(engine)) => Err(Unsupported::Unavailable(engine)),
        Err(EngineError::Compile(CompileError::Unsupported(_))) => Err(Unsupported::Lacks),
        loaded => Ok(loaded.map_err(|error| paceline::with_causes(&error))),
    }
}

/// A program over plain memory, which cannot be verified.
#[allow(unsafe_code, reason = "the program comes from a case that says how it ends")]
fn load_memory(way: Way, spec: &ProgramSpec, maps: Vec<Arc<Map>>) -> Result<Programs, String> {
    let spec = Arc::new(spec.clone());
    let program = match way {
        Way::Checked => {
            let program = CheckedMemory::new(spec, maps).map_err(|error| paceline::with_causes(&error))?;
            return Ok(Programs::CheckedMemory(program));
        }
        Way::Unverified => MemoryProgram::new(spec, maps).map_err(|error| paceline::with_causes(&error)),
        Way::Verified(_) | Way::Burst(_) | Way::Staged | Way::Unoptimized | Way::Form => {
            // SAFETY: the case runs to an end that it states on the plain interpreter, which checks every access.
            unsafe { MemoryProgram::jit(spec, maps) }.map_err(|error| paceline::with_causes(&error))
        }
    };
    program.map(Programs::Memory)
}

/// The programs of a case, ready to run.
enum Programs {
    /// The first one is run.
    Packets(Vec<Program>),
    Memory(MemoryProgram),
    CheckedMemory(CheckedMemory),
}

impl Programs {
    fn over_packets(&self) -> &[Program] {
        match self {
            Self::Packets(programs) => programs,
            Self::Memory(_) | Self::CheckedMemory(_) => &[],
        }
    }
}

/// A case with its maps and programs created.
struct Loaded<'a> {
    case: &'a Case,
    maps: Vec<Arc<Map>>,
    programs: Programs,
    host: Host,
    cpu: usize,
    /// How packets run.
    way: Way,
    /// The first program, if it runs in that form.
    form: Option<Module>,
}

impl Loaded<'_> {
    /// Sets programs in the program arrays that name them.
    fn install_initial(&self) -> Result<(), String> {
        for (map, spec) in self.maps.iter().zip(&self.case.maps) {
            for (key, value) in &spec.contents {
                if matches!(value, InitialValue::Program(_)) {
                    self.put(map, key, Some(value))?;
                }
            }
        }
        Ok(())
    }

    /// Sets or removes an element of a map, as user space does.
    fn put(&self, map: &Map, key: &[u8], value: Option<&InitialValue>) -> Result<(), String> {
        let name = &map.spec().name;
        let said = |error: &dyn std::fmt::Display| format!("map {name}: {error}");
        match value {
            None => map.delete(key).map_err(|errno| said(&errno)),
            Some(InitialValue::Bytes(bytes)) => set(map, key, bytes, self.cpu).map_err(|errno| said(&errno)),
            Some(InitialValue::Map(index)) => {
                set_map(map, key, &self.maps, *index).map_err(|errno| said(&errno))
            }
            Some(InitialValue::Program(program)) => {
                set_program(map, key, self.programs.over_packets(), program)
            }
        }
    }

    fn run(&mut self) -> Result<Ran, Unsupported> {
        let mut runs = Vec::new();
        let mut left = self.case.runs.as_slice();
        while let Some((run, rest)) = left.split_first() {
            // Successive packets without a change to the maps between them form a burst.
            let together = match self.way.is_burst() {
                true => rest
                    .iter()
                    .take_while(|run| run.changes.is_empty() && run.wait_ms == 0)
                    .count()
                    .min(MAX_BURST - 1),
                false => 0,
            };
            let (these, later) = left.split_at(1 + together);
            left = later;
            match self.change(&run.changes).and_then(|()| self.wait(run.wait_ms)) {
                Ok(()) if self.way.is_burst() => runs.extend(self.run_packets(these)?),
                Ok(()) => runs.push(self.run_once(run)?),
                Err(error) => runs.push(Err(error)),
            }
        }
        let maps = self.maps.iter().map(|map| map_contents(map, self.cpu)).collect();
        Ok(Ran { runs, maps })
    }

    fn change(&self, changes: &[Change]) -> Result<(), String> {
        for Change { map, key, value } in changes {
            let Some(map) = self.maps.get(*map) else { unreachable!("a case changes maps of its own") };
            self.put(map, key, value.as_ref())?;
        }
        Ok(())
    }

    /// Waits, then fires the timers that are due.
    fn wait(&mut self, milliseconds: u64) -> Result<(), String> {
        if milliseconds > 0 {
            sleep(Duration::from_millis(milliseconds));
            self.host.fire_timers().map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    fn run_once(&mut self, run: &Run) -> Result<Result<Finished, String>, Unsupported> {
        match self.case.kind {
            CaseKind::Xdp | CaseKind::SocketFilter | CaseKind::SchedCls => self.run_packet(run),
            CaseKind::Raw => Ok(self.run_memory(run)),
        }
    }

    fn run_packet(&mut self, run: &Run) -> Result<Result<Finished, String>, Unsupported> {
        let mut burst = Burst::new(1);
        push(&mut burst, run)?;
        let mut frame = burst.frame_mut(0);
        let [main, ..] = self.programs.over_packets() else { unreachable!("a case has a program") };
        let counted = if self.way.counts() { main.run_counted(&mut frame, &mut self.host) } else { None };
        let ended = match (counted, &self.form) {
            (_, Some(form)) => {
                let drive = |machine: &mut Machine<'_>| run_on(machine, form, DEFAULT_BUDGET);
                main.run_driven(&mut frame, &mut self.host, drive).map(|r0| (r0, None))
            }
            (Some(counted), None) => counted.map(|exit| (exit.r0, Some(exit.instructions))),
            (None, None) => main.run_raw(&mut frame, &mut self.host).map(|r0| (r0, None)),
        };
        let (r0, instructions) = match ended {
            Ok(ended) => ended,
            Err(fault) => return Ok(Err(fault.to_string())),
        };
        let finished = self.finished(&burst.frame(0), Return::Full(r0));
        let told = self.case.kind == CaseKind::SchedCls;
        let skb = told
            .then(|| self.host.sk_buff())
            .map(|s| super::interface::skb(s.mark, s.priority, s.cb, s.tstamp));
        Ok(Ok(Finished { instructions, skb, ..finished }))
    }

    /// Runs packets in one burst, up to the first that faults.
    fn run_packets(&mut self, runs: &[Run]) -> Result<Vec<Result<Finished, String>>, Unsupported> {
        if self.case.kind == CaseKind::Raw {
            return Err(Unsupported::RawMemory);
        }
        let mut burst = Burst::new(runs.len());
        for run in runs {
            push(&mut burst, run)?;
        }
        let [main, ..] = self.programs.over_packets() else { unreachable!("a case has a program") };
        let failed = main.run_burst(&mut burst, &mut self.host).err();
        let done = failed.as_ref().map_or(runs.len(), |fault| fault.index);
        let of = main.spec().kind;
        let code = |code| match of.rules().meaning.translated() {
            Some(_) => Return::Verdict { code, of },
            None => Return::Low(code),
        };
        let finished = |frame: FrameRef<'_>| Ok(self.finished(&frame, code(frame.code())));
        let mut ended: Vec<_> = burst.iter().take(done).map(finished).collect();
        if let Some(fault) = failed {
            ended.push(Err(fault.fault.to_string()));
            // The case continues after the fault.
            ended.extend(match &runs[done + 1..] {
                [] => Vec::new(),
                later => self.run_packets(later)?,
            });
        }
        Ok(ended)
    }

    /// The result of a run in its frame.
    fn finished(&self, frame: &FrameRef<'_>, r0: Return) -> Finished {
        let redirects = matches!(self.case.kind, CaseKind::Xdp | CaseKind::SchedCls)
            && frame.code() == Verdict::Redirect as u32;
        Finished {
            redirect: redirects.then(|| self.redirect(frame)),
            data: frame.packet().to_vec(),
            meta: frame.metadata().to_vec(),
            ..Finished::new(r0)
        }
    }

    /// The target of a packet, in the syntax of cases.
    fn redirect(&self, frame: &FrameRef<'_>) -> String {
        match frame.redirect().map(|redirect| redirect.target) {
            None => "nowhere".to_owned(),
            Some(RedirectTarget::Interface { ifindex }) => format!("interface {ifindex}"),
            Some(RedirectTarget::Map { map, key }) => {
                let name = self.maps.iter().find(|known| known.id() == map).map(|map| &map.spec().name);
                format!("{} {key}", name.map_or("another map", String::as_str))
            }
        }
    }

    fn run_memory(&mut self, run: &Run) -> Result<Finished, String> {
        let mut memory = run.data.clone();
        let exit = match &self.programs {
            Programs::Memory(main) => main.run(&mut memory, &mut self.host),
            Programs::CheckedMemory(main) => main.run(&mut memory, &mut self.host),
            Programs::Packets(_) => unreachable!("the case's kind is raw"),
        };
        match exit {
            Ok(exit) => Ok(Finished { data: memory, ..Finished::new(Return::Full(exit.r0)) }),
            Err(fault) => Err(fault.to_string()),
        }
    }
}

/// Adds a run's packet to a burst.
fn push(burst: &mut Burst, run: &Run) -> Result<(), Unsupported> {
    let Context { ingress_ifindex, rx_queue_index, egress_ifindex } = run.context;
    if egress_ifindex != 0 {
        return Err(Unsupported::ContextField("egress_ifindex"));
    }
    let queue = u16::try_from(rx_queue_index).map_err(|_| Unsupported::ContextField("rx_queue_index"))?;
    let index = burst.len();
    let unfit = |_| Unsupported::PacketLength(run.data.len());
    burst.push(&run.data, FrameMeta::default()).map_err(unfit)?;
    let mut frame = burst.frame_mut(index);
    frame.set_ingress(ingress_ifindex, queue);
    frame.set_metadata(&run.meta).map_err(|_| Unsupported::ContextField("metadata of this length"))
}
