//! Consecutive packets.

/// One captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Microseconds since the epoch.
    pub stamp: u64,
    /// Captured bytes.
    pub bytes: Vec<u8>,
    /// Length on the wire, more than `bytes` if the capture truncated it.
    pub original: u32,
}

/// When the capture starts, in microseconds since the epoch: 14 November 2023, 22:13:20 UTC.
pub(super) const START: u64 = 1_700_000_000_000_000;

/// Consecutive packets, with time passing between them.
pub(super) struct Trace {
    pub(super) packets: Vec<Packet>,
    pub(super) clock: u64,
    pub(super) seed: u64,
}

impl Trace {
    pub(super) fn new() -> Self {
        Self { packets: Vec::new(), clock: START, seed: 2 }
    }

    /// A pseudo-random number (Knuth's linear congruential generator). A crate's generator could change with its version,
    /// and the capture with it.
    pub(super) fn number(&mut self) -> u32 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 32) as u32
    }

    /// A packet without padding, however short.
    pub(super) fn put(&mut self, bytes: Vec<u8>) {
        let original = bytes.len();
        self.put_cut(bytes, original);
    }

    /// A packet with the padding to 60 bytes that a network card adds.
    pub(super) fn put_padded(&mut self, mut bytes: Vec<u8>) {
        bytes.resize(bytes.len().max(60), 0);
        self.put(bytes);
    }

    /// A packet of which the capture has only the first `kept` bytes.
    pub(super) fn put_truncated(&mut self, mut bytes: Vec<u8>, kept: usize) {
        let original = bytes.len();
        bytes.truncate(kept);
        self.put_cut(bytes, original);
    }

    pub(super) fn put_cut(&mut self, bytes: Vec<u8>, original: usize) {
        self.packets.push(Packet { stamp: self.clock, bytes, original: original as u32 });
        self.clock += 3 + u64::from(self.number() % 2_500);
    }
}
