//! What a register or a spilled stack slot holds.

use std::fmt;

use paceline_isa::{AluOp, Width};
use paceline_spec::ObjectKind;

use crate::domain::Number;
use crate::precision::Mark;

/// What a register or a spilled stack slot holds.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Nothing yet: reading it is an error.
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
    /// Which one.
    pub id: u32,
    /// Whether it is the half with the lower address.
    pub first: bool,
    /// Its memory.
    pub memory: DynptrMemory,
    /// The reference that its record is, which must be given back; 0 for none.
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
    /// That of a dynptr that a global function is lent, which may be any of these; the function's parameter, from 0.
    Lent(u8),
}

/// How far something has got that ends at some time: a loop that gets further cannot go on for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Which one.
    pub id: u32,
    /// Steps it has made on this path.
    pub rounds: u32,
}

/// An iterator of numbers (`struct bpf_iter_num`). The id of its progress is that of its [`Reference`].
///
/// [`Reference`]: super::Reference
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumIterator {
    /// Whether there may be more; one that has once said that there is not says so for ever.
    pub active: bool,
    /// Elements it gave.
    pub progress: Progress,
}

/// A number in a register.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// What is known of it.
    pub number: Number,
    /// The numbers it is known to be equal to, up to a constant.
    pub link: Option<Link>,
    /// What it was computed from.
    pub mark: Mark,
    /// The pointer that it was before, if it was one.
    pub stale_since: Option<Stale>,
}

/// A pointer that may not be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The instruction since which.
    pub slot: u32,
    /// Why.
    pub lost: Lost,
}

/// What happened to what a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The packet may have been moved.
    Packet,
    /// The buffer of the slice is used for something else, or gone.
    Buffer,
}

/// The relation of a number to the base of its group: `base + delta`, wrapping, or the low half of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Which group.
    pub id: u32,
    /// Distance from the group's base.
    pub delta: i64,
    /// Whether it is the low 32 bits of that only, zero-extended.
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

    /// The value of a number with this link where one with the link `other`, of the same group, is `number`.
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
    /// A number of which this is known, from outside of the program.
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

/// Which end of a packet a pointer started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// Its first byte.
    Data,
    /// The metadata before it.
    Meta,
}

/// How many bytes a packet pointer was proven to have before the end, counted from where its variable part ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PacketRange {
    /// So many bytes.
    Bytes(u16),
    /// It was found to be at the end or beyond it.
    AtEnd,
    /// It was found to be beyond the end.
    BeyondEnd,
}

/// The buffer of a slice: the slice may be that instead of the packet, and what is done through it is then done to it.
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
    /// None: the slice is memory of a dynptr to something else than the packet.
    Dynptr {
        /// Id of the dynptr.
        id: u32,
        /// The reference that its record is, 0 for none.
        reference: u32,
    },
}

/// Memory that a global function is lent, which it knows by the size of the parameter's type only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lent {
    /// Which parameter it is, from 0.
    pub parameter: u8,
    /// Whether the packet has been moved since the function was called.
    pub packet_moved: bool,
}

/// What a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// The program's context.
    Context,
    /// The stack of a frame, counted from the outermost; offsets are negative, from its top.
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
        /// Where the pointer started.
        region: Region,
        /// What is known of the distance to the region's end.
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
        /// What of a global function's caller it is, if it is that.
        lent: Option<Lent>,
    },
    /// A record of a ring buffer, which must be given back. The pointer's id is that of the [`Reference`].
    ///
    /// [`Reference`]: super::Reference
    Record {
        /// Its size in bytes.
        size: u32,
    },
    /// An object of the kernel, which must be given back. The pointer's id is that of the [`Reference`].
    ///
    /// [`Reference`]: super::Reference
    Object(ObjectKind),
    /// What a dynptr points to: bytes of the packet, or the buffer that was given for them.
    Slice {
        /// Its size in bytes.
        size: u32,
        /// Whether it may be written.
        writable: bool,
        /// Where the buffer is, if the slice must not outlive something there.
        buffer: Option<Buffer>,
        /// What of a global function's caller it is, if the dynptr is that: the packet or not.
        lent: Option<Lent>,
    },
    /// A dynptr that a global function is lent (`CONST_PTR_TO_DYNPTR`). The pointer's id is that of the dynptr.
    Dynptr {
        /// Which parameter it is, from 0.
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
    /// What it points to.
    pub target: Target,
    /// Known part of the offset in bytes.
    pub fixed: i32,
    /// The rest of the offset; zero for most pointers.
    pub variable: Number,
    /// Whether it may be null instead.
    pub nullable: bool,
    /// Pointers of one packet with the same id share their variable part; pointers that may be null with the same
    /// id are null together; for records it is that of the reference; for values with a spin lock it tells which one. 0 for
    /// none.
    pub id: u32,
}

impl Pointer {
    /// A pointer to the start of something.
    #[must_use]
    pub fn to(target: Target) -> Self {
        Self { target, fixed: 0, variable: Number::ZERO, nullable: false, id: 0 }
    }

    /// The offset in bytes where it is known.
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

    /// Whether a comparison with null is settled, as the kernel's `reg_not_null` has it.
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
    /// A number of which nothing is known.
    #[must_use]
    pub fn unknown() -> Self {
        Self::number(Number::UNKNOWN)
    }

    /// What a pointer becomes that may not be used any more.
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

    /// Whether nothing is there.
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
