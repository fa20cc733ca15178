//! W5: cost of a tail call, from chains of 1 and of 33.

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;

use paceline::{Collection, Engine, FrameMut, Host, LoadOptions, Object, Program, ProgramError, Verdict};

use super::contender::Chain;
use super::measure::ROUNDS;
use super::packets::Packets;
use crate::measure::{Timing, Work, rounds};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings};

/// `workloads/chain.bpf.c`: programs that each call the next index, and one that ends.
const OBJECT: &[u8] = include_bytes!("../../workloads/chain.o");

/// Maximum number of tail calls in a run.
const LONGEST: usize = 33;

/// Runs of a chain per round.
const ROUND: usize = 20_000;

/// The programs of one of our engines.
struct Ours {
    programs: Vec<Program>,
    collection: Collection,
    host: Host,
}

impl Ours {
    fn first(&self) -> Result<&Program, Box<dyn Error>> {
        Ok(self.programs.first().ok_or("the object has no program")?)
    }

    /// `None` if this machine does not have the engine.
    fn new(object: &Object, engine: Engine) -> Result<Option<Self>, Box<dyn Error>> {
        let collection = object.load(&LoadOptions::default().engine(engine))?;
        let mut programs = Vec::new();
        for spec in object.programs() {
            match collection.program(Some(&spec.name)) {
                Ok(program) => programs.push(program.into_program()),
                Err(ProgramError::Engine { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Self { programs, collection, host: Host::default() }))
    }
}

impl Chain for Ours {
    fn install(&mut self, index: usize, program: usize) -> Result<(), Box<dyn Error>> {
        let array = self.collection.maps().first().ok_or("the object has no map")?;
        Ok(self.programs.get(program).ok_or("no such program")?.install(array, index as u32)?)
    }

    fn verdict(&mut self, frame: &mut FrameMut<'_>) -> Result<u64, Box<dyn Error>> {
        Ok(self.first()?.clone().run_raw(frame, &mut self.host)?)
    }

    fn repeat(&mut self, frame: &mut FrameMut<'_>, count: usize) -> Result<(), Box<dyn Error>> {
        let program = self.first()?.clone();
        for _ in 0..count {
            black_box(program.run_raw(frame, &mut self.host)?);
        }
        Ok(())
    }
}

/// An engine for chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runner {
    Ours(Engine),
    #[cfg(feature = "kernel")]
    Kernel,
}

impl Runner {
    const ALL: &[Self] = &[
        Self::Ours(Engine::Jit),
        Self::Ours(Engine::Threaded),
        Self::Ours(Engine::Plain),
        #[cfg(feature = "kernel")]
        Self::Kernel,
    ];

    fn name(self) -> String {
        match self {
            Self::Ours(engine) => engine.name().to_owned(),
            #[cfg(feature = "kernel")]
            Self::Kernel => crate::kernel::name(),
        }
    }

    /// A chain of this number of tail calls; `None` if this machine does not have the engine.
    fn chain(self, object: &Object, calls: usize) -> Result<Option<Box<dyn Chain>>, Box<dyn Error>> {
        let mut chain: Box<dyn Chain> = match self {
            Self::Ours(engine) => match Ours::new(object, engine)? {
                Some(chain) => Box::new(chain),
                None => return Ok(None),
            },
            #[cfg(feature = "kernel")]
            Self::Kernel => Box::new(super::kernel::KernelChain::new(object)?),
        };
        let end = object.programs().iter().position(|program| program.name == "end").ok_or("no end")?;
        for index in 0..calls {
            // The final program follows the last link.
            let next =
                object.programs().iter().position(|program| program.name == format!("link_{}", index + 1));
            chain.install(index, next.filter(|_| index + 1 < calls).unwrap_or(end))?;
        }
        Ok(Some(chain))
    }
}

/// Cost of a tail call on each engine, against the kernel's.
pub(super) fn rows(settings: Settings) -> Rows {
    let object = Object::parse(OBJECT)?;
    let mut packets = Packets::hit()?;
    let mut frames = packets.frames();
    let frame = RefCell::new(frames.first_mut().ok_or("no packet")?);
    let (mut runners, mut works): (Vec<Runner>, Vec<Work<'_>>) = (Vec::new(), Vec::new());
    let count = if settings.smoke { 10 } else { ROUND };
    for &runner in Runner::ALL {
        let (Some(shortest), Some(longest)) = (runner.chain(&object, 1)?, runner.chain(&object, LONGEST)?)
        else {
            continue;
        };
        runners.push(runner);
        for mut chain in [shortest, longest] {
            let verdict = chain.verdict(&mut frame.borrow_mut())?;
            if verdict != Verdict::Pass as u64 {
                return Err(format!("W5: {} says {verdict}", runner.name()).into());
            }
            let frame = &frame;
            works.push(Box::new(move || {
                chain.repeat(&mut frame.borrow_mut(), count)?;
                Ok(count as u64)
            }));
        }
    }
    let times = if settings.smoke { rounds(0, &mut works)? } else { rounds(ROUNDS, &mut works)? };
    let calls: Vec<Timing> =
        times.chunks_exact(2).map(|pair| pair[1].minus(pair[0]).divided_by((LONGEST - 1) as f64)).collect();
    let per_call = |runner: Runner| runners.iter().position(|&r| r == runner).map(|index| calls[index]);
    Ok(compare(per_call))
}

/// Each of our engines against the kernel, if that is available.
fn compare(per_call: impl Fn(Runner) -> Option<Timing>) -> Vec<Row> {
    #[cfg(feature = "kernel")]
    let kernel = Some(Runner::Kernel);
    #[cfg(not(feature = "kernel"))]
    let kernel: Option<Runner> = None;
    let against = kernel.and_then(&per_call);
    let name = |kernel: Runner| kernel.name();
    let ours = Runner::ALL.iter().filter_map(|&runner| match runner {
        Runner::Ours(engine) => Some((engine, per_call(runner)?)),
        #[cfg(feature = "kernel")]
        Runner::Kernel => None,
    });
    ours.map(|(engine, ours)| {
        let figure = Figure::Time { ours, against };
        let row = Row::new(
            format!("W5 one tail call: chains of {LONGEST} and 1, {engine}"),
            kernel.map(name).unwrap_or_default(),
            figure,
        );
        let asked = engine == Engine::Jit;
        Row {
            bar: (asked && against.is_some()).then_some(Bar::Ratio(1.0)),
            reach: asked.then_some(Bar::Most(1.3)),
            ..row
        }
    })
    .collect()
}
