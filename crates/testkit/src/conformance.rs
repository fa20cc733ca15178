//! One run as the public bpf_conformance suite asks for it: instructions and memory in, `r0` out.

use std::sync::Arc;

use paceline::{
    Burst, Collection, FrameMeta, Host, LoadOptions, Object, Program, ProgramKind, ProgramSpec, XdpAttach,
};
use paceline_isa::RawInsn;

use crate::kernel::{self, Packet, Request};

/// Engines that can be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judged {
    /// The plain interpreter.
    #[default]
    Plain,
    /// The kernel, for comparison.
    Kernel,
}

impl Judged {
    /// All of them with their names.
    pub const ALL: &'static [(&'static str, Self)] = &[("plain", Self::Plain), ("kernel", Self::Kernel)];

    /// The engine of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, engine)| *engine)
    }
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// Instructions in little-endian order, or with `elf` a whole object.
    pub program: Vec<u8>,
    /// Memory; the packet of an XDP run.
    pub memory: Vec<u8>,
    /// Who runs it.
    pub engine: Judged,
    /// Whether `program` is an object file.
    pub elf: bool,
    /// Whether `r1` is an `xdp_md` over the memory, and not the memory's address with its length in `r2`. The kernel
    /// does nothing else.
    pub xdp: bool,
}

/// Why there is no `r0`.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The program is cut off.
    #[error("a program of {0} bytes is not a whole number of instructions of 8 bytes")]
    CutOff(usize),
    /// The object cannot be used.
    #[error("object: {0}")]
    Object(#[from] paceline::OpenError),
    /// The object's maps cannot be made.
    #[error(transparent)]
    Setup(#[from] paceline::SetupError),
    /// The object has no XDP program.
    #[error("no XDP program in the object")]
    NoProgram,
    /// The program is refused.
    #[error(transparent)]
    Program(#[from] paceline::ProgramError),
    /// The memory is no packet.
    #[error(transparent)]
    Packet(#[from] paceline::PushError),
    /// The program did what it may not.
    #[error(transparent)]
    Fault(#[from] paceline::Fault),
    /// The kernel refused the object.
    #[error(transparent)]
    KernelLoad(#[from] kernel::LoadError),
    /// The kernel refused the program or the packet.
    #[error(transparent)]
    Kernel(#[from] kernel::KernelError),
}

/// Runs a task; the result is `r0`, of which the kernel tells the low 32 bits.
///
/// # Errors
/// [`TaskError`].
pub fn run(task: &Task) -> Result<u64, TaskError> {
    match task.engine {
        Judged::Plain => run_plain(task),
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

fn load(task: &Task) -> Result<Collection, TaskError> {
    Ok(Object::parse(&task.program)?.load(&LoadOptions::default())?)
}

fn run_plain(task: &Task) -> Result<u64, TaskError> {
    let (spec, maps) = if task.elf {
        let collection = load(task)?;
        let spec = collection.object().programs.first().ok_or(TaskError::NoProgram)?.clone();
        (spec, collection.maps().to_vec())
    } else {
        let kind = ProgramKind::Xdp { attach: XdpAttach::Interface, frags: false };
        (ProgramSpec::new("conformance", kind, slots(&task.program)?), Vec::new())
    };
    let mut host = Host::default();
    if !task.xdp {
        let mut memory = task.memory.clone();
        let exit =
            Program::raw(Arc::new(spec), maps)?.run_raw(&mut memory, &mut host).map_err(|fault| *fault)?;
        return Ok(exit.r0);
    }
    let program = Program::new(Arc::new(spec), maps)?;
    let mut burst = Burst::new(1);
    burst.push(&task.memory, FrameMeta::default())?;
    let mut frame = burst.frame_mut(0);
    frame.set_ingress(1, 0);
    Ok(program.run(&mut frame, &mut host).map_err(|fault| *fault)?)
}

fn run_kernel(task: &Task) -> Result<u64, TaskError> {
    let packet = Packet::new(&task.memory);
    if !task.elf {
        let program = kernel::Program::load(&Request::xdp(&slots(&task.program)?))?;
        return Ok(u64::from(program.test_run(&packet)?.retval));
    }
    let object = Object::parse(&task.program)?;
    let loaded =
        kernel::KernelObject::load(&object.maps, object.programs.first(), kernel::LoadOptions::default())?;
    let program = loaded.programs.first().ok_or(TaskError::NoProgram)?;
    Ok(u64::from(program.test_run(&packet)?.retval))
}
