//! One of our engines as a subject.

use std::sync::Arc;

use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_compiler::ir::{Module, Passes, build, optimize};
use paceline_engine::OptLevel;
use paceline_frame::MAX_BURST;
use paceline_spec::{MapSpec, ProgramKind};
use paceline_verifier::Verified;

use super::dirt::Dirt;
use super::subject::{Left, Stopped, Subject, redirect_of};
use super::work::Work;
use super::work::contents;
use crate::checked::CheckedError;
use crate::engine::{fill_map, load_native, map_contents, native_name};
use crate::ir::run_on;
use crate::kernel;
use crate::random::{jump_map, maps};
use crate::staged::in_stages;
use crate::{AnyEngine, Contents};

/// Instruction budget of a run on the plain interpreter.
const BUDGET: u64 = 1_000_000;

/// Ingress interface and queue, as in the kernel's test runs.
const LOOPBACK: u32 = 1;

/// An engine with its own maps, which it reuses for all programs.
pub struct EngineSubject {
    engine: AnyEngine,
    /// Its name.
    name: &'static str,
    maps: Vec<Arc<Map>>,
    host: Host,
    burst: Burst,
    /// The passes of native code.
    level: OptLevel,
    /// Whether packets run in bursts.
    bursts: bool,
    /// Whether the bursts run in stages.
    stages: bool,
    /// Makes random numbers differ from those of another subject.
    salt: u64,
    /// Runs before each program, except on the plain interpreter, which clears its stack.
    dirt: Option<Dirt>,
    /// Runs programs in the form of `paceline-compiler` after these passes, on the plain interpreter's machine.
    passes: Option<Passes>,
    /// The program in that form.
    module: Module,
}

