//! The program of a subject in the running kernel, run by `BPF_PROG_TEST_RUN`.

use std::os::fd::AsRawFd;

use paceline::{Arrival, Collection, Errno, InitialValue, Meaning, MemberError, Outcome, ProgramSpec};
use paceline_kernel::{
    KernelError, KernelObject, LoadError, LoadOptions, MIN_PACKET, Map as KernelMap, Packet, Pinned, Program,
    SK_BUFF_MEMBERS, SkBuffBytes, TestRun, members_of, pin, probe,
};

use crate::common::failure::{CommandError, Failure};
use crate::kernel_maps::KernelMaps;
use crate::subject::Subject;

/// The reason why a program does not run in the kernel.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelSideError {
    #[error("{0}")]
    Unavailable(paceline_kernel::Unavailable),
    #[error("--kernel: chains do not run in the kernel; name one object")]
    Chain,
    #[error("--kernel: {0}")]
    Load(LoadError),
    #[error("--kernel: {0}")]
    Run(KernelError),
    #[error("--kernel: test runs take no `{0}` in the context, only mark, priority, cb and tstamp")]
    Context(&'static str),
    #[error("--kernel")]
    Member(#[from] MemberError),
    #[error("--kernel: program {0}, an entry of a program array, is not loaded")]
    NotLoaded(String),
    #[error("--kernel: test runs take packets of {MIN_PACKET} bytes or more, and this one has {0}")]
    Short(usize),
}

impl CommandError for KernelSideError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::Unavailable(_)).then(|| "it takes root, or CAP_BPF and CAP_NET_ADMIN".to_owned())
    }
}

/// Programs of an object in the kernel, with maps of their own.
pub(crate) struct KernelSide {
    object: KernelObject,
    /// The maps in its maps of maps.
    copies: KernelMaps,
    /// Names and meanings of the return values, by program.
    programs: Vec<(String, Meaning)>,
    /// The program that is run where none is named.
    main: usize,
    /// The names of the maps.
    maps: Vec<String>,
    /// Test runs use the CPU of the caller; values of per-CPU maps are that CPU's.
    pinned: Pinned,
}

impl KernelSide {
    /// Loads the program of a subject, with maps that have the contents of the subject's.
    pub(crate) fn new(subject: &Subject) -> Result<Self, Failure> {
        probe().map_err(KernelSideError::Unavailable)?;
        let ([wanted], [(_, collection)]) = (subject.programs.as_slice(), subject.parts.as_slice()) else {
            return Err(KernelSideError::Chain.into());
        };
        Self::of_programs(collection, &[&wanted.program.spec().name])
    }

    /// Loads programs of an object and those in its program arrays, with maps that have the contents of the collection's. The first
    /// one is run where none is named.
    pub(crate) fn of_programs(collection: &Collection, wanted: &[&str]) -> Result<Self, Failure> {
        probe().map_err(KernelSideError::Unavailable)?;
        let object = collection.object();
        let is_installed = |program: &ProgramSpec| {
            let values = object.maps().iter().flat_map(|map| &map.contents);
            let named =
                values.into_iter().any(|(_, value)| *value == InitialValue::Program(program.name.clone()));
            named || installed(collection).any(|(_, _, name)| name == program.name)
        };
        let is_needed =
            |program: &&ProgramSpec| wanted.contains(&program.name.as_str()) || is_installed(program);
        let programs: Vec<_> = object.programs().iter().filter(is_needed).collect();
        let pinned = pin();
        let options = LoadOptions { btf: object.btf(), leave_out_types: true, cpu: pinned.cpu() };
        let loaded = KernelObject::load(object.maps(), programs.iter().copied(), options);
        let mut kernel = loaded.map_err(KernelSideError::Load)?;
        let copies = KernelMaps::fill(collection, &mut kernel, pinned.cpu())?;
        let main = programs.iter().position(|program| wanted.first() == Some(&program.name.as_str()));
        let names = programs.iter().map(|program| (program.name.clone(), program.kind.rules().meaning));
        let side = Self {
            object: kernel,
            copies,
            programs: names.collect(),
            main: main.unwrap_or(0),
            maps: object.maps().iter().map(|map| map.name.clone()).collect(),
            pinned,
        };
        side.install(collection, &programs)?;
        Ok(side)
    }

    /// Puts the programs of program arrays into the kernel's.
    fn install(&self, collection: &Collection, programs: &[&ProgramSpec]) -> Result<(), KernelSideError> {
        for (map, index, name) in installed(collection) {
            let program = programs.iter().position(|program| program.name == name);
            let program = program.and_then(|program| self.object.programs.get(program));
            let Some((program, map)) = program.zip(self.object.maps.get(map)) else {
                return Err(KernelSideError::NotLoaded(name));
            };
            let fd = program.fd().as_raw_fd().to_ne_bytes();
            map.update(&index.to_ne_bytes(), &fd, self.pinned.cpu()).map_err(KernelSideError::Run)?;
        }
        Ok(())
    }

