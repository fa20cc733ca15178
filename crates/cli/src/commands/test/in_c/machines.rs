//! Machines, which run the programs of a suite: an engine, the plain interpreter that is watched, or the kernel.

use paceline::with_causes;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use paceline::context::SkBuff;
use paceline::coverage::Counts;
use paceline::explain::{Explainer, Writes};
use paceline::scenario::{Origin, Scenario};
use paceline::{
    Arrival, ArrivalError, Burst, Collection, Engine, Fault, FrameMeta, Host, InitialValue, Outcome, Program,
    ProgramError, ProgramKind, RanAs, TimeSource,
};

use paceline_kernel::SkBuffBytes;

use super::stages::{Machine, Passing};
use crate::common::failure::{CommandError, Failure};
use crate::kernel_side::KernelSide;
use crate::object::{NamedProgramError, Opener, load, load_options, program_of};

/// Ingress interface of packets of XDP programs, as in the kernel's test runs, in which packets of TC classifiers have none.
const LOOPBACK: u32 = 1;

/// Seed of random numbers: the same in each run.
const SEED: u64 = 1;

/// The time of the first program in nanoseconds, and between programs. Programs under test subtract times from that of the start.
const START_NS: u64 = 1_000_000_000_000;
const STEP_NS: u64 = 1_000;

/// An object and how it runs.
pub(super) struct Setup<'a> {
    pub(super) path: &'a Path,
    pub(super) opener: &'a Opener,
    pub(super) engine: Engine,
    pub(super) unverified: bool,
}

/// Entries of program arrays that stay empty, with the reason.
type LeftOut = BTreeMap<(String, u32), String>;

/// Programs by their names; those that cannot be loaded with the lines of the reason.
type Programs = BTreeMap<String, Result<Program, Vec<String>>>;

impl Setup<'_> {
    /// Loads all programs of the tests. Entries of program arrays whose programs cannot be loaded stay empty: most tests of an object do
    /// without most of them.
    fn load_all(&self, names: &[&str]) -> Result<(Collection, Programs, LeftOut), Failure> {
        let mut left_out = LeftOut::new();
        'again: loop {
            let collection = self.load(&left_out)?;
            let mut programs = Programs::new();
            for name in names {
                let program = match program_of(&collection, Some(name), self.unverified) {
                    Err(ProgramError::Entry { map, index, source })
                        if !left_out.contains_key(&(map.clone(), index)) =>
                    {
                        let reason = with_causes(&source);
                        left_out.insert((map, index), reason.lines().next().unwrap_or_default().to_owned());
                        continue 'again;
                    }
                    Err(error) => {
                        let error = NamedProgramError::new(&self.name(), collection.object(), error);
                        Err(Failure::from(error).lines())
                    }
                    Ok(program) => Ok(program),
                };
                programs.insert((*name).to_owned(), program);
            }
            return Ok((collection, programs, left_out));
        }
    }

    fn load(&self, left_out: &LeftOut) -> Result<Collection, Failure> {
        let mut object = self.opener.open(self.path, None)?;
        for spec in &mut object.specs_mut().maps {
            let name = spec.name.clone();
            spec.contents.retain(|(key, value)| {
                let index = key.as_slice().try_into().map_or(0, u32::from_ne_bytes);
                !matches!(value, InitialValue::Program(_)) || !left_out.contains_key(&(name.clone(), index))
            });
        }
        let options = load_options(self.engine, &self.opener.args, 1);
        load(self.opener, &self.name(), object, Vec::new(), &options, self.unverified)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A program of a test cannot be run.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{program}: packet")]
    Arrival { program: String, source: ArrivalError },
    #[error("{program}: the run ended with a fault")]
    Fault { program: String, source: Box<Fault> },
}

impl CommandError for RunError {}

/// A program of a test cannot be loaded: the reason, in lines.
#[derive(Debug)]
struct NotLoaded(Vec<String>);

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for NotLoaded {}

impl CommandError for NotLoaded {}

/// The programs on an engine.
pub(super) struct OnEngine {
    collection: Collection,
    programs: Programs,
    left_out: LeftOut,
    host: Host,
    burst: Burst,
    time_ns: u64,
}

impl OnEngine {
    pub(super) fn new(setup: &Setup<'_>, programs: &[&str]) -> Result<Self, Failure> {
        let (collection, programs, left_out) = setup.load_all(programs)?;
        let mut scenario = Scenario::default();
        (scenario.seed, scenario.time) = (Some(SEED), TimeSource::Packets);
        let mut host = scenario.host(0);
        host.set_trace(std::io::sink());
        Ok(Self { collection, programs, left_out, host, burst: Burst::new(1), time_ns: START_NS })
    }

    pub(super) fn coverage(&self) -> Vec<Counts> {
        self.collection.coverage()
    }

    /// Lines on the entries of program arrays that are empty.
    pub(super) fn left_out(&self) -> Vec<String> {
        let line = |((map, index), reason): (&(String, u32), &String)| {
            format!("note: {map}[{index}] is empty: {reason}")
        };
        self.left_out.iter().map(line).collect()
    }