impl EngineSubject {
    /// An engine, on the CPU of this number.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn new(engine: AnyEngine, cpu: usize) -> Result<Self, String> {
        let mut made = Vec::new();
        for spec in maps() {
            let map = Map::create(&spec, &limits()).map_err(|error| paceline::with_causes(&error))?;
            fill_map(&map, &spec, &made, cpu).map_err(|error| format!("map {}: {error}", spec.name))?;
            made.push(map);
        }
        let (host, burst) = (Host::new(cpu), Burst::default());
        let dirt = if engine == AnyEngine::Plain { None } else { Some(Dirt::new(engine)?) };
        let (name, passes, module) = (engine.name(), None, Module::default());
        Ok(Self {
            engine,
            name,
            maps: made,
            host,
            burst,
            level: OptLevel::Full,
            bursts: false,
            stages: false,
            salt: 0,
            dirt,
            passes,
            module,
        })
    }

    /// The interpreter of `paceline-compiler`, after these passes.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn of_ir(name: &'static str, passes: Passes, cpu: usize) -> Result<Self, String> {
        Ok(Self { name, passes: Some(passes), ..Self::new(AnyEngine::Plain, cpu)? })
    }

    /// Native code without passes.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn unoptimized(cpu: usize) -> Result<Self, String> {
        let level = OptLevel::None;
        Ok(Self { name: native_name(level), level, ..Self::new(AnyEngine::Jit, cpu)? })
    }

    /// The same with packets in bursts of random lengths.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn in_bursts(engine: AnyEngine, cpu: usize) -> Result<Self, String> {
        let name = match engine {
            AnyEngine::Jit => "jit-burst",
            AnyEngine::CheckedJit => "checked-jit-burst",
            AnyEngine::Threaded => "threaded-burst",
            AnyEngine::Plain => "plain-burst",
        };
        Ok(Self { name, bursts: true, ..Self::new(engine, cpu)? })
    }

    /// Native code with packets in bursts of random lengths, in stages: look-ups ahead, then the program.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn in_stages(cpu: usize) -> Result<Self, String> {
        Ok(Self { name: "jit-staged", stages: true, ..Self::in_bursts(AnyEngine::Jit, cpu)? })
    }

    /// The same with other random numbers and addresses: results that differ from the first depend on these.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn twin(engine: AnyEngine, cpu: usize) -> Result<Self, String> {
        Ok(Self { salt: 1, ..Self::new(engine, cpu)? })
    }

    /// Checks that this machine has the engine, by loading a program.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn probe(engine: AnyEngine) -> Result<(), String> {
        let kind = ProgramKind::SocketFilter;
        let insns =
            paceline_isa::assemble("r0 = 0\nexit", &()).map_err(|error| paceline::with_causes(&error))?;
        let slots = insns.encode().map_err(|error| paceline::with_causes(&error))?;
        let program = paceline_spec::ProgramSpec::new("probe", kind, slots);
        let verified = paceline_verifier::verify(&program, &[], None, &paceline_verifier::Options::default());
        let verified = verified.map_err(|refusal| refusal.to_string())?;
        engine.load(&verified, Vec::new()).map(drop).map_err(|error| paceline::with_causes(&error))
    }

    pub(super) fn load(&self, verified: &Verified) -> Result<Program, Stopped> {
        let load = match self.engine {
            AnyEngine::Jit => load_native(verified, self.maps.clone(), self.level).map_err(Into::into),
            engine => engine.load(verified, self.maps.clone()),
        };
        let program = load.map_err(|error: CheckedError| Stopped::Refused(paceline::with_causes(&error)))?;
        let program = if self.stages { in_stages(program) } else { Ok(program) };
        let program = program.map_err(|no_slice| Stopped::Refused(no_slice.to_string()))?;
        // Loops of random programs are short; the verifier must not accept longer ones.
        Ok(if self.engine == AnyEngine::Plain { program.with_budget(BUDGET) } else { program })
    }

    /// Ring buffers are created anew, which discards records of earlier programs.
    pub(super) fn renew_rings(&mut self, work: &Work) -> Result<(), String> {
        for &index in &work.used {
            let Some(map) = self.maps.get_mut(index).filter(|map| map.spec().kind.is_ring_buffer()) else {
                continue;
            };
            *map =
                Map::create(&map.spec().clone(), &limits()).map_err(|error| paceline::with_causes(&error))?;
        }
        Ok(())
    }

    /// Its maps.
    pub(super) fn maps(&self) -> &[Arc<Map>] {
        &self.maps
    }

    /// The burst for packets, and the host.
    pub(super) fn machine(&mut self) -> (&mut Burst, &mut Host) {
        (&mut self.burst, &mut self.host)
    }

    /// Sets the initial contents of maps.
    pub(super) fn prepare(&mut self, work: &Work) -> Result<(), String> {
        self.host.seed(work.seed ^ self.salt);
        self.fill(work)
    }

    /// Contents of the maps of the work.
    pub(super) fn contents(&self, work: &Work) -> Vec<Option<Contents>> {
        let maps = work.used.iter().filter_map(|&index| self.maps.get(index));
        maps.map(|map| records(map).or_else(|| map_contents(map, self.host.cpu()))).collect()
    }

    fn fill(&self, work: &Work) -> Result<(), String> {
        for &index in &work.used {
            let Some(map) = self.maps.get(index) else { continue };
            let spec = map.spec();
            if spec.kind.is_keyed() {
                for key in map.keys().map_err(|errno| errno.to_string())? {
                    map.delete(&key).map_err(|errno| errno.to_string())?;
                }
            }
            let mut full = vec![0; map.user_value_size()];
            let start = if spec.kind.is_per_cpu() { self.host.cpu() * value_stride(spec) } else { 0 };
            for (key, value) in contents(spec, index, work.seed) {
                full[start..start + value.len()].copy_from_slice(&value);
                map.insert(&key, &full).map_err(|errno| errno.to_string())?;
            }
        }
        Ok(())
    }

    /// Runs the program on one packet, or on those of a burst.
    fn run_some(
        &mut self,
        program: &Program,
        inputs: &[&super::work::Input],
        left: &mut [Left],
    ) -> Result<(), (usize, String)> {
        self.burst.clear();
        for (run, input) in inputs.iter().enumerate() {
            let failed = |error: &dyn std::fmt::Display| (run, error.to_string());
            self.burst.push(&input.data, FrameMeta::default()).map_err(|error| failed(&error))?;
            let mut frame = self.burst.frame_mut(run);
            frame.set_ingress(LOOPBACK, 0);
            // Other program types have no metadata.
            if matches!(program.spec().kind, ProgramKind::Xdp { .. }) {
                frame.set_metadata(&input.meta).map_err(|error| failed(&error))?;
            }
        }
        if let Some(dirt) = &mut self.dirt {
            dirt.leave(&mut self.host).map_err(|reason| (0, reason))?;
        }
        let r0 = if self.passes.is_some() {
            let frame = &mut self.burst.frame_mut(0);
            let run =
                program.run_driven(frame, &mut self.host, |machine| run_on(machine, &self.module, BUDGET));
            Some(run.map_err(|fault| (0, fault.to_string()))?)
        } else if self.bursts {
            let run = program.run_burst(&mut self.burst, &mut self.host);
            run.map_err(|fault| (fault.index, fault.fault.to_string()))?;
            None
        } else {
            let run = program.run_raw(&mut self.burst.frame_mut(0), &mut self.host);
            Some(run.map_err(|fault| (0, fault.to_string()))?)
        };
        for (run, left) in left.iter_mut().enumerate() {
            let frame = self.burst.frame(run);
            (left.code, left.r0) = (frame.code(), r0);
            left.data.clear();
            left.data.extend_from_slice(frame.packet());
            left.meta.clear();
            left.meta.extend_from_slice(frame.metadata());
            left.redirect = Some(redirect_of(frame.redirect()));
        }
        Ok(())
    }
}

