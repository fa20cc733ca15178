//! Negative packet offsets: what Linux reaches with them (`SKF_*` in `linux/filter.h`).

/// First offset of the ancillary words (`SKF_AD_OFF`, -0x1000).
pub const ANCILLARY_OFFSET: u32 = 0xffff_f000;

/// Offsets from the network header start here (`SKF_NET_OFF`, -0x100000).
pub const NETWORK_OFFSET: u32 = 0xfff0_0000;

/// Offsets from the link-layer header start here (`SKF_LL_OFF`, -0x200000).
pub const LINK_LAYER_OFFSET: u32 = 0xffe0_0000;

macro_rules! ancillary {
    ($($(#[$doc:meta])* $name:ident $number:literal $text:literal;)*) => {
        /// A fact about a packet beside its bytes, loaded from an offset of [`ANCILLARY_OFFSET`] on.
        ///
        /// The values that packets in user space have are in the documentation of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Ancillary {
            $($(#[$doc])* $name,)*
        }

        impl Ancillary {
            /// All of them with their offset from [`ANCILLARY_OFFSET`] and their name for bpf_asm, without its `#`.
            const TABLE: &[(Self, u32, &'static str)] = &[$((Self::$name, $number, $text),)*];
        }
    };
}

ancillary! {
    /// Protocol of the Ethernet header, in host order; 1 or 4 for frames with a length there.
    Protocol 0 "proto";
    /// Whom the packet is for: 0 the host, 1 broadcast, 2 multicast, by its destination address.
    PacketType 4 "type";
    /// Index of the interface it came in on.
    Ifindex 8 "ifidx";
    /// Offset of the first netlink attribute from the accumulator on whose type the index register has; 0 if there is none.
    NetlinkAttribute 12 "nla";
    /// The same, of those in the attribute at the accumulator.
    NestedNetlinkAttribute 16 "nlan";
    /// `skb->mark`: 0.
    Mark 20 "mark";
    /// Queue of the interface.
    Queue 24 "queue";
    /// Type of the interface: `ARPHRD_ETHER`, 1.
    HardwareType 28 "hatype";
    /// Hash of the flow: 0.
    Hash 32 "rxhash";
    /// Number of the CPU or worker.
    Cpu 36 "cpu";
    /// The accumulator, exclusive or the index register.
    XorX 40 "xor_x";
    /// VLAN tag that was taken out of the packet: 0, for tags stay in the packet.
    VlanTag 44 "vlan_tci";
    /// Whether one was taken out: 0.
    VlanTagPresent 48 "vlan_pr";
    /// Offset of the payload behind all headers, tunnels' as well, as the kernel's flow dissector finds it; 0 if it does not.
    PayloadOffset 52 "poff";
    /// A random number.
    Random 56 "rand";
    /// Protocol of the tag that was taken out: 0.
    VlanProtocol 60 "vlan_tpid";
}

impl Ancillary {
    /// The word at an absolute offset, as `bpf_anc_helper` in `linux/filter.h` knows it.
    #[must_use]
    pub fn at(offset: u32) -> Option<Self> {
        let number = offset.checked_sub(ANCILLARY_OFFSET)?;
        Self::TABLE.iter().find(|(_, n, _)| *n == number).map(|(word, ..)| *word)
    }

    /// The word of a name of bpf_asm's, without its `#`. It has two names for some.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "vlan_avail" { "vlan_pr" } else { name };
        Self::TABLE.iter().find(|(.., text)| *text == name).map(|(word, ..)| *word)
    }

    fn entry(self) -> &'static (Self, u32, &'static str) {
        // The table is in the order of the variants.
        &Self::TABLE[self as usize]
    }

    /// The absolute offset that it is loaded from.
    #[must_use]
    pub fn offset(self) -> u32 {
        ANCILLARY_OFFSET + self.entry().1
    }

    /// The function that it is a call of, with the context, the accumulator and the index register
    /// ([`Kfunc::converted`](paceline_spec::kfunc::Kfunc::converted)).
    pub(super) fn function(self) -> Option<&'static str> {
        match self {
            Self::PayloadOffset => Some("bpf_skb_get_pay_offset"),
            Self::NetlinkAttribute => Some("bpf_skb_get_nlattr"),
            Self::NestedNetlinkAttribute => Some("bpf_skb_get_nlattr_nest"),
            _ => None,
        }
    }

    /// Whether it is found by what both registers hold.
    pub(super) fn reads_registers(self) -> bool {
        matches!(self, Self::NetlinkAttribute | Self::NestedNetlinkAttribute)
    }

    /// Its name in libpcap's listings.
    #[must_use]
    pub fn listing_name(self) -> &'static str {
        match self {
            Self::VlanTagPresent => "vlanp",
            Self::Random => "random",
            word => word.name(),
        }
    }

    /// Its name for bpf_asm, without the `#`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().2
    }
}

#[cfg(test)]
mod tests {
    use super::Ancillary;

    #[test]
    fn words_know_their_place_and_name() {
        for (word, _, name) in Ancillary::TABLE {
            assert_eq!(Ancillary::at(word.offset()), Some(*word));
            assert_eq!(Ancillary::from_name(name), Some(*word));
            assert_eq!(word.name(), *name);
        }
        assert_eq!(Ancillary::at(0xffff_f001), None);
        assert_eq!(Ancillary::at(0), None);
    }
}
