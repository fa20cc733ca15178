//! The balancer's packets and flows.

/// A packet to 192.0.2.53, UDP port 53.
#[rustfmt::skip]
pub(super) const PACKET: [u8; 60] = [
    2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
    0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 0, 192, 0, 2, 53,
    4, 0, 0, 53, 0, 26, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// Makes a packet that of a flow.
pub(super) fn set_flow(packet: &mut [u8], flow: u32) {
    packet[26..30].copy_from_slice(&(0x0a00_0000 | flow).to_be_bytes());
}

/// `struct flow`.
pub(super) fn key(flow: u32) -> [u8; 16] {
    let mut packet = PACKET;
    set_flow(&mut packet, flow);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&packet[26..34]);
    key[8..12].copy_from_slice(&packet[34..38]);
    key[12] = 17;
    key
}
