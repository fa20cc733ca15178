//! Comparisons of a place in the packet with its end, as questions about a length.

use paceline_isa::Condition;

use crate::ir::entity::Value;
use crate::ir::function::Function;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::{Kind, Type};

/// Greatest constant distance from a pointer that is looked at. No sum of a pointer and that wraps around: what has the kind of a packet
/// pointer is between 2^29 bytes before the packet's start and less than 2^63 behind it (the verifier refuses other offsets), and the
/// packet lies in the lower half of the address space, and not in its first 2^29 bytes.
const MAX_DISTANCE: u64 = 1 << 16;

/// The question whether at least so many bytes lie between a pointer and the packet's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The pointer, and the end.
    pub(super) between: (Value, Value),
    /// The number of bytes.
    pub(super) least: u64,
    /// Whether the condition holds if there are so many.
    pub(super) holds_if_long: bool,
}

impl Asked {
    /// The question of a condition; `None` if it is none about a packet's length.
    pub(super) fn of(
        function: &Function,
        (condition, ty, a, b): (Condition, Type, Value, Value),
    ) -> Option<Self> {
        if ty != Type::I64 {
            return None;
        }
        let kind = |value: Value| function.value(value).kind;
        let (condition, place, end) = match (kind(a), kind(b)) {
            (Kind::Packet, Kind::PacketEnd) => (condition, a, b),
            (Kind::PacketEnd, Kind::Packet) => (condition.exchanged(), b, a),
            _ => return None,
        };
        let (start, distance) = split(function, place);
        let (more, holds_if_long) = match condition {
            // start + distance > end
            Condition::Gt => (0, false),
            Condition::Ge => (1, false),
            Condition::Lt => (1, true),
            Condition::Le => (0, true),
            _ => return None,
        };
        Some(Self { between: (start, end), least: distance + more, holds_if_long })
    }
}

/// A place as another one and a constant distance.
fn split(function: &Function, place: Value) -> (Value, u64) {
    if let Some(Op::Binary { op: BinaryOp::Add, args: [start, distance], .. }) = function.op_of(place)
        && let Some(distance) = function.as_const(*distance)
        && distance <= MAX_DISTANCE
        && function.value(*start).kind == Kind::Packet
    {
        return (*start, distance);
    }
    (place, 0)
}

/// Bounds of a length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    least: u64,
    /// One more than the greatest.
    below: u64,
}

impl Default for Length {
    fn default() -> Self {
        // A pointer may lie behind the end: nothing is known of it.
        Self { least: 0, below: u64::MAX }
    }
}

impl Length {
    /// What is known after a question was answered.
    pub(super) fn with(mut self, least: u64, is_long: bool) -> Self {
        if is_long {
            self.least = self.least.max(least);
        } else {
            self.below = self.below.min(least);
        }
        self
    }

    /// The answer to a question, if it is known.
    pub(super) const fn decides(self, least: u64) -> Option<bool> {
        // That there are 0 bytes is not known of a pointer behind the end.
        if least <= self.least && self.least > 0 {
            Some(true)
        } else if least >= self.below {
            Some(false)
        } else {
            None
        }
    }
}
