//! Calls of helpers.

use paceline_isa::Reg;
use paceline_spec::helper::{Arg, Helper, Prototype, Return};
use paceline_spec::{InnerLength, MapFlags, MapSpec, ObjectKind};

use super::next::Next;
use super::registers::Transformer;
use crate::checker::Arguments;
use crate::domain::access::Span;
use crate::domain::number::Number;
use crate::domain::state::{DynptrMemory, MapRef, Pointer, ReferenceKind, Target, Value};
use crate::error::{Check, invariant};

impl Transformer<'_> {
    pub(super) fn call_helper(&mut self, id: i32) -> Check<Next> {
        let (helper, prototype) = self.check().check_helper(id)?;
        let arguments = self.arguments(helper, &prototype)?;
        for span in &arguments.written {
            self.write_by_helper(span)?;
        }
        if prototype.moves_packet {
            self.forget_packet();
        }
        if let Some(id) = arguments.released {
            self.release(id);
            self.lose_records();
            self.lose_record(id);
        }
        if let Some(span) = &arguments.new_dynptr {
            self.make_new_dynptr(helper, &prototype, span)?;
        }
        if helper.prints() {
            self.check().note_printing(arguments.text.as_deref());
        }
        self.call_later(helper, &arguments)?;
        if let Some(next) = self.call_back(helper, &arguments)? {
            return Ok(next);
        }
        self.forget_caller_saved();
        let result = self.result(&prototype, &arguments)?;
        self.state.set(Reg::R0, result);
        Ok(Next::Go(self.slot + 1))
    }

    fn arguments(&mut self, helper: &'static Helper, prototype: &Prototype) -> Check<Arguments> {
        let mut arguments = Arguments::default();
        for number in 0..prototype.args.len() {
            let effect = self.check().check_argument(helper, prototype, number, &mut arguments)?;
            self.take_effect(effect)?;
        }
        if helper.name == "bpf_snprintf" {
            self.check().check_format(arguments.text.as_deref())?;
        }
        Ok(arguments)
    }

    /// A helper has initialized a dynptr (`mark_stack_slots_dynptr`).
    fn make_new_dynptr(&mut self, helper: &'static Helper, prototype: &Prototype, span: &Span) -> Check {
        if prototype.args.contains(&Arg::NewRecordDynptr) {
            let reference = self.add_reference(ReferenceKind::Record);
            self.make_dynptr(span, DynptrMemory::Record, reference)
        } else {
            self.check().check_value_memory(helper)?;
            self.make_dynptr(span, DynptrMemory::Value, 0)
        }
    }

    /// Marks memory as written by a helper; only the stack is tracked.
    pub(super) fn write_by_helper(&mut self, span: &Span) -> Check {
        match span.pointer.target {
            Target::Stack { frame } => {
                self.check().check_no_dynptr(span, usize::from(frame))?;
                self.overwrite_stack(span, usize::from(frame))
            }
            _ => Ok(()),
        }
    }

    fn result(&mut self, prototype: &Prototype, arguments: &Arguments) -> Check<Value> {
        Ok(match prototype.returns {
            Return::Scalar => Value::number(Number::UNKNOWN),
            Return::Nothing => Value::Unset,
            Return::MapValueOrNull => {
                let map = invariant(arguments.map, "a map is an argument of a look-up")?;
                let spec = invariant(self.env.map(map), "a map in a register is one of the maps")?;
                // `is_acquire_function`
                if spec.kind.holds_sockets() {
                    return Ok(self.acquire(ObjectKind::Socket));
                }
                self.looked_up(map, spec, arguments.key)
            }
            Return::DynptrMemoryOrNull => {
                let dynptr = invariant(arguments.dynptr, "a dynptr is an argument")?;
                self.dynptr_data(&dynptr, arguments.record_size, true)
            }
            Return::SocketOrNull | Return::SockCommonOrNull => {
                self.acquire(invariant(prototype.returns.object(), "a result that is an object has a kind")?)
            }
            Return::RecordOrNull => {
                let id = self.add_reference(ReferenceKind::Record);
                let record = Pointer::to(Target::Record { size: arguments.record_size });
                Value::Pointer(Pointer { nullable: true, id, ..record })
            }
        })
    }

    /// The result of a look-up: a value or null; for a map of maps, a map.
    fn looked_up(&mut self, map: MapRef, spec: &MapSpec, key: Option<u64>) -> Value {
        // The key of an array is its index; a valid index always has a value. `bpf_map_lookup_percpu_elem` may still find
        // no such CPU, so its key is ignored.
        let is_sized = spec.kind.is_array() && !(map.inner && may_differ_in_length(spec));
        let key = key.filter(|&key| is_sized && key < u64::from(spec.max_entries));
        let target = match spec.kind.holds_maps() {
            true => Target::Map(MapRef { inner: true, ..map }),
            false => Target::MapValue(map),
        };
        self.records.facts.key(self.slot, key.and_then(|key| u32::try_from(key).ok()));
        Value::Pointer(match key {
            Some(_) => self.value_of_its_own(target),
            None => Pointer { nullable: true, id: self.records.new_id(), ..Pointer::to(target) },
        })
    }
}

/// Whether inner maps may have another number of entries than their template: false only for arrays without the flag that
/// allows it (`array_map_meta_equal`; per-CPU arrays too have `bpf_map_meta_equal`), and for kinds that are compared with it.
fn may_differ_in_length(template: &MapSpec) -> bool {
    match template.kind.rules().inner_length {
        InnerLength::Any => true,
        InnerLength::FixedUnlessFlagged => template.flags.contains(MapFlags::INNER_MAP),
        InnerLength::Fixed | InnerLength::Forbidden => false,
    }
}
