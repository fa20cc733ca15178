//! Programs that look up keys, and their runners.

use std::error::Error;
use std::sync::Arc;

use paceline::verifier::{Options, verify};
use paceline::{Burst, Engine, FrameMeta, Host, Limits, Map, MapKind, MapSpec, Program};
use paceline_isa::{Names, assemble};
use paceline_spec::helper::Helper;
use paceline_spec::{ProgramKind, ProgramSpec, XdpAttach};

use super::like::Like;

/// Look-ups per program run, enough that the rest of the run is negligible.
const TIMES: usize = 16;

/// A range of numbers of keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) count: u32,
    pub(crate) start: u32,
}

/// Operation of a program on its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Nothing,
    LookUp,
    Update,
}

/// A subject that generates keys, and may operate on them; returns their number.
pub(crate) trait Subject {
    fn run(&mut self, runs: usize) -> Result<u64, Box<dyn Error>>;
}

/// The multiplier of a linear congruential generator (Knuth's), whose upper half selects the key.
pub(crate) const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Number of a key, from the state of the generator.
pub(crate) fn number(state: u64, keys: Keys) -> u32 {
    (((state >> 32) * u64::from(keys.count)) >> 32) as u32 + keys.start
}

/// A key: its number, then constant bytes. A route is a prefix length and an address.
pub(crate) fn key(like: Like, number: u32) -> Vec<u8> {
    if like.kind == MapKind::LpmTrie {
        return [32_u32.to_ne_bytes(), number.to_ne_bytes()].concat();
    }
    let mut key = vec![0x5a; like.key_size as usize];
    key[..4].copy_from_slice(&number.to_ne_bytes());
    key
}

/// A map of values of 8 bytes.
pub(crate) fn map_spec(name: &str, like: Like) -> MapSpec {
    MapSpec { flags: like.flags, ..MapSpec::new(name, like.kind, like.key_size, 8, like.entries) }
}

/// The measured map, and the state of the generator.
pub(crate) fn specs(like: Like) -> [MapSpec; 2] {
    [map_spec("m", like), map_spec("state", Like::new(MapKind::PerCpuArray, 4, 1))]
}

struct Maps;

impl Names for Maps {
    fn helper(&self, name: &str) -> Option<i32> {
        Helper::from_name(name).map(|helper| helper.id.imm())
    }

    fn map(&self, name: &str) -> Option<i32> {
        ["m", "state"].iter().position(|known| *known == name).map(|index| index as i32)
    }
}

/// The program, in assembly.
pub(crate) fn program(like: Like, task: Task, keys: Keys) -> Result<ProgramSpec, Box<dyn Error>> {
    let is_route = like.kind == MapKind::LpmTrie;
    let start = like.key_size.next_multiple_of(8) as i32;
    let at = |offset: i32| offset - start;
    let mut text = String::from(
        "*(u32 *)(r10 - 64) = 0\nr1 = map[state] ll\nr2 = r10\nr2 += -64\ncall bpf_map_lookup_elem\n\
         if r0 == 0 goto out\nr6 = r0\nr7 = *(u64 *)(r6 + 0)\nr8 = 0\n*(u64 *)(r10 - 56) = 1\n",
    );
    for word in (0..start).step_by(8) {
        text += &format!("r1 = 0x5a5a5a5a5a5a5a5a ll\n*(u64 *)(r10 {:+}) = r1\n", at(word));
    }
    if is_route {
        text += &format!("*(u32 *)(r10 {:+}) = 32\n", at(0));
    }
    for i in 0..TIMES {
        text += &format!("r1 = {MULTIPLIER} ll\nr7 *= r1\nr7 += 1442695\nr1 = r7\nr1 >>= 32\n");
        if !is_route {
            text += &format!("r2 = {} ll\nr1 *= r2\nr1 >>= 32\nr1 += {}\n", keys.count, keys.start);
        }
        text += &format!("*(u32 *)(r10 {:+}) = r1\n", at(if is_route { 4 } else { 0 }));
        let address = format!("r1 = map[m] ll\nr2 = r10\nr2 += {}\n", at(0));
        text += &match task {
            Task::Nothing => format!("r1 = *(u32 *)(r10 {:+})\nr8 += r1\n", at(0)),
            Task::LookUp => format!(
                "{address}call bpf_map_lookup_elem\nif r0 == 0 goto missing{i}\nr1 = *(u64 *)(r0 + 0)\nr8 += r1\nmissing{i}:\n"
            ),
            Task::Update => {
                format!("{address}r3 = r10\nr3 += -56\nr4 = 0\ncall bpf_map_update_elem\nr8 += r0\n")
            }
        };
    }
    text += "*(u64 *)(r6 + 0) = r7\nout:\nr0 = 2\nexit\n";
    let code = assemble(&text, &Maps)?;
    let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
    Ok(ProgramSpec::new("keys", kind, code.encode()?))
}

/// Our map, full.
pub(crate) struct Ours {
    pub(crate) like: Like,
    pub(crate) maps: Vec<Arc<Map>>,
}

impl Ours {
    /// Number of CPUs of per-CPU maps.
    pub(crate) const CPUS: usize = 2;

    pub(crate) fn empty(like: Like) -> Result<Self, Box<dyn Error>> {
        let limits = Limits { cpus: Self::CPUS, memory: 1 << 34 };
        let maps = specs(like).iter().map(|spec| Map::create(spec, &limits)).collect::<Result<_, _>>()?;
        Ok(Self { like, maps })
    }

