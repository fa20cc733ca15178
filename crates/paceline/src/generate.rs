//! Inputs for each side of each branch of a program, each of them run before it is called good.
//!
//! ```
//! use paceline::Object;
//! use paceline::generate::{Options, generate};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vlan.o");
//! let object = Object::open(path)?;
//! let generated = generate(&object, &object.programs()[0], &Options::default())?;
//! assert!(generated.failures.is_empty());
//! for (side, confirmed) in &generated.reached {
//!     println!("{}: {} bytes, {}", side.slot, confirmed.input.packet.len(), confirmed.verdict.name());
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paceline_explain::Outcome;
use paceline_frame::{Burst, FrameMeta, Redirect, Verdict};
use paceline_isa::{Insn, Operand, eval};
use paceline_maps::Map;
use paceline_spec::{Errno, ProgramSpec};
use paceline_symbolic::{Fate, explore};
use paceline_vm::{Engine, Fault, Host, Observed, Program, TimeSource};

pub use paceline_symbolic::{Element, GiveUp, Input, Options, Place, Side};

use crate::{Collection, LoadOptions, NoProgram, Object, Refused, SetupError};

/// The reason why nothing is generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The program is not safe, or needs what is not supported.
    #[error(transparent)]
    Refused(Box<Refused>),
    /// The maps cannot be made.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The program cannot be run.
    #[error(transparent)]
    NoProgram(#[from] NoProgram),
}

/// An input that was run, with what came of it.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The input.
    pub input: Input,
    /// Fate of the packet.
    pub verdict: Verdict,
    /// The return value.
    pub code: u32,
    /// The packet's bytes afterwards.
    pub bytes: Vec<u8>,
    /// Where it was redirected to.
    pub redirect: Option<Redirect>,
    /// The sides of branches that the run took.
    pub sides: BTreeSet<Side>,
}

/// An input that does not do what it was made for: a fault of this library.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The side that it was to take.
    pub side: Side,
    /// The input.
    pub input: Input,
    /// What happened instead.
    pub how: Missed,
}

/// What an input did instead of taking its side.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missed {
    /// It went another way.
    #[error("the run took another way")]
    OtherWay,
    /// The run ended in a fault.
    #[error("the run ended: {0}")]
    Fault(String),
    /// An element could not be put into its map.
    #[error("map {map} refused an element: {errno}")]
    Element {
        /// The map's name.
        map: String,
        /// The map's answer.
        errno: Errno,
    },
    /// The packet is longer than a frame.
    #[error("the packet is too long")]
    TooLong,
}

/// What is known of the sides of a program's branches.
#[derive(Clone, Debug, Default)]
pub struct Generated {
    /// Inputs by the sides that they were made for.
    pub reached: BTreeMap<Side, Confirmed>,
    /// Sides that no input takes; whether the verifier's walk tells it.
    pub unreachable: BTreeMap<Side, bool>,
    /// Sides of which nothing is known, and why.
    pub given_up: BTreeMap<Side, Place>,
    /// Inputs that did not take their side.
    pub failures: Vec<Failure>,
    /// Paths that were followed.
    pub paths: u64,
    /// Questions to the solver, and how many of them took a search.
    pub questions: (u64, u64),
}

/// Looks for an input for each side of each conditional jump of a program, and runs each on the plain interpreter.
///
/// # Errors
/// The program is refused, or cannot be loaded.
pub fn generate(
    object: &Object,
    program: &ProgramSpec,
    options: &Options,
) -> Result<Generated, GenerateError> {
    let verified = object.verify(program).map_err(|refused| GenerateError::Refused(Box::new(refused)))?;
    let options = Options { random: Host::randoms_of, ..*options };
    let exploration = explore(&verified, object.maps(), &options);
    let mut generated =
        Generated { paths: exploration.paths, questions: exploration.questions, ..Generated::default() };
    for (side, fate) in exploration.sides {
        match fate {
            Fate::Reached(input) => match confirm(object, &program.name, &input, side)? {
                Ok(confirmed) => drop(generated.reached.insert(side, confirmed)),
                Err(how) => generated.failures.push(Failure { side, input: *input, how }),
            },
            Fate::Unreachable { by_verifier } => drop(generated.unreachable.insert(side, by_verifier)),
            Fate::GivenUp(place) => drop(generated.given_up.insert(side, place)),
        }
    }
    Ok(generated)
}

