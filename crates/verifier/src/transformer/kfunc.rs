//! Calls of kernel functions, and iterator steps.

use paceline_isa::Reg;
use paceline_spec::kfunc::{IteratorStep, Kfunc, KfuncReturn, NUM_ITERATOR_BYTES};

use super::next::{Next, Round};
use super::registers::Transformer;
use crate::checker::KfuncArguments;
use crate::domain::access::Place;
use crate::domain::number::Number;
use crate::domain::state::{
    Byte, DynptrMemory, NumIterator, Pointer, Progress, ReferenceKind, Stack, Target, Value,
};
use crate::error::{Check, invariant};

impl Transformer<'_> {
    pub(super) fn call_kfunc(&mut self, index: i32) -> Check<Next> {
        let kfunc = self.check().check_kfunc(index)?;
        let mut arguments = KfuncArguments::default();
        for number in 0..kfunc.args.len() {
            let effect = self.check().check_kfunc_argument(kfunc, number, &mut arguments)?;
            self.take_effect(effect)?;
        }
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
            self.make_dynptr(span, memory, reference)?;
        }
        let next = Next::Go(self.slot + 1);
        match (kfunc.iterator, arguments.iterator) {
            (Some(IteratorStep::New), Some(place)) => self.new_iterator(place)?,
            (Some(IteratorStep::Next), Some(place)) => return Ok(self.next_element(kfunc, place)),
            (Some(IteratorStep::Destroy), Some(place)) => self.destroy_iterator(place),
            (Some(_), None) => invariant(None, "a step of an iterator has the iterator as an argument")?,
            (None, _) => {}
        }
        match kfunc.returns {
            KfuncReturn::Number => self.return_number(),
            KfuncReturn::SliceOrNull { writable } => {
                let buffer = arguments.written.first();
                let dynptr = invariant(arguments.dynptr, "a dynptr is an argument")?;
                let slice = self.slice(&dynptr, arguments.size, writable, buffer);
                self.state.set(Reg::R0, slice);
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

    fn new_iterator(&mut self, place: Place) -> Check {
        let (offset, size) = (Stack::offset(place.slot), NUM_ITERATOR_BYTES.into());
        self.end_slices_of(place.frame, offset, size);
        self.lose_dynptrs(place.frame, offset, size)?;
        let id = self.add_reference(ReferenceKind::Iterator);
        place.put(self.state, NumIterator { active: true, progress: Progress { id, rounds: 0 } });
        Ok(())
    }

    /// The iterator is exhausted; the branch with a further element waits (`process_iter_next_call`).
    fn next_element(&mut self, kfunc: &Kfunc, place: Place) -> Next {
        let next = self.slot + 1;
        let null = Value::number(Number::ZERO);
        let Some(iterator) = place.of(self.state).filter(|iterator| iterator.active) else {
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
        place.put(self.state, NumIterator { active: false, ..iterator });
        self.state.set(Reg::R0, null);
        let round = Some(Round { head: self.slot, just_kept: true });
        Next::Both { next, target: next, waiting: Box::new(waiting), round }
    }

    /// Pointers to its element become numbers.
    fn destroy_iterator(&mut self, place: Place) {
        if let Some(iterator) = place.of(self.state) {
            self.release(iterator.progress.id);
        }
        if let Some(slot) = place.slot_mut(self.state) {
            slot.overwrite(u8::MAX, Byte::Data);
        }
    }
}
