//! The packet, and the elements of maps.

/// A UDP packet of 98 bytes to port 12,290.
pub(super) fn packet() -> Vec<u8> {
    let headers = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..],
        &[0x45, 0, 0, 84, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
        &[0x30, 1, 0x30, 2, 0, 64, 0, 0],
        &[0; 56],
    ];
    headers.concat()
}

/// The maps whose elements programs look up or replace, with a key and a value.
pub(super) const FILLED: [(&str, [u8; 4], usize); 4] =
    [("hash", [1, 0, 0, 0], 8), ("hash_64", [1, 0, 0, 0], 64), ("lru", [1, 0, 0, 0], 8), ("cpus", [0; 4], 4)];

/// A value of a length: the number 1, as the queue of a CPU also may be.
pub(super) fn value(len: usize) -> Vec<u8> {
    let mut value = vec![0; len];
    value[0] = 1;
    value
}
