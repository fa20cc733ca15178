//! Ancillary words of classic filters that need a loop over the packet (`net/core/filter.c`): functions that only the converter's
//! programs call, with the context, the accumulator and the index register.

use paceline_frame::Frame;

use super::dissector;
use crate::host::Host;

/// Length and type, two bytes each in the machine's order (`struct nlattr`).
const HEADER: usize = 4;

/// Steps between attributes (`NLA_ALIGNTO`).
const ALIGN: usize = 4;

/// The bits of a type that are no flags (`NLA_TYPE_MASK`).
const TYPE: u16 = 0x3fff;

/// `#poff`: offset of the payload, 0 if it is unknown.
pub(super) fn payload_offset(_: &mut Host, frame: &mut Frame) -> u64 {
    u64::from(dissector::payload_offset(frame.packet()))
}

/// `#nla`: offset of the first netlink attribute of the type `x`, from offset `a` on; 0 if none exists.
pub(super) fn attribute(_: &mut Host, frame: &mut Frame, a: u32, x: u32) -> u64 {
    found(find(frame.packet(), a, x))
}

/// `#nlan`: the same among the attributes that are nested in the one at offset `a`.
pub(super) fn nested_attribute(_: &mut Host, frame: &mut Frame, a: u32, x: u32) -> u64 {
    found(find_nested(frame.packet(), a, x))
}

fn found(place: Option<usize>) -> u64 {
    place.map_or(0, |place| u64::from(place as u32))
}

fn find(packet: &[u8], from: u32, wanted: u32) -> Option<usize> {
    let mut at = from as usize;
    loop {
        let (len, kind) = header(packet.get(at..)?)?;
        if u32::from(kind & TYPE) == wanted {
            return Some(at);
        }
        at += len.next_multiple_of(ALIGN);
    }
}

fn find_nested(packet: &[u8], from: u32, wanted: u32) -> Option<usize> {
    let (len, _) = header(packet.get(from as usize..)?)?;
    let nested = packet.get(..from as usize + len)?;
    find(nested, from.checked_add(HEADER as u32)?, wanted)
}

/// Length and type of the attribute that starts the bytes, if they have it whole (`nla_ok`).
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let (&[l0, l1, t0, t1], _) = bytes.split_first_chunk::<HEADER>()?;
    let len = usize::from(u16::from_ne_bytes([l0, l1]));
    (len >= HEADER && len <= bytes.len()).then_some((len, u16::from_ne_bytes([t0, t1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types 1 and 2, the second of which has 3 and 4 in it; then 5 with a flag.
    fn attributes() -> Vec<u8> {
        let of = |kind: u16, payload: &[u8]| {
            let mut bytes = Vec::from(((HEADER + payload.len()) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(payload);
            bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
            bytes
        };
        let nested = [of(3, &[7]), of(4, &[])].concat();
        [vec![0; 8], of(1, &[9, 9]), of(2, &nested), of(0x8005, &[])].concat()
    }

    #[test]
    fn attributes_are_found_by_type() {
        let packet = attributes();
        let places = [1, 2, 3, 4, 5, 0x8005].map(|kind| find(&packet, 8, kind));
        assert_eq!(places, [Some(8), Some(16), None, None, Some(32), None]);
        let nested = [1, 3, 4, 5].map(|kind| find_nested(&packet, 16, kind));
        assert_eq!(nested, [None, Some(20), Some(28), None]);
        assert_eq!(find(&packet, u32::MAX, 1), None);
        assert_eq!(find_nested(&packet, 33, 1), None);
    }
}