    pub(crate) fn filled(like: Like) -> Result<Self, Box<dyn Error>> {
        let ours = Self::empty(like)?;
        ours.fill(0..like.entries)?;
        Ok(ours)
    }

    pub(crate) fn fill(&self, keys: impl Iterator<Item = u32>) -> Result<(), Box<dyn Error>> {
        let value = vec![1; self.maps[0].user_value_size()];
        for number in keys {
            self.maps[0].insert(&key(self.like, number), &value)?;
        }
        Ok(())
    }

    pub(crate) fn with(&self, task: Task, keys: Keys) -> Result<OurProgram, Box<dyn Error>> {
        let spec = program(self.like, task, keys)?;
        let verified = verify(&spec, &specs(self.like), None, &Options::default())?;
        let program = Program::load(&verified, self.maps.clone(), Engine::Jit)?;
        let mut burst = Burst::default();
        while !burst.is_full() {
            burst.push(&[0; 64], FrameMeta::default())?;
        }
        Ok(OurProgram { program, burst, host: Host::new(0) })
    }
}

/// One of our programs on a burst.
pub(crate) struct OurProgram {
    program: Program,
    burst: Burst,
    pub(crate) host: Host,
}

impl Subject for OurProgram {
    fn run(&mut self, runs: usize) -> Result<u64, Box<dyn Error>> {
        let bursts = runs.div_ceil(self.burst.len());
        for _ in 0..bursts {
            self.program.run_burst(&mut self.burst, &mut self.host)?;
        }
        self.host.give_back_cpu();
        Ok((bursts * self.burst.len() * TIMES) as u64)
    }
}

#[cfg(feature = "kernel")]
pub(crate) use kernel::Kernels;

#[cfg(feature = "kernel")]
mod kernel {
    use std::error::Error;
    use std::os::fd::AsRawFd;

    use paceline_testkit::kernel::{KernelObject, LoadOptions, Map, Program, probe};

    use crate::maps::like::Like;
    use crate::maps::program::{Keys, Subject, TIMES, Task, key, program, specs};

    /// The kernel's map, full.
    pub(crate) struct Kernels {
        like: Like,
        object: KernelObject,
    }

    impl Kernels {
        /// `None` if the kernel is not available.
        pub(crate) fn empty(like: Like) -> Option<Self> {
            probe().ok()?;
            let object = KernelObject::load(&specs(like), [], LoadOptions::default()).ok()?;
            Some(Self { like, object })
        }

        pub(crate) fn filled(like: Like) -> Option<Self> {
            let kernels = Self::empty(like)?;
            kernels.fill(0..like.entries).ok()?;
            Some(kernels)
        }

        pub(crate) fn map(&self) -> &Map {
            &self.object.maps[0]
        }

        pub(crate) fn fill(&self, keys: impl Iterator<Item = u32>) -> Result<(), Box<dyn Error>> {
            for number in keys {
                self.map().update(&key(self.like, number), &[1; 8], 0)?;
            }
            Ok(())
        }

        pub(crate) fn set(&self, key: &[u8]) -> Result<(), Box<dyn Error>> {
            Ok(self.map().update(key, &[1; 8], 0)?)
        }

        /// Memory that the map's descriptor reports.
        pub(crate) fn charged_bytes(&self) -> Result<u64, Box<dyn Error>> {
            let file = format!("/proc/self/fdinfo/{}", self.map().fd().as_raw_fd());
            Ok(crate::machine::line_of(&file, "memlock").ok_or("no memlock")?.parse()?)
        }

        pub(crate) fn with(&self, task: Task, keys: Keys) -> Result<KernelProgram, Box<dyn Error>> {
            let spec = program(self.like, task, keys)?;
            Ok(KernelProgram(Program::load(&self.object.request(&spec))?))
        }
    }

    /// A program in the kernel, by test-run.
    pub(crate) struct KernelProgram(Program);

    impl Subject for KernelProgram {
        fn run(&mut self, runs: usize) -> Result<u64, Box<dyn Error>> {
            self.0.time(&[0; 64], runs as u32)?;
            Ok((runs * TIMES) as u64)
        }
    }
}

/// `Linux 6.1 test-run`
pub(crate) fn kernel_name() -> String {
    format!("Linux {} JIT, test-run", crate::machine::kernel())
}

/// Without the feature the kernel is not available.
#[cfg(not(feature = "kernel"))]
pub(crate) struct Kernels(std::convert::Infallible);

#[cfg(not(feature = "kernel"))]
impl Kernels {
    pub(crate) fn empty(_: Like) -> Option<Self> {
        None
    }

    pub(crate) fn filled(_: Like) -> Option<Self> {
        None
    }

    pub(crate) fn fill(&self, _: impl Iterator<Item = u32>) -> Result<(), Box<dyn Error>> {
        match self.0 {}
    }

    pub(crate) fn set(&self, _: &[u8]) -> Result<(), Box<dyn Error>> {
        match self.0 {}
    }

    pub(crate) fn charged_bytes(&self) -> Result<u64, Box<dyn Error>> {
        match self.0 {}
    }

    pub(crate) fn with(&self, _: Task, _: Keys) -> Result<OurProgram, Box<dyn Error>> {
        match self.0 {}
    }
}
