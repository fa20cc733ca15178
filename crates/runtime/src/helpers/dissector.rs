//! The offset of a packet's payload, as the kernel's flow dissector returns it
//! (`skb_get_poff` in `net/core/flow_dissector.c`): behind tags, tunnels and extension headers.

use crate::context::{ETHERNET_LEN, protocol};

/// Most headers that are looked behind (`MAX_FLOW_DISSECT_HDRS`).
const MAX_HEADERS: u32 = 15;

/// `ETH_P_*` of `linux/if_ether.h`.
mod ethernet {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const ARP: u16 = 0x0806;
    pub(super) const BATMAN: u16 = 0x4305;
    pub(super) const BRIDGED: u16 = 0x6558;
    pub(super) const RARP: u16 = 0x8035;
    pub(super) const VLAN: u16 = 0x8100;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const PPP: u16 = 0x880b;
    pub(super) const MPLS: u16 = 0x8847;
    pub(super) const MPLS_MULTICAST: u16 = 0x8848;
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
    pub(super) const SERVICE_VLAN: u16 = 0x88a8;
    pub(super) const TIPC: u16 = 0x88ca;
    pub(super) const PTP: u16 = 0x88f7;
    pub(super) const PRP: u16 = 0x88fb;
    pub(super) const CFM: u16 = 0x8902;
    pub(super) const FCOE: u16 = 0x8906;
    pub(super) const HSR: u16 = 0x892f;
}

/// `PPP_*` of `linux/ppp_defs.h`.
mod ppp {
    pub(super) const IPV4: u16 = 0x0021;
    pub(super) const IPV6: u16 = 0x0057;
    pub(super) const MPLS: u16 = 0x0281;
    pub(super) const MPLS_MULTICAST: u16 = 0x0283;
}

/// `IPPROTO_*` and `NEXTHDR_*`.
mod ip {
    pub(super) const HOP_OPTIONS: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const IGMP: u8 = 2;
    pub(super) const IPV4: u8 = 4;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const DCCP: u8 = 33;
    pub(super) const IPV6: u8 = 41;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const GRE: u8 = 47;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
    pub(super) const SCTP: u8 = 132;
    pub(super) const UDP_LITE: u8 = 136;
    pub(super) const MPLS: u8 = 137;
}

/// Bits of a GRE header's first word (`linux/if_tunnel.h`).
mod gre {
    pub(super) const CHECKSUM: u16 = 0x8000;
    pub(super) const ROUTING: u16 = 0x4000;
    pub(super) const KEY: u16 = 0x2000;
    pub(super) const SEQUENCE: u16 = 0x1000;
    pub(super) const ACKNOWLEDGMENT: u16 = 0x0080;
    pub(super) const VERSION: u16 = 0x0007;
}

/// The header after another one.
#[derive(Clone, Copy)]
enum Next {
    /// One by `Dissector::protocol`.
    Protocol,
    /// One by `Dissector::ip_protocol`.
    IpProtocol,
    /// Nothing that is looked into.
    Payload,
}

struct Dissector<'a> {
    packet: &'a [u8],
    /// Where the next header starts.
    at: usize,
    protocol: u16,
    /// 0 until there is an IP header.
    ip_protocol: u8,
    /// It is a fragment, and not the first.
    continues: bool,
}

/// Where the payload starts in a packet with an Ethernet header; 0 if a header is cut off, wrong or unknown.
pub(super) fn payload_offset(packet: &[u8]) -> u32 {
    let (at, protocol) = (ETHERNET_LEN, protocol(packet));
    let mut dissector = Dissector { packet, at, protocol, ip_protocol: 0, continues: false };
    dissector.run().map_or(0, |()| dissector.payload())
}

