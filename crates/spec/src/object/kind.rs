//! Kinds of objects, and the fields that programs may read of each.

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A socket (`PTR_TO_SOCKET`), as `struct bpf_sock`.
    Socket,
    /// The part common to all states of a TCP socket (`PTR_TO_SOCK_COMMON`), as the same structure.
    SockCommon,
    /// A tracked connection (`struct nf_conn`).
    Connection,
    /// A connection that is not yet in the table (`struct nf_conn___init`).
    NewConnection,
    /// A map itself (`struct bpf_map`).
    Map,
    /// The context of an XDP program as the kernel has it (`struct xdp_buff`).
    XdpBuff,
    /// The queue that a packet came from (`struct xdp_rxq_info`).
    RxQueue,
    /// The interface of a queue (`struct net_device`).
    Device,
}

/// Sizes of access that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Sizes {
    /// All of it.
    Whole,
    /// All of it, or less from its start on.
    Start,
    /// Any power of two of its bytes, at a multiple of that.
    Aligned,
    /// Any bytes of it.
    Any,
}

/// A field of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectField {
    /// Name in the kernel's structure.
    pub name: &'static str,
    /// Offset in bytes.
    pub offset: u16,
    /// Size in bytes.
    pub size: u16,
    /// Whether programs may write it.
    pub writable: bool,
    /// The object that it points to, never null.
    pub to: Option<ObjectKind>,
    sizes: Sizes,
}

impl ObjectField {
    /// Whether an access of `size` bytes at an offset is one to this field.
    fn takes(&self, offset: u64, size: u64) -> bool {
        let (start, end) = (u64::from(self.offset), u64::from(self.offset + self.size));
        let within = offset >= start && offset.checked_add(size).is_some_and(|last| last <= end);
        within
            && match self.sizes {
                Sizes::Whole => size == end - start,
                Sizes::Start => offset == start,
                Sizes::Aligned => offset.is_multiple_of(size.max(1)) && size <= 4,
                Sizes::Any => true,
            }
    }
}

const fn field(name: &'static str, offset: u16, size: u16, sizes: Sizes) -> ObjectField {
    ObjectField { name, offset, size, writable: false, to: None, sizes }
}

/// `struct bpf_sock`, by `bpf_sock_is_valid_access` in `net/core/filter.c`.
static SOCKET: &[ObjectField] = &[
    field("bound_dev_if", 0, 4, Sizes::Whole),
    field("family", 4, 4, Sizes::Start),
    field("type", 8, 4, Sizes::Start),
    field("protocol", 12, 4, Sizes::Start),
    field("mark", 16, 4, Sizes::Whole),
    field("priority", 20, 4, Sizes::Whole),
    field("src_ip4", 24, 4, Sizes::Aligned),
    field("src_ip6", 28, 16, Sizes::Aligned),
    field("src_port", 44, 4, Sizes::Start),
    // Two bytes, and a word with the zeros behind them.
    field("dst_port", 48, 2, Sizes::Aligned),
    field("dst_port", 48, 4, Sizes::Whole),
    field("dst_ip4", 52, 4, Sizes::Aligned),
    field("dst_ip6", 56, 16, Sizes::Aligned),
    field("state", 72, 4, Sizes::Start),
    field("rx_queue_mapping", 76, 4, Sizes::Start),
];

