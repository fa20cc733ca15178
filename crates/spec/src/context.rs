//! Contexts: what `r1` points to when a program starts, as data.
//!
//! A field is what a program sees at an offset of its context structure. Where the kernel's structure has a 32-bit
//! field that stands for a pointer (`xdp_md.data`), a load of the field gives the real 64-bit pointer.

use crate::{ProgramKind, XdpAttach};

/// What a context field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// Pointer to the first byte of the packet.
    PacketData,
    /// Pointer past the last byte of the packet.
    PacketEnd,
    /// Pointer to the metadata before the packet.
    PacketMeta,
    /// Index of the interface the packet came in on.
    IngressIfindex,
    /// Queue of that interface.
    RxQueueIndex,
    /// Index of the interface a device map's program sends it out on.
    EgressIfindex,
}

/// One field of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in the UAPI structure.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: u16,
    /// Size in bytes.
    pub size: u16,
    /// What it holds.
    pub kind: FieldKind,
}

/// A context structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the UAPI structure.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: u16,
    /// Its fields by rising offset.
    pub fields: &'static [Field],
}

impl Layout {
    /// The field that covers the `size` bytes at `offset`, wholly.
    #[must_use]
    pub fn field_at(&self, offset: u64, size: u64) -> Option<&'static Field> {
        self.fields.iter().find(|f| {
            let start = u64::from(f.offset);
            offset >= start && offset.saturating_add(size) <= start + u64::from(f.size)
        })
    }
}

const fn field(name: &'static str, offset: u16, size: u16, kind: FieldKind) -> Field {
    Field { name, offset, size, kind }
}

/// `struct xdp_md`.
pub static XDP_MD: Layout = Layout {
    name: "xdp_md",
    size: 24,
    fields: &[
        field("data", 0, 4, FieldKind::PacketData),
        field("data_end", 4, 4, FieldKind::PacketEnd),
        field("data_meta", 8, 4, FieldKind::PacketMeta),
        field("ingress_ifindex", 12, 4, FieldKind::IngressIfindex),
        field("rx_queue_index", 16, 4, FieldKind::RxQueueIndex),
        field("egress_ifindex", 20, 4, FieldKind::EgressIfindex),
    ],
};

impl ProgramKind {
    /// The context of programs of this type.
    #[must_use]
    pub fn context(self) -> &'static Layout {
        match self {
            Self::Xdp { .. } => &XDP_MD,
        }
    }

    /// Whether programs of this type may read a field: the outgoing interface is known to device maps' programs only
    /// (`xdp_is_valid_access` in `net/core/filter.c`).
    #[must_use]
    pub fn may_read(self, field: &Field) -> bool {
        match field.kind {
            FieldKind::EgressIfindex => matches!(self, Self::Xdp { attach: XdpAttach::DevMap, .. }),
            _ => true,
        }
    }
}
