//! Tests in the running kernel: its verifier, its compiler and its helpers, by `BPF_PROG_TEST_RUN`.

use std::os::fd::AsRawFd;

use paceline::{Collection, InitialValue, Map, Meaning, ProgramSpec, Verdict};
use paceline_kernel::{KernelError, KernelObject, LoadError, LoadOptions, Packet, Pinned, pin, probe};

use super::case::{Expectation, Step};
use super::check::Actual;
use crate::common::failure::{CommandError, Failure};
use crate::subject::Subject;

/// The reason why a test does not run in the kernel.
#[derive(Debug, thiserror::Error)]
pub(super) enum KernelTestError {
    #[error("{0}")]
    Unavailable(paceline_kernel::Unavailable),
    #[error("--kernel: chains do not run in the kernel; name one object")]
    Chain,
    #[error("--kernel: {0}")]
    Load(LoadError),
    #[error("--kernel: {0}")]
    Run(KernelError),
}

impl CommandError for KernelTestError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::Unavailable(_)).then(|| "it takes root, or CAP_BPF and CAP_NET_ADMIN".to_owned())
    }
}

/// A program in the kernel, with the maps of a test.
pub(super) struct KernelBench {
    object: KernelObject,
    program: usize,
    meaning: Meaning,
    /// Test runs use the CPU of the caller; values of per-CPU maps are that CPU's.
    pinned: Pinned,
}

impl KernelBench {
    /// Loads the program of a subject, with maps that have the contents of the subject's.
    pub(super) fn new(subject: &Subject) -> Result<Self, Failure> {
        probe().map_err(KernelTestError::Unavailable)?;
        let ([wanted], [(_, collection)]) = (subject.programs.as_slice(), subject.parts.as_slice()) else {
            return Err(KernelTestError::Chain.into());
        };
        let spec = wanted.program.spec();
        let object = collection.object();
        let is_installed = |program: &ProgramSpec| {
            let values = object.maps().iter().flat_map(|map| &map.contents);
            let named =
                values.into_iter().any(|(_, value)| *value == InitialValue::Program(program.name.clone()));
            named || installed(collection).any(|(_, _, name)| name == program.name)
        };
        let is_needed = |program: &&ProgramSpec| program.name == spec.name || is_installed(program);
        let programs: Vec<_> = object.programs().iter().filter(is_needed).collect();
        let pinned = pin();
        let options = LoadOptions { btf: object.btf(), leave_out_types: true, cpu: pinned.cpu() };
        let loaded = KernelObject::load(object.maps(), programs.iter().copied(), options);
        let kernel = loaded.map_err(KernelTestError::Load)?;
        let program = programs.iter().position(|program| program.name == spec.name).unwrap_or(0);
        let bench = Self { object: kernel, program, meaning: spec.kind.rules().meaning, pinned };
        bench.fill(collection, &programs).map_err(KernelTestError::Run)?;
        Ok(bench)
    }

    /// Gives the kernel's maps the contents of ours.
    fn fill(&self, collection: &Collection, programs: &[&ProgramSpec]) -> Result<(), KernelError> {
        let cpu = self.pinned.cpu();
        for (ours, theirs) in collection.maps().iter().zip(&self.object.maps) {
            if !is_copied(ours) {
                continue;
            }
            for key in ours.keys().into_iter().flatten() {
                if let Some(value) = value_of(ours, &key) {
                    theirs.update(&key, &value, cpu)?;
                }
            }
        }
        for (map, index, name) in installed(collection) {
            let program = programs.iter().position(|program| program.name == name);
            let program = program.and_then(|program| self.object.programs.get(program));
            if let Some((program, map)) = program.zip(self.object.maps.get(map)) {
                map.update(&index.to_ne_bytes(), &program.fd().as_raw_fd().to_ne_bytes(), cpu)?;
            }
        }
        Ok(())
    }

    /// Runs a step; the subject's maps have the contents of the kernel's afterwards.
    pub(super) fn step(&self, subject: &Subject, step: &Step, ingress: u32) -> Result<Actual, Failure> {
        let rx_queue = step.queue.into();
        let packet = Packet { data: &step.packet, meta: &[], ingress_ifindex: ingress, rx_queue };
        let mut run = None;
        for _ in 0..step.repeat {
            let program = self.object.programs.get(self.program);
            run =
                program.map(|program| program.test_run(&packet)).transpose().map_err(KernelTestError::Run)?;
        }
        let run = run.ok_or(KernelTestError::Chain)?;
        let code = self.meaning.code(run.retval.into());
        for (_, collection) in &subject.parts {
            self.read_back(collection).map_err(KernelTestError::Run)?;
        }
        Ok(Actual {
            input: step.packet.clone(),
            verdict: Verdict::from_code(code).unwrap_or(Verdict::Aborted),
            code,
            redirect: None,
            bytes: run.data,
            events: Vec::new(),
        })
    }

    fn read_back(&self, collection: &Collection) -> Result<(), KernelError> {
        for (ours, theirs) in collection.maps().iter().zip(&self.object.maps) {
            if !is_copied(ours) {
                continue;
            }
            let Some(contents) = theirs.contents(self.pinned.cpu())? else { continue };
            for key in ours.keys().into_iter().flatten().filter(|key| !contents.contains_key(key)) {
                // Elements of arrays stay.
                let _ = ours.delete(&key);
            }
            for (key, mut value) in contents {
                value.resize(ours.user_value_size(), 0);
                // The kernel's map had room for it.
                let _ = ours.update(&key, &value, 0);
            }
        }
        Ok(())
    }
}

/// Whether a test run shows what an expectation is about: neither redirect targets nor events.
pub(super) fn shows(expectation: &Expectation) -> bool {
    !matches!(expectation, Expectation::Redirect(_) | Expectation::Events(_))
}

/// Whether the elements of a map are copied between user space and kernel.
fn is_copied(map: &Map) -> bool {
    let spec = map.spec();
    paceline_kernel::has_byte_contents(spec.kind) && !spec.kind.is_queue() && !map.is_frozen()
}

/// The value of the only CPU.
fn value_of(map: &Map, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = map.lookup(key).ok()?;
    value.truncate(map.spec().value_size as usize);
    Some(value)
}

/// The programs in program arrays: index of the map, index in it, name.
fn installed(collection: &Collection) -> impl Iterator<Item = (usize, u32, String)> {
    let arrays = collection.maps().iter().enumerate().filter(|(_, map)| map.spec().kind.holds_programs());
    arrays.flat_map(move |(number, map)| {
        let name = &map.spec().name;
        (0..map.spec().max_entries)
            .filter_map(move |index| Some((number, index, collection.installed(name, index)?)))
    })
}
