//! Calls of kernel functions, checked against the table of prototypes, and iterator steps.

use paceline_isa::{Callee, Code, Insn, Reg};
use paceline_spec::ProgramSpec;
use paceline_spec::availability::is_gpl_compatible;
use paceline_spec::kfunc::{IteratorStep, Kfunc, KfuncArg, KfuncReturn, NUM_ITERATOR_BYTES};

use super::ARGUMENTS;
use super::helper::wrong_argument;
use super::memory::{Access, Span};
use super::stack::check_aligned;
use crate::domain::number::Number;
use crate::domain::state::{
    Byte, Dynptr, DynptrMemory, NumIterator, Pointer, Progress, ReferenceKind, Slot, Stack, State, Target,
    Value,
};
use crate::error::{Cause, Check, Hint, Refusal, RegName, reject};
use crate::walk::{Next, Walk};

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

/// Place of an iterator: frame number, and slot in its stack.
#[derive(Clone, Copy)]
struct Place {
    frame: usize,
    slot: usize,
}

impl Place {
    fn of(self, state: &State) -> Option<NumIterator> {
        state.frame(self.frame).and_then(|frame| frame.stack.slot(self.slot).iterator())
    }

    fn slot_mut(self, state: &mut State) -> Option<&mut Slot> {
        state.frame_mut(self.frame).map(|frame| frame.stack.slot_mut(self.slot))
    }

    fn put(self, state: &mut State, iterator: NumIterator) {
        if let Some(slot) = self.slot_mut(state) {
            slot.place(iterator);
        }
    }
}

/// The checked arguments of a call.
#[derive(Default)]
struct KfuncArguments {
    iterator: Option<Place>,
    new_dynptr: Option<Span>,
    dynptr: Option<Dynptr>,
    /// Size of the requested memory.
    size: u32,
    /// Memory that is written.
    written: Vec<Span>,
    /// Id of the reference that is released.
    released: Option<u32>,
}

