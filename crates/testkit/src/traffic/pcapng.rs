//! The same packets in the pcapng format.

use super::packets::packets;

/// An option of a block.
fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [code, value.len() as u16].map(u16::to_be_bytes).concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes()[..], &len, body, &len].concat()
}

fn interface(name: &[u8], resolution: u8, offset: i64) -> Vec<u8> {
    let options =
        [option(2, name), option(9, &[resolution]), option(14, &offset.to_be_bytes()), option(0, &[])]
            .concat();
    block(1, &[&[0, 1, 0, 0, 0, 4, 0, 0][..], &options].concat())
}

/// Interfaces of the capture: name, units per second as a power of 10 and as a number, offset of time stamps in seconds.
const INTERFACES: [(&[u8], u8, u64, i64); 3] =
    [(b"eth0", 6, 1_000_000, 0), (b"eth1", 9, 1_000_000_000, 0), (b"eth2", 7, 10_000_000, 1_699_999_000)];

/// The capture in the pcapng format: big-endian, three interfaces with stamps of different resolution and offset,
/// comments, and blocks that hold no packet. The packets and their stamps are those of [`pcap`](super::pcap).
#[must_use]
pub fn pcapng() -> Vec<u8> {
    let section = [0x1a2b_3c4du32, 0x0001_0000, u32::MAX, u32::MAX].map(u32::to_be_bytes).concat();
    let maker = [option(4, b"paceline-traffic"), option(0, &[])].concat();
    let mut capture = block(0x0a0d_0d0a, &[section, maker].concat());
    for (name, resolution, _, offset) in INTERFACES {
        capture.extend(interface(name, resolution, offset));
    }
    // Name resolution: one record, and the end of records.
    let name = [&[0, 1, 0, 20][..], &[192, 0, 2, 10], b"www.example.com\0", &[0; 4]].concat();
    capture.extend(block(4, &name));
    let all = packets();
    for (number, packet) in all.iter().enumerate() {
        let id = number % INTERFACES.len();
        let (_, _, units, offset) = INTERFACES[id];
        let since = packet.stamp - offset as u64 * 1_000_000;
        let stamp = since * (units / 1_000_000);
        let fields =
            [id as u32, (stamp >> 32) as u32, stamp as u32, packet.bytes.len() as u32, packet.original];
        let mut body = fields.map(u32::to_be_bytes).concat();
        body.extend(&packet.bytes);
        body.resize(body.len().next_multiple_of(4), 0);
        if number % 50 == 0 {
            let comment = format!("packet {}", number + 1);
            body.extend(
                [option(1, comment.as_bytes()), option(2, &1u32.to_be_bytes()), option(0, &[])].concat(),
            );
        }
        capture.extend(block(6, &body));
    }
    // Interface statistics: time, and number of received packets.
    let end = all.last().map_or(0, |packet| packet.stamp);
    let received = option(4, &(all.len() as u64).to_be_bytes());
    let head = [0, (end >> 32) as u32, end as u32].map(u32::to_be_bytes).concat();
    capture.extend(block(5, &[head, received, option(0, &[])].concat()));
    capture
}