/// The fields of `struct nf_conn` that say something here, where Linux 6.18 has them on machines of 64 bits.
static CONNECTION: &[ObjectField] = &[
    field("timeout", 8, 4, Sizes::Any),
    field("zone.id", 12, 2, Sizes::Any),
    field("tuplehash[0].tuple.src.u3", 32, 16, Sizes::Any),
    field("tuplehash[0].tuple.src.u", 48, 2, Sizes::Any),
    field("tuplehash[0].tuple.src.l3num", 50, 2, Sizes::Any),
    field("tuplehash[0].tuple.dst.u3", 52, 16, Sizes::Any),
    field("tuplehash[0].tuple.dst.u", 68, 2, Sizes::Any),
    field("tuplehash[0].tuple.dst.protonum", 70, 1, Sizes::Any),
    field("tuplehash[1].tuple.src.u3", 88, 16, Sizes::Any),
    field("tuplehash[1].tuple.src.u", 104, 2, Sizes::Any),
    field("tuplehash[1].tuple.src.l3num", 106, 2, Sizes::Any),
    field("tuplehash[1].tuple.dst.u3", 108, 16, Sizes::Any),
    field("tuplehash[1].tuple.dst.u", 124, 2, Sizes::Any),
    field("tuplehash[1].tuple.dst.protonum", 126, 1, Sizes::Any),
    field("status", 128, 8, Sizes::Any),
    // The only one that programs write (`_nf_conntrack_btf_struct_access`).
    ObjectField { writable: true, ..field("mark", 168, 4, Sizes::Any) },
    field("proto.tcp.state", 224, 1, Sizes::Any),
];

/// `struct bpf_map` of Linux 6.18 on machines of 64 bits. The hash of its contents is zero, as in a kernel until user space asks for it, and no map is for one
/// program only.
static MAP: &[ObjectField] = &[
    field("sha", 0, 32, Sizes::Any),
    field("excl", 32, 4, Sizes::Any),
    field("map_type", 64, 4, Sizes::Any),
    field("key_size", 68, 4, Sizes::Any),
    field("value_size", 72, 4, Sizes::Any),
    field("max_entries", 76, 4, Sizes::Any),
    field("map_extra", 80, 8, Sizes::Any),
    field("map_flags", 88, 4, Sizes::Any),
    field("id", 92, 4, Sizes::Any),
];

/// `struct xdp_buff`. `txq` is a device map's, and what a program without one finds there the kernel does not say.
static XDP_BUFF: &[ObjectField] = &[
    field("data", 0, 8, Sizes::Whole),
    field("data_end", 8, 8, Sizes::Whole),
    field("data_meta", 16, 8, Sizes::Whole),
    field("data_hard_start", 24, 8, Sizes::Whole),
    pointer("rxq", 32, ObjectKind::RxQueue),
    field("frame_sz", 48, 4, Sizes::Any),
    field("flags", 52, 4, Sizes::Any),
];

static RX_QUEUE: &[ObjectField] =
    &[pointer("dev", 0, ObjectKind::Device), field("queue_index", 8, 4, Sizes::Any)];

/// `struct net_device`, where a Linux 6.18 has the field on machines of 64 bits; that depends on its configuration.
static DEVICE: &[ObjectField] = &[field("ifindex", 224, 4, Sizes::Any)];

const fn pointer(name: &'static str, offset: u16, to: ObjectKind) -> ObjectField {
    ObjectField { to: Some(to), ..field(name, offset, 8, Sizes::Whole) }
}

/// Whether a structure of the kernel is that of an object with the layout of [`types`](super::types()). `struct bpf_sock` is the same everywhere.
#[must_use]
pub fn is_structure(name: &str) -> bool {
    is_one_of(&[ObjectKind::Connection, ObjectKind::Map], name)
}

/// Whether a structure of the kernel is one that `bpf_cast_to_kern_ctx` leads to, with the layout of [`types`](super::types()).
#[must_use]
pub fn is_context_structure(name: &str) -> bool {
    is_one_of(&[ObjectKind::XdpBuff, ObjectKind::RxQueue, ObjectKind::Device], name)
}

fn is_one_of(kinds: &[ObjectKind], name: &str) -> bool {
    kinds.iter().any(|kind| kind.structure() == name)
}