impl Walk<'_> {
    pub(super) fn call_kfunc(&mut self, index: i32) -> Check<Next> {
        let Some(kfunc) = self.program.kfunc(index).filter(|kfunc| kfunc.is_for(self.program.kind)) else {
            let named = usize::try_from(index).ok().and_then(|index| self.program.kfuncs.get(index));
            return reject(Cause::Kfunc(named.map_or_else(|| index.to_string(), |kfunc| kfunc.name.clone())));
        };
        let arguments = self.check_kfunc_arguments(kfunc)?;
        self.forget_caller_saved();
        if let Some(id) = arguments.released {
            self.release(id);
        }
        for span in &arguments.written {
            self.write_by_helper(span)?;
        }
        if let Some(span) = &arguments.new_dynptr {
            // A clone has the same memory, and no reference of its own.
            let (memory, reference) = arguments
                .dynptr
                .map_or((DynptrMemory::Packet, 0), |dynptr| (dynptr.memory, dynptr.reference));
            self.make_dynptr(span, memory, reference);
        }
        let next = Next::Go(self.slot + 1);
        match (kfunc.iterator, arguments.iterator) {
            (Some(IteratorStep::New), Some(place)) => self.new_iterator(place)?,
            (Some(IteratorStep::Next), Some(place)) => return Ok(self.next_element(kfunc, place)),
            (Some(IteratorStep::Destroy), Some(place)) => self.destroy_iterator(place),
            _ => {}
        }
        match kfunc.returns {
            KfuncReturn::Number => self.return_number(),
            KfuncReturn::SliceOrNull { writable } => {
                let buffer = arguments.written.first();
                let slice = arguments.dynptr.map(|of| self.slice(&of, arguments.size, writable, buffer));
                self.state.set(Reg::R0, slice.unwrap_or(Value::Unset));
            }
            KfuncReturn::Object(kind) => {
                self.state.set(Reg::R0, Value::Pointer(Pointer::to(Target::Object(kind))));
            }
            KfuncReturn::ObjectOrNull(kind) => {
                let object = self.acquire(kind);
                self.state.set(Reg::R0, object);
            }
            KfuncReturn::Nothing | KfuncReturn::ElementOrNull(_) => {}
        }
        Ok(next)
    }

    fn check_kfunc_arguments(&mut self, kfunc: &'static Kfunc) -> Check<KfuncArguments> {
        let mut arguments = KfuncArguments::default();
        for (i, (&arg, reg)) in kfunc.args.iter().zip(ARGUMENTS).enumerate() {
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
                    arguments.new_dynptr = Some(self.check_new_dynptr(kfunc.name, reg, &value)?);
                }
                (KfuncArg::Out(size), value) => {
                    let span = self.check_memory_of_kfunc(kfunc, reg, &value, size.into())?;
                    arguments.written.push(span);
                }
                (KfuncArg::Object(kind), value) => {
                    self.check_object(kfunc.name, reg, &value, kind.name(), |found| found == kind)?;
                }
                (KfuncArg::Released(kind), value) => {
                    let id =
                        self.check_object(kfunc.name, reg, &value, kind.name(), |found| found == kind)?;
                    arguments.released = Some(id);
                }
                (KfuncArg::Size { least }, value) => {
                    let size = self.check_size(kfunc.name, reg, &value, true)?;
                    let memory = i.checked_sub(1).and_then(|i| ARGUMENTS.get(i).copied()).unwrap_or(reg);
                    let value = self.read(memory)?;
                    if size == 0 && value.is_null() {
                        self.mark_precise(&value);
                    } else {
                        let size = size.max(least.into());
                        arguments.written.push(self.check_memory_of_kfunc(kfunc, memory, &value, size)?);
                    }
                }
                // Checked together with its size, in the next argument.
                (KfuncArg::BufferOrNull | KfuncArg::Memory, _) => {}
                (KfuncArg::KnownSize, value) => {
                    arguments.size = self.known_size(kfunc.name, reg, &value)?;
                    let buffer = i.checked_sub(1).and_then(|i| ARGUMENTS.get(i).copied()).unwrap_or(reg);
                    let value = self.read(buffer)?;
                    if value.is_null() {
                        self.mark_precise(&value);
                    } else {
                        let size = arguments.size.into();
                        arguments.written.push(self.check_memory_of_kfunc(kfunc, buffer, &value, size)?);
                    }
                }
            }
        }
        Ok(arguments)
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
        match (kfunc.iterator, place.of(&self.state)) {
            (Some(IteratorStep::New), Some(_)) => reject(Cause::IteratorThere(RegName(register))),
            (Some(IteratorStep::Next | IteratorStep::Destroy), None) => {
                reject(Cause::NoIterator(RegName(register)))
            }
            _ => Ok(place),
        }
    }

    fn new_iterator(&mut self, place: Place) -> Check {
        let (offset, size) = (Stack::offset(place.slot), NUM_ITERATOR_BYTES.into());
        self.end_slices_of(place.frame, offset, size);
        self.lose_dynptrs(place.frame, offset, size)?;
        let id = self.new_id();
        self.add_reference(id, ReferenceKind::Iterator);
        place.put(&mut self.state, NumIterator { active: true, progress: Progress { id, rounds: 0 } });
        Ok(())
    }

    /// The iterator is exhausted; the branch with a further element waits (`process_iter_next_call`).
    fn next_element(&mut self, kfunc: &Kfunc, place: Place) -> Next {
        let next = self.slot + 1;
        let null = Value::number(Number::ZERO);
        let Some(iterator) = place.of(&self.state).filter(|iterator| iterator.active) else {
            self.state.set(Reg::R0, null);
            return Next::Go(next);
        };
        let mut waiting = self.state.clone();
        let Progress { id, rounds } = iterator.progress;
        place.put(&mut waiting, NumIterator { progress: Progress { id, rounds: rounds + 1 }, ..iterator });
        if let KfuncReturn::ElementOrNull(size) = kfunc.returns {
            let element = Target::Memory { size, writable: false, lent: None };
            let element = Pointer { id, ..Pointer::to(element) };
            waiting.set(Reg::R0, Value::Pointer(element));
        }
        self.widen(&mut waiting, self.slot, true);
        place.put(&mut self.state, NumIterator { active: false, ..iterator });
        self.state.set(Reg::R0, null);
        Next::Both { next, target: next, waiting: Box::new(waiting) }
    }

    /// Pointers to its element become numbers.
    fn destroy_iterator(&mut self, place: Place) {
        if let Some(iterator) = place.of(&self.state) {
            self.release(iterator.progress.id);
        }
        if let Some(slot) = place.slot_mut(&mut self.state) {
            slot.overwrite(u8::MAX, Byte::Data);
        }
    }
}
