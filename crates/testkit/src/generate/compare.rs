//! Running generated programs on two engines.

use std::sync::Arc;

use paceline::{Burst, FrameMeta, Host, Limits, Map};
use paceline_spec::ProgramSpec;

use super::generated::Generated;
use super::state::{State, state_map};
use crate::kernel::{self, KernelError, Packet, Request};

/// An engine that runs generated programs.
pub trait Subject {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Loads a program and runs it on each state. Returns the final states, or the error that stopped a run.
    ///
    /// # Errors
    /// It refuses the program.
    fn run(&mut self, program: &ProgramSpec, inputs: &[State])
    -> Result<Vec<Result<State, String>>, Refused>;

    /// Additional text about a program for reports.
    fn explain(&mut self, _program: &ProgramSpec) -> Option<String> {
        None
    }
}

/// Refusal of a program, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// Generated programs do not read the packet.
const PACKET: [u8; 64] = [0; 64];

/// The plain interpreter.
pub struct PlainSubject {
    map: Arc<Map>,
    host: Host,
    burst: Burst,
}

impl PlainSubject {
    /// An interpreter that reuses its map.
    ///
    /// # Errors
    /// The map cannot be created.
    pub fn new() -> Result<Self, paceline::CreateError> {
        let limits = Limits { cpus: 1, memory: 1 << 20 };
        let mut burst = Burst::new(1);
        let pushed = burst.push(&PACKET, FrameMeta::default());
        debug_assert!(pushed.is_ok(), "an empty burst takes a short packet");
        Ok(Self { map: Map::create(&state_map(), &limits)?, host: Host::default(), burst })
    }
}

impl Subject for PlainSubject {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn run(
        &mut self,
        program: &ProgramSpec,
        inputs: &[State],
    ) -> Result<Vec<Result<State, String>>, Refused> {
        let refused = |error: &dyn std::fmt::Display| Refused(error.to_string());
        let program = paceline::Program::new(Arc::new(program.clone()), vec![self.map.clone()])
            .map_err(|error| refused(&error))?;
        let mut results = Vec::new();
        for input in inputs {
            self.map.insert(&[0; 4], &input.to_bytes()).map_err(|error| refused(&error))?;
            let result = program.run_raw(&mut self.burst.frame_mut(0), &mut self.host);
            let left = self.map.lookup(&[0; 4]).map_err(|error| refused(&error))?;
            let left =
                State::from_bytes(&left).ok_or_else(|| Refused("a state of another size".to_owned()))?;
            results.push(result.map(|_| left).map_err(|fault| fault.to_string()));
        }
        Ok(results)
    }
}

/// The kernel.
pub struct KernelSubject {
    maps: [kernel::Map; 1],
}

impl KernelSubject {
    /// A subject that reuses its map.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn new() -> Result<Self, KernelError> {
        Ok(Self { maps: [kernel::Map::create(&state_map(), None, None)?] })
    }

    fn run_once(&self, program: &kernel::Program, input: &State) -> Result<State, KernelError> {
        let [map] = &self.maps;
        map.update(&[0; 4], &input.to_bytes(), 0)?;
        program.test_run(&Packet::new(&PACKET))?;
        let left = map.lookup(&[0; 4], 0)?;
        Ok(State::from_bytes(&left).unwrap_or_else(|| unreachable!("the map's values are states")))
    }
}

impl Subject for KernelSubject {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn run(
        &mut self,
        program: &ProgramSpec,
        inputs: &[State],
    ) -> Result<Vec<Result<State, String>>, Refused> {
        let request = Request { maps: &self.maps, ..Request::xdp(&program.insns) };
        let program = kernel::Program::load(&request).map_err(|error| Refused(error.to_string()))?;
        let run = |input| self.run_once(&program, input).map_err(|error| paceline::with_causes(&error));
        Ok(inputs.iter().map(run).collect())
    }

    fn explain(&mut self, program: &ProgramSpec) -> Option<String> {
        let request = Request { maps: &self.maps, ..Request::xdp(&program.insns) };
        match kernel::Program::load_with_log(&request) {
            Ok((_, log)) => Some(log),
            Err(error) => Some(error.log),
        }
    }
}

/// Two engines left different states, or one refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Disagreement {
    /// An engine refuses the program.
    #[error("{engine} refuses the program: {reason}")]
    Refused {
        /// The engine.
        engine: &'static str,
        /// Reason.
        reason: Refused,
    },
    /// They leave different states.
    #[error("on input {input} {one} leaves {ones:?}\n{other} {others:?}")]
    Result {
        /// Index of the input.
        input: usize,
        /// An engine.
        one: &'static str,
        /// Its final state.
        ones: Result<State, String>,
        /// Another engine.
        other: &'static str,
        /// Its final state.
        others: Result<State, String>,
    },
}

impl Disagreement {
    /// Whether it is the same kind of failure as another, perhaps with other values; shrinking preserves it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused { engine, .. }, Self::Refused { engine: theirs, .. }) => engine == theirs,
            (Self::Result { ones, others, .. }, Self::Result { ones: o, others: p, .. }) => {
                (ones.is_ok(), others.is_ok()) == (o.is_ok(), p.is_ok())
            }
            _ => false,
        }
    }
}

/// Runs a program on both engines.
///
/// # Errors
/// The first [`Disagreement`].
pub fn check(
    generated: &Generated,
    one: &mut dyn Subject,
    other: &mut dyn Subject,
) -> Result<(), Disagreement> {
    let program = generated.program();
    let run = |subject: &mut dyn Subject| {
        let engine = subject.name();
        subject.run(&program, &generated.inputs).map_err(|reason| Disagreement::Refused { engine, reason })
    };
    let (ones, others) = (run(one)?, run(other)?);
    for (input, (ones, others)) in ones.into_iter().zip(others).enumerate() {
        if ones != others || ones.is_err() {
            return Err(Disagreement::Result { input, one: one.name(), ones, other: other.name(), others });
        }
    }
    Ok(())
}