    /// Runs a packet.
    pub(crate) fn run(&self, arrival: &Arrival<'_>) -> Result<Outcome, Failure> {
        let run = self.run_main(&test_packet(arrival)?).map_err(|error| match arrival.bytes.len() {
            bytes if bytes < MIN_PACKET && error.errno == Errno::EINVAL => KernelSideError::Short(bytes),
            _ => KernelSideError::Run(error),
        });
        Ok(self.outcome(run?)?)
    }

    /// The same; `None` for a packet that test runs do not take: one that is too short or too long, mostly.
    pub(crate) fn run_if_taken(&self, arrival: &Arrival<'_>) -> Result<Option<Outcome>, Failure> {
        match self.run_main(&test_packet(arrival)?) {
            // The kernel has no such interface.
            Err(error) if matches!(error.errno, Errno::EINVAL | Errno::ENODEV) => Ok(None),
            result => Ok(Some(self.outcome(result.map_err(KernelSideError::Run)?)?)),
        }
    }

    fn run_main(&self, packet: &Packet<'_>) -> Result<TestRun, KernelError> {
        let none = || KernelError { operation: "test run", errno: Errno::ENOENT, log: String::new() };
        let program = self.object.programs.get(self.main).ok_or_else(none)?;
        program.test_run(packet)
    }

    /// The outcome of a test run, which tells neither where a packet is redirected to nor events.
    fn outcome(&self, run: TestRun) -> Result<Outcome, KernelSideError> {
        let (_, meaning) = self.programs.get(self.main).ok_or(KernelSideError::Chain)?;
        let context = run.sk_buff.as_ref().map(members_of).transpose()?;
        Ok(Outcome {
            verdict: meaning.verdict(meaning.code(run.retval.into())),
            returned: run.retval,
            redirect: None,
            stored: None,
            bytes: run.data,
            metadata: run.meta,
            context,
            fault: None,
        })
    }

    /// Runs a program on what another one left: the packet, and the `__sk_buff` of TC classifiers.
    pub(crate) fn run_after(
        &self,
        program: &str,
        data: &[u8],
        sk_buff: Option<&SkBuffBytes>,
    ) -> Result<TestRun, Failure> {
        let index = self.programs.iter().position(|(name, _)| name == program);
        let program = index.and_then(|index| self.object.programs.get(index));
        let program = program.ok_or(KernelSideError::Chain)?;
        Ok(program.test_run_after(data, sk_buff).map_err(KernelSideError::Run)?)
    }

    /// The value of an array's first element; `None` if there is no such map.
    pub(crate) fn value(&self, map: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(map) = self.map(map) else { return Ok(None) };
        Ok(Some(map.lookup(&[0; 4], self.pinned.cpu()).map_err(KernelSideError::Run)?))
    }

    /// Sets it to zero.
    pub(crate) fn clear(&self, map: &str) -> Result<(), Failure> {
        let Some(map) = self.map(map) else { return Ok(()) };
        // A shorter value is padded with zeros.
        Ok(map.update(&[0; 4], &[], self.pinned.cpu()).map_err(KernelSideError::Run)?)
    }

    fn map(&self, name: &str) -> Option<&KernelMap> {
        self.object.maps.get(self.maps.iter().position(|known| known == name)?)
    }

    /// Nanoseconds of a packet, the mean of so many runs; what the program changed in the packet stays from run to run.
    pub(crate) fn time(&self, packet: &[u8], repeat: u32) -> Result<u32, Failure> {
        Ok(self.program()?.time(packet, repeat).map_err(KernelSideError::Run)?)
    }

    fn program(&self) -> Result<&Program, KernelSideError> {
        self.object.programs.get(self.main).ok_or(KernelSideError::Chain)
    }

    /// Gives the maps of the subject the contents of the kernel's.
    pub(crate) fn read_maps(&self, subject: &Subject) -> Result<(), Failure> {
        for (_, collection) in &subject.parts {
            self.copies.read_back(collection, &self.object, self.pinned.cpu())?;
        }
        Ok(())
    }
}

/// A packet for a test run.
fn test_packet<'p>(arrival: &Arrival<'p>) -> Result<Packet<'p>, KernelSideError> {
    let Arrival { bytes, metadata, ingress, queue, context, .. } = *arrival;
    let taken = |name: &str| SK_BUFF_MEMBERS.contains(&name);
    match context.members().find(|(name, _)| !taken(name)) {
        Some((name, _)) => Err(KernelSideError::Context(name)),
        None => Ok(Packet {
            data: bytes,
            meta: metadata,
            ingress_ifindex: ingress,
            rx_queue: queue.into(),
            sk_buff: context,
        }),
    }
}

/// Whether a test run tells a member of the `sk_buff`.
pub(crate) fn tells_member(name: &str) -> bool {
    SK_BUFF_MEMBERS.contains(&name)
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
