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
    /// Length of the packet in bytes.
    PacketLen,
    /// Whom the packet is for by its destination address (`PACKET_HOST` 0, `PACKET_BROADCAST` 1,
    /// `PACKET_MULTICAST` 2, `PACKET_OTHERHOST` 3 in `linux/if_packet.h`).
    PacketType,
    /// Protocol of the Ethernet header, in network order; for frames with a length there, `ETH_P_802_3` or
    /// `ETH_P_802_2`.
    Protocol,
    /// Memory of the program's own, zero when it starts.
    Scratch,
    /// A fact that only the kernel has of a packet (mark, hash, priority...): 0 in user space.
    Zero,
}

/// Sizes of access that a field allows; places are multiples of the size from the context's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sizes {
    /// All of the field at once.
    Whole,
    /// All of it, or for reads any power of two of its bytes (`bpf_ctx_narrow_access_ok`).
    Narrow,
    /// 1, 2, 4 and 8 bytes, reads and writes, that lie in the field.
    Any,
}

/// What programs of a type may do with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Nothing.
    Nothing,
    /// Read it.
    Read,
    /// Read and write it.
    Write,
    /// Read it if the program is for entries of a device map.
    ReadForDevMap,
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
    /// How much of it can be accessed at once.
    pub sizes: Sizes,
    /// What may be done with it.
    pub permission: Permission,
}

impl Field {
    /// Whether an access of `size` bytes at `offset` of the context, which lies in the field, is of a size and at a
    /// place that the field has.
    fn fits(&self, offset: u64, size: u64, write: bool) -> bool {
        let whole = offset == u64::from(self.offset) && size == u64::from(self.size);
        let aligned = size.is_power_of_two() && size <= 8 && offset.is_multiple_of(size);
        match self.sizes {
            Sizes::Whole => whole,
            Sizes::Narrow => whole || aligned && !write,
            Sizes::Any => aligned,
        }
    }

    fn permits(&self, program: ProgramKind, write: bool) -> bool {
        match self.permission {
            Permission::Nothing => false,
            Permission::Read => !write,
            Permission::Write => true,
            Permission::ReadForDevMap => {
                !write && matches!(program, ProgramKind::Xdp { attach: XdpAttach::DevMap, .. })
            }
        }
    }
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

const fn field(name: &'static str, offset: u16, kind: FieldKind, permission: Permission) -> Field {
    Field { name, offset, size: 4, kind, sizes: Sizes::Whole, permission }
}

/// `struct xdp_md`, by `xdp_is_valid_access` in `net/core/filter.c`.
pub static XDP_MD: Layout = Layout {
    name: "xdp_md",
    size: 24,
    fields: &[
        field("data", 0, FieldKind::PacketData, Permission::Read),
        field("data_end", 4, FieldKind::PacketEnd, Permission::Read),
        field("data_meta", 8, FieldKind::PacketMeta, Permission::Read),
        field("ingress_ifindex", 12, FieldKind::IngressIfindex, Permission::Read),
        field("rx_queue_index", 16, FieldKind::RxQueueIndex, Permission::Read),
        field("egress_ifindex", 20, FieldKind::EgressIfindex, Permission::ReadForDevMap),
    ],
};

/// A number that a filter may read, in parts too.
const fn number(name: &'static str, offset: u16, kind: FieldKind) -> Field {
    Field { sizes: Sizes::Narrow, ..field(name, offset, kind, Permission::Read) }
}

/// `struct __sk_buff` as socket filters have it, by `sk_filter_is_valid_access` in `net/core/filter.c`. What is not
/// listed (pointers into the packet, `tc_classid`, the socket's addresses, times, `wire_len`) is refused to them.
pub static SK_BUFF: Layout = Layout {
    name: "__sk_buff",
    size: 192,
    fields: &[
        number("len", 0, FieldKind::PacketLen),
        number("pkt_type", 4, FieldKind::PacketType),
        number("mark", 8, FieldKind::Zero),
        number("queue_mapping", 12, FieldKind::RxQueueIndex),
        number("protocol", 16, FieldKind::Protocol),
        number("vlan_present", 20, FieldKind::Zero),
        number("vlan_tci", 24, FieldKind::Zero),
        number("vlan_proto", 28, FieldKind::Zero),
        number("priority", 32, FieldKind::Zero),
        number("ingress_ifindex", 36, FieldKind::IngressIfindex),
        number("ifindex", 40, FieldKind::IngressIfindex),
        number("tc_index", 44, FieldKind::Zero),
        Field { size: 20, sizes: Sizes::Any, ..field("cb", 48, FieldKind::Scratch, Permission::Write) },
        number("hash", 68, FieldKind::Zero),
        number("napi_id", 84, FieldKind::Zero),
        number("gso_segs", 164, FieldKind::Zero),
        number("gso_size", 176, FieldKind::Zero),
    ],
};

impl ProgramKind {
    /// The context of programs of this type.
    #[must_use]
    pub fn context(self) -> &'static Layout {
        self.rules().context
    }

    /// The field that a program of this type accesses with `size` bytes at `offset`; `None` if it may not do that.
    #[must_use]
    pub fn context_field(self, offset: u64, size: u64, write: bool) -> Option<&'static Field> {
        let field = self.context().field_at(offset, size)?;
        (field.fits(offset, size, write) && field.permits(self, write)).then_some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_rise_and_lie_in_their_context() {
        for layout in [&XDP_MD, &SK_BUFF] {
            let mut end = 0;
            for field in layout.fields {
                assert!(field.offset >= end, "{}", field.name);
                end = field.offset + field.size;
            }
            assert!(end <= layout.size, "{}", layout.name);
        }
    }

    #[test]
    fn filters_read_parts_and_write_scratch_only() {
        let at = |offset, size, write| {
            ProgramKind::SocketFilter.context_field(offset, size, write).map(|field| field.name)
        };
        assert_eq!(at(0, 4, false), Some("len"));
        assert_eq!(at(18, 2, false), Some("protocol"));
        assert_eq!(at(17, 2, false), None);
        assert_eq!(at(16, 8, false), None);
        assert_eq!(at(8, 4, true), None);
        assert_eq!(at(56, 8, true), Some("cb"));
        assert_eq!(at(64, 8, true), None);
        assert_eq!(at(52, 8, false), None);
        assert_eq!(at(76, 4, false), None);
    }

    #[test]
    fn the_outgoing_interface_is_for_device_maps() {
        let kind = |attach| ProgramKind::Xdp { attach, frags: false };
        assert!(kind(XdpAttach::DevMap).context_field(20, 4, false).is_some());
        assert!(kind(XdpAttach::Interface).context_field(20, 4, false).is_none());
        assert!(kind(XdpAttach::Interface).context_field(0, 2, false).is_none());
    }
}
