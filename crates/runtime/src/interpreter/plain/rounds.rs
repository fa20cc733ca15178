//! Helpers that call functions of the program, and kernel functions.

use crate::fault::FaultKind;
use crate::helpers::kfunc_fn;
use crate::region::Access;
use crate::rounds::Rounds;
use crate::stack::MAX_FRAMES;
use paceline_isa::{Imm64, Insn, Reg};
use paceline_spec::helper::{Callback, Helper};
use paceline_spec::kfunc::{DYNPTR_BYTES, KfuncArg, KfuncReturn, NUM_ITERATOR_BYTES};

use super::{Machine, Next};
use crate::interpreter::callers::CallingBack;

impl Machine<'_> {
    /// The slot of a function from its address, which is the slot.
    pub(super) fn function(&self, address: u64) -> Option<usize> {
        let target = i64::try_from(address).ok()?;
        let takes = |(slot, insn): (usize, &Insn)| {
            matches!(insn, Insn::LoadImm64 { value: Imm64::Code { .. }, .. })
                && insn.subprogram_target(slot) == Some(target)
        };
        self.image.code.iter().any(takes).then_some(address as usize)
    }

    pub(super) fn call_back(
        &mut self,
        helper: &'static Helper,
        callback: Callback,
    ) -> Result<Next, FaultKind> {
        if let Some(prototype) = &helper.prototype {
            self.check_arguments(helper, prototype)?;
        }
        if self.callers.len() + 1 == MAX_FRAMES {
            return Err(FaultKind::CallDepth(MAX_FRAMES));
        }
        let [_, subject, function, given, flags, ..] = self.registers;
        let function = self.function(function).ok_or(FaultKind::LeftProgram)?;
        // SAFETY: the arguments were just checked against the prototype.
        match unsafe { Rounds::new(callback, subject, given, flags) } {
            Ok(rounds) => Ok(self.call_once_more(self.slot + 1, CallingBack { function, rounds })),
            Err(errno) => {
                self.return_from_call(errno.to_return());
                Ok(Next::Follow)
            }
        }
    }

    /// Calls the function, or returns from the helper to `slot`.
    fn call_once_more(&mut self, slot: usize, mut calling_back: CallingBack) -> Next {
        let Some(arguments) = calling_back.rounds.next_arguments(self.host.cpu()) else {
            self.return_from_call(calling_back.rounds.calls());
            return Next::Jump(slot);
        };
        self.regions.keys.extend(calling_back.rounds.key());
        let function = calling_back.function;
        self.enter(slot, Some(calling_back));
        self.registers[1..6].copy_from_slice(&arguments);
        Next::CallBack(function)
    }

    /// Continues a helper after its function returned; `slot` follows the call of the helper.
    pub(super) fn called_back(&mut self, slot: usize, calling_back: CallingBack) -> Next {
        if calling_back.rounds.key().is_some() {
            self.regions.keys.pop();
        }
        if self.get(Reg::R0) == 0 {
            return self.call_once_more(slot, calling_back);
        }
        self.return_from_call(calling_back.rounds.calls());
        Next::Jump(slot)
    }

    pub(super) fn call_kfunc(&mut self, index: i32) -> Result<u64, FaultKind> {
        let kfunc = self.image.spec.kfunc(index).ok_or(FaultKind::NoSuchKfunc(index))?;
        let function = kfunc_fn(kfunc.name).ok_or(FaultKind::NoSuchKfunc(index))?;
        for (i, (register, arg)) in (1_u8..).zip(kfunc.args).enumerate() {
            let (value, next) =
                (self.registers[usize::from(register)], self.registers[usize::from(register) + 1]);
            let size = match arg {
                KfuncArg::Number | KfuncArg::KnownSize | KfuncArg::Size { .. } => continue,
                KfuncArg::Object(kind) | KfuncArg::Released(kind) => {
                    if self.regions.object(value, |found| found == *kind).is_some() {
                        continue;
                    }
                    let expected = kind.name();
                    return Err(FaultKind::Argument { helper: kfunc.name, register, expected, near: None });
                }
                KfuncArg::Memory if value == 0 && next as u32 == 0 => continue,
                KfuncArg::Memory => match kfunc.args.get(i + 1) {
                    Some(KfuncArg::Size { least }) => u64::from((next as u32).max(*least)),
                    _ => u64::from(next as u32),
                },
                KfuncArg::BufferOrNull if value == 0 => continue,
                KfuncArg::Context if value == self.regions.context.start && value != 0 => continue,
                KfuncArg::Context => {
                    let near = Some(self.regions.near(value, value));
                    let expected = "the context";
                    return Err(FaultKind::Argument { helper: kfunc.name, register, expected, near });
                }
                KfuncArg::NumIterator => u64::from(NUM_ITERATOR_BYTES),
                KfuncArg::Dynptr | KfuncArg::NewDynptr => u64::from(DYNPTR_BYTES),
                KfuncArg::BufferOrNull => u64::from(next as u32),
                KfuncArg::Out(size) => u64::from(*size),
            };
            for access in [Access::Read, Access::Write] {
                self.allow(value, 0, size, access)?;
            }
        }
        let [r1, r2, r3, r4, r5] = self.arguments(kfunc.args, |arg| *arg == KfuncArg::Context);
        // SAFETY: the regions are those of this run.
        unsafe { self.host.run.set_regions(Some(self.regions.clone())) };
        // SAFETY: all memory was just allowed, and the context is the frame.
        let r0 = unsafe { function(r1, r2, r3, r4, r5, self.host) };
        // SAFETY: nothing is allowed any more.
        unsafe { self.host.run.set_regions(None) };
        if let Some(KfuncArg::Released(kind)) = kfunc.args.first()
            && let Some(index) = self.regions.object(r1, |found| found == *kind)
        {
            self.regions.objects.swap_remove(index);
        }
        match kfunc.returns {
            KfuncReturn::ObjectOrNull(kind) if r0 != 0 => self.regions.objects.push((kind, r0)),
            // SAFETY: the function has just given it.
            KfuncReturn::Object(kind) => unsafe { self.regions.note_object(kind, r0) },
            _ => {}
        }
        Ok(r0)
    }
}
