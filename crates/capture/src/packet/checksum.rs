//! Checksums of headers.

/// The Internet checksum (RFC 1071) over several parts, each of an even number of bytes but the last.
pub(crate) fn internet(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |word: &[u8]| match *word {
        [high, low] => u32::from(u16::from_be_bytes([high, low])),
        [high] => u32::from(high) << 8,
        _ => 0,
    };
    // 65,535 bytes have fewer words than would overflow 32 bits.
    let sum = words.map(word).fold(0_u64, |sum, word| sum + u64::from(word));
    let folded = (0..4).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16));
    !(folded as u16)
}

/// CRC-32C (RFC 9260, appendix A), in the byte order in which SCTP sends it.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    let crc = bytes.iter().fold(!0_u32, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step));
    (!crc).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_examples_have_their_checksums() {
        // RFC 1071, section 3; RFC 3720, appendix B.4.
        assert_eq!(internet(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(crc32c(&[0; 32]), 0xaa36_918a);
    }
}
