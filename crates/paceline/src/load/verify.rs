//! Programs that were proven safe.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use paceline_btf::Btf;
use paceline_engine::{BurstFault, Fault, Host, Program};
use paceline_frame::{Burst, FrameMut, Verdict};
use paceline_spec::ProgramSpec;
use paceline_verifier::{Cause, Observer, Options, Refusal, Verified, verify, verify_observed};

use super::object::Object;

/// The verifier refuses a program: the refusal with the program, its instructions and source lines.
#[derive(Clone, Debug)]
pub struct VerifierError {
    /// The program.
    pub program: Arc<ProgramSpec>,
    /// The guilty instruction, what is wrong with it, and how it was reached.
    pub refusal: Box<Refusal>,
    /// Options of the verification.
    pub options: Options,
}

impl VerifierError {
    /// Whether the program needs an unsupported feature, and may be safe.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.refusal.cause,
            Cause::MissingHelper(_) | Cause::Kfunc(_) | Cause::NotAllowed(_) | Cause::Poisoned(_)
        )
    }
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.is_unsupported() { "needs what is not supported" } else { "is not safe" };
        write!(f, "program {} {what}: {}", self.program.name, self.refusal)
    }
}

impl std::error::Error for VerifierError {}

impl Object {
    /// Proves that a program of this object is safe, with the object's maps and types as they are now.
    ///
    /// # Errors
    /// The refusal, or the unsupported feature.
    pub fn verify(&self, program: &ProgramSpec) -> Result<Verified, VerifierError> {
        let options = Options::default();
        verify(program, self.maps(), self.btf(), &options).map_err(|refusal| VerifierError {
            program: Arc::new(program.clone()),
            refusal,
            options,
        })
    }

    /// Like `verify`, with an observer of the walk.
    ///
    /// # Errors
    /// The refusal, or the unsupported feature.
    pub fn verify_observed(
        &self,
        program: &ProgramSpec,
        options: &Options,
        observer: &mut dyn Observer,
    ) -> Result<Verified, VerifierError> {
        verify_observed(program, self.maps(), self.btf(), options, observer).map_err(|refusal| {
            VerifierError { program: Arc::new(program.clone()), refusal, options: options.clone() }
        })
    }
}

/// A program that was proven safe, bound to its maps: a [`Program`] with the proof.
#[derive(Clone)]
pub struct VerifiedProgram {
    program: Program,
    verified: Arc<Verified>,
    time: Duration,
    /// The types of its object, by which explanations show keys and values.
    btf: Option<Arc<Btf>>,
}

impl fmt::Debug for VerifiedProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedProgram").field("program", &self.program).finish_non_exhaustive()
    }
}

impl VerifiedProgram {
    pub(crate) fn new(program: Program, verified: Verified, time: Duration) -> Self {
        Self { program, verified: Arc::new(verified), time, btf: None }
    }

    pub(super) fn with_btf(mut self, btf: Option<Arc<Btf>>) -> Self {
        self.btf = btf;
        self
    }

    /// The types of its object, if it was compiled with them.
    #[must_use]
    pub fn btf(&self) -> Option<Arc<Btf>> {
        self.btf.clone()
    }

    /// Duration of the proof.
    #[must_use]
    pub fn verification_time(&self) -> Duration {
        self.time
    }

    /// The verified program with its facts.
    #[must_use]
    pub fn verified(&self) -> &Arc<Verified> {
        &self.verified
    }

    /// Runs the program over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// As [`Program::run_burst`].
    #[inline]
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        self.program.run_burst(burst, host)
    }

    /// Runs the program over one packet and returns its verdict, which the frame has too.
    ///
    /// # Errors
    /// As [`Program::run`].
    #[inline]
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<Verdict, Box<Fault>> {
        self.program.run(frame, host)
    }

    /// Runs the program over one packet and returns its value: an action of its type, or the number of bytes that a filter keeps.
    ///
    /// # Errors
    /// As [`Program::run`].
    #[inline]
    pub fn run_raw(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<u64, Box<Fault>> {
        self.program.run_raw(frame, host)
    }

    /// Its spec.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProgramSpec> {
        self.program.spec()
    }

    /// The program, for what a [`Program`] does besides: it is put into maps, chains and call sites.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program without the proof.
    #[must_use]
    pub fn into_program(self) -> Program {
        self.program
    }
}