impl ObjectKind {
    /// Name of the kernel's structure.
    #[must_use]
    pub const fn structure(self) -> &'static str {
        match self {
            Self::Socket | Self::SockCommon => "bpf_sock",
            Self::Connection => "nf_conn",
            Self::NewConnection => "nf_conn___init",
            Self::Map => "bpf_map",
            Self::XdpBuff => "xdp_buff",
            Self::RxQueue => "xdp_rxq_info",
            Self::Device => "net_device",
        }
    }

    /// Name in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::SockCommon => "common part of a socket",
            Self::Connection => "connection",
            Self::NewConnection => "new connection",
            Self::Map => "map",
            Self::XdpBuff => "kernel's context",
            Self::RxQueue => "receive queue",
            Self::Device => "interface",
        }
    }

    /// Whether it is a socket, of which programs may read the common part at least.
    #[must_use]
    pub const fn is_socket(self) -> bool {
        matches!(self, Self::Socket | Self::SockCommon)
    }

    /// Whether a program that acquired one must release it.
    #[must_use]
    pub const fn is_acquired(self) -> bool {
        matches!(self, Self::Socket | Self::SockCommon | Self::Connection | Self::NewConnection)
    }

    /// The fields by rising offset.
    #[must_use]
    #[inline]
    pub fn fields(self) -> &'static [ObjectField] {
        match self {
            Self::Socket | Self::SockCommon => SOCKET,
            Self::Connection | Self::NewConnection => CONNECTION,
            Self::Map => MAP,
            Self::XdpBuff => XDP_BUFF,
            Self::RxQueue => RX_QUEUE,
            Self::Device => DEVICE,
        }
    }

    /// The field that a program may access with `size` bytes at `offset`.
    #[must_use]
    #[inline]
    pub fn field(self, offset: u64, size: u64, write: bool) -> Option<&'static ObjectField> {
        let fields = self.fields();
        let end = fields.last().map_or(0, |last| u64::from(last.offset + last.size));
        // Most addresses are of other memory.
        if offset >= end { None } else { self.field_of(fields, offset, size, write) }
    }

    fn field_of(
        self,
        fields: &'static [ObjectField],
        offset: u64,
        size: u64,
        write: bool,
    ) -> Option<&'static ObjectField> {
        // `bpf_sock_common_is_valid_access`
        const NOT_COMMON: [&str; 4] = ["type", "protocol", "mark", "priority"];
        let found = fields.iter().find(|field| field.takes(offset, size))?;
        let is_hidden = self == Self::SockCommon && NOT_COMMON.contains(&found.name);
        (!is_hidden && (found.writable || !write)).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(kind: ObjectKind, offset: u64, size: u64) -> Option<&'static str> {
        kind.field(offset, size, false).map(|field| field.name)
    }

    #[test]
    fn the_last_field_ends_last() {
        use ObjectKind::{Connection, Device, Map, NewConnection, RxQueue, SockCommon, Socket, XdpBuff};
        for kind in [Connection, Device, Map, NewConnection, RxQueue, SockCommon, Socket, XdpBuff] {
            let end = |field: &ObjectField| field.offset + field.size;
            assert_eq!(kind.fields().iter().map(end).max(), kind.fields().last().map(end), "{kind:?}");
        }
    }

    #[test]
    fn sockets_are_read_as_the_kernel_lets_them() {
        use ObjectKind::{SockCommon, Socket};
        assert_eq!(at(Socket, 0, 4), Some("bound_dev_if"));
        assert_eq!(at(Socket, 0, 2), None);
        assert_eq!(at(Socket, 4, 1), Some("family"));
        assert_eq!(at(Socket, 5, 1), None);
        assert_eq!(at(Socket, 33, 1), Some("src_ip6"));
        assert_eq!(at(Socket, 32, 8), None);
        assert_eq!(at(Socket, 48, 4), Some("dst_port"));
        assert_eq!(at(Socket, 49, 1), Some("dst_port"));
        assert_eq!(at(Socket, 50, 2), None);
        assert_eq!(at(Socket, 80, 4), None);
        assert_eq!(at(SockCommon, 4, 4), Some("family"));
        assert_eq!(at(SockCommon, 12, 4), None);
        assert_eq!(at(SockCommon, 72, 4), Some("state"));
    }

    #[test]
    fn only_the_mark_of_a_connection_is_written() {
        assert!(ObjectKind::Connection.field(168, 4, true).is_some());
        assert!(ObjectKind::Connection.field(128, 8, true).is_none());
        assert!(ObjectKind::Socket.field(16, 4, true).is_none());
    }
}
