//! Handmade captures, so that reader and writer are tested independently of each other.

#![allow(dead_code, unreachable_pub)]

use paceline_capture::{CaptureReader, CaptureWriter, ReadError};
use paceline_frame::{Burst, FrameMeta};

/// Byte order of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

pub const ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn i64(self, value: i64) -> [u8; 8] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// Builder of captures, field by field.
pub struct Bytes {
    pub order: Order,
    pub bytes: Vec<u8>,
}

impl Bytes {
    pub fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub fn u16(self, value: u16) -> Self {
        let bytes = self.order.u16(value);
        self.raw(&bytes)
    }

    pub fn u32(self, value: u32) -> Self {
        let bytes = self.order.u32(value);
        self.raw(&bytes)
    }

    pub fn pad(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// File header of a pcap.
    pub fn pcap(self, magic: u32, snaplen: u32, network: u32) -> Self {
        self.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(snaplen).u32(network)
    }

    pub fn record(self, seconds: u32, fraction: u32, packet: &[u8], original: u32) -> Self {
        self.u32(seconds).u32(fraction).u32(packet.len() as u32).u32(original).raw(packet)
    }

    pub fn block(self, kind: u32, body: &[u8]) -> Self {
        assert_eq!(body.len() % 4, 0);
        let len = body.len() as u32 + 12;
        self.u32(kind).u32(len).raw(body).u32(len)
    }

    pub fn section(self, options: &[u8]) -> Self {
        let body = Bytes::new(self.order).u32(0x1a2b_3c4d).u16(1).u16(0).raw(&[0xff; 8]).raw(options);
        self.block(0x0a0d_0d0a, &body.bytes)
    }

    pub fn interface(self, link_type: u16, snaplen: u32, options: &[u8]) -> Self {
        let body = Bytes::new(self.order).u16(link_type).u16(0).u32(snaplen).raw(options);
        self.block(1, &body.bytes)
    }

    pub fn option(self, code: u16, value: &[u8]) -> Self {
        self.u16(code).u16(value.len() as u16).raw(value).pad()
    }

    pub fn enhanced(self, interface: u32, stamp: u64, packet: &[u8], original: u32, options: &[u8]) -> Self {
        let body = Bytes::new(self.order)
            .u32(interface)
            .u32((stamp >> 32) as u32)
            .u32(stamp as u32)
            .u32(packet.len() as u32)
            .u32(original)
            .raw(packet)
            .pad()
            .raw(options);
        self.block(6, &body.bytes)
    }

    /// The obsolete Packet Block.
    pub fn packet_block(self, interface: u16, drops: u16, stamp: u64, packet: &[u8], original: u32) -> Self {
        let body = Bytes::new(self.order)
            .u16(interface)
            .u16(drops)
            .u32((stamp >> 32) as u32)
            .u32(stamp as u32)
            .u32(packet.len() as u32)
            .u32(original)
            .raw(packet)
            .pad();
        self.block(2, &body.bytes)
    }

    pub fn simple(self, original: u32, packet: &[u8]) -> Self {
        let body = Bytes::new(self.order).u32(original).raw(packet).pad();
        self.block(3, &body.bytes)
    }
}

/// A packet of `len` varying bytes.
pub fn packet(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + len) as u8).collect()
}

/// All readable packets, and the error at the end.
pub fn read(capture: &[u8]) -> (Vec<(FrameMeta, Vec<u8>)>, Option<ReadError>) {
    let mut packets = Vec::new();
    let mut reader = match CaptureReader::new(capture) {
        Ok(reader) => reader,
        Err(error) => return (packets, Some(error)),
    };
    let mut burst = Burst::default();
    loop {
        match reader.fill(&mut burst) {
            Ok(0) => return (packets, None),
            Ok(count) => {
                assert_eq!(count, burst.len());
                packets.extend(burst.iter().map(|frame| (*frame.meta(), frame.packet().to_vec())));
            }
            Err(error) => {
                assert!(burst.is_empty(), "an error comes alone");
                assert!(matches!(reader.fill(&mut burst), Ok(0)), "after an error comes the end");
                return (packets, Some(error));
            }
        }
    }
}

/// The message of the error at the end of a capture.
pub fn error(capture: &[u8]) -> String {
    read(capture).1.expect("this capture is bad").to_string()
}

/// Copies the packets whose number, from 0, is selected, as a run does; stops at an error.
pub fn copy(capture: &[u8], burst_len: usize, mut select: impl FnMut(usize) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    let Ok(mut reader) = CaptureReader::new(capture) else { return out };
    let mut writer = CaptureWriter::new(&mut out, reader.header()).expect("a vector takes everything");
    let mut burst = Burst::new(burst_len);
    let mut number = 0;
    while let Ok(1..) = reader.fill(&mut burst) {
        writer
            .write(&burst, reader.records(), |_| {
                number += 1;
                select(number - 1)
            })
            .expect("a vector takes everything");
    }
    writer.finish(reader.records()).expect("a vector takes everything");
    out
}

/// Copies a capture with every packet's tail moved by `delta`.
pub fn resized(capture: &[u8], delta: i32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reader = CaptureReader::new(capture).unwrap();
    let mut writer = CaptureWriter::new(&mut out, reader.header()).unwrap();
    let mut burst = Burst::default();
    while reader.fill(&mut burst).unwrap() > 0 {
        let mut changed = Burst::default();
        for frame in burst.iter() {
            let mut bytes = frame.packet().to_vec();
            bytes.resize(bytes.len().checked_add_signed(delta as isize).unwrap(), 0);
            changed.push(&bytes, *frame.meta()).unwrap();
        }
        writer.write(&changed, reader.records(), |_| true).unwrap();
    }
    writer.finish(reader.records()).unwrap();
    out
}
