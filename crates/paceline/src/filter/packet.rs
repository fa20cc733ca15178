//! Filters over packets.

use std::sync::Arc;
use std::time::Instant;

use paceline_classic::{ConvertError, ConvertOptions, Filter, LoadFrom, Operation, Returns, Rules};
use paceline_engine::{BurstFault, Engine, EngineError, Host, Program};
use paceline_frame::{Burst, FrameRef, Verdict};
use paceline_spec::Meaning;
use paceline_verifier::{Options, verify};

#[cfg(feature = "libpcap")]
use paceline_classic::libpcap::{CompileError, Libpcap, Missing, Target};
#[cfg(feature = "libpcap")]
use paceline_classic::{CheckError, Purpose};

use crate::load::{VerifiedProgram, VerifierError};

/// A filter cannot be made a program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// The conversion fails.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The converted program is refused by the verifier: a bug of the converter.
    #[error(transparent)]
    Refused(VerifierError),
    /// The engine cannot run it.
    #[error("engine {engine}")]
    Engine {
        /// The engine.
        engine: Engine,
        /// Cause.
        source: EngineError,
    },
}

/// Converts a filter to an XDP program, verifies it, and makes it ready to run. With [`Returns::PASS_OR_DROP`] it is
/// a link of a chain: after a match the chain goes on.
///
/// # Errors
/// [`FilterError`].
pub fn program(
    name: &str,
    filter: &Filter,
    options: &ConvertOptions,
    engine: Engine,
) -> Result<VerifiedProgram, FilterError> {
    let spec = filter.to_xdp(name, options)?;
    let (verifier, start) = (Options::default(), Instant::now());
    let verified = verify(&spec, &[], None, &verifier).map_err(|refusal| {
        FilterError::Refused(VerifierError { program: Arc::new(spec.clone()), refusal, options: verifier })
    })?;
    let time = start.elapsed();
    let program = Program::load(&verified, Vec::new(), engine);
    let program = program.map_err(|source| FilterError::Engine { engine, source })?;
    Ok(VerifiedProgram::new(program, verified, time))
}

/// A filter that marks the matching packets of a burst.
#[derive(Clone)]
pub struct PacketFilter {
    program: VerifiedProgram,
    origin: Origin,
}

impl std::fmt::Debug for PacketFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketFilter").finish_non_exhaustive()
    }
}

/// What a filter was made of.
#[derive(Clone)]
enum Origin {
    Classic {
        filter: Filter,
        rules: Rules,
        /// Whether it looks at the length on the wire, which is metadata then.
        reads_length: bool,
    },
    /// A socket filter, which returns how many bytes it keeps.
    SocketFilter,
}

/// An expression cannot be made a filter.
#[cfg(feature = "libpcap")]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// libpcap is not installed.
    #[error(transparent)]
    Libpcap(#[from] Missing),
    /// libpcap does not take the expression.
    #[error("{expression}")]
    Compile {
        /// The expression.
        expression: String,
        /// Cause.
        source: CompileError,
    },
    /// The code that libpcap made is no filter.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The filter cannot be made a program.
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl PacketFilter {
    /// The filter of an expression of tcpdump's for Ethernet, such as `tcp port 22`, on the fastest engine. libpcap compiles it, which is
    /// loaded at run time.
    ///
    /// # Errors
    /// [`ExpressionError`].
    #[cfg(feature = "libpcap")]
    pub fn compile(expression: &str) -> Result<Self, ExpressionError> {
        let insns = Libpcap::open()?
            .compile(expression, Target::default())
            .map_err(|source| ExpressionError::Compile { expression: expression.to_owned(), source })?;
        let filter = Filter::new(insns, Purpose::UserSpace)?;
        Ok(Self::new("filter", filter, &ConvertOptions::default(), Engine::best())?)
    }

    /// Makes a filter ready to run. What `options` say about results is no matter here.
    ///
    /// # Errors
    /// [`FilterError`].
    pub fn new(
        name: &str,
        filter: Filter,
        options: &ConvertOptions,
        engine: Engine,
    ) -> Result<Self, FilterError> {
        let options = options.returns(Returns::PASS_OR_DROP);
        let program = program(name, &filter, &options, engine)?;
        let is_length = |operation| matches!(operation, Operation::Load(_, LoadFrom::Length));
        let reads_length = options.rules == Rules::Libpcap
            && filter.insns().iter().filter_map(|insn| insn.row()).any(|row| is_length(row.operation));
        let origin = Origin::Classic { filter, rules: options.rules, reads_length };
        Ok(Self { program, origin })
    }

    /// A filter that is a socket filter of an object (`SEC("socket")`); `None` if the program is of another type. Packets match if it keeps a
    /// byte of them.
    #[must_use]
    pub fn of_program(program: VerifiedProgram) -> Option<Self> {
        let is_filter = program.spec().kind.rules().meaning == Meaning::BytesKept;
        is_filter.then_some(Self { program, origin: Origin::SocketFilter })
    }

    /// The classic filter; `None` if it is a socket filter of an object.
    #[must_use]
    pub fn filter(&self) -> Option<&Filter> {
        match &self.origin {
            Origin::Classic { filter, .. } => Some(filter),
            Origin::SocketFilter => None,
        }
    }

    /// Number of bytes that are kept of a packet which matched in the last run: all, or as many as a socket filter returned, as the kernel
    /// cuts packets for a socket. The result of a classic filter cuts none, as in tcpdump.
    #[must_use]
    pub fn kept(&self, frame: FrameRef<'_>) -> usize {
        match &self.origin {
            Origin::Classic { .. } => frame.len(),
            Origin::SocketFilter => frame.len().min(frame.code() as usize),
        }
    }

    /// The program that it was converted to, which passes what matches and drops the rest; or the socket filter.
    #[must_use]
    pub fn program(&self) -> &VerifiedProgram {
        &self.program
    }

    /// Packets of a burst that match: a bit each, from the lowest. Frames get verdicts, and by the rules of libpcap
    /// those that are shorter than they were on the wire get that length as metadata; packets stay as they are.
    ///
    /// # Errors
    /// The fault of a packet, which a filter that was verified cannot have.
    pub fn matches(&self, burst: &mut Burst, host: &mut Host) -> Result<u64, BurstFault> {
        match self.origin {
            Origin::Classic { reads_length: true, .. } => tell_lengths(burst),
            Origin::Classic { rules: Rules::Kernel, .. } | Origin::SocketFilter => tell_interfaces(burst),
            Origin::Classic { .. } => {}
        }
        self.program.run_burst(burst, host)?;
        let mask = |matches: fn(u32) -> bool| {
            let frames = burst.iter().enumerate();
            frames.fold(0, |mask, (index, frame)| mask | u64::from(matches(frame.code())) << index)
        };
        Ok(match self.origin {
            Origin::Classic { .. } => mask(|code| code == Verdict::Pass as u32),
            Origin::SocketFilter => mask(|kept| kept > 0),
        })
    }
}

fn tell_lengths(burst: &mut Burst) {
    for index in 0..burst.len() {
        let frame = burst.frame(index);
        let wire_len = frame.meta().original_len;
        if wire_len as usize != frame.len() && frame.metadata().is_empty() {
            // Four bytes are metadata that any frame takes.
            let _ = burst.frame_mut(index).set_metadata(&wire_len.to_ne_bytes());
        }
    }
}

fn tell_interfaces(burst: &mut Burst) {
    for index in 0..burst.len() {
        let interface = burst.frame(index).meta().interface;
        burst.frame_mut(index).set_ingress(interface.saturating_add(1), 0);
    }
}
