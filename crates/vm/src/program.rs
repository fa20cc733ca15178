//! Programs ready to run.

use std::sync::Arc;

use paceline_frame::{Burst, Frame, FrameMut};
use paceline_isa::{Callee, Code, DecodeError, Imm64, Insn, Reg, decode};
use paceline_maps::Map;
use paceline_spec::ProgramSpec;
use paceline_spec::helper::Helper;

use crate::fault::Fault;
use crate::helpers::{Env, has_helper};
use crate::host::Host;
use crate::observe::Observed;
use crate::plain;
use crate::region::Regions;

/// Instructions that a program may run for one packet before it is taken to loop for ever: far more than the
/// million that the kernel's verifier simulates, and a fraction of a second.
pub const DEFAULT_BUDGET: u64 = 1 << 24;

/// Most slots of a program (`BPF_COMPLEXITY_LIMIT_INSNS` in the kernel).
const MAX_SLOTS: usize = 1_000_000;

/// Why instructions are no program that an engine could run; slots count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// There are no instructions.
    #[error("program has no instructions")]
    Empty,
    /// There are more than a million.
    #[error("program of {0} instructions is longer than {MAX_SLOTS}")]
    TooLong(usize),
    /// A slot holds no instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A jump or call leads to where no instruction starts.
    #[error("instruction {slot} jumps to {target}, where no instruction starts")]
    JumpTarget {
        /// Slot of the jump.
        slot: usize,
        /// Slot it leads to.
        target: i64,
    },
    /// Execution can run past the last instruction.
    #[error("instruction {slot} is the last and neither exits nor jumps")]
    NoEnd {
        /// Slot of the last instruction.
        slot: usize,
    },
    /// The frame pointer is written.
    #[error("instruction {slot} writes the frame pointer r10, which is read-only")]
    WritesFramePointer {
        /// Slot.
        slot: usize,
    },
    /// A helper is called that the kernel has and Paceline does not.
    #[error("instruction {slot} calls {name}, which is not supported")]
    UnsupportedHelper {
        /// Slot.
        slot: usize,
        /// Name of the helper.
        name: &'static str,
    },
    /// A kernel function is called.
    #[error("instruction {slot} calls the kernel function {name}, which is not supported")]
    UnsupportedKfunc {
        /// Slot.
        slot: usize,
        /// Name of the function, or its BTF id.
        name: String,
    },
    /// An instruction that no engine has, or that the program's type does not allow.
    #[error("instruction {slot} ({insn}) is not supported in a program of this type")]
    UnsupportedInsn {
        /// Slot.
        slot: usize,
        /// The instruction.
        insn: Insn,
    },
    /// A map is named by an index that the program has no map for.
    #[error("instruction {slot} names map {index}, and the program has {maps}")]
    NoSuchMap {
        /// Slot.
        slot: usize,
        /// Index.
        index: i32,
        /// Number of maps.
        maps: usize,
    },
    /// The address of a map's value is taken where the map has no single value, or past its end.
    #[error("instruction {slot} takes the address of byte {offset} in map {map}, which has no such byte")]
    NoDirectValue {
        /// Slot.
        slot: usize,
        /// Name of the map.
        map: String,
        /// Offset in bytes.
        offset: u32,
    },
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// `r0` when the program exited.
    pub r0: u64,
    /// Instructions executed.
    pub instructions: u64,
}

/// A fault in the middle of a burst. The packets before have their verdicts, the others were not looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("packet {index} of the burst: {fault}")]
pub struct BurstFault {
    /// Index of the packet in the burst.
    pub index: usize,
    /// What happened.
    #[source]
    pub fault: Fault,
}

/// A program bound to its maps, ready to run.
#[derive(Clone)]
pub struct Program {
    spec: Arc<ProgramSpec>,
    pub(crate) code: Code,
    pub(crate) maps: Vec<Arc<Map>>,
    budget: u64,
}

