//! Options of loading an object.

use paceline_engine::{DEFAULT_BUDGET, Engine, LookAhead};
use paceline_maps::Limits;

/// Options of [`Object::load`](crate::Object::load), set one after the other.
///
/// ```
/// use paceline::{Engine, LoadOptions};
///
/// let options = LoadOptions::default().engine(Engine::Plain).cpus(4).map_memory(1 << 30);
/// assert_eq!(options.limits.cpus, 4);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Limits of maps.
    pub limits: Limits,
    /// Maximum number of instructions that a program may run for one packet, on engines that count them.
    pub budget: u64,
    /// Engine of verified programs; unverified ones run on the plain interpreter.
    pub engine: Engine,
    /// Whether bursts of native code run in stages, with the first look-ups ahead.
    pub look_ahead: LookAhead,
    /// Whether entries of program arrays stay empty if their programs need what Paceline does not have.
    pub leaves_unsupported: bool,
}

impl LoadOptions {
    /// Lets entries of program arrays stay empty if their programs need what Paceline does not have, instead of refusing the programs that
    /// may call them: tail calls to them fail, and [`Collection::unfilled`](crate::Collection::unfilled) lists them.
    #[must_use]
    pub const fn leaving_unsupported(mut self) -> Self {
        self.leaves_unsupported = true;
        self
    }

    /// Sets the engine of verified programs.
    #[must_use]
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets whether bursts of native code run in stages, with the first look-ups ahead.
    #[must_use]
    pub const fn look_ahead(mut self, look_ahead: LookAhead) -> Self {
        self.look_ahead = look_ahead;
        self
    }

    /// Sets the instructions that a program may run for one packet, on engines that count them.
    #[must_use]
    pub const fn budget(mut self, instructions: u64) -> Self {
        self.budget = instructions;
        self
    }

    /// Sets the limits of maps.
    #[must_use]
    pub const fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the number of CPUs (workers) that have values of their own in per-CPU maps.
    #[must_use]
    pub const fn cpus(mut self, cpus: usize) -> Self {
        self.limits.cpus = cpus;
        self
    }

    /// Sets the maximum number of bytes of one map.
    #[must_use]
    pub const fn map_memory(mut self, bytes: u64) -> Self {
        self.limits.memory = bytes;
        self
    }
}

impl Default for LoadOptions {
    /// One CPU, maps of up to 4 GiB each, [`DEFAULT_BUDGET`], and the fastest engine of this machine.
    fn default() -> Self {
        Self {
            limits: Limits { cpus: 1, memory: 4 << 30 },
            budget: DEFAULT_BUDGET,
            engine: Engine::best(),
            look_ahead: LookAhead::default(),
            leaves_unsupported: false,
        }
    }
}
