//! Programs of a chain.

use std::fmt;
#[cfg(feature = "jit")]
use std::sync::{Arc, OnceLock};

use crate::chain_graph::{Entrant, RunConfig};
use paceline_engine::Program;
#[cfg(feature = "jit")]
use paceline_engine::{ChainPart, Engine, EngineError};

use crate::chain_graph::RunConfigError;
use crate::load::Collection;
use crate::load::Object;
use crate::load::ProgramError;
use crate::load::VerifiedProgram;
#[cfg(feature = "jit")]
use paceline_verifier::Verified;

/// A program with its name in a chain, and when it runs.
#[derive(Clone)]
pub struct Member {
    name: String,
    program: Program,
    /// Without, it runs on the interpreter that checks.
    #[cfg(feature = "jit")]
    verified: Option<Arc<Verified>>,
    /// The program as a part of chains, made for the first of them.
    #[cfg(feature = "jit")]
    part: Arc<OnceLock<Result<ChainPart, EngineError>>>,
    config: RunConfig,
}

impl Member {
    /// A verified program, with the default priority, going on after pass.
    #[must_use]
    pub fn new(name: impl Into<String>, program: &VerifiedProgram) -> Self {
        Self {
            #[cfg(feature = "jit")]
            verified: Some(Arc::clone(program.verified())),
            ..Self::unverified(name, program.program().clone())
        }
    }

    /// An unverified program.
    #[must_use]
    pub fn unverified(name: impl Into<String>, program: Program) -> Self {
        Self {
            name: name.into(),
            program,
            #[cfg(feature = "jit")]
            verified: None,
            #[cfg(feature = "jit")]
            part: Arc::default(),
            config: RunConfig::default(),
        }
    }

    /// The member with another priority and other actions.
    #[must_use]
    pub fn with_config(mut self, config: RunConfig) -> Self {
        self.config = config;
        self
    }

    /// The member with another name.
    #[must_use]
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Its name in the chain.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it runs, and after which verdicts the chain goes on.
    #[must_use]
    pub fn config(&self) -> RunConfig {
        self.config
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program as a part of chains, made once: a change of a chain compiles the new programs and the chain's code only.
    /// `None` for a program that is not native code.
    #[cfg(feature = "jit")]
    pub(super) fn part(&self) -> Option<&Result<ChainPart, EngineError>> {
        let verified = self.verified.as_ref().filter(|_| self.program.engine() == Engine::Jit)?;
        let make = || ChainPart::new(Arc::clone(verified), self.program.maps().to_vec());
        Some(self.part.get_or_init(make))
    }

    pub(super) fn set_config(&mut self, config: RunConfig) {
        self.config = config;
    }

    /// The configuration that libxdp would use, for an attached or a new program.
    pub(super) fn entrant(&self, attached: Option<u64>) -> Entrant {
        let spec = self.program.spec();
        let slots = spec.functions.get(1).map_or(spec.insns.len(), |function| function.start);
        Entrant { name: spec.name.clone(), config: self.config, slots, attached }
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.program.id();
        f.debug_struct("Member").field("name", &self.name).field("id", &id).finish_non_exhaustive()
    }
}

/// An object cannot be a member of a chain.
#[derive(Debug, thiserror::Error)]
pub enum NoMember {
    /// The object has no such program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// Invalid `XDP_RUN_CONFIG`.
    #[error(transparent)]
    Config(#[from] RunConfigError),
}

impl Object {
    /// When a program runs and after which verdicts the chain goes on, as the object says with `XDP_RUN_CONFIG`, or the
    /// default.
    ///
    /// # Errors
    /// [`RunConfigError`].
    pub fn run_config(&self, program: &str) -> Result<RunConfig, RunConfigError> {
        let said = self.btf().map(|btf| RunConfig::of(btf, program)).transpose()?;
        Ok(said.flatten().unwrap_or_default())
    }
}

impl Collection {
    /// A program, verified, to be a member of a chain, with what the object says of its priority; the only program if no
    /// name is given.
    ///
    /// # Errors
    /// [`NoMember`].
    pub fn member(&self, name: impl Into<String>, program: Option<&str>) -> Result<Member, NoMember> {
        let program = self.program(program)?;
        let config = self.object().run_config(&program.spec().name)?;
        Ok(Member::new(name, &program).with_config(config))
    }

    /// A member with an unverified program.
    ///
    /// # Errors
    /// [`NoMember`].
    pub fn member_unverified(
        &self,
        name: impl Into<String>,
        program: Option<&str>,
    ) -> Result<Member, NoMember> {
        let program = self.program_unverified(program)?;
        let config = self.object().run_config(&program.spec().name)?;
        Ok(Member::unverified(name, program).with_config(config))
    }
}