impl Program {
    /// Binds a program to its maps, which its instructions name by index.
    ///
    /// Only the form is checked: that every slot decodes, every jump leads to an instruction, every helper and map
    /// is there. What the program does at run time is checked by the plain interpreter as it runs.
    ///
    /// # Errors
    /// [`ProgramError`] names the first instruction at fault.
    pub fn new(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, ProgramError> {
        Self::checked(spec, maps, false)
    }

    /// The same for a program that runs over plain memory with [`run_raw`](Self::run_raw); it may also use the
    /// legacy packet loads, over that memory.
    ///
    /// # Errors
    /// [`ProgramError`] names the first instruction at fault.
    pub fn raw(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>) -> Result<Self, ProgramError> {
        Self::checked(spec, maps, true)
    }

    fn checked(spec: Arc<ProgramSpec>, maps: Vec<Arc<Map>>, raw: bool) -> Result<Self, ProgramError> {
        match spec.insns.len() {
            0 => return Err(ProgramError::Empty),
            len if len > MAX_SLOTS => return Err(ProgramError::TooLong(len)),
            _ => {}
        }
        let code = decode(&spec.insns)?;
        for (slot, insn) in code.iter() {
            check_insn(&spec, &code, &maps, raw, slot, *insn)?;
        }
        match code.iter().last() {
            Some((_, Insn::Exit | Insn::Jump { .. } | Insn::JumpLong { .. })) => {}
            Some((slot, _)) => return Err(ProgramError::NoEnd { slot }),
            None => return Err(ProgramError::Empty),
        }
        Ok(Self { spec, code, maps, budget: DEFAULT_BUDGET })
    }

    /// Changes how many instructions the program may run for one packet.
    #[must_use]
    pub fn with_budget(mut self, instructions: u64) -> Self {
        self.budget = instructions;
        self
    }

    /// What the program was made from.
    #[must_use]
    pub fn spec(&self) -> &Arc<ProgramSpec> {
        &self.spec
    }

    /// The program's maps.
    #[must_use]
    pub fn maps(&self) -> &[Arc<Map>] {
        &self.maps
    }

    /// Runs the program over the packets of a burst, in order; each frame gets its verdict.
    ///
    /// # Errors
    /// A packet made the program do what it may not.
    pub fn run_burst(&self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        for (index, mut frame) in burst.iter_mut().enumerate() {
            self.run(&mut frame, host).map_err(|fault| BurstFault { index, fault })?;
        }
        Ok(())
    }

    /// Runs the program over one packet; the frame gets the verdict.
    ///
    /// # Errors
    /// The packet made the program do what it may not.
    pub fn run(&self, frame: &mut FrameMut<'_>, host: &mut Host) -> Result<Exit, Fault> {
        self.run_observed(frame, host, |_| {})
    }

    /// The same, and `observe` looks at the machine before each instruction: for tests and traces.
    ///
    /// # Errors
    /// The packet made the program do what it may not.
    pub fn run_observed(
        &self,
        frame: &mut FrameMut<'_>,
        host: &mut Host,
        observe: impl FnMut(&Observed<'_>),
    ) -> Result<Exit, Fault> {
        // SAFETY: the frame stays in its place; helpers and the interpreter only change what it describes.
        let frame: *mut Frame = unsafe { frame.descriptor_mut() };
        let exit = self.interpret(frame, 0..0, [frame as u64, 0], host, observe)?;
        // SAFETY: the pointer comes from a reference that is still borrowed.
        unsafe { &mut *frame }.set_code(exit.r0 as u32);
        Ok(exit)
    }

    /// Runs the program over plain memory, as the bpf_conformance suite does: `r1` is its address, or 0 if it is
    /// empty, and `r2` its length.
    ///
    /// # Errors
    /// The program did what it may not.
    pub fn run_raw(&self, memory: &mut [u8], host: &mut Host) -> Result<Exit, Fault> {
        let range = memory.as_mut_ptr_range();
        let start = if memory.is_empty() { 0 } else { range.start as u64 };
        let arguments = [start, memory.len() as u64];
        self.interpret(std::ptr::null_mut(), range.start as u64..range.end as u64, arguments, host, |_| {})
    }

    fn interpret(
        &self,
        frame: *mut Frame,
        memory: std::ops::Range<u64>,
        arguments: [u64; 2],
        host: &mut Host,
        observe: impl FnMut(&Observed<'_>),
    ) -> Result<Exit, Fault> {
        let regions = Regions {
            stack: 0..0,
            frame_pointer: 0,
            frame,
            context_len: u64::from(self.spec.kind.context().size),
            memory,
            maps: &self.maps,
        };
        plain::run(self, arguments, self.budget, Env { host, regions }, observe)
    }
}

/// Checks the form of one instruction.
fn check_insn(
    spec: &ProgramSpec,
    code: &Code,
    maps: &[Arc<Map>],
    raw: bool,
    slot: usize,
    insn: Insn,
) -> Result<(), ProgramError> {
    if insn.writes().contains(Reg::R10) {
        return Err(ProgramError::WritesFramePointer { slot });
    }
    if let Some(target) = insn.jump_target(slot).or(insn.subprogram_target(slot)) {
        let starts = usize::try_from(target).is_ok_and(|target| code.get(target).is_some());
        if !starts {
            return Err(ProgramError::JumpTarget { slot, target });
        }
    }
    match insn {
        Insn::Call(Callee::Helper(id)) => match u32::try_from(id).ok().and_then(Helper::from_id) {
            Some(Helper { name, id, .. }) if !has_helper(*id) => {
                Err(ProgramError::UnsupportedHelper { slot, name })
            }
            // A number that no helper has is what a CO-RE relocation leaves where it found no target: harmless
            // unless it is reached.
            _ => Ok(()),
        },
        Insn::Call(Callee::Kfunc { btf_id, .. }) => {
            let kfunc = usize::try_from(btf_id).ok().and_then(|index| spec.kfuncs.get(index));
            match kfunc {
                // The program tests for it before it calls.
                Some(kfunc) if kfunc.weak => Ok(()),
                Some(kfunc) => Err(ProgramError::UnsupportedKfunc { slot, name: kfunc.name.clone() }),
                None => Err(ProgramError::UnsupportedKfunc { slot, name: format!("BTF id {btf_id}") }),
            }
        }
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => map_at(maps, slot, index).map(drop),
        Insn::LoadImm64 { value: Imm64::MapValueIndex { index, offset }, .. } => {
            let map = map_at(maps, slot, index)?;
            match map.direct_value(offset) {
                Ok(_) => Ok(()),
                Err(_) => Err(ProgramError::NoDirectValue { slot, map: map.spec().name.clone(), offset }),
            }
        }
        Insn::LoadImm64 { value: Imm64::Value(_) | Imm64::Code { .. }, .. } => Ok(()),
        Insn::LoadPacket { .. } if raw => Ok(()),
        Insn::LoadPacket { .. }
        | Insn::LoadImm64 { .. }
        | Insn::AddrSpaceCast { .. }
        | Insn::MayGoto { .. }
        | Insn::CallReg(_) => Err(ProgramError::UnsupportedInsn { slot, insn }),
        _ => Ok(()),
    }
}

fn map_at(maps: &[Arc<Map>], slot: usize, index: i32) -> Result<&Arc<Map>, ProgramError> {
    usize::try_from(index).ok().and_then(|i| maps.get(i)).ok_or(ProgramError::NoSuchMap {
        slot,
        index,
        maps: maps.len(),
    })
}
