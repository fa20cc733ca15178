//! Types of values, and what is known of them and of accesses.

use paceline_isa::{Reg, Size, Width};
use paceline_verifier::state::MapRef;
use paceline_verifier::{Base, CallbackFact, InsnFact, KeyFact, MapFact, MemoryFact, StackFact};

/// Bytes of a function's stack (`MAX_BPF_STACK`).
pub const STACK_BYTES: i32 = 512;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Type {
    /// 32 bits.
    I32,
    /// 64 bits; addresses too.
    I64,
}

impl Type {
    /// Its width.
    #[must_use]
    pub const fn width(self) -> Width {
        match self {
            Self::I32 => Width::W32,
            Self::I64 => Width::W64,
        }
    }

    /// The type of a width.
    #[must_use]
    pub const fn of(width: Width) -> Self {
        match width {
            Width::W32 => Self::I32,
            Width::W64 => Self::I64,
        }
    }

    /// Bits: 32 or 64.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::I32 => 32,
            Self::I64 => 64,
        }
    }

    /// A number cut to the type.
    #[must_use]
    pub const fn cut(self, value: u64) -> u64 {
        match self {
            Self::I32 => value as u32 as u64,
            Self::I64 => value,
        }
    }

    /// A number of the type as a signed one.
    #[must_use]
    pub const fn signed(self, value: u64) -> i64 {
        match self {
            Self::I32 => value as i32 as i64,
            Self::I64 => value.cast_signed(),
        }
    }
}

/// What a value points to where it is computed, as far as it is known. Passes that rely on where an access goes read its [`Access`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A number, a pointer that is no longer one, or unknown.
    #[default]
    Unknown,
    /// The context.
    Context,
    /// The function's own stack.
    Stack,
    /// The stack of a function further out.
    CallerStack,
    /// The packet or its metadata.
    Packet,
    /// The end of the packet.
    PacketEnd,
    /// A map.
    Map,
    /// A value of a map, or null.
    MapValue,
    /// Other memory, or null.
    Memory,
}

impl Kind {
    /// All kinds, with their names in text.
    pub const NAMES: [(Self, &str); 8] = [
        (Self::Context, "context"),
        (Self::Stack, "stack"),
        (Self::CallerStack, "caller_stack"),
        (Self::Packet, "packet"),
        (Self::PacketEnd, "packet_end"),
        (Self::Map, "map"),
        (Self::MapValue, "map_value"),
        (Self::Memory, "memory"),
    ];

    /// The kind that two ways lead to.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}

/// The memory that an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Region {
    /// The stack of the running function.
    Stack,
    /// The stack of a function further out.
    CallerStack,
    /// The packet or its metadata.
    Packet,
    /// A value of this map.
    MapValue(MapRef),
    /// A value of some map.
    SomeMapValue,
    /// A value of this map, which never changes: the map is frozen, and programs cannot write it.
    Constant(MapRef),
    /// Memory given to the function or by a helper: it may be any but the function's own stack, iterators aside, which only kernel
    /// functions write.
    Memory,
    /// Any memory.
    Mixed,
}

impl Region {
    /// The region of the verifier's fact; `None` for the context, which has operations of its own.
    #[must_use]
    pub fn of(base: Base) -> Option<Self> {
        Some(match base {
            Base::Context => return None,
            Base::OwnStack => Self::Stack,
            Base::CallerStack => Self::CallerStack,
            Base::Packet => Self::Packet,
            Base::MapValue(map) => Self::MapValue(map),
            Base::SomeMapValue => Self::SomeMapValue,
            Base::Memory => Self::Memory,
            Base::Mixed => Self::Mixed,
        })
    }

    /// The kind of pointers into the region.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Stack => Kind::Stack,
            Self::CallerStack => Kind::CallerStack,
            Self::Packet => Kind::Packet,
            Self::MapValue(_) | Self::SomeMapValue | Self::Constant(_) => Kind::MapValue,
            Self::Memory => Kind::Memory,
            Self::Mixed => Kind::Unknown,
        }
    }

    /// A region that has both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (a, b) if a.kind() == Kind::MapValue && b.kind() == Kind::MapValue => Self::SomeMapValue,
            _ => Self::Mixed,
        }
    }

    /// Whether other workers, or applications, may write the memory at any time.
    #[must_use]
    pub const fn is_shared(self) -> bool {
        match self {
            Self::Stack | Self::CallerStack | Self::Packet | Self::Constant(_) => false,
            Self::MapValue(_) | Self::SomeMapValue | Self::Memory | Self::Mixed => true,
        }
    }
}

/// Offsets that an access may have, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Least offset in bytes of the access's first byte from where its region starts: `r10` of a stack, the packet's start, the value.
    pub min: i32,
    /// Greatest offset of the first byte.
    pub max: i32,
}

/// What is known of an access to memory, on all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Where it goes.
    pub region: Region,
    /// Its offsets; `None` if they are unknown.
    pub span: Option<Span>,
    /// For packets: number of bytes proven accessible from the end of the pointer's variable part.
    pub packet_bytes: Option<u16>,
}

impl Access {
    /// An access of which only the region is known.
    #[must_use]
    pub const fn to(region: Region) -> Self {
        Self { region, span: None, packet_bytes: None }
    }

    /// The access of the verifier's fact; `None` for the context.
    #[must_use]
    pub fn of(fact: &MemoryFact) -> Option<Self> {
        let (min, max) = (i32::try_from(fact.min_offset).ok(), i32::try_from(fact.max_offset).ok());
        let span = min.zip(max).map(|(min, max)| Span { min, max });
        Some(Self { region: Region::of(fact.base)?, span, packet_bytes: fact.packet_bytes })
    }

    /// The bytes of the function's stack that an access of `size` may touch: `None` for none, offsets from `r10` otherwise, which
    /// are those of the whole stack if they are unknown.
    #[must_use]
    pub fn stack_bytes(&self, size: Size) -> Option<(i32, i32)> {
        match (self.region, self.span) {
            (Region::Stack, Some(span)) => Some((span.min, span.max.saturating_add(size.bytes() as i32))),
            (Region::Stack | Region::Mixed, _) => Some((-STACK_BYTES, 0)),
            _ => None,
        }
    }
}

/// What is known of a call, on all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFacts {
    /// The map among its arguments.
    pub map: Option<MapFact>,
    /// The index in the array that is looked up.
    pub key: Option<KeyFact>,
    /// The function that is called back.
    pub callback: Option<CallbackFact>,
    /// Bytes of the running function's stack that it reads, directly or in callees.
    pub stack_read: Option<StackFact>,
}

impl CallFacts {
    /// The call's part of the verifier's facts.
    #[must_use]
    pub const fn of(fact: &InsnFact) -> Self {
        Self { map: fact.map, key: fact.key, callback: fact.callback, stack_read: fact.stack_read }
    }
}

/// An argument of a function: the register of the calling convention that it comes in, `r1` to `r5`.
pub type Argument = Reg;
