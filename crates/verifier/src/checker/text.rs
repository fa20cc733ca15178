//! Constant strings, and formats among them (`check_reg_const_str`, `check_bpf_snprintf_call` in `kernel/bpf/verifier.c`).

use paceline_isa::Reg;
use paceline_spec::format;

use super::describe::wrong_argument;
use super::registers::Checker;
use crate::domain::access::{Access, Span};
use crate::domain::state::{Pointer, Target, Value};
use crate::error::{Cause, Check, RegName, invariant, reject};

impl Checker<'_> {
    /// A zero-terminated string in a frozen map, at a constant offset.
    pub(super) fn check_text(&self, helper: &str, register: Reg, value: &Value) -> Check<Vec<u8>> {
        const WANTED: &str = "a string in a read-only map, at a known offset";
        let (map, pointer) = match value {
            Value::Pointer(pointer @ Pointer { target: Target::MapValue(map), nullable: false, .. }) => {
                (*map, *pointer)
            }
            other => return wrong_argument(helper, register, WANTED, other),
        };
        let spec = invariant(self.env.map(map), "a pointer to a map value is to one of the maps")?;
        let Some((bytes, offset)) = self.env.frozen_bytes(map).zip(pointer.offset()) else {
            return wrong_argument(helper, register, WANTED, value);
        };
        let span = Span { register, pointer, offset: 0, size: 1, access: Access::Read };
        self.check_map_value(&span, map)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let mut text = rest.iter().copied().take_while(|&byte| byte != 0).collect::<Vec<u8>>();
        // Bytes that the contents do not cover are zero.
        if text.len() == rest.len() && bytes.len() >= spec.value_size as usize {
            return reject(Cause::TextEnd(RegName(register)));
        }
        text.push(0);
        Ok(text)
    }

    /// Records that the function may print memory at addresses, unless the format is known not to.
    pub(crate) fn note_printing(&mut self, text: Option<&[u8]>) {
        let reads = match (text, self.state.get(Reg::R1)) {
            (Some(text), _) => format::reads_memory(text),
            (None, Value::Pointer(pointer @ Pointer { target: Target::MapValue(map), .. })) => {
                let start = pointer.offset().and_then(|offset| usize::try_from(offset).ok());
                let known =
                    self.env.frozen_bytes(map).zip(start).and_then(|(bytes, start)| bytes.get(start..));
                // Bytes that the contents do not cover are zero.
                known.is_none_or(|text| format::reads_memory(&[text, &[0]].concat()))
            }
            _ => true,
        };
        let function = self.state.top().function;
        self.records.facts.function_mut(function).prints |= reads;
    }

    /// The format of `bpf_snprintf`, which must not have more conversions than values.
    pub(crate) fn check_format(&mut self, text: Option<&[u8]>) -> Check {
        let text = invariant(text, "a format is an argument")?;
        let len = self.read(Reg::R5)?;
        // The known bits of the size count, as in the kernel.
        let len_of_values = invariant(len.scalar(), "the size of the values was checked to be a number")?;
        let bytes = len_of_values.number.bits().value();
        self.mark_precise(&len);
        if bytes % 8 != 0 {
            return reject(Cause::FormatArguments(bytes));
        }
        match format::parse(text, usize::try_from(bytes / 8).unwrap_or(usize::MAX)) {
            Some(_) => Ok(()),
            None => reject(Cause::Format),
        }
    }
}
