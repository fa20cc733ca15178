//! Layouts of contexts, the structures that `r1` points to on entry.
//!
//! A field lies at an offset of the context structure. A load of a 32-bit field that represents a pointer (`xdp_md.data`) gives the
//! real 64-bit pointer.
//!
//! A field's place is a member of the frame, a member of the packet's area in the host (`SkBuff`), a rule that computes it, or
//! none, which reads as 0. What a program uses of the area ([`AreaUse`]) is initialized when a packet
//! enters; a tail call leaves it unchanged.

use std::ops::Range;

use paceline_frame::Frame;

use super::program_kind::{ProgramKind, XdpAttach};

/// Kind of the value that a load of a field gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// Pointer to the first byte of the packet.
    PacketData,
    /// Pointer past the last byte of the packet.
    PacketEnd,
    /// Pointer to the metadata before the packet.
    PacketMeta,
    /// A number.
    Number,
}

/// A number that is computed from the packet's frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Length of the packet in bytes.
    PacketLen,
    /// Receiver of the packet by its destination address (`PACKET_HOST` 0, `PACKET_BROADCAST` 1,
    /// `PACKET_MULTICAST` 2, `PACKET_OTHERHOST` 3 in `linux/if_packet.h`).
    PacketType,
    /// Protocol of the Ethernet header, in network order; for frames with a length there, `ETH_P_802_3` or
    /// `ETH_P_802_2`.
    Protocol,
    /// Queue of the interface that the packet came in on.
    RxQueue,
    /// The device of the packet: its ingress interface or, without one, the loopback interface (1).
    Ifindex,
}

impl Rule {
    /// All rules, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::PacketLen, Self::PacketType, Self::Protocol, Self::RxQueue, Self::Ifindex];
}

/// Place of the bytes of a field, from the first byte on. Bytes beyond the place are 0, such as the high bytes of a 16-bit
/// member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A member of the packet's [`Frame`].
    Frame {
        /// Offset in bytes.
        offset: u16,
        /// Size in bytes.
        size: u16,
    },
    /// A member of the packet's own area in the host ([`SkBuff`]): what packets arrive with, mostly zero, or as a rule says.
    Host {
        /// Offset in bytes.
        offset: u16,
        /// Size in bytes.
        size: u16,
        /// The number that it has when the packet enters.
        entry: Option<Rule>,
    },
    /// Computed at each load.
    Computed(Rule),
    /// A fact that only the kernel has of a packet: 0 in user space.
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

/// Access of programs of a type to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Nothing.
    Nothing,
    /// Read it.
    Read,
    /// Read and write it.
    Write,
    /// Read and write it; a number that is not below the greatest one of its place is not stored (`NO_QUEUE_MAPPING` in
    /// `bpf_convert_ctx_access`).
    WriteBelowMax,
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
    /// Kind of the loaded value.
    pub kind: FieldKind,
    /// Place of the bytes.
    pub place: Place,
    /// Allowed sizes of access.
    pub sizes: Sizes,
    /// Allowed access.
    pub permission: Permission,
}

impl Field {
    /// The bytes of its place that are `size` bytes at `offset` of the context: the first, and how many. Those that are
    /// missing are the high ones of the number and 0.
    #[must_use]
    pub fn part(&self, offset: u64, size: u64) -> (u16, u16) {
        let there = match self.place {
            Place::Frame { size, .. } | Place::Host { size, .. } => size,
            Place::Computed(_) | Place::Zero => 0,
        };
        if self.kind != FieldKind::Number {
            // A pointer comes whole.
            return (0, there);
        }
        let within = (offset - u64::from(self.offset)) as u16;
        let size = size as u16;
        if cfg!(target_endian = "big") {
            // The low bytes of the number are the last of the field, and of the place.
            let missing = self.size - there;
            let (start, end) = (within.max(missing), (within + size).max(missing));
            (start - missing, end - start)
        } else {
            let (start, end) = (within.min(there), (within + size).min(there));
            (start, end - start)
        }
    }

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
            Permission::Write | Permission::WriteBelowMax => true,
            Permission::ReadForDevMap => {
                !write && matches!(program, ProgramKind::Xdp { attach: XdpAttach::DevMap, .. })
            }
        }
    }
}

/// A context structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Name of the UAPI structure.
    pub name: &'static str,
    /// Size in bytes.
    pub size: u16,
    /// Fields by rising offset.
    pub fields: &'static [Field],
    /// Eight-byte words of the packet's own area in the host that its fields lie in.
    pub area: Range<u16>,
    /// Whether helpers may leave something there that is done when a run ends ([`Helper::waits_for_end`](crate::helper::Helper::waits_for_end)).
    pub waits_for_end: bool,
}

