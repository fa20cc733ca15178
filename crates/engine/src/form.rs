//! The form of programs: checks of each instruction before an engine gets it.

use std::sync::Arc;

use paceline_isa::{Callee, Code, DecodeError, Imm64, Insn, Reg, decode};
use paceline_maps::Map;
use paceline_runtime::helpers::{can_call, kfunc_fn};
use paceline_spec::ProgramSpec;
use paceline_spec::helper::Helper;
use paceline_spec::kfunc;
use paceline_verifier::Verified;

/// Maximum number of slots of a program (`BPF_COMPLEXITY_LIMIT_INSNS` in the kernel).
const MAX_SLOTS: usize = 1_000_000;

/// Malformed or unsupported instructions; slots count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedProgram {
    /// No instructions.
    #[error("program has no instructions")]
    Empty,
    /// More than a million slots.
    #[error("program of {0} instructions is longer than {MAX_SLOTS}")]
    TooLong(usize),
    /// A slot holds no instruction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A jump or call to a slot at which no instruction starts.
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
    /// A call of a helper that Paceline does not support.
    #[error("instruction {slot} calls {name}, which is not supported: needs {}", helper_needs(.name))]
    UnsupportedHelper {
        /// Slot.
        slot: usize,
        /// Name of the helper.
        name: &'static str,
    },
    /// A call of a kernel function that Paceline does not support.
    #[error("instruction {slot} calls the kernel function {name}, which is not supported: needs {}", kfunc::needs(.name))]
    UnsupportedKfunc {
        /// Slot.
        slot: usize,
        /// Name of the function, or its BTF id.
        name: String,
    },
    /// An instruction that no engine supports, or that the program's type does not allow.
    #[error("instruction {slot} ({insn}) is not supported in a program of this type")]
    UnsupportedInsn {
        /// Slot.
        slot: usize,
        /// The instruction.
        insn: Insn,
    },
    /// An index of a map that the program does not have.
    #[error("instruction {slot} names map {index}, and the program has {maps}")]
    NoSuchMap {
        /// Slot.
        slot: usize,
        /// Index.
        index: i32,
        /// Number of maps.
        maps: usize,
    },
    /// A program array is used by programs of another type.
    #[error("program array {map} is used by programs of another type")]
    ProgramArray {
        /// Name of the map.
        map: String,
    },
    /// The address of the value of a map without a single value, or past its end.
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

fn helper_needs(name: &str) -> &'static str {
    // default: a supported helper may lack a function for the program's type.
    Helper::from_name(name).and_then(Helper::needs).unwrap_or("an implementation for this program type")
}

/// The instructions whose form is checked.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    /// All instructions of a program that runs over packets.
    Packet,
    /// All instructions of a program over plain memory, which may use the legacy packet loads.
    Memory,
    /// Instructions that a verified path reaches: no engine executes the others.
    Proven(&'a Verified),
}

/// Decodes a program, unless that was verified, and checks its form.
pub(crate) fn check(spec: &ProgramSpec, maps: &[Arc<Map>], form: Form<'_>) -> Result<Code, MalformedProgram> {
    match spec.insns.len() {
        0 => return Err(MalformedProgram::Empty),
        len if len > MAX_SLOTS => return Err(MalformedProgram::TooLong(len)),
        _ => {}
    }
    let code = match form {
        Form::Proven(verified) => verified.code().clone(),
        Form::Packet | Form::Memory => decode(&spec.insns)?,
    };
    check_code(spec, &code, maps, form)?;
    Ok(code)
}

/// Checks the form of a decoded program.
pub(crate) fn check_code(
    spec: &ProgramSpec,
    code: &Code,
    maps: &[Arc<Map>],
    form: Form<'_>,
) -> Result<(), MalformedProgram> {
    let raw = matches!(form, Form::Memory);
    let is_checked = |slot| match form {
        Form::Proven(verified) => verified.fact(slot).reached,
        Form::Packet | Form::Memory => true,
    };
    for (slot, insn) in code.iter().filter(|(slot, _)| is_checked(*slot)) {
        check_insn(spec, code, maps, raw, slot, *insn)?;
    }
    match code.iter().last() {
        Some((_, Insn::Exit | Insn::Jump { .. } | Insn::JumpLong { .. })) => Ok(()),
        Some((slot, _)) if is_checked(slot) => Err(MalformedProgram::NoEnd { slot }),
        Some(_) => Ok(()),
        None => Err(MalformedProgram::Empty),
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
) -> Result<(), MalformedProgram> {
    if insn.writes().contains(Reg::R10) {
        return Err(MalformedProgram::WritesFramePointer { slot });
    }
    if let Some(target) = insn.jump_target(slot).or(insn.subprogram_target(slot)) {
        let starts = usize::try_from(target).is_ok_and(|target| code.get(target).is_some());
        if !starts {
            return Err(MalformedProgram::JumpTarget { slot, target });
        }
    }
    match insn {
        Insn::Call(Callee::Helper(id)) => match Helper::from_imm(id) {
            Some(Helper { name, id, .. }) if !can_call(*id, spec.kind) => {
                Err(MalformedProgram::UnsupportedHelper { slot, name })
            }
            // A CO-RE relocation without a target leaves a number that no helper has, which is harmless
            // unless it is reached.
            _ => Ok(()),
        },
        Insn::Call(Callee::Kfunc { btf_id, .. }) => {
            let kfunc = usize::try_from(btf_id).ok().and_then(|index| spec.kfuncs.get(index));
            match kfunc {
                // Programs test whether a weak function exists before they call it.
                Some(kfunc) if kfunc.weak || kfunc.kfunc().is_some_and(|k| kfunc_fn(k.name).is_some()) => {
                    Ok(())
                }
                Some(kfunc) => Err(MalformedProgram::UnsupportedKfunc { slot, name: kfunc.name.clone() }),
                None => Err(MalformedProgram::UnsupportedKfunc { slot, name: format!("BTF id {btf_id}") }),
            }
        }
        Insn::LoadImm64 { value: Imm64::MapIndex(index), .. } => map_at(maps, slot, index).map(drop),
        Insn::LoadImm64 { value: Imm64::MapValueIndex { index, offset }, .. } => {
            let map = map_at(maps, slot, index)?;
            match map.for_programs().direct_value(offset) {
                Ok(_) => Ok(()),
                Err(_) => Err(MalformedProgram::NoDirectValue { slot, map: map.spec().name.clone(), offset }),
            }
        }
        Insn::LoadImm64 { value: Imm64::Value(_) | Imm64::Code { .. }, .. } => Ok(()),
        Insn::LoadPacket { .. } if raw || spec.kind.rules().packet_loads => Ok(()),
        Insn::LoadPacket { .. } | Insn::LoadImm64 { .. } | Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => {
            Err(MalformedProgram::UnsupportedInsn { slot, insn })
        }
        _ => Ok(()),
    }
}

fn map_at(maps: &[Arc<Map>], slot: usize, index: i32) -> Result<&Arc<Map>, MalformedProgram> {
    usize::try_from(index).ok().and_then(|i| maps.get(i)).ok_or(MalformedProgram::NoSuchMap {
        slot,
        index,
        maps: maps.len(),
    })
}
