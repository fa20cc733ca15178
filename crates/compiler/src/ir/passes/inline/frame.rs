//! The stack of an inlined function in the frame of its caller.

use paceline_verifier::StackFact;

use crate::ir::check::CheckCause;
use crate::ir::copy::{Relocation, Undefined};
use crate::ir::op::Op;
use crate::ir::stack_bytes::StackBytes;
use crate::ir::types::{Access, CallFacts, Region, STACK_BYTES, Span};

/// A function's stack in the frame of the function that its code is a part of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// Bytes of the frame with it.
    pub(super) end: u32,
    /// The words of it that other functions may read, in the numbering of the frame.
    pub(super) shared: u64,
    /// The same of the functions that it is inlined in, as far as it may read them.
    pub(super) outer: u64,
}

impl Frame {
    /// The words of a function whose stack has this place, in the numbering of the frame.
    pub(super) fn words(above: u32, words: u64) -> u64 {
        // default: words that are moved out of the frame are none.
        words.checked_shl(above / 8).unwrap_or(0)
    }

    /// The words that have a byte of a range.
    pub(super) fn touched(read: &StackFact) -> u64 {
        StackBytes::range(read.start.into(), read.end.into()).words()
    }
}

/// A function that becomes a part of another one.
pub(super) struct Moved {
    /// Bytes of the frame above its stack.
    pub(super) above: u32,
    /// Whether there is no function further out: what was on the stack of one is in the frame.
    pub(super) is_outermost: bool,
}

impl Moved {
    const fn offset(&self, offset: i32) -> i32 {
        offset.saturating_sub_unsigned(self.above)
    }

    /// Where an access goes. Offsets in the stacks of functions further out are not known to be those of one of them.
    fn access(&self, access: Access) -> Access {
        match access.region {
            Region::Stack => {
                let moved = |span: Span| Span { min: self.offset(span.min), max: self.offset(span.max) };
                Access { span: access.span.map(moved), ..access }
            }
            Region::CallerStack if self.is_outermost => Access::to(Region::Stack),
            // Memory that the function was given may be on the stack of its caller.
            Region::CallerStack | Region::Memory => Access::to(Region::Mixed),
            _ => access,
        }
    }
}

impl Relocation for Moved {
    type Error = CheckCause;

    fn op(&self, op: &mut Op) -> Result<(), CheckCause> {
        if let Op::StackAddress { offset } = op {
            *offset = self.offset(*offset);
        } else if let Some(access) = op.access_mut() {
            *access = self.access(*access);
        }
        Ok(())
    }

    fn facts(&self, facts: &CallFacts) -> CallFacts {
        let mut facts = *facts;
        if let Some(read) = &mut facts.stack_read {
            let moved = |offset: i16| self.offset(offset.into()).max(-STACK_BYTES) as i16;
            (read.start, read.end) = (moved(read.start), moved(read.end));
        }
        facts
    }

    fn slot(&self, slot: u32) -> u32 {
        slot
    }

    fn undefined(&self, what: Undefined) -> CheckCause {
        match what {
            Undefined::Value(value) => CheckCause::NotDominated(value),
            Undefined::Block(block) => CheckCause::Layout(block),
        }
    }
}