/// Runs an input on the plain interpreter, with maps of its own.
fn confirm(
    object: &Object,
    program: &str,
    input: &Input,
    side: Side,
) -> Result<Result<Confirmed, Missed>, GenerateError> {
    let collection = object.load(&LoadOptions::default().engine(Engine::Plain))?;
    let program = collection.program_unverified(Some(program))?;
    if let Err(missed) = fill(object, &collection, input) {
        return Ok(Err(missed));
    }
    let (outcome, sides) = match run(&program, input) {
        Ok(run) => run,
        Err(missed) => return Ok(Err(missed)),
    };
    if !sides.contains(&side) {
        return Ok(Err(Missed::OtherWay));
    }
    let Outcome { verdict, code, redirect, bytes, .. } = outcome;
    Ok(Ok(Confirmed { input: input.clone(), verdict, code, redirect, bytes, sides }))
}

/// Puts the elements of an input into the maps of a collection.
///
/// # Errors
/// [`Missed::Element`]: a map refuses one.
pub fn fill(object: &Object, collection: &Collection, input: &Input) -> Result<(), Missed> {
    for (index, elements) in &input.maps {
        let Some(map) = object.maps().get(*index).and_then(|spec| collection.map(&spec.name)) else {
            continue;
        };
        for element in elements {
            let name = map.spec().name.clone();
            put(map, element).map_err(|errno| Missed::Element { map: name, errno })?;
        }
    }
    Ok(())
}

fn put(map: &Arc<Map>, element: &Element) -> Result<(), Errno> {
    let mut value = element.value.clone();
    if map.spec().kind.is_per_cpu() {
        value.resize(map.value_stride(), 0);
        value = value.repeat(map.user_value_size() / value.len().max(1));
    }
    map.update(&element.key, &value, 0)
}

/// Runs an input on the plain interpreter: what came of it, and the sides of the program's own branches that it took.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run(program: &Program, input: &Input) -> Result<(Outcome, BTreeSet<Side>), Missed> {
    run_in(program, &mut host(input), input)
}

/// The same in a host that may have run other packets before.
///
/// # Errors
/// [`Missed::TooLong`] or [`Missed::Fault`].
pub fn run_in(
    program: &Program,
    host: &mut Host,
    input: &Input,
) -> Result<(Outcome, BTreeSet<Side>), Missed> {
    let mut burst = burst(input)?;
    host.arrive(&burst);
    let mut sides = BTreeSet::new();
    let mut frame = burst.frame_mut(0);
    let exit = program.run_observed(&mut frame, host, |observed| sides.extend(side(observed)));
    exit.map_err(|fault: Box<Fault>| Missed::Fault(fault.to_string()))?;
    Ok((outcome(&burst), sides))
}

/// The host in which an input runs: its time, and its seed or that of tests.
#[must_use]
pub fn host(input: &Input) -> Host {
    let mut host = Host::default();
    host.seed(input.seed.unwrap_or(1));
    host.set_time(TimeSource::Packets);
    host.set_trace(std::io::sink());
    host
}

/// The packet of an input as a burst of one.
///
/// # Errors
/// [`Missed::TooLong`].
pub fn burst(input: &Input) -> Result<Burst, Missed> {
    let mut burst = Burst::new(1);
    let meta = FrameMeta {
        timestamp_ns: input.time_ns,
        original_len: input.packet.len() as u32,
        ..FrameMeta::default()
    };
    burst.push(&input.packet, meta).map_err(|_| Missed::TooLong)?;
    burst.frame_mut(0).set_ingress(input.ingress, input.queue);
    Ok(burst)
}

/// What became of the packet of a burst of one.
#[must_use]
pub fn outcome(burst: &Burst) -> Outcome {
    let frame = burst.frame(0);
    Outcome {
        verdict: frame.verdict(),
        code: frame.code(),
        redirect: frame.redirect().filter(|_| frame.verdict() == Verdict::Redirect),
        bytes: frame.packet().to_vec(),
        metadata: frame.metadata().to_vec(),
        fault: None,
    }
}

/// The side that a conditional jump takes.
fn side(observed: &Observed<'_>) -> Option<Side> {
    let Some(&Insn::JumpIf { width, condition, dst, src, .. }) = observed.insn() else { return None };
    let value = |reg: paceline_isa::Reg| observed.registers[usize::from(reg.number())];
    let right = match src {
        Operand::Reg(reg) => value(reg),
        Operand::Imm(imm) => imm as u64,
    };
    Some(Side { slot: observed.slot, taken: eval::compare(width, condition, value(dst), right) })
}
