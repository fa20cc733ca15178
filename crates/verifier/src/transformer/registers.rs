//! The transformer, and changes of registers, references and ids.

use paceline_isa::{Reg, RegSet};
use paceline_spec::ObjectKind;

use crate::checker::{Checker, check_writable};
use crate::domain::number::Number;
use crate::domain::state::{Frame, MapRef, Pointer, Reference, ReferenceKind, State, Target, Value};
use crate::env::Env;
use crate::error::{Check, invariant};
use crate::records::Records;

/// Runs one instruction on a state.
pub(crate) struct Transformer<'a> {
    pub(crate) env: &'a Env<'a>,
    /// Slot of the instruction.
    pub(crate) slot: usize,
    pub(crate) state: &'a mut State,
    pub(crate) records: &'a mut Records,
}

impl Transformer<'_> {
    /// The checker of the instruction, for the state as it is now.
    #[inline]
    pub(super) fn check(&mut self) -> Checker<'_> {
        Checker { env: self.env, slot: self.slot, state: self.state, records: self.records }
    }

    /// The frame of a call, by its number, to change.
    #[track_caller]
    #[inline]
    pub(super) fn frame_mut(&mut self, number: usize) -> Check<&mut Frame> {
        invariant(self.state.frame_mut(number), "pointers point to the stacks of active calls only")
    }

    /// Changes a register, which must not be the frame pointer.
    pub(super) fn write(&mut self, reg: Reg, value: Value) -> Check {
        check_writable(reg)?;
        self.state.set(reg, value);
        Ok(())
    }

    /// The result of a helper or global function that returns any number.
    pub(super) fn return_number(&mut self) {
        self.state.set(Reg::R0, Value::number(Number::UNKNOWN));
    }

    /// The caller-saved registers are undefined after a call.
    pub(super) fn forget_caller_saved(&mut self) {
        let frame = self.state.top_mut();
        for reg in RegSet::CALLER_SAVED.iter() {
            frame.set(reg, Value::Unset);
        }
    }

    /// Adds a reference that the running call acquires.
    pub(super) fn add_reference(&mut self, kind: ReferenceKind) -> u32 {
        let id = self.records.new_id();
        self.state.references.push(Reference { id, slot: self.slot as u32, kind });
        id
    }

    /// An object that is acquired, or null.
    pub(super) fn acquire(&mut self, kind: ObjectKind) -> Value {
        let id = self.add_reference(ReferenceKind::Object(kind));
        Value::Pointer(Pointer { nullable: true, id, ..Pointer::to(Target::Object(kind)) })
    }

    /// Releases a reference: all pointers to it become numbers (`release_reference`).
    pub(super) fn release(&mut self, id: u32) {
        self.state.references.retain(|reference| reference.id != id);
        let points_there = |value: &Value| value.pointer().is_some_and(|p| p.id == id);
        self.state.update(points_there, |value| *value = Value::unknown());
    }

    /// A new pointer that may be null.
    pub(super) fn or_null(&mut self, target: Target) -> Value {
        Value::Pointer(Pointer { nullable: true, id: self.records.new_id(), ..Pointer::to(target) })
    }

    /// A pointer that is not null to a value that no other pointer is known to point to: if the value has a lock, with an id.
    pub(super) fn value_of_its_own(&mut self, target: Target) -> Pointer {
        let pointer = Pointer::to(target);
        if keeps_id(self.env, &pointer) { Pointer { id: self.records.new_id(), ..pointer } } else { pointer }
    }

    /// The arguments of a callback for a map element, in the registers of its frame. Each call has another element, as each
    /// look-up has.
    pub(super) fn element(&mut self, map: MapRef, handle: Value) -> [(Reg, Value); 3] {
        let key_size = self.env.map(map).map_or(0, |spec| spec.key_size);
        let key = Target::Memory { size: key_size, writable: false, lent: None };
        let value = self.value_of_its_own(Target::MapValue(map));
        [(Reg::R1, handle), (Reg::R2, Value::Pointer(Pointer::to(key))), (Reg::R3, Value::Pointer(value))]
    }
}

/// Whether pointers to a value of this map keep their id after the null check: it identifies the value whose lock is
/// held (`reg_may_point_to_spin_lock`).
pub(super) fn keeps_id(env: &Env<'_>, pointer: &Pointer) -> bool {
    match pointer.target {
        Target::Record { .. } | Target::Object(_) => true,
        Target::MapValue(map) => env.map(map).is_some_and(|spec| spec.spin_lock().is_some()),
        _ => false,
    }
}
