//! Calls of kernel functions, against the table of prototypes.

use paceline_isa::{Callee, Code, Insn, Reg};
use paceline_spec::ProgramSpec;
use paceline_spec::availability::is_gpl_compatible;
use paceline_spec::kfunc::{IteratorStep, Kfunc, KfuncArg, NUM_ITERATOR_BYTES};

use super::arguments::Effect;
use super::describe::wrong_argument;
use super::registers::{ARGUMENTS, Checker};
use super::span::check_aligned;
use crate::domain::access::{Access, Place, Span};
use crate::domain::state::{Dynptr, Pointer, Stack, Target, Value};
use crate::error::{Cause, Check, Hint, Refusal, RegName, invariant, reject};

/// Kernel functions require the GPL even if the call is unreachable (`add_kfunc_call`); for helpers the walk checks it.
pub(crate) fn check_license(program: &ProgramSpec, code: &Code) -> Result<(), Box<Refusal>> {
    if is_gpl_compatible(&program.license) {
        return Ok(());
    }
    let restricted = |insn: &Insn| match *insn {
        Insn::Call(Callee::Kfunc { btf_id, .. }) => {
            let called = usize::try_from(btf_id).ok().and_then(|index| program.kfuncs.get(index));
            called.filter(|kfunc| !kfunc.converted)
        }
        _ => None,
    };
    match code.iter().find_map(|(slot, insn)| Some((slot, restricted(insn)?))) {
        Some((slot, kfunc)) => {
            let refusal = Refusal::at(slot, Cause::GplKfunc(kfunc.name.clone()));
            Err(Box::new(Refusal { hint: Some(Hint::License), ..*refusal }))
        }
        None => Ok(()),
    }
}

/// The checked arguments of a call.
#[derive(Default)]
pub(crate) struct KfuncArguments {
    pub(crate) iterator: Option<Place>,
    pub(crate) new_dynptr: Option<Span>,
    pub(crate) dynptr: Option<Dynptr>,
    /// Size of the requested memory.
    pub(crate) size: u32,
    /// Memory that is written.
    pub(crate) written: Vec<Span>,
    /// Id of the reference that is released.
    pub(crate) released: Option<u32>,
}

