//! One run for the public bpf_conformance suite: instructions and memory in, `r0` out.

use std::sync::Arc;

use paceline::{
    Burst, FrameMeta, Host, LoadOptions, Map, Object, Program, ProgramKind, ProgramSpec, XdpAttach,
};
use paceline_engine::MemoryProgram;
use paceline_isa::RawInsn;
use paceline_verifier::{Options, Refusal, verify};

use crate::AnyEngine;
use crate::checked::{CheckedError, CheckedMemory};
use crate::kernel::{self, MIN_PACKET, Packet, Request};

/// Engines that the suite can test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// An engine of ours. The plain interpreter runs every program, the others verified ones, and the native ones also
    /// programs over plain memory.
    Ours(AnyEngine),
    /// The kernel, for comparison.
    Kernel,
}

impl Default for Judged {
    fn default() -> Self {
        Self::Ours(AnyEngine::Plain)
    }
}

impl Judged {
    /// The engine with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "kernel" { Some(Self::Kernel) } else { name.parse().ok().map(Self::Ours) }
    }

    /// The names of all engines.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        AnyEngine::ALL.iter().rev().map(|engine| engine.name()).chain(["kernel"]).collect()
    }
}

/// A task of the suite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Instructions in little-endian order, or with `elf` a whole object.
    pub program: Vec<u8>,
    /// Memory, or the packet of an XDP run, which is padded with zeros to [`MIN_PACKET`] bytes.
    pub memory: Vec<u8>,
    /// Engine that runs it.
    pub engine: Judged,
    /// Whether `program` is an object file.
    pub elf: bool,
    /// Whether `r1` is an `xdp_md` over the memory, instead of the memory's address with its length in `r2`. The kernel
    /// supports only the former.
    pub xdp: bool,
}

