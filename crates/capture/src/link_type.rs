//! Link types: the link-layer header types of packets.

use std::fmt;

use paceline_frame::MAX_PACKET;

/// A `LINKTYPE_` number of a capture (tcpdump.org/linktypes.html).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u32);

impl LinkType {
    /// Ethernet, the only link type of XDP programs.
    pub const ETHERNET: Self = Self(1);

    /// Maximum packet length of this link type in libpcap (`max_snaplen_for_dlt`), for captures whose header has no snapshot
    /// length.
    #[must_use]
    pub fn max_snaplen(self) -> u32 {
        const MIB: u32 = 1 << 20;
        match self.0 {
            231 => 128 * MIB, // DBUS
            249 => MIB,       // USBPCAP
            279 => 8 * MIB,   // EBHSCR
            _ => MAX_PACKET as u32,
        }
    }

    /// Name without `LINKTYPE_` or `DLT_`; `None` for unknown numbers.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.binary_search_by_key(&self.0, |&(number, _)| number).ok().map(|i| NAMES[i].1)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "number {}", self.0),
        }
    }
}

/// Sorted by number. 12 and 14 are `DLT_RAW` on some systems, which some files contain instead of 101.
const NAMES: &[(u32, &str)] = &[
    (0, "NULL"),
    (1, "ETHERNET"),
    (3, "AX25"),
    (6, "IEEE802_5"),
    (7, "ARCNET_BSD"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (12, "RAW"),
    (14, "RAW"),
    (50, "PPP_HDLC"),
    (51, "PPP_ETHER"),
    (99, "SYMANTEC_FIREWALL"),
    (100, "ATM_RFC1483"),
    (101, "RAW"),
    (104, "C_HDLC"),
    (105, "IEEE802_11"),
    (107, "FRELAY"),
    (108, "LOOP"),
    (109, "ENC"),
    (113, "LINUX_SLL"),
    (114, "LTALK"),
    (117, "PFLOG"),
    (119, "IEEE802_11_PRISM"),
    (122, "IP_OVER_FC"),
    (123, "SUNATM"),
    (127, "IEEE802_11_RADIOTAP"),
    (129, "ARCNET_LINUX"),
    (138, "APPLE_IP_OVER_IEEE1394"),
    (139, "MTP2_WITH_PHDR"),
    (140, "MTP2"),
    (141, "MTP3"),
    (142, "SCCP"),
    (143, "DOCSIS"),
    (144, "LINUX_IRDA"),
    (147, "USER0"),
    (148, "USER1"),
    (149, "USER2"),
    (150, "USER3"),
    (151, "USER4"),
    (152, "USER5"),
    (153, "USER6"),
    (154, "USER7"),
    (155, "USER8"),
    (156, "USER9"),
    (157, "USER10"),
    (158, "USER11"),
    (159, "USER12"),
    (160, "USER13"),
    (161, "USER14"),
    (162, "USER15"),
    (163, "IEEE802_11_AVS"),
    (165, "BACNET_MS_TP"),
    (166, "PPP_PPPD"),
    (169, "GPRS_LLC"),
    (170, "GPF_T"),
    (171, "GPF_F"),
    (177, "LINUX_LAPD"),
    (182, "MFR"),
    (187, "BLUETOOTH_HCI_H4"),
    (189, "USB_LINUX"),
    (192, "PPI"),
    (195, "IEEE802_15_4_WITHFCS"),
    (196, "SITA"),
    (197, "ERF"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"),
    (202, "AX25_KISS"),
    (203, "LAPD"),
    (204, "PPP_WITH_DIR"),
    (205, "C_HDLC_WITH_DIR"),
    (206, "FRELAY_WITH_DIR"),
    (207, "LAPB_WITH_DIR"),
    (209, "IPMB_LINUX"),
    (210, "FLEXRAY"),
    (212, "LIN"),
    (215, "IEEE802_15_4_NONASK_PHY"),
    (220, "USB_LINUX_MMAPPED"),
    (224, "FC_2"),
    (225, "FC_2_WITH_FRAME_DELIMS"),
    (226, "IPNET"),
    (227, "CAN_SOCKETCAN"),
    (228, "IPV4"),
    (229, "IPV6"),
    (230, "IEEE802_15_4_NOFCS"),
    (231, "DBUS"),
    (235, "DVB_CI"),
    (236, "MUX27010"),
    (237, "STANAG_5066_D_PDU"),
    (239, "NFLOG"),
    (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"),
    (242, "IPOIB"),
    (243, "MPEG_2_TS"),
    (244, "NG40"),
    (245, "NFC_LLCP"),
    (247, "INFINIBAND"),
    (248, "SCTP"),
    (249, "USBPCAP"),
    (250, "RTAC_SERIAL"),
    (251, "BLUETOOTH_LE_LL"),
    (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"),
    (254, "BLUETOOTH_LINUX_MONITOR"),
    (255, "BLUETOOTH_BREDR_BB"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"),
    (257, "PROFIBUS_DL"),
    (258, "PKTAP"),
    (259, "EPON"),
    (260, "IPMI_HPM_2"),
    (261, "ZWAVE_R1_R2"),
    (262, "ZWAVE_R3"),
    (263, "WATTSTOPPER_DLM"),
    (264, "ISO_14443"),
    (265, "RDS"),
    (266, "USB_DARWIN"),
    (268, "SDLC"),
    (270, "LORATAP"),
    (271, "VSOCK"),
    (272, "NORDIC_BLE"),
    (273, "DOCSIS31_XRA31"),
    (274, "ETHERNET_MPACKET"),
    (275, "DISPLAYPORT_AUX"),
    (276, "LINUX_SLL2"),
    (278, "OPENVIZSLA"),
    (279, "EBHSCR"),
    (280, "VPP_DISPATCH"),
    (281, "DSA_TAG_BRCM"),
    (282, "DSA_TAG_BRCM_PREPEND"),
    (283, "IEEE802_15_4_TAP"),
    (284, "DSA_TAG_DSA"),
    (285, "DSA_TAG_EDSA"),
    (286, "ELEE"),
    (287, "Z_WAVE_SERIAL"),
    (288, "USB_2_0"),
    (289, "ATSC_ALP"),
    (290, "ETW"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_number() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(LinkType(113).to_string(), "LINUX_SLL (113)");
        assert_eq!(LinkType(4095).to_string(), "number 4095");
    }
}