impl Layout {
    /// The rules by which members of the area have a number when a packet enters.
    fn entries(&self) -> impl Iterator<Item = Rule> {
        self.fields.iter().filter_map(|field| match field.place {
            Place::Host { entry, .. } => entry,
            _ => None,
        })
    }

    /// The field that covers the `size` bytes at `offset`, wholly.
    #[must_use]
    pub fn field_at(&self, offset: u64, size: u64) -> Option<&'static Field> {
        self.fields.iter().find(|f| {
            let start = u64::from(f.offset);
            offset >= start && offset.saturating_add(size) <= start + u64::from(f.size)
        })
    }
}

/// A member of the frame that is a pointer.
const fn pointer(name: &'static str, offset: u16, kind: FieldKind, at: usize) -> Field {
    let place = Place::Frame { offset: at as u16, size: 8 };
    Field { name, offset, size: 4, kind, place, sizes: Sizes::Whole, permission: Permission::Read }
}

/// A number of four bytes that is read as a whole.
const fn whole(name: &'static str, offset: u16, place: Place) -> Field {
    Field {
        name,
        offset,
        size: 4,
        kind: FieldKind::Number,
        place,
        sizes: Sizes::Whole,
        permission: Permission::Read,
    }
}

/// A number of four bytes that may be read in parts too.
const fn number(name: &'static str, offset: u16, place: Place) -> Field {
    Field { sizes: Sizes::Narrow, ..whole(name, offset, place) }
}

/// A number of four bytes that may be read and written in parts.
const fn writable(name: &'static str, offset: u16, place: Place) -> Field {
    Field { permission: Permission::Write, ..number(name, offset, place) }
}

/// A number of some other size that is read as a whole.
const fn sized(name: &'static str, offset: u16, size: u16, place: Place) -> Field {
    Field { size, ..whole(name, offset, place) }
}

const INGRESS_IFINDEX: Place = Place::Frame { offset: Frame::OFFSET_INGRESS_IFINDEX as u16, size: 4 };
const RX_QUEUE: Place = Place::Frame { offset: Frame::OFFSET_RX_QUEUE as u16, size: 2 };
const EGRESS_IFINDEX: Place = Place::Frame { offset: Frame::OFFSET_EGRESS_IFINDEX as u16, size: 4 };

/// `struct xdp_md`, by `xdp_is_valid_access` in `net/core/filter.c`.
pub static XDP_MD: Layout = Layout {
    name: "xdp_md",
    size: 24,
    fields: &[
        pointer("data", 0, FieldKind::PacketData, Frame::OFFSET_DATA),
        pointer("data_end", 4, FieldKind::PacketEnd, Frame::OFFSET_DATA_END),
        pointer("data_meta", 8, FieldKind::PacketMeta, Frame::OFFSET_DATA_META),
        whole("ingress_ifindex", 12, INGRESS_IFINDEX),
        whole("rx_queue_index", 16, RX_QUEUE),
        Field { permission: Permission::ReadForDevMap, ..whole("egress_ifindex", 20, EGRESS_IFINDEX) },
    ],
    area: 0..0,
    waits_for_end: false,
};

/// The packet's own area in the host: members of `struct sk_buff` and of its control block, as far as programs write them or
/// helpers change them. Numbers are in native order unless it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct SkBuff {
    /// `mark`
    pub mark: u32,
    /// `priority`
    pub priority: u32,
    /// `cb`, the program's own memory.
    pub cb: [u32; 5],
    /// `hash`
    pub hash: u32,
    /// `tstamp`, in nanoseconds.
    pub tstamp: u64,
    /// `tc_index`
    pub tc_index: u16,
    /// `tc_classid`
    pub tc_classid: u16,
    /// `queue_mapping`
    pub queue_mapping: u16,
    /// `vlan_tci` of the tag that does not lie in the packet.
    pub vlan_tci: u16,
    /// `vlan_proto` of that tag, in network order; 0 without one.
    pub vlan_proto: u16,
    /// `protocol`, in network order.
    pub protocol: u16,
    /// Whether there is such a tag: 0 or 1.
    pub vlan_present: u8,
    /// `pkt_type`
    pub pkt_type: u8,
    /// One more than `csum_level` of a packet whose checksums need not be verified (`CHECKSUM_UNNECESSARY`); 0 for others.
    pub csum_level: u8,
    /// Whether the hash is that of the packet, or was set: 0 or 1.
    pub has_hash: u8,
    /// Bytes by which the network's header is farther from the packet's start than an Ethernet header is long.
    pub network_moved: u16,
    /// Start of the transport header, in bytes from the packet's start; 0 if it was not set.
    pub transport: u16,
    /// `encapsulation`: 0 or 1.
    pub encapsulation: u8,
    /// `tstamp_type`: the clock of the timestamp.
    pub tstamp_type: u8,
    _padding: [u8; 2],
    /// `wire_len`: the packet's length when it entered (`qdisc_skb_cb(skb)->pkt_len`).
    pub wire_len: u32,
    /// Whether a program gave the packet a tunnel key, which the host has: 0 or 1.
    pub has_tunnel: u8,
    /// Bytes behind the packet's end that are its own, from before it was shortened.
    pub behind: u8,
    _tail: [u8; 2],
}