/// Why there is no `r0`.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The program is truncated.
    #[error("a program of {0} bytes is not a whole number of instructions of 8 bytes")]
    CutOff(usize),
    /// The object cannot be parsed.
    #[error("object")]
    Object(#[from] paceline::OpenError),
    /// The object's maps cannot be created.
    #[error(transparent)]
    Setup(#[from] paceline::SetupError),
    /// The object has no XDP program.
    #[error("no XDP program in the object")]
    NoProgram,
    /// The program is refused.
    #[error(transparent)]
    Program(#[from] paceline::MalformedProgram),
    /// The memory is not a valid packet.
    #[error(transparent)]
    Packet(#[from] paceline::PushError),
    /// The verifier refuses the program.
    #[error(transparent)]
    Unsafe(#[from] Box<Refusal>),
    /// The engine does not support the program.
    #[error(transparent)]
    Engine(#[from] CheckedError),
    /// The engine does not run programs over plain memory.
    #[error("engine {0} runs verified programs over packets only (--xdp)")]
    NoMemory(AnyEngine),
    /// The program faulted.
    #[error(transparent)]
    Fault(#[from] paceline::Fault),
    /// The kernel refused the object.
    #[error(transparent)]
    KernelLoad(#[from] kernel::LoadError),
    /// The kernel refused the program or the packet.
    #[error(transparent)]
    Kernel(#[from] kernel::KernelError),
}

/// Runs a task and returns `r0`. The kernel returns only its low 32 bits.
///
/// # Errors
/// [`TaskError`].
pub fn run(task: &Task) -> Result<u64, TaskError> {
    match task.engine {
        Judged::Ours(engine) => run_ours(task, engine),
        Judged::Kernel => run_kernel(task),
    }
}

fn slots(program: &[u8]) -> Result<Vec<RawInsn>, TaskError> {
    let (slots, rest) = program.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(TaskError::CutOff(program.len()));
    }
    Ok(slots.iter().map(|slot| RawInsn::from_le_bytes(*slot)).collect())
}

/// A program and its object.
struct Subject {
    spec: Arc<ProgramSpec>,
    object: Option<Object>,
}

impl Subject {
    fn new(task: &Task) -> Result<Self, TaskError> {
        let object = if task.elf { Some(Object::parse(&task.program)?) } else { None };
        let spec = match &object {
            Some(object) => object.programs().first().ok_or(TaskError::NoProgram)?.clone(),
            None => {
                let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
                ProgramSpec::new("conformance", kind, slots(&task.program)?)
            }
        };
        Ok(Self { spec: Arc::new(spec), object })
    }

    /// New maps with the object's initial contents.
    fn maps(&self) -> Result<Vec<Arc<Map>>, TaskError> {
        let Some(object) = &self.object else { return Ok(Vec::new()) };
        Ok(object.load(&LoadOptions::default())?.maps().to_vec())
    }

    /// The program as an image for packets, verified on all engines but the plain interpreter.
    fn load(&self, engine: AnyEngine) -> Result<Program, TaskError> {
        if engine == AnyEngine::Plain {
            return Ok(Program::new(self.spec.clone(), self.maps()?)?);
        }
        let (specs, btf) = match &self.object {
            Some(object) => (object.maps(), object.btf()),
            None => (&[][..], None),
        };
        let verified = verify(&self.spec, specs, btf, &Options::default())?;
        Ok(engine.load(&verified, self.maps()?)?)
    }

    fn run_over(&self, memory: &[u8], engine: AnyEngine) -> Result<u64, TaskError> {
        let (spec, maps) = (self.spec.clone(), self.maps()?);
        let (mut bytes, mut host) = (memory.to_vec(), Host::default());
        let exit = match engine {
            AnyEngine::Plain => MemoryProgram::new(spec, maps)?.run(&mut bytes, &mut host),
            AnyEngine::Threaded => return Err(TaskError::NoMemory(engine)),
            AnyEngine::CheckedJit => CheckedMemory::new(spec, maps)?.run(&mut bytes, &mut host),
            AnyEngine::Jit => {
                // Native code of an unverified program is not confined.
                self.run_over(memory, AnyEngine::Plain)?;
                native(spec, maps)?.run(&mut bytes, &mut host)
            }
        };
        Ok(exit.map_err(|fault| *fault)?.r0)
    }
}

/// Native code of a program that ran to its end under all checks of the plain interpreter.
#[allow(unsafe_code, reason = "programs over plain memory cannot be verified")]
fn native(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<MemoryProgram, TaskError> {
    // SAFETY: the plain interpreter just ran it over the same memory and maps like these, without a fault.
    unsafe { MemoryProgram::jit(spec, maps) }.map_err(|error| CheckedError::from(error).into())
}

fn run_ours(task: &Task, engine: AnyEngine) -> Result<u64, TaskError> {
    let subject = Subject::new(task)?;
    if !task.xdp {
        return subject.run_over(&task.memory, engine);
    }
    let program = subject.load(engine)?;
    let mut burst = Burst::new(1);
    burst.push(&packet(&task.memory), FrameMeta::default())?;
    let mut frame = burst.frame_mut(0);
    frame.set_ingress(1, 0);
    Ok(program.run_raw(&mut frame, &mut Host::default()).map_err(|fault| *fault)?)
}

/// Pads memory to a packet. The kernel requires at least an Ethernet header (`ETH_HLEN`); the suite's own plugin for the
/// kernel also pads with zeros.
fn packet(memory: &[u8]) -> Vec<u8> {
    let mut packet = memory.to_vec();
    packet.resize(packet.len().max(MIN_PACKET), 0);
    packet
}

fn run_kernel(task: &Task) -> Result<u64, TaskError> {
    let memory = packet(&task.memory);
    let packet = Packet::new(&memory);
    if !task.elf {
        let program = kernel::Program::load(&Request::xdp(&slots(&task.program)?))?;
        return Ok(u64::from(program.test_run(&packet)?.retval));
    }
    let object = Object::parse(&task.program)?;
    let loaded =
        kernel::KernelObject::load(object.maps(), object.programs().first(), kernel::LoadOptions::default())?;
    let program = loaded.programs.first().ok_or(TaskError::NoProgram)?;
    Ok(u64::from(program.test_run(&packet)?.retval))
}
