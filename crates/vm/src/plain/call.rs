//! Calls: subprograms with their stack frames, and helpers with their arguments checked.

use paceline_isa::{Insn, Reg};
use paceline_spec::helper::{Arg, Helper, Prototype};

use super::{Caller, MAX_FRAMES, Machine, Next, STACK_FRAME};
use crate::fault::FaultKind;
use crate::helpers::helper_fn;
use crate::region::Access;

impl Machine<'_, '_> {
    /// Takes a new stack frame, zeroed, below the caller's.
    pub(super) fn enter_frame(&mut self) {
        let frame_pointer = self.stack_top - (self.callers.len() * STACK_FRAME) as u64;
        let start = frame_pointer - STACK_FRAME as u64;
        self.env.regions.stack.start = start;
        self.env.host.clear_stack_frame(self.callers.len());
        self.point_at_frame(frame_pointer);
    }

    fn point_at_frame(&mut self, frame_pointer: u64) {
        self.env.regions.frame_pointer = frame_pointer;
        self.set(Reg::R10, frame_pointer);
    }

    pub(super) fn call_subprogram(&mut self, insn: Insn) -> Result<Next, FaultKind> {
        if self.callers.len() + 1 == MAX_FRAMES {
            return Err(FaultKind::CallDepth(MAX_FRAMES));
        }
        let [.., r6, r7, r8, r9, _] = self.registers;
        self.callers.push(Caller { slot: self.slot + 1, callee_saved: [r6, r7, r8, r9] });
        self.enter_frame();
        self.jump(insn.subprogram_target(self.slot))
    }

    pub(super) fn exit(&mut self) -> Next {
        let Some(caller) = self.callers.pop() else { return Next::Exit(self.get(Reg::R0)) };
        self.registers[6..10].copy_from_slice(&caller.callee_saved);
        self.env.regions.stack.start += STACK_FRAME as u64;
        self.point_at_frame(self.get(Reg::R10) + STACK_FRAME as u64);
        Next::Jump(caller.slot)
    }

    pub(super) fn call_helper(&mut self, id: i32) -> Result<u64, FaultKind> {
        let found = u32::try_from(id).ok().and_then(|id| Some((Helper::from_id(id)?, helper_fn(id)?)));
        let Some((helper, function)) = found else { return Err(FaultKind::NoSuchHelper(id)) };
        if let Some(prototype) = &helper.prototype {
            self.check_arguments(helper, prototype)?;
        }
        let [_, r1, r2, r3, r4, r5, ..] = self.registers;
        // SAFETY: the arguments were just checked against the prototype.
        Ok(unsafe { function(r1, r2, r3, r4, r5, &mut self.env) })
    }

    fn check_arguments(&self, helper: &'static Helper, prototype: &Prototype) -> Result<(), FaultKind> {
        let mut map = None;
        for (register, arg) in (1_u8..).zip(prototype.args) {
            let value = self.registers[usize::from(register)];
            let size = self.registers[usize::from(register) + 1];
            let expected = match arg {
                Arg::Scalar | Arg::Unchecked | Arg::RecordSize => continue,
                Arg::Context if value == self.env.regions.frame as u64 && value != 0 => continue,
                Arg::Context => "the context",
                Arg::Map => match self.env.regions.map(value) {
                    None => "map",
                    Some(found) if !helper.takes_map(found.spec().kind) => "map of a kind that it takes",
                    Some(found) if writes(helper) && !found.program_access().write => {
                        "map that programs may write"
                    }
                    Some(found) => {
                        map = Some(found.spec());
                        continue;
                    }
                },
                Arg::MapKey | Arg::MapValue => {
                    let len = map.map_or(0, |m| if *arg == Arg::MapKey { m.key_size } else { m.value_size });
                    self.allow(value, 0, u64::from(len), Access::Read)?;
                    continue;
                }
                Arg::ReadMemOrNull if value == 0 => continue,
                Arg::ReadMem | Arg::ReadMemOrNull => {
                    self.allow(value, 0, size, Access::Read)?;
                    continue;
                }
                Arg::WriteMem => {
                    self.allow(value, 0, size, Access::Write)?;
                    continue;
                }
                // No helper of this engine gives one.
                Arg::Record => "record of a ring buffer",
                Arg::Size if value == 0 => "size of at least one byte",
                Arg::Size | Arg::SizeOrZero if value > u64::from(u32::MAX) => "size of 32 bits",
                Arg::Size | Arg::SizeOrZero => continue,
            };
            let near = matches!(arg, Arg::Context | Arg::Map).then(|| self.env.regions.near(value, value));
            return Err(FaultKind::Argument { helper: helper.name, register, expected, near });
        }
        Ok(())
    }
}

/// Whether the helper changes the map it is called on.
fn writes(helper: &Helper) -> bool {
    matches!(helper.name, "bpf_map_update_elem" | "bpf_map_delete_elem")
}
