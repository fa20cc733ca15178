//! Special fields of map values: timers and spin locks. At most one lock is held at a time, and it is released before any
//! other call and before the program ends (`process_spin_lock` and `check_resource_leak` in `kernel/bpf/verifier.c`).

use paceline_isa::{Callee, Reg};
use paceline_spec::MapSpec;
use paceline_spec::helper::{Arg, Helper};

use super::describe::wrong_argument;
use super::registers::Checker;
use crate::domain::access::Span;
use crate::domain::state::{Lock, MapRef, Pointer, Target, Value};
use crate::error::{Cause, Check, Hint, RegName, reject, reject_with};

impl Checker<'_> {
    /// The lock that is held after a helper has taken or released one.
    pub(super) fn spin_lock(
        &self,
        helper: &Helper,
        arg: Arg,
        reg: Reg,
        value: &Value,
    ) -> Check<Option<Lock>> {
        let lock = self.lock_at(helper, reg, value)?;
        let problem = match (arg, self.state.lock) {
            (Arg::SpinLock, None) => return Ok(Some(lock)),
            (Arg::SpinLock, Some(_)) => "another lock is held",
            (_, None) => "no lock is held",
            (_, Some(held)) if (held.map, held.id) == (lock.map, lock.id) => return Ok(None),
            (_, Some(_)) => "another lock is held than the one released",
        };
        reject(Cause::SpinLock(RegName(reg), problem))
    }

    /// The lock that a pointer points to: map and value.
    fn lock_at(&self, helper: &Helper, reg: Reg, value: &Value) -> Check<Lock> {
        const WANTED: &str = "a spin lock of a map value";
        let Some((map, pointer)) = in_value(value) else {
            return wrong_argument(helper.name, reg, WANTED, value);
        };
        let lock = self.env.map(map).and_then(MapSpec::spin_lock);
        let problem = match (lock, pointer.offset()) {
            (None, _) => "the values of the map have no bpf_spin_lock in their BTF type",
            (_, None) => "a lock must be at a known offset",
            (Some(lock), Some(offset)) if offset != i64::from(lock.offset) => {
                "the lock is at another offset of the value"
            }
            (Some(_), Some(_)) => return Ok(Lock { map, id: pointer.id, slot: self.slot as u32 }),
        };
        reject(Cause::SpinLock(RegName(reg), problem))
    }

    /// The map whose value contains the timer that a pointer points to (`process_timer_func`).
    pub(super) fn check_timer(&self, helper: &Helper, reg: Reg, value: &Value) -> Check<MapRef> {
        const WANTED: &str = "a timer of a map value";
        let Some((map, pointer)) = in_value(value) else {
            return wrong_argument(helper.name, reg, WANTED, value);
        };
        let problem = match (self.env.map(map).and_then(MapSpec::timer), pointer.offset()) {
            (_, None) => "a timer must be at a known offset",
            (None, _) => "the values of the map have no bpf_timer in their BTF type",
            (Some(timer), Some(offset)) if offset != i64::from(timer.offset) => {
                "the timer is at another offset of the value"
            }
            (Some(_), Some(_)) => return Ok(map),
        };
        reject(Cause::Timer(RegName(reg), problem))
    }

    /// While a lock is held, only static functions and the release of the lock may be called.
    pub(crate) fn check_call_with_lock(&self, callee: Callee) -> Check {
        if self.state.lock.is_none() {
            return Ok(());
        }
        let is_allowed = match callee {
            Callee::Helper(id) => {
                let helper = Helper::from_imm(id).and_then(|h| h.prototype);
                helper.is_some_and(|prototype| prototype.args.contains(&Arg::HeldSpinLock))
            }
            Callee::Subprogram(_) => true,
            Callee::Kfunc { .. } => false,
        };
        if is_allowed { Ok(()) } else { self.check_no_lock("this call") }
    }

    /// Refuses `what` while a lock is held.
    pub(crate) fn check_no_lock(&self, what: &'static str) -> Check {
        match self.state.lock {
            Some(lock) => reject_with(Cause::LockHeld { what, slot: lock.slot as usize }, Hint::Unlock),
            None => Ok(()),
        }
    }

    /// Refuses loads and stores that overlap a special field (`check_map_access`).
    pub(super) fn check_special_fields(&self, span: &Span, spec: &MapSpec) -> Check {
        if spec.special.is_empty() {
            return Ok(());
        }
        let (start, end) = span.reach();
        let touched = spec.special.iter().find(|field| {
            let offset = i64::from(field.offset);
            start < offset + i64::from(field.size) && offset < end
        });
        match touched {
            Some(field) => reject(Cause::SpecialField(RegName(span.register), field.kind)),
            None => Ok(()),
        }
    }
}

/// A pointer to a map value, and its map.
fn in_value(value: &Value) -> Option<(MapRef, &Pointer)> {
    match value {
        Value::Pointer(pointer @ Pointer { target: Target::MapValue(map), nullable: false, .. }) => {
            Some((*map, pointer))
        }
        _ => None,
    }
}
