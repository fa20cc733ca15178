//! Abstract value of a register or a spilled stack slot.

use std::fmt;

use paceline_isa::{AluOp, Width};
use paceline_spec::ObjectKind;

use super::origin::Mark;
use crate::domain::number::Number;

/// Abstract value of a register or a spilled stack slot.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Not initialized: reading it is an error.
    Unset,
    /// A number.
    Scalar(Scalar),
    /// A pointer.
    Pointer(Pointer),
    /// An iterator, which takes a whole slot of the stack; never in a register.
    Iterator(NumIterator),
    /// Half of a dynptr, which takes two slots of the stack; never in a register.
    Dynptr(Dynptr),
}

/// A dynptr on the stack (`struct bpf_dynptr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dynptr {
    /// Its id.
    pub id: u32,
    /// Whether it is the half with the lower address.
    pub first: bool,
    /// Its memory.
    pub memory: DynptrMemory,
    /// Id of the record's reference, which must be released; 0 for none.
    pub reference: u32,
}

/// The memory of a dynptr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DynptrMemory {
    /// The packet.
    Packet,
    /// Bytes of a map value (`BPF_DYNPTR_TYPE_LOCAL`).
    Value,
    /// A record of a ring buffer.
    Record,
    /// The memory of a dynptr argument of a global function, which may be any of these; the parameter's number, from 0.
    Lent(u8),
}

/// Progress of an object with a bounded number of rounds: a loop that advances it terminates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Id of the object.
    pub id: u32,
    /// Rounds on this path.
    pub rounds: u32,
}

/// An iterator of numbers (`struct bpf_iter_num`). The id of its progress is that of its [`Reference`].
///
/// [`Reference`]: super::Reference
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumIterator {
    /// Whether there may be more elements; an exhausted iterator stays exhausted.
    pub active: bool,
    /// Number of elements returned.
    pub progress: Progress,
}

/// A number in a register.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// Its possible values.
    pub number: Number,
    /// The numbers it equals up to a constant.
    pub link: Option<Link>,
    /// Its origin, for precision.
    pub mark: Mark,
    /// Why it is no longer a pointer, if it was one.
    pub stale_since: Option<Stale>,
}

/// Invalidation of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The instruction that invalidated it.
    pub slot: u32,
    /// Why.
    pub lost: Lost,
}

/// Reasons why a pointer is invalidated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The packet may have been moved.
    Packet,
    /// The buffer of the slice was overwritten or released.
    Buffer,
}

/// The relation of a number to the base of its group: `base + delta`, wrapping, or the low half of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Id of the group.
    pub id: u32,
    /// Distance from the group's base.
    pub delta: i64,
    /// Whether it is only the low 32 bits of that, zero-extended.
    pub low: bool,
}

impl Link {
    /// The link of `number + by`, if it has one.
    #[must_use]
    pub fn moved(self, number: &Number, width: Width, by: i64) -> Option<Self> {
        let delta = self.delta.wrapping_add(by);
        match width {
            Width::W32 => Some(Self { delta, low: true, ..self }),
            Width::W64 if self.low => {
                let stays =
                    |value: u64| value.checked_add_signed(by).is_some_and(|sum| u32::try_from(sum).is_ok());
                (stays(number.umin()) && stays(number.umax())).then_some(Self { delta, ..self })
            }
            Width::W64 => Some(Self { delta, ..self }),
        }
    }

    /// The value of a number with this link, given that a number with the link `other` of the same group is `number`.
    #[must_use]
    pub fn follow(self, other: Self, number: &Number) -> Number {
        let delta = Number::constant(self.delta.wrapping_sub(other.delta) as u64);
        match (self.low, other.low) {
            (false, false) => number.alu(Width::W64, AluOp::Add, &delta),
            (true, _) => number.alu(Width::W32, AluOp::Add, &delta),
            (false, true) => number.alu(Width::W32, AluOp::Add, &delta).forget_high(),
        }
    }
}

impl Scalar {
    /// A number with these possible values and no origin.
    #[must_use]
    pub fn new(number: Number) -> Self {
        Self { number, link: None, mark: Mark::NONE, stale_since: None }
    }
}

