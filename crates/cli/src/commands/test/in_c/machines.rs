//! What runs the programs of a suite: an engine, the plain interpreter that is watched, or the kernel.

use std::path::Path;
use std::sync::Arc;

use paceline::context::SkBuff;
use paceline::coverage::Counts;
use paceline::explain::{Explainer, Packet, Writes};
use paceline::{
    Burst, Collection, DEFAULT_BUDGET, Engine, Fault, FrameMeta, Host, Program, PushError, TimeSource,
};

use paceline_kernel::SkBuffBytes;

use super::stages::{Machine, Passing};
use crate::common::failure::{CommandError, Failure};
use crate::kernel_side::KernelSide;
use crate::object::{Opener, ProgramError, load, load_options, program_of};
use crate::world::{World, WorldArgs};

/// The interface that packets come in on, as in test runs of the kernel.
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

impl Setup<'_> {
    fn load(&self) -> Result<Collection, Failure> {
        let object = self.opener.open(self.path, None)?;
        let options = load_options(DEFAULT_BUDGET, self.engine, self.opener.args.map_memory, 1);
        load(self.opener, &self.name(), object, Vec::new(), &options, self.unverified)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// A program of a test cannot be run.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("{program}: packet: {source}")]
    TooLong { program: String, source: PushError },
    #[error("{program}: the run ended with a fault: {source}")]
    Fault { program: String, source: Box<Fault> },
}

impl CommandError for RunError {}

/// The programs on an engine.
pub(super) struct OnEngine {
    name: String,
    collection: Collection,
    unverified: bool,
    host: Host,
    burst: Burst,
    time_ns: u64,
}

impl OnEngine {
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self, Failure> {
        let collection = setup.load()?;
        let world = World::new(&WorldArgs { seed: Some(SEED), ..WorldArgs::default() })?;
        let mut host = world.host(TimeSource::Packets);
        host.set_events(Box::new(|_| {}));
        host.set_trace(std::io::sink());
        let (name, unverified) = (setup.name(), setup.unverified);
        Ok(Self { name, collection, unverified, host, burst: Burst::new(1), time_ns: START_NS })
    }

    pub(super) fn coverage(&self) -> Vec<Counts> {
        self.collection.coverage()
    }

    fn program(&self, name: &str) -> Result<Program, Failure> {
        let program = program_of(&self.collection, Some(name), self.unverified);
        Ok(program.map_err(|error| ProgramError::new(&self.name, self.collection.object(), error))?)
    }

    /// The packet as it enters the next program.
    fn enter<'p>(&mut self, packet: &'p Passing<SkBuff>) -> Packet<'p> {
        self.time_ns += STEP_NS;
        self.host.set_arriving(packet.context);
        let bytes = packet.data.as_slice();
        let meta = FrameMeta { timestamp_ns: self.time_ns, original_len: bytes.len() as u32, interface: 0 };
        Packet { bytes, metadata: &[], meta, ingress: LOOPBACK, queue: 0 }
    }
}

/// What test runs of the kernel pass on of an `sk_buff`.
fn passed_on(after: SkBuff) -> SkBuff {
    let mut skb = SkBuff::default();
    (skb.mark, skb.priority, skb.cb, skb.tstamp) = (after.mark, after.priority, after.cb, after.tstamp);
    skb
}

impl Machine for OnEngine {
    type Context = SkBuff;

    fn run(&mut self, name: &str, packet: &mut Passing<SkBuff>) -> Result<u32, Failure> {
        let program = self.program(name)?;
        let entering = self.enter(packet);
        self.burst.clear();
        let too_long = |source| RunError::TooLong { program: name.to_owned(), source };
        self.burst.push(entering.bytes, entering.meta).map_err(too_long)?;
        self.burst.frame_mut(0).set_ingress(entering.ingress, entering.queue);
        self.host.arrive(&self.burst);
        let fault = |source| RunError::Fault { program: name.to_owned(), source };
        let code = program.run(&mut self.burst.frame_mut(0), &mut self.host).map_err(fault)?;
        // A fault of a timer's function concerns no packet.
        let _ = self.host.fire_timers();
        packet.data = self.burst.frame(0).packet().to_vec();
        packet.context = passed_on(self.host.sk_buff());
        Ok(code as u32)
    }

    fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.collection.map(map).and_then(|map| map.lookup(&[0; 4]).ok()))
    }

    fn clear(&self, map: &str) -> Result<(), Failure> {
        if let Some(map) = self.collection.map(map) {
            // A map of another form is none of the tests' own.
            let _ = map.update(&[0; 4], &vec![0; map.user_value_size()], 0);
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
        let mut explainer = Explainer::new(program, None);
        let entering = self.inner.enter(packet);
        let writes = explainer.writes(&entering, &mut self.inner.host, &map);
        let _ = self.inner.host.fire_timers();
        self.writes = writes.map_err(|source| RunError::TooLong { program: name.to_owned(), source })?;
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
        let collection = setup.load()?;
        // This puts the programs of the object's arrays there.
        for program in programs {
            program_of(&collection, Some(program), true)
                .map_err(|error| ProgramError::new(&setup.name(), collection.object(), error))?;
        }
        Ok(Self { kernel: KernelSide::of_programs(&collection, programs)? })
    }
}

impl Machine for InKernel {
    type Context = Option<SkBuffBytes>;

    fn run(&mut self, program: &str, packet: &mut Passing<Self::Context>) -> Result<u32, Failure> {
        let ran = self.kernel.run_after(program, &packet.data, packet.context.as_ref())?;
        packet.data = ran.data;
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