    fn program(&self, name: &str) -> Result<Program, Failure> {
        match self.programs.get(name) {
            Some(Ok(program)) => Ok(program.clone()),
            Some(Err(lines)) => Err(NotLoaded(lines.clone()).into()),
            None => Err(NotLoaded(vec![format!("there is no program {name}")]).into()),
        }
    }

    /// The packet as it enters the next program.
    fn enter<'p>(&mut self, packet: &'p Passing<SkBuff>, is_xdp: bool) -> Arrival<'p> {
        self.time_ns += STEP_NS;
        let bytes = packet.data.as_slice();
        let meta = FrameMeta { timestamp_ns: self.time_ns, original_len: bytes.len() as u32, interface: 0 };
        let ingress = if is_xdp { LOOPBACK } else { 0 };
        Origin::default().ingress(ingress).context(packet.context).arrival(bytes, meta)
    }
}

fn is_xdp(program: &Program) -> bool {
    matches!(program.spec().kind, ProgramKind::Xdp { .. })
}

/// Members of an `sk_buff` that test runs of the kernel pass on.
fn passed_on(after: SkBuff) -> SkBuff {
    let mut skb = SkBuff::default();
    (skb.mark, skb.priority, skb.cb, skb.tstamp) = (after.mark, after.priority, after.cb, after.tstamp);
    skb
}

impl Machine for OnEngine {
    type Context = SkBuff;

    fn run(&mut self, name: &str, packet: &mut Passing<SkBuff>) -> Result<u32, Failure> {
        let program = self.program(name)?;
        let entering = self.enter(packet, is_xdp(&program));
        let arrival = |source| RunError::Arrival { program: name.to_owned(), source };
        entering.enter(&mut self.burst, &mut self.host).map_err(arrival)?;
        let fault = |source| RunError::Fault { program: name.to_owned(), source };
        program.run(&mut self.burst.frame_mut(0), &mut self.host).map_err(fault)?;
        let ran = RanAs::Program(program.spec().kind.rules().meaning);
        let outcome = Outcome::of(self.burst.frame(0), &self.host, ran, None);
        self.host.fire_timers().map_err(fault)?;
        packet.data = [outcome.metadata, outcome.bytes].concat();
        packet.context = outcome.context.map_or_else(SkBuff::default, passed_on);
        Ok(outcome.returned)
    }

    fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.collection.map(map).and_then(|map| map.lookup(&[0; 4]).ok()))
    }

    fn clear(&self, map: &str) -> Result<(), Failure> {
        if let Some(map) = self.collection.map(map) {
            // A map of another form is none of the tests' own.
            let _ = map.insert(&[0; 4], &vec![0; map.user_value_size()]);
        }
        Ok(())
    }
}

/// An engine, on which the check program is watched while it writes to a map.
pub(super) struct Watching {
    inner: OnEngine,
    map: &'static str,
    /// The program that is watched.
    pub(super) check: Option<String>,
    pub(super) writes: Writes,
}

impl Watching {
    pub(super) fn new(inner: OnEngine, map: &'static str) -> Self {
        Self { inner, map, check: None, writes: Writes::default() }
    }
}

impl Machine for Watching {
    type Context = SkBuff;

    fn run(&mut self, name: &str, packet: &mut Passing<SkBuff>) -> Result<u32, Failure> {
        let map = self.inner.collection.map(self.map).filter(|_| self.check.as_deref() == Some(name));
        let Some(map) = map.map(Arc::clone) else { return self.inner.run(name, packet) };
        let program = self.inner.program(name)?;
        let is_xdp = is_xdp(&program);
        let mut explainer = Explainer::new(program, None);
        let entering = self.inner.enter(packet, is_xdp);
        let writes = explainer.writes(&entering, &mut self.inner.host, &map);
        let fault = |source| RunError::Fault { program: name.to_owned(), source };
        self.inner.host.fire_timers().map_err(fault)?;
        self.writes = writes.map_err(|source| RunError::Arrival { program: name.to_owned(), source })?;
        // Nothing follows the check program.
        Ok(0)
    }

    fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.inner.value(map)
    }

    fn clear(&self, map: &str) -> Result<(), Failure> {
        self.inner.clear(map)
    }
}

/// The programs in the running kernel.
pub(super) struct InKernel {
    kernel: KernelSide,
}

impl InKernel {
    pub(super) fn new(setup: &Setup<'_>, programs: &[&str]) -> Result<Self, Failure> {
        let collection = setup.load(&LeftOut::new())?;
        Ok(Self { kernel: KernelSide::of_programs(&collection, programs)? })
    }
}

impl Machine for InKernel {
    type Context = Option<SkBuffBytes>;

    fn run(&mut self, program: &str, packet: &mut Passing<Self::Context>) -> Result<u32, Failure> {
        let ran = self.kernel.run_after(program, &packet.data, packet.context.as_ref())?;
        packet.data = [ran.meta, ran.data].concat();
        packet.context = ran.sk_buff;
        Ok(ran.retval)
    }

    fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.kernel.value(map)
    }

    fn clear(&self, map: &str) -> Result<(), Failure> {
        self.kernel.clear(map)
    }
}
