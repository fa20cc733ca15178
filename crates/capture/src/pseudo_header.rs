//! Pseudo-headers of packets with numbers in the byte order of the capturing machine, which libpcap converts to that of the reading
//! machine (`swap_pseudo_headers` in its `pcap-util.c`).

use std::ops::Range;

use paceline_frame::Burst;

use crate::byte_order::ByteOrder;
use crate::link::Link;
use crate::link_type::LinkType;

const LINUX_SLL: LinkType = LinkType(113);
const PFLOG: LinkType = LinkType(117);
const USB_LINUX: LinkType = LinkType(189);
const USB_LINUX_MMAPPED: LinkType = LinkType(220);
const NFLOG: LinkType = LinkType(239);
const LINUX_SLL2: LinkType = LinkType(276);

impl Link {
    /// Converts packets to the form in which libpcap's filters see them: numbers of pseudo-headers in native byte order. No effect
    /// on captures in native byte order and on link types without such headers.
    pub fn to_native(self, burst: &mut Burst) {
        self.swap(self.order, burst);
    }

    /// Reverts [`to_native`](Self::to_native).
    pub fn to_captured(self, burst: &mut Burst) {
        self.swap(ByteOrder::NATIVE, burst);
    }

    /// Swaps the numbers, which are in byte order `from`.
    fn swap(self, from: ByteOrder, burst: &mut Burst) {
        const LINK_TYPES: [LinkType; 6] = [LINUX_SLL, PFLOG, USB_LINUX, USB_LINUX_MMAPPED, NFLOG, LINUX_SLL2];
        if self.order == ByteOrder::NATIVE || !LINK_TYPES.contains(&self.link_type) {
            return;
        }
        for index in 0..burst.len() {
            let frame = burst.frame(index);
            let wire_len = frame.meta().original_len as usize;
            let numbers = Header { packet: frame.packet(), wire_len, order: from }.numbers(self.link_type);
            for number in numbers {
                if let Some(number) = burst.frame_mut(index).packet_mut().get_mut(number) {
                    number.reverse();
                }
            }
        }
    }
}

/// A packet with a pseudo-header.
struct Header<'a> {
    packet: &'a [u8],
    wire_len: usize,
    order: ByteOrder,
}

impl Header<'_> {
    /// Ranges of the numbers in the capturing machine's byte order.
    fn numbers(&self, link_type: LinkType) -> Vec<Range<usize>> {
        match link_type {
            PFLOG => self.pflog(),
            LINUX_SLL => self.can(14, 16),
            LINUX_SLL2 => self.can(0, 20),
            USB_LINUX => self.usb(false),
            USB_LINUX_MMAPPED => self.usb(true),
            NFLOG => self.nflog(),
            _ => Vec::new(),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.packet.get(at).copied().unwrap_or_default()
    }

    /// Length of the packet in bytes, without data that was not on the wire.
    fn len(&self) -> usize {
        self.packet.len().min(self.wire_len)
    }

    /// User and process ids of a packet and of a rule, as far as the header includes them.
    fn pflog(&self) -> Vec<Range<usize>> {
        let len = self.len().min(self.byte(0).into());
        [44..48, 48..52, 52..56, 56..60].into_iter().filter(|number| number.end <= len).collect()
    }

    /// The identifier of a CAN frame, after a Linux cooked header with a CAN protocol.
    fn can(&self, protocol: usize, header: usize) -> Vec<Range<usize>> {
        const CAN: [u8; 2] = [0, 0x0c];
        const CAN_FD: [u8; 2] = [0, 0x0d];
        let is_can = matches!([self.byte(protocol), self.byte(protocol + 1)], CAN | CAN_FD);
        let number = header..header + 4;
        Some(number).filter(|number| is_can && number.end <= self.len()).into_iter().collect()
    }

    /// `struct usbmon_packet`; with `mapped` also the following 16 bytes and isochronous descriptors.
    fn usb(&self, mapped: bool) -> Vec<Range<usize>> {
        const DESCRIPTORS: usize = 64;
        const DESCRIPTOR: usize = 16;
        let is_isochronous = self.byte(9) == 0;
        let mut numbers = vec![0..8, 12..14, 16..24, 24..28, 28..32, 32..36, 36..40];
        if is_isochronous {
            numbers.extend([40..44, 44..48]);
        }
        if mapped {
            numbers.extend([48..52, 52..56, 56..60, 60..64]);
            let count = self.packet.get(60..64).and_then(|count| count.first_chunk::<4>());
            let count = count.map_or(0, |count| self.order.u32(count, 0));
            let places = (DESCRIPTORS..self.packet.len()).step_by(DESCRIPTOR);
            for at in places.take(if is_isochronous { count as usize } else { 0 }) {
                numbers.extend([at..at + 4, at + 4..at + 8, at + 8..at + 12]);
            }
        }
        numbers.retain(|number| number.end <= self.packet.len());
        numbers
    }

    /// Length and type of each attribute after a header of four bytes.
    fn nflog(&self) -> Vec<Range<usize>> {
        const HEAD: usize = 4;
        let mut numbers = Vec::new();
        let mut at = HEAD;
        if self.len() < HEAD || self.byte(1) != 0 {
            return numbers;
        }
        while let Some(head) = self.packet.get(at..).and_then(|rest| rest.first_chunk::<HEAD>()) {
            numbers.extend([at..at + 2, at + 2..at + 4]);
            let len = self.order.u16(head, 0);
            // The sum is truncated to 16 bits, as in libpcap.
            let padded = usize::from(len.wrapping_add(len.wrapping_neg() % 4));
            if padded < HEAD || at + padded > self.len() {
                break;
            }
            at += padded;
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use paceline_frame::FrameMeta;

    use super::*;

    /// A link of captures in the opposite byte order.
    fn foreign(link_type: LinkType) -> Link {
        let order = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
        Link { link_type, order, ..Link::default() }
    }

    #[test]
    fn what_is_turned_around_can_be_taken_back() {
        for link_type in [LINUX_SLL, PFLOG, USB_LINUX, USB_LINUX_MMAPPED, NFLOG, LINUX_SLL2] {
            for seed in 0..2_000u32 {
                let mut state = seed;
                let mut next = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                };
                // Small numbers produce descriptors and attributes of valid lengths.
                let mut packet: Vec<u8> =
                    (0..seed % 200).map(|_| if next() < 200 { 0 } else { next() % 20 }).collect();
                if let Some(protocol) = packet.get_mut(14..16) {
                    protocol.copy_from_slice(&[0, 0x0c]);
                }
                let mut burst = Burst::new(1);
                let meta = FrameMeta { original_len: seed % 250, ..FrameMeta::default() };
                burst.push(&packet, meta).unwrap();
                let link = foreign(link_type);
                link.to_native(&mut burst);
                link.to_captured(&mut burst);
                assert_eq!(burst.frame(0).packet(), packet, "{link_type} {seed}");
            }
        }
    }

    #[test]
    fn captures_of_this_order_stay_as_they_are() {
        let mut burst = Burst::new(1);
        burst.push(&[1, 2, 3, 4, 5, 6, 7, 8], FrameMeta::default()).unwrap();
        Link { link_type: USB_LINUX, ..Link::default() }.to_native(&mut burst);
        assert_eq!(burst.frame(0).packet(), [1, 2, 3, 4, 5, 6, 7, 8]);
        foreign(USB_LINUX).to_native(&mut burst);
        assert_eq!(burst.frame(0).packet(), [8, 7, 6, 5, 4, 3, 2, 1]);
    }
}
