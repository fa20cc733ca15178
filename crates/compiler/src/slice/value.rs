//! What a slice knows of the value of a register or stack slot.

/// A byte of the stack of a function that was inlined: the number of the call, and the offset from its frame pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct At {
    pub(crate) frame: usize,
    pub(crate) offset: i32,
}

impl At {
    pub(crate) fn plus(self, bytes: i32) -> Self {
        Self { offset: self.offset.saturating_add(bytes), ..self }
    }

    /// The place so many bytes further; `None` outside of what a frame of 512 bytes and an instruction's offset reach: the walk follows
    /// branches that the verifier knows to be dead, where addresses may be anything.
    pub(crate) fn moved(self, bytes: i32) -> Option<Self> {
        let offset = self.offset.checked_add(bytes)?;
        i16::try_from(offset).is_ok().then_some(Self { offset, ..self })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number that the slice computes.
    Number,
    /// The context, moved by so many bytes.
    Context(i32),
    /// The packet's memory, which the slice may load from.
    Packet,
    /// The end of the packet.
    PacketEnd,
    /// The value of a map at a known address: global data.
    Global,
    /// An address on the stack. The slice computes it where it is used.
    Stack(At),
    /// A map, by index. The slice loads it where it is used.
    Map(usize),
    /// The result of a look-up.
    Found,
    /// What the slice does not compute.
    Unknown,
}

impl Value {
    /// Whether the slice has the value in the program's register or stack slot.
    pub(crate) fn is_held(self) -> bool {
        !matches!(self, Self::Stack(_) | Self::Map(_) | Self::Found | Self::Unknown)
    }

    /// The value where two paths meet.
    pub(crate) fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Unknown }
    }
}