impl SkBuff {
    /// Eight-byte words of the area.
    pub const WORDS: usize = size_of::<Self>() / 8;
}

/// What a program uses of the packet's own area: only that is initialized when a packet enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaUse {
    /// A bit for each eight-byte word.
    pub words: u16,
    /// A bit for each [`Rule`] that gives a member its number, in the order of [`Rule::ALL`].
    pub rules: u8,
}

impl AreaUse {
    /// Bits of all words.
    pub const ALL_WORDS: u16 = (1 << SkBuff::WORDS) - 1;

    /// All that a context has fields in.
    #[must_use]
    pub fn all(layout: &Layout) -> Self {
        let words = layout.area.clone().fold(0, |words, word| words | 1 << word);
        let rules = layout.entries().fold(0, |rules, rule| rules | 1 << rule as u8);
        Self { words, rules }
    }

    /// A field; nothing for one that is not in the area.
    #[must_use]
    pub fn of(field: &Field) -> Self {
        let Place::Host { offset, size, entry } = field.place else { return Self::default() };
        let words = (offset / 8..(offset + size).div_ceil(8)).fold(0, |words, word| words | 1 << word);
        Self { words, rules: entry.map_or(0, |rule| 1 << rule as u8) }
    }

    /// Whether a rule gives a member its number.
    #[must_use]
    pub const fn has(self, rule: Rule) -> bool {
        self.rules >> rule as u8 & 1 != 0
    }

    /// As one number, for generated code.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.words as u32 | (self.rules as u32) << 16
    }

    /// What [`to_bits`](Self::to_bits) gave.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self { words: bits as u16, rules: (bits >> 16) as u8 }
    }

    /// Its words by their numbers.
    pub fn words(self) -> impl Iterator<Item = u16> {
        (0..SkBuff::WORDS as u16).filter(move |word| self.words >> word & 1 != 0)
    }

    /// Whether it is nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.words == 0 && self.rules == 0
    }
}

impl std::ops::BitOrAssign for AreaUse {
    fn bitor_assign(&mut self, other: Self) {
        self.words |= other.words;
        self.rules |= other.rules;
    }
}

/// A member of the area.
macro_rules! host {
    ($member:ident, $size:literal $(, $rule:ident)?) => {
        Place::Host { offset: std::mem::offset_of!(SkBuff, $member) as u16, size: $size, entry: host!(@ $($rule)?) }
    };
    (@) => { None };
    (@ $rule:ident) => { Some(Rule::$rule) };
}

/// The program's own memory.
const CB: Field =
    Field { size: 20, sizes: Sizes::Any, permission: Permission::Write, ..whole("cb", 48, host!(cb, 20)) };

/// `struct __sk_buff` as socket filters have it, by `sk_filter_is_valid_access` in `net/core/filter.c`. What is not
/// listed (pointers into the packet, `tc_classid`, the socket's addresses, times, `wire_len`) is refused to them.
pub static SK_BUFF: Layout = Layout {
    name: "__sk_buff",
    size: 192,
    fields: &[
        number("len", 0, Place::Computed(Rule::PacketLen)),
        number("pkt_type", 4, Place::Computed(Rule::PacketType)),
        number("mark", 8, Place::Zero),
        number("queue_mapping", 12, RX_QUEUE),
        number("protocol", 16, Place::Computed(Rule::Protocol)),
        number("vlan_present", 20, Place::Zero),
        number("vlan_tci", 24, Place::Zero),
        number("vlan_proto", 28, Place::Zero),
        number("priority", 32, Place::Zero),
        number("ingress_ifindex", 36, INGRESS_IFINDEX),
        number("ifindex", 40, INGRESS_IFINDEX),
        number("tc_index", 44, Place::Zero),
        CB,
        number("hash", 68, Place::Zero),
        number("napi_id", 84, Place::Zero),
        number("gso_segs", 164, Place::Zero),
        number("gso_size", 176, Place::Zero),
    ],
    area: 1..4,
    waits_for_end: false,
};

