//! The header before each packet of a TAP interface that has one (`include/uapi/linux/virtio_net.h`).

/// The checksum of the packet is to be completed (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).
const NEEDS_CHECKSUM: u8 = 1;

/// Completes the checksum of a packet if its header asks for it: the field has the sum of the pseudo header, and the result is that of
/// all bytes from `csum_start` on. Headers whose places lie outside of the packet are ignored.
pub(super) fn complete(header: &[u8], packet: &mut [u8]) {
    let field = |at: usize| Some(usize::from(u16::from_ne_bytes([*header.get(at)?, *header.get(at + 1)?])));
    if header.first().is_none_or(|flags| flags & NEEDS_CHECKSUM == 0) {
        return;
    }
    let (Some(start), Some(offset)) = (field(6), field(8)) else { return };
    let Some(covered) = packet.get_mut(start..) else { return };
    let sum = sum(covered);
    if let Some(place) = covered.get_mut(offset..offset + 2) {
        // Zero stands for no checksum in UDP, and 0xffff for the same sum.
        let value = if sum == 0xffff { sum } else { !sum };
        place.copy_from_slice(&value.to_be_bytes());
    }
}

/// The sum of RFC 1071, folded to 16 bits and not inverted.
fn sum(bytes: &[u8]) -> u16 {
    let word = |word: &[u8]| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
    let sum: u64 = bytes.chunks(2).map(word).sum();
    (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u8, start: u16, offset: u16) -> Vec<u8> {
        let fields = [start.to_ne_bytes(), offset.to_ne_bytes()].concat();
        [&[flags, 0, 0, 0, 0, 0], &fields[..]].concat()
    }

    #[test]
    fn a_completed_checksum_makes_the_sum_all_ones() {
        for len in [8, 9, 40, 41] {
            let mut packet: Vec<u8> = (0..len).collect();
            complete(&header(NEEDS_CHECKSUM, 2, 4), &mut packet);
            // What the field had before is part of the sum as well.
            let had = sum(&[6, 7, packet[6], packet[7]]);
            packet[6..8].copy_from_slice(&had.to_be_bytes());
            assert_eq!(sum(&packet[2..]), 0xffff, "{len}");
        }
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let packet: Vec<u8> = (0..20).collect();
        for header in [
            header(0, 2, 4),
            header(1, 20, 0),
            header(1, 21, 0),
            header(1, 2, 17),
            header(1, 0xffff, 0xffff),
            vec![1],
            vec![],
        ] {
            let mut same = packet.clone();
            complete(&header, &mut same);
            assert_eq!(same, packet, "{header:?}");
        }
    }
}