fn limits() -> Limits {
    Limits { cpus: kernel::possible_cpus(), memory: 1 << 30 }
}

fn value_stride(spec: &MapSpec) -> usize {
    (spec.value_size as usize).next_multiple_of(8)
}

impl Subject for EngineSubject {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&mut self, work: &Work, left: &mut [Left]) -> Result<Vec<Option<Contents>>, Stopped> {
        let Some((main, targets)) = work.programs.split_first() else { return Ok(Vec::new()) };
        self.renew_rings(work).map_err(Stopped::Refused)?;
        let program = self.load(main)?;
        if let Some(passes) = &self.passes {
            self.module = build(main).map_err(|error| Stopped::Refused(paceline::with_causes(&error)))?;
            optimize(&mut self.module, passes)
                .map_err(|error| Stopped::Refused(paceline::with_causes(&error)))?;
        }
        // Targets stay in the arrays while the programs here use them.
        let targets = targets.iter().map(|target| self.load(target)).collect::<Result<Vec<_>, _>>()?;
        let array = self.maps.get(random_array(main.program().kind));
        for (target, index) in targets.iter().zip(0..) {
            let installed = array.map(|array| target.install(array, index));
            if let Some(Err(error)) = installed {
                return Err(Stopped::Refused(paceline::with_causes(&error)));
            }
        }
        self.prepare(work).map_err(Stopped::Refused)?;
        let mut lengths = fastrand::Rng::with_seed(work.seed);
        let mut first = 0;
        while first < work.inputs.len() {
            let most = work.inputs.len() - first;
            let len = if self.bursts { lengths.usize(1..=MAX_BURST).min(most) } else { 1 };
            let (inputs, left) = (&work.inputs[first..first + len], &mut left[first..first + len]);
            let failed = |(run, reason)| Stopped::Run { run: first + run, reason };
            self.run_some(&program, inputs, left).map_err(failed)?;
            first += len;
        }
        Ok(self.contents(work))
    }
}

/// The records of a ring buffer, by their order.
pub(crate) fn records(map: &Map) -> Option<Contents> {
    let ring = map.ring_buffer()?;
    let mut records = Contents::new();
    ring.consume(|record| {
        records.insert(records.len().to_be_bytes().to_vec(), record.to_vec());
    });
    Some(records)
}

/// The program array for programs of a type.
pub(super) fn random_array(kind: ProgramKind) -> usize {
    jump_map(kind)
}