impl Checker<'_> {
    /// The kernel function of a call, if this program may call it.
    pub(crate) fn check_kfunc(&self, index: i32) -> Check<&'static Kfunc> {
        let program = self.env.program;
        if let Some(kfunc) = program.kfunc(index).filter(|kfunc| kfunc.is_for(program.kind)) {
            return Ok(kfunc);
        }
        let named = usize::try_from(index).ok().and_then(|index| program.kfuncs.get(index));
        reject(Cause::Kfunc(named.map_or_else(|| index.to_string(), |kfunc| kfunc.name.clone())))
    }

    /// Checks the argument of a number, and adds it to those before it.
    pub(crate) fn check_kfunc_argument(
        &mut self,
        kfunc: &'static Kfunc,
        number: usize,
        arguments: &mut KfuncArguments,
    ) -> Check<Option<Effect>> {
        let (arg, reg) = (kfunc.args[number], ARGUMENTS[number]);
        let value = self.read(reg)?;
        match (arg, value) {
            (KfuncArg::Number, Value::Scalar(_)) => {}
            (KfuncArg::Number, other) => return wrong_argument(kfunc.name, reg, "a number", &other),
            (KfuncArg::NumIterator, value) => {
                arguments.iterator = Some(self.iterator_place(kfunc, reg, &value)?);
            }
            (KfuncArg::Context, value) => self.check_context_argument(kfunc.name, reg, &value)?,
            (KfuncArg::Dynptr, value) => {
                arguments.dynptr = Some(self.check_dynptr(kfunc.name, reg, &value)?);
            }
            (KfuncArg::NewDynptr, value) => {
                let span = self.check_new_dynptr(kfunc.name, reg, &value)?;
                arguments.new_dynptr = Some(span);
                return Ok(Some(Effect::Place(span)));
            }
            (KfuncArg::Out(size), value) => {
                return self.check_out(kfunc, reg, &value, size.into(), arguments);
            }
            (KfuncArg::Object(kind), value) => {
                self.check_object(kfunc.name, reg, &value, kind.name(), |found| found == kind)?;
            }
            (KfuncArg::Released(kind), value) => {
                let id = self.check_object(kfunc.name, reg, &value, kind.name(), |found| found == kind)?;
                arguments.released = Some(id);
            }
            (KfuncArg::Size { least }, value) => {
                let size = self.check_size(kfunc.name, reg, &value, true)?;
                return self.check_out_of_size(kfunc, number, size, size.max(least.into()), arguments);
            }
            // Checked together with its size, in the next argument.
            (KfuncArg::BufferOrNull | KfuncArg::Memory, _) => {}
            (KfuncArg::KnownSize, value) => {
                arguments.size = self.known_size(kfunc.name, reg, &value)?;
                let size = arguments.size.into();
                return self.check_out_of_size(kfunc, number, 0, size, arguments);
            }
        }
        Ok(None)
    }

    /// Memory that the function writes.
    fn check_out(
        &mut self,
        kfunc: &'static Kfunc,
        reg: Reg,
        value: &Value,
        size: u64,
        arguments: &mut KfuncArguments,
    ) -> Check<Option<Effect>> {
        let span = self.check_memory_of_kfunc(kfunc, reg, value, size)?;
        arguments.written.push(span);
        Ok(Effect::of_write(span))
    }

    /// The memory whose size is the argument of a number; null if no bytes are `asked` for.
    fn check_out_of_size(
        &mut self,
        kfunc: &'static Kfunc,
        number: usize,
        asked: u64,
        size: u64,
        arguments: &mut KfuncArguments,
    ) -> Check<Option<Effect>> {
        let memory = invariant(number.checked_sub(1), "the size of memory is the argument after it")?;
        let memory = ARGUMENTS[memory];
        let value = self.read(memory)?;
        if asked == 0 && value.is_null() {
            self.mark_precise(&value);
            return Ok(None);
        }
        self.check_out(kfunc, memory, &value, size, arguments)
    }

    fn known_size(&mut self, name: &str, register: Reg, value: &Value) -> Check<u32> {
        let size = value.scalar().and_then(|scalar| scalar.number.as_constant());
        self.mark_precise(value);
        match size.and_then(|size| u32::try_from(size).ok()) {
            Some(size) => Ok(size),
            None => wrong_argument(name, register, "a constant size", value),
        }
    }

    /// The place of an iterator, which must be initialized, or for its constructor uninitialized (`process_iter_arg`).
    fn iterator_place(&mut self, kfunc: &'static Kfunc, register: Reg, value: &Value) -> Check<Place> {
        let wanted = "an iterator at a known stack offset";
        let (pointer, frame, offset) = match value {
            Value::Pointer(pointer @ Pointer { target: Target::Stack { frame }, .. }) => {
                match pointer.offset() {
                    Some(offset) => (*pointer, usize::from(*frame), offset),
                    None => return wrong_argument(kfunc.name, register, wanted, value),
                }
            }
            other => return wrong_argument(kfunc.name, register, wanted, other),
        };
        let size = u64::from(NUM_ITERATOR_BYTES);
        let span = Span { register, pointer, offset: 0, size, access: Access::Write };
        check_aligned(&span)?;
        self.check_stack(&span, frame)?;
        let place = Place { frame, slot: Stack::place(offset).0 };
        match (kfunc.iterator, place.of(self.state)) {
            (Some(IteratorStep::New), Some(_)) => reject(Cause::IteratorThere(RegName(register))),
            (Some(IteratorStep::Next | IteratorStep::Destroy), None) => {
                reject(Cause::NoIterator(RegName(register)))
            }
            _ => Ok(place),
        }
    }
}