/// `struct __sk_buff` as TC classifiers have it, by `tc_cls_act_is_valid_access` and `bpf_convert_ctx_access` in
/// `net/core/filter.c`. `sk` is not listed: user space has no sockets. The addresses of the socket are refused to them.
pub static TC_SK_BUFF: Layout = Layout {
    name: "__sk_buff",
    size: 192,
    fields: &[
        number("len", 0, Place::Computed(Rule::PacketLen)),
        number("pkt_type", 4, host!(pkt_type, 1, PacketType)),
        writable("mark", 8, host!(mark, 4)),
        Field {
            permission: Permission::WriteBelowMax,
            ..number("queue_mapping", 12, host!(queue_mapping, 2, RxQueue))
        },
        number("protocol", 16, host!(protocol, 2, Protocol)),
        number("vlan_present", 20, host!(vlan_present, 1)),
        number("vlan_tci", 24, host!(vlan_tci, 2)),
        number("vlan_proto", 28, host!(vlan_proto, 2)),
        writable("priority", 32, host!(priority, 4)),
        number("ingress_ifindex", 36, INGRESS_IFINDEX),
        number("ifindex", 40, Place::Computed(Rule::Ifindex)),
        writable("tc_index", 44, host!(tc_index, 2)),
        CB,
        number("hash", 68, host!(hash, 4)),
        writable("tc_classid", 72, host!(tc_classid, 2)),
        pointer("data", 76, FieldKind::PacketData, Frame::OFFSET_DATA),
        pointer("data_end", 80, FieldKind::PacketEnd, Frame::OFFSET_DATA_END),
        number("napi_id", 84, Place::Zero),
        pointer("data_meta", 140, FieldKind::PacketMeta, Frame::OFFSET_DATA_META),
        Field { permission: Permission::Write, ..sized("tstamp", 152, 8, host!(tstamp, 8)) },
        number("wire_len", 160, host!(wire_len, 4, PacketLen)),
        number("gso_segs", 164, Place::Zero),
        number("gso_size", 176, Place::Zero),
        sized("tstamp_type", 180, 1, host!(tstamp_type, 1)),
        sized("hwtstamp", 184, 8, Place::Zero),
    ],
    area: 0..SkBuff::WORDS as u16,
    waits_for_end: true,
};

impl ProgramKind {
    /// The context of programs of this type.
    #[must_use]
    #[inline]
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
        for layout in [&XDP_MD, &SK_BUFF, &TC_SK_BUFF] {
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
    fn classifiers_write_what_the_kernel_lets_them() {
        let written: Vec<_> = TC_SK_BUFF
            .fields
            .iter()
            .filter(|field| {
                ProgramKind::SchedCls.context_field(field.offset.into(), field.size.into(), true).is_some()
            })
            .map(|field| field.name)
            .collect();
        let all = ["mark", "queue_mapping", "priority", "tc_index", "tc_classid", "tstamp"];
        assert_eq!(written, all);
        assert!(ProgramKind::SchedCls.context_field(8, 2, true).is_none());
        assert!(ProgramKind::SchedCls.context_field(52, 4, true).is_some());
    }

    #[test]
    fn members_lie_in_the_area_at_multiples_of_their_alignment() {
        for (layout, field) in
            [&XDP_MD, &SK_BUFF, &TC_SK_BUFF].into_iter().flat_map(|l| l.fields.iter().map(move |f| (l, f)))
        {
            let Place::Host { offset, size, .. } = field.place else { continue };
            assert!(
                layout.area.start * 8 <= offset && offset + size <= layout.area.end * 8,
                "{}",
                field.name
            );
            // An access that is aligned in the context is so in the area.
            let alignment = if field.sizes == Sizes::Any { 8 } else { size };
            assert_eq!((offset % alignment, field.offset % alignment), (0, 0), "{}", field.name);
        }
    }

    #[test]
    fn the_outgoing_interface_is_for_device_maps() {
        let kind = |attach| ProgramKind::Xdp { attach, frags: false };
        assert!(kind(XdpAttach::DevMap).context_field(20, 4, false).is_some());
        assert!(kind(XdpAttach::Interface).context_field(20, 4, false).is_none());
        assert!(kind(XdpAttach::Interface).context_field(0, 2, false).is_none());
    }
}