/// A map of the object, or a map found in one of its maps of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapRef {
    /// Index among the object's maps.
    pub index: u32,
    /// Whether it is an element of that map of maps.
    pub inner: bool,
}

/// Base of a packet pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// Its first byte.
    Data,
    /// The metadata before it.
    Meta,
}

/// Number of bytes proven accessible before the end, counted from the end of the pointer's variable part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketRange {
    /// This many bytes.
    Bytes(u16),
    /// At the end or beyond it.
    AtEnd,
    /// Beyond the end.
    BeyondEnd,
}

/// The buffer of a slice: the slice points either into the packet or to this buffer, so accesses through it may be accesses
/// to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// Bytes of a frame's stack.
    Stack {
        /// Number of the frame.
        frame: u8,
        /// The first byte, from the frame pointer.
        start: i16,
        /// The byte after the last one.
        end: i16,
    },
    /// A record of a ring buffer.
    Record,
    /// No buffer: the slice is memory of a dynptr to something else than the packet.
    Dynptr {
        /// Id of the dynptr.
        id: u32,
        /// Id of its record's reference, 0 for none.
        reference: u32,
    },
}

impl Buffer {
    /// Whether it overlaps bytes of a frame's stack, from `offset`.
    pub(crate) fn has(&self, frame: usize, offset: i64, size: u64) -> bool {
        match *self {
            Self::Stack { frame: own, start, end } => {
                let after = offset.saturating_add_unsigned(size);
                usize::from(own) == frame && offset < i64::from(end) && i64::from(start) < after
            }
            Self::Record | Self::Dynptr { .. } => false,
        }
    }
}

/// A memory argument of a global function, of which only the size is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lent {
    /// Index of the parameter, from 0.
    pub parameter: u8,
    /// Whether the packet has been moved since the function was called.
    pub packet_moved: bool,
}

/// Target of a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The program's context.
    Context,
    /// The stack of a frame, counted from the outermost; offsets are negative, from its upper end.
    Stack {
        /// Number of the frame.
        frame: u8,
    },
    /// A map itself.
    Map(MapRef),
    /// A value of a map.
    MapValue(MapRef),
    /// A packet.
    Packet {
        /// Base of the pointer.
        region: Region,
        /// Known distance to the region's end.
        range: PacketRange,
    },
    /// The end of the packet.
    PacketEnd,
    /// Memory of a known size.
    Memory {
        /// Its size in bytes.
        size: u32,
        /// Whether it may be written.
        writable: bool,
        /// The memory argument that it is, if it is one.
        lent: Option<Lent>,
    },
    /// A ring buffer record, which must be released. The pointer's id is that of the [`Reference`](super::Reference).
    Record {
        /// Its size in bytes.
        size: u32,
    },
    /// A kernel object, which must be released. The pointer's id is that of the [`Reference`](super::Reference).
    Object(ObjectKind),
    /// A slice of a dynptr: bytes of the packet, or the buffer passed for them.
    Slice {
        /// Its size in bytes.
        size: u32,
        /// Whether it may be written.
        writable: bool,
        /// The buffer whose end invalidates the slice.
        buffer: Option<Buffer>,
        /// The memory argument that the dynptr is, if it is one.
        lent: Option<Lent>,
    },
    /// A dynptr argument of a global function (`CONST_PTR_TO_DYNPTR`). The pointer's id is that of the dynptr.
    Dynptr {
        /// Index of the parameter, from 0.
        parameter: u8,
    },
    /// A subprogram, as a callback.
    Code {
        /// Its first slot.
        slot: u32,
    },
}

/// A pointer in a register.
#[derive(Clone, Copy, Debug)]
pub struct Pointer {
    /// Type that it points to.
    pub target: Target,
    /// Constant part of the offset in bytes.
    pub fixed: i32,
    /// Variable part of the offset; zero for most pointers.
    pub variable: Number,
    /// Whether it may be null.
    pub nullable: bool,
    /// Packet pointers with the same id have the same variable part; pointers that may be null with the same id are null
    /// together; for records it is the reference's id; for values with a spin lock it identifies the value. 0 for none.
    pub id: u32,
}

