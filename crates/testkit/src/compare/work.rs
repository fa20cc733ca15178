//! Work for engines: a verified program, its tail call targets, packets, contents of maps.

use std::sync::OnceLock;

use fastrand::Rng;
use paceline_isa::{Imm64, Insn};
use paceline_spec::{InitialValue, MapSpec, ProgramSpec};
use paceline_verifier::{Options, Refusal, Verified, verify};

use crate::random::{Candidate, Purpose, btf, candidate};

/// Maximum number of simulated instructions: programs for engines should be cheap to verify.
const LIMIT: usize = 20_000;
/// Entries of the program arrays.
const TARGETS: usize = 2;

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its bytes.
    pub data: Vec<u8>,
    /// Metadata before them.
    pub meta: Vec<u8>,
}

/// One program to run.
#[derive(Clone, Debug)]
pub struct Work {
    /// The program, followed by the programs in the program array of its type, from index 0 on.
    pub programs: Vec<Verified>,
    /// Indices of the maps that they use, without program arrays.
    pub used: Vec<usize>,
    /// The packets.
    pub inputs: Vec<&'static Input>,
    /// Seed of the maps' contents.
    pub seed: u64,
}

impl Work {
    /// Words of stack that the program may read uninitialized.
    pub(super) fn unwritten_words(&self) -> u32 {
        let functions = self.programs.iter().take(1).flat_map(Verified::functions);
        functions.map(|function| function.zeroed.count_ones()).sum()
    }
}

/// Creates work.
pub struct Workshop {
    specs: Vec<MapSpec>,
    options: Options,
}

impl Workshop {
    /// One over these maps.
    #[must_use]
    pub fn new(specs: Vec<MapSpec>) -> Self {
        Self { specs, options: Options::default().max_instructions(LIMIT) }
    }

    /// The maps.
    #[must_use]
    pub fn specs(&self) -> &[MapSpec] {
        &self.specs
    }

    /// The random program of a seed, with this number of packets.
    ///
    /// # Errors
    /// The verifier refuses it; `None` if its layout fails.
    pub fn work(&self, seed: u64, runs: usize) -> Result<(Candidate, Work), Option<Box<Refusal>>> {
        let made = candidate(seed, Purpose::Run);
        let main = self.verify(&made)?;
        let mut programs = vec![main];
        if programs.iter().any(Verified::has_tail_calls) {
            programs.extend(self.targets(seed, &made));
        }
        Ok((made, self.work_of(programs, seed, runs)))
    }

    /// Work for these programs, with random packets.
    pub(super) fn work_of(&self, programs: Vec<Verified>, seed: u64, runs: usize) -> Work {
        let used = used_maps(&programs, &self.specs);
        let mut rng = Rng::with_seed(seed);
        let pool = packets();
        let inputs = (0..runs).map(|_| &pool[rng.usize(..pool.len())]).collect();
        Work { programs, used, inputs, seed }
    }

    /// Programs of the same type for the program arrays, of seeds far from those of main programs.
    fn targets(&self, seed: u64, like: &Candidate) -> Vec<Verified> {
        let seeds = (1..64u64).map(|i| seed.wrapping_mul(64).wrapping_add(i) ^ 1 << 63);
        let same_kind =
            seeds.map(|seed| candidate(seed, Purpose::Run)).filter(|other| other.kind == like.kind);
        same_kind.filter_map(|other| self.verify(&other).ok()).take(TARGETS).collect()
    }

    pub(super) fn verify(&self, candidate: &Candidate) -> Result<Verified, Option<Box<Refusal>>> {
        let program = candidate.program().ok_or(None)?;
        self.verify_program(&program).map_err(Some)
    }

    pub(super) fn verify_program(&self, program: &ProgramSpec) -> Result<Verified, Box<Refusal>> {
        verify(program, &self.specs, Some(btf()), &self.options)
    }

