//! Calls of kernel functions, by the table of their prototypes; today those are the steps of iterators.

use paceline_isa::Reg;
use paceline_spec::kfunc::{IteratorStep, Kfunc, KfuncArg, KfuncReturn, NUM_ITERATOR_BYTES};

use super::ARGUMENTS;
use super::helper::wrong_argument;
use super::memory::{Access, Span};
use super::stack::check_aligned;
use crate::domain::Number;
use crate::error::{Cause, Check, RegName, broken};
use crate::state::{Byte, NumIterator, Pointer, Progress, Reference, Slot, Stack, State, Target, Value};
use crate::walk::{Next, Walk};

/// The place of an iterator: number of the frame, and of the slot in its stack.
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

impl Walk<'_> {
    pub(super) fn call_kfunc(&mut self, index: i32) -> Check<Next> {
        let Some(kfunc) = self.program.kfunc(index).filter(|kfunc| kfunc.is_for(self.program.kind)) else {
            let named = usize::try_from(index).ok().and_then(|index| self.program.kfuncs.get(index));
            return broken(Cause::Kfunc(named.map_or_else(|| index.to_string(), |kfunc| kfunc.name.clone())));
        };
        let place = self.check_kfunc_arguments(kfunc)?;
        self.forget_caller_saved();
        let next = Next::Go(self.slot + 1);
        match (kfunc.iterator, place) {
            (Some(IteratorStep::New), Some(place)) => self.new_iterator(place)?,
            (Some(IteratorStep::Next), Some(place)) => return Ok(self.next_element(kfunc, place)),
            (Some(IteratorStep::Destroy), Some(place)) => self.destroy_iterator(place),
            _ => {}
        }
        if kfunc.returns == KfuncReturn::Number {
            self.return_number();
        }
        Ok(next)
    }

    /// Checks the arguments; gives the place of the iterator among them.
    fn check_kfunc_arguments(&mut self, kfunc: &'static Kfunc) -> Check<Option<Place>> {
        let mut place = None;
        for (&arg, reg) in kfunc.args.iter().zip(ARGUMENTS) {
            let value = self.read(reg)?;
            match (arg, value) {
                (KfuncArg::Number, Value::Scalar(_)) => {}
                (KfuncArg::Number, other) => return wrong_argument(kfunc.name, reg, "a number", &other),
                (KfuncArg::NumIterator, value) => place = Some(self.iterator_place(kfunc, reg, &value)?),
            }
        }
        Ok(place)
    }

    /// Where the iterator lies, which must be there, or must not be there if it is made (`process_iter_arg`).
    fn iterator_place(&mut self, kfunc: &'static Kfunc, register: Reg, value: &Value) -> Check<Place> {
        let wanted = "an iterator at a known place on the stack";
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
            (Some(IteratorStep::New), Some(_)) => broken(Cause::IteratorThere(RegName(register))),
            (Some(IteratorStep::Next | IteratorStep::Destroy), None) => {
                broken(Cause::NoIterator(RegName(register)))
            }
            _ => Ok(place),
        }
    }

    fn new_iterator(&mut self, place: Place) -> Check {
        let id = self.new_id();
        self.state.references.push(Reference { id, slot: self.slot as u32 });
        place.put(&mut self.state, NumIterator { active: true, progress: Progress { id, rounds: 0 } });
        Ok(())
    }

    /// There is no further element; that there is one waits (`process_iter_next_call`).
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
            let element = Pointer { id, ..Pointer::to(Target::Memory { size, writable: false }) };
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
