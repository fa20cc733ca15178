//! Calls of global functions, which are explored once, for all arguments that their BTF types allow.

use paceline_isa::RegSet;

use super::registers::Transformer;
use crate::domain::state::{Pointer, Target, Value};
use crate::error::Check;
use crate::records::Root;

impl Transformer<'_> {
    pub(super) fn call_global(&mut self, function: usize) -> Check {
        let env = self.env;
        let global = env.global(function)?;
        for (number, (reg, &parameter)) in (0..).zip(RegSet::ARGUMENTS.iter().zip(&global.parameters)) {
            let place = (function, number);
            let effect = self.check().check_parameter(place, &global.name, reg, parameter)?;
            self.take_effect(effect)?;
        }
        self.records.roots.add(Root::Global(function));
        if env.flow.functions[function].moves_packet {
            self.forget_packet();
        }
        self.forget_caller_saved();
        self.return_number();
        Ok(())
    }

    /// The packet may have moved, and memory arguments may lie in it.
    pub(super) fn note_packet_moved(&mut self) {
        let is_lent = |value: &Value| {
            let target = value.pointer().map(|p| p.target);
            matches!(target, Some(Target::Memory { lent: Some(_), .. } | Target::Slice { lent: Some(_), .. }))
        };
        self.state.update(is_lent, |value| {
            let Value::Pointer(Pointer { target, .. }) = value else { return };
            if let Target::Memory { lent: Some(lent), .. } | Target::Slice { lent: Some(lent), .. } = target {
                lent.packet_moved = true;
            }
        });
    }
}