    /// The same work with another main program; `None` if the verifier refuses that.
    #[must_use]
    pub fn with_program(&self, work: &Work, program: ProgramSpec) -> Option<Work> {
        let main = self.verify_program(&program).ok()?;
        let mut work = work.clone();
        *work.programs.first_mut()? = main;
        if !work.programs.iter().take(1).any(Verified::has_tail_calls) {
            work.programs.truncate(1);
        }
        work.used = used_maps(&work.programs, &self.specs);
        Some(work)
    }

    /// A map with its initial contents.
    #[must_use]
    pub fn contents_of(&self, index: usize, work: &Work) -> Option<MapSpec> {
        let mut spec = self.specs.get(index)?.clone();
        if !spec.frozen && spec.inner.is_none() {
            let bytes = |(key, value)| (key, InitialValue::Bytes(value));
            spec.contents = contents(&spec, index, work.seed).map(bytes).collect();
        }
        Some(spec)
    }
}

/// The initial elements of a map.
pub(super) fn contents(spec: &MapSpec, index: usize, seed: u64) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let mut rng = Rng::with_seed(seed ^ (index as u64) << 32);
    let keyed = spec.kind.is_keyed();
    let has_values = keyed || spec.kind.is_array();
    let (kind, key_size, value_size) = (spec.kind, spec.key_size as usize, spec.value_size as usize);
    let count = if has_values && !spec.frozen { spec.max_entries.min(6) } else { 0 };
    (0..count).filter_map(move |element| {
        if keyed && rng.bool() {
            return None;
        }
        let number = element.to_ne_bytes();
        let mut key = vec![0; key_size];
        match kind.has_prefixes() {
            true => {
                key[..4].copy_from_slice(&rng.choice([0u32, 8, 16, 24, 32]).unwrap_or(0).to_ne_bytes());
                key[4..8].copy_from_slice(&number);
            }
            false => key[..4].copy_from_slice(&number),
        }
        let value = (0..value_size).map(|_| [rng.u8(..), rng.u8(..4), 0, 0xff][rng.usize(..4)]).collect();
        Some((key, value))
    })
}

fn used_maps(programs: &[Verified], specs: &[MapSpec]) -> Vec<usize> {
    let mut used: Vec<usize> = programs
        .iter()
        .flat_map(|verified| verified.code().iter())
        .filter_map(|(_, insn)| match insn {
            Insn::LoadImm64 {
                value: Imm64::MapIndex(index) | Imm64::MapValueIndex { index, .. }, ..
            } => usize::try_from(*index).ok(),
            _ => None,
        })
        .filter(|&index| specs.get(index).is_some_and(|spec| !spec.kind.holds_programs()))
        .collect();
    let inner = |&index: &usize| {
        let contents = specs.get(index).map_or(&[][..], |spec| &spec.contents);
        contents.iter().filter_map(|(_, value)| match value {
            InitialValue::Map(inner) => Some(*inner),
            _ => None,
        })
    };
    used.extend(used.iter().flat_map(inner).collect::<Vec<_>>());
    used.sort_unstable();
    used.dedup();
    used
}

/// Packets of many lengths, the same in every process.
fn packets() -> &'static [Input] {
    static PACKETS: OnceLock<Vec<Input>> = OnceLock::new();
    PACKETS.get_or_init(|| {
        let mut rng = Rng::with_seed(0);
        (0..512).map(|_| packet(&mut rng)).collect()
    })
}

fn packet(rng: &mut Rng) -> Input {
    let len = match rng.u8(..6) {
        0 => rng.choice([14, 34, 54, 60, 64, 128, 255, 256, 257, 600, 1500]).unwrap_or(60),
        _ => rng.usize(14..120),
    };
    let mut data: Vec<u8> = (0..len).map(|_| [rng.u8(..), rng.u8(..4), 0, 0xff][rng.usize(..4)]).collect();
    // A type and no length, for which the kernel's test run would look behind the second header that it gets; and not
    // that of IPv4, of which it wants whole headers.
    data[12] |= 8;
    data[13] |= 1;
    let meta_words = if rng.u8(..3) == 0 { rng.usize(1..8) } else { 0 };
    Input { data, meta: (0..4 * meta_words).map(|_| rng.u8(..)).collect() }
}
