//! Negative packet offsets of Linux, for data other than the packet's bytes (`SKF_*` in `linux/filter.h`).

/// First offset of the ancillary words (`SKF_AD_OFF`, -0x1000).
pub const ANCILLARY_OFFSET: u32 = 0xffff_f000;

/// First offset relative to the network header (`SKF_NET_OFF`, -0x100000).
pub const NETWORK_OFFSET: u32 = 0xfff0_0000;

/// First offset relative to the link-layer header (`SKF_LL_OFF`, -0x200000).
pub const LINK_LAYER_OFFSET: u32 = 0xffe0_0000;

macro_rules! ancillary {
    ($($(#[$doc:meta])* $name:ident $number:literal $text:literal;)*) => {
        /// An ancillary word: metadata of a packet, loaded from offsets at and above [`ANCILLARY_OFFSET`].
        ///
        /// The documentation of each gives its value in user space.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Ancillary {
            $($(#[$doc])* $name,)*
        }

        impl Ancillary {
            /// All words with their offset from [`ANCILLARY_OFFSET`] and their bpf_asm name, without its `#`.
            const TABLE: &[(Self, u32, &'static str)] = &[$((Self::$name, $number, $text),)*];
        }
    };
}

ancillary! {
    /// EtherType of the Ethernet header, in host order; 1 or 4 for frames with a length in that field.
    Protocol 0 "proto";
    /// Packet type by destination address: 0 to the host, 1 broadcast, 2 multicast.
    PacketType 4 "type";
    /// Index of the receiving interface.
    Ifindex 8 "ifidx";
    /// Offset of the first netlink attribute, at or after the offset in the accumulator, whose type is in the index register; 0 if
    /// none.
    NetlinkAttribute 12 "nla";
    /// The same, among the attributes nested in the one at the accumulator.
    NestedNetlinkAttribute 16 "nlan";
    /// `skb->mark`: always 0.
    Mark 20 "mark";
    /// Receive queue of the interface.
    Queue 24 "queue";
    /// Type of the interface: `ARPHRD_ETHER`, 1.
    HardwareType 28 "hatype";
    /// Hash of the flow: always 0.
    Hash 32 "rxhash";
    /// Number of the CPU or worker.
    Cpu 36 "cpu";
    /// The accumulator, exclusive-or the index register.
    XorX 40 "xor_x";
    /// VLAN tag that was stripped from the packet: always 0, as tags are not stripped.
    VlanTag 44 "vlan_tci";
    /// Whether a tag was stripped: always 0.
    VlanTagPresent 48 "vlan_pr";
    /// Offset of the payload after all headers, including those of tunnels, by the rules of the kernel's flow dissector; 0 if
    /// dissection fails.
    PayloadOffset 52 "poff";
    /// A random number.
    Random 56 "rand";
    /// Protocol of the stripped tag: always 0.
    VlanProtocol 60 "vlan_tpid";
}

impl Ancillary {
    /// The word at an absolute offset, as in `bpf_anc_helper` of `linux/filter.h`.
    #[must_use]
    pub fn at(offset: u32) -> Option<Self> {
        let number = offset.checked_sub(ANCILLARY_OFFSET)?;
        Self::TABLE.iter().find(|(_, n, _)| *n == number).map(|(word, ..)| *word)
    }

    /// The word with a bpf_asm name, without its `#`. Some words have two names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = if name == "vlan_avail" { "vlan_pr" } else { name };
        Self::TABLE.iter().find(|(.., text)| *text == name).map(|(word, ..)| *word)
    }

    fn entry(self) -> &'static (Self, u32, &'static str) {
        // The table is in the order of the variants.
        &Self::TABLE[self as usize]
    }

    /// The absolute offset of the load.
    #[must_use]
    pub fn offset(self) -> u32 {
        ANCILLARY_OFFSET + self.entry().1
    }

    /// The kernel function that implements the word, with the context, the accumulator and the index register as arguments
    /// ([`Kfunc::converted`](paceline_spec::kfunc::Kfunc::converted)).
    pub(super) fn function(self) -> Option<&'static str> {
        match self {
            Self::PayloadOffset => Some("bpf_skb_get_pay_offset"),
            Self::NetlinkAttribute => Some("bpf_skb_get_nlattr"),
            Self::NestedNetlinkAttribute => Some("bpf_skb_get_nlattr_nest"),
            _ => None,
        }
    }

    /// Whether the value depends on both registers.
    pub(super) fn reads_registers(self) -> bool {
        matches!(self, Self::NetlinkAttribute | Self::NestedNetlinkAttribute)
    }

    /// Name in libpcap's listings.
    #[must_use]
    pub fn listing_name(self) -> &'static str {
        match self {
            Self::VlanTagPresent => "vlanp",
            Self::Random => "random",
            word => word.name(),
        }
    }

    /// Name in bpf_asm, without the `#`.
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