impl Pointer {
    /// A pointer to the start of something.
    #[must_use]
    pub fn to(target: Target) -> Self {
        Self { target, fixed: 0, variable: Number::ZERO, nullable: false, id: 0 }
    }

    /// The offset in bytes, if it is constant.
    #[must_use]
    pub fn offset(&self) -> Option<i64> {
        let variable = self.variable.as_constant()?;
        Some(i64::from(self.fixed).wrapping_add(variable as i64))
    }

    /// Whether it points into a packet or its metadata.
    #[must_use]
    pub fn is_packet(&self) -> bool {
        matches!(self.target, Target::Packet { .. })
    }

    /// Whether a comparison with null has a known result, by the kernel's `reg_not_null`.
    #[must_use]
    pub fn is_never_null(&self) -> bool {
        let is_memory = matches!(
            self.target,
            Target::MapValue(_)
                | Target::Memory { .. }
                | Target::Slice { .. }
                | Target::Record { .. }
                | Target::Object(_)
                | Target::Map(_)
        );
        is_memory && !self.nullable
    }
}

impl Value {
    /// An unknown number.
    #[must_use]
    pub fn unknown() -> Self {
        Self::number(Number::UNKNOWN)
    }

    /// The number that an invalidated pointer becomes.
    #[must_use]
    pub fn stale(slot: usize, lost: Lost) -> Self {
        let stale_since = Some(Stale { slot: slot as u32, lost });
        Self::Scalar(Scalar { stale_since, ..Scalar::new(Number::UNKNOWN) })
    }

    /// A number.
    #[must_use]
    pub fn number(number: Number) -> Self {
        Self::Scalar(Scalar::new(number))
    }

    /// The pointer, if it is one.
    #[must_use]
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Self::Pointer(pointer) => Some(pointer),
            _ => None,
        }
    }

    /// The number, if it is one.
    #[must_use]
    pub fn scalar(&self) -> Option<&Scalar> {
        match self {
            Self::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// Whether it is the number zero, and so a null pointer.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(|s| s.number.as_constant() == Some(0))
    }

    /// Whether it is a slice that may lie in a wanted buffer.
    pub(crate) fn may_be_buffer(&self, wanted: impl Fn(&Buffer) -> bool) -> bool {
        let target = self.pointer().map(|pointer| &pointer.target);
        matches!(target, Some(Target::Slice { buffer: Some(buffer), .. }) if wanted(buffer))
    }

    /// Whether it is not initialized.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        matches!(self, Self::Unset)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Context => f.write_str("context"),
            Self::Stack { .. } => f.write_str("stack"),
            Self::Map(_) => f.write_str("map"),
            Self::MapValue(_) => f.write_str("map value"),
            Self::Packet { region: Region::Data, .. } => f.write_str("packet"),
            Self::Packet { region: Region::Meta, .. } => f.write_str("packet metadata"),
            Self::PacketEnd => f.write_str("packet end"),
            Self::Memory { .. } => f.write_str("memory"),
            Self::Object(kind) => f.write_str(kind.name()),
            Self::Slice { .. } => f.write_str("slice of a dynptr"),
            Self::Dynptr { .. } => f.write_str("dynptr of the caller"),
            Self::Record { .. } => f.write_str("ring buffer record"),
            Self::Code { .. } => f.write_str("function"),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pointer to {}", self.target)?;
        if self.nullable {
            f.write_str(" or null")?;
        }
        if self.fixed != 0 {
            write!(f, " {:+}", self.fixed)?;
        }
        if self.variable.as_constant() != Some(0) {
            write!(f, " + ({})", self.variable)?;
        }
        match self.target {
            Target::Packet { range: PacketRange::Bytes(bytes), .. } => write!(f, ", {bytes} bytes checked"),
            Target::Packet { .. } => f.write_str(", beyond the end"),
            Target::Memory { size, .. } | Target::Slice { size, .. } | Target::Record { size } => {
                write!(f, ", {size} bytes")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("not set"),
            Self::Scalar(scalar) => write!(f, "{}", scalar.number),
            Self::Pointer(pointer) => write!(f, "{pointer}"),
            Self::Iterator(_) => f.write_str("iterator"),
            Self::Dynptr(_) => f.write_str("dynptr"),
        }
    }
}