impl Dissector<'_> {
    /// Skips all headers; `None` where the kernel gives up.
    fn run(&mut self) -> Option<()> {
        let mut next = Next::Protocol;
        for _ in 0..=MAX_HEADERS {
            next = match next {
                Next::Protocol => self.header()?,
                Next::IpProtocol => self.ip_header()?,
                Next::Payload => break,
            };
        }
        Some(())
    }

    /// So many bytes from the place of the next header on.
    fn bytes<const N: usize>(&self) -> Option<&[u8; N]> {
        self.packet.get(self.at..)?.first_chunk()
    }

    /// Skips so many bytes, which have to be there.
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at += bytes;
        (self.at <= self.packet.len()).then_some(())
    }

    fn goes_on(&mut self, protocol: u16) -> Option<Next> {
        self.protocol = protocol;
        Some(Next::Protocol)
    }

    fn header(&mut self) -> Option<Next> {
        match self.protocol {
            ethernet::IPV4 => self.ipv4(),
            ethernet::IPV6 => {
                self.ip_protocol = self.bytes::<40>()?[6];
                self.at += 40;
                self.ip_header()
            }
            ethernet::VLAN | ethernet::SERVICE_VLAN => {
                let [.., high, low] = *self.bytes::<4>()?;
                self.at += 4;
                self.goes_on(u16::from_be_bytes([high, low]))
            }
            ethernet::PRP | ethernet::HSR => {
                let [.., high, low] = *self.bytes::<6>()?;
                self.at += 6;
                self.goes_on(u16::from_be_bytes([high, low]))
            }
            ethernet::PPPOE_SESSION => self.pppoe(),
            ethernet::BATMAN => self.batman(),
            ethernet::FCOE => self.skip(38).map(|()| Next::Payload),
            ethernet::PTP => self.skip(34).map(|()| Next::Payload),
            // The kernel does not read this header, and does not check its length.
            ethernet::MPLS | ethernet::MPLS_MULTICAST => {
                self.at += 4;
                Some(Next::Payload)
            }
            ethernet::TIPC => self.bytes::<16>().map(|_| Next::Payload),
            ethernet::ARP | ethernet::RARP | ethernet::CFM => Some(Next::Payload),
            _ => None,
        }
    }

    fn ipv4(&mut self) -> Option<Next> {
        const MORE_OR_OFFSET: u16 = 0x3fff;
        const OFFSET: u16 = 0x1fff;
        let header = *self.bytes::<20>()?;
        let words = usize::from(header[0] & 0xf);
        if words < 5 {
            return None;
        }
        self.at += 4 * words;
        self.ip_protocol = header[9];
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        self.continues = fragment & OFFSET != 0;
        if fragment & MORE_OR_OFFSET != 0 { Some(Next::Payload) } else { self.ip_header() }
    }

    fn pppoe(&mut self) -> Option<Next> {
        const VERSION_1_TYPE_1: u8 = 0x11;
        const SESSION_DATA: u8 = 0;
        let &[VERSION_1_TYPE_1, SESSION_DATA, .., high, low] = self.bytes::<8>()? else { return None };
        self.at += 8;
        match u16::from_be_bytes([high, low]) {
            ppp::IPV4 => self.goes_on(ethernet::IPV4),
            ppp::IPV6 => self.goes_on(ethernet::IPV6),
            ppp::MPLS => self.goes_on(ethernet::MPLS),
            ppp::MPLS_MULTICAST => self.goes_on(ethernet::MPLS_MULTICAST),
            // Odd, and its first byte even: else it is no number of two bytes.
            other => (other & 0x0101 == 1).then_some(Next::Payload),
        }
    }

    /// A unicast packet of batman-adv, with an Ethernet header in it.
    fn batman(&mut self) -> Option<Next> {
        const UNICAST: u8 = 0x40;
        const VERSION: u8 = 15;
        let &[UNICAST, VERSION, .., high, low] = self.bytes::<24>()? else { return None };
        self.at += 24;
        self.goes_on(u16::from_be_bytes([high, low]))
    }

    fn ip_header(&mut self) -> Option<Next> {
        match self.ip_protocol {
            ip::GRE => self.gre(),
            ip::IPV4 => self.goes_on(ethernet::IPV4),
            ip::IPV6 => self.goes_on(ethernet::IPV6),
            ip::MPLS => self.goes_on(ethernet::MPLS),
            // Those of IPv6 alone.
            _ if self.protocol != ethernet::IPV6 => Some(Next::Payload),
            ip::HOP_OPTIONS | ip::ROUTING | ip::DESTINATION_OPTIONS => {
                let [next, more] = *self.bytes::<2>()?;
                self.ip_protocol = next;
                self.at += 8 * (usize::from(more) + 1);
                Some(Next::IpProtocol)
            }
            ip::FRAGMENT => {
                const OFFSET: u16 = 0xfff8;
                let [next, _, high, low, ..] = *self.bytes::<8>()?;
                self.at += 8;
                self.ip_protocol = next;
                self.continues = u16::from_be_bytes([high, low]) & OFFSET != 0;
                Some(Next::Payload)
            }
            _ => Some(Next::Payload),
        }
    }

    /// A tunnel of version 0 without routing, or of version 1 as PPTP has it; others are payload.
    fn gre(&mut self) -> Option<Next> {
        let [high, low, protocol @ ..] = *self.bytes::<4>()?;
        let flags = u16::from_be_bytes([high, low]);
        let protocol = u16::from_be_bytes(protocol);
        let has = |flag| flags & flag != 0;
        let version = flags & gre::VERSION;
        let is_pptp = version == 1 && protocol == ethernet::PPP && has(gre::KEY);
        if has(gre::ROUTING) || version != 0 && !is_pptp {
            return Some(Next::Payload);
        }
        self.at += if has(gre::CHECKSUM) { 8 } else { 4 };
        if has(gre::KEY) {
            self.skip(4)?;
        }
        self.at += if has(gre::SEQUENCE) { 4 } else { 0 };
        if is_pptp {
            return self.pptp(has(gre::ACKNOWLEDGMENT));
        }
        if protocol != ethernet::BRIDGED {
            return self.goes_on(protocol);
        }
        let [.., high, low] = *self.bytes::<ETHERNET_LEN>()?;
        self.at += ETHERNET_LEN;
        self.goes_on(u16::from_be_bytes([high, low]))
    }

    fn pptp(&mut self, is_acknowledged: bool) -> Option<Next> {
        self.at += if is_acknowledged { 4 } else { 0 };
        let [.., high, low] = *self.bytes::<4>()?;
        self.at += 4;
        match u16::from_be_bytes([high, low]) {
            ppp::IPV4 => self.goes_on(ethernet::IPV4),
            ppp::IPV6 => self.goes_on(ethernet::IPV6),
            _ => None,
        }
    }

    /// Where the payload starts, behind the header of the transport protocol if that is known (`__skb_get_poff`).
    fn payload(&self) -> u32 {
        // Both are 16 bits wide in the kernel.
        let at = u32::from((self.at as u16).min(self.packet.len() as u16));
        if self.continues {
            return at;
        }
        at + match self.ip_protocol {
            ip::TCP => match self.packet.get(at as usize + 12) {
                Some(words) => u32::from((words & 0xf0) >> 2).max(20),
                None => 0,
            },
            ip::UDP | ip::UDP_LITE | ip::ICMP | ip::ICMPV6 | ip::IGMP => 8,
            ip::DCCP | ip::SCTP => 12,
            _ => 0,
        }
    }
}
