//! Blocks of a pcapng capture that arrives in parts.

/// Code of a block with a packet, and of one with statistics.
const PACKET: u32 = 6;
const STATISTICS: u32 = 5;
/// Place of `isb_ifdrop` in a block of statistics, after a fixed head and `isb_ifrecv`.
const DROPPED: usize = 20 + 12;
/// Code and length of that option.
const DROPPED_HEAD: [u8; 4] = [5, 0, 8, 0];
/// The shortest block in bytes.
const SHORTEST: usize = 12;

/// Bytes that have arrived, and counts of the blocks that were taken.
#[derive(Default)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    /// Records of packets.
    pub(super) records: u64,
    /// Packets that the live run could not deliver.
    pub(super) dropped: u64,
}

/// The bytes are no capture.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Blocks {
    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the blocks that are complete.
    pub(super) fn take(&mut self) -> Result<Vec<u8>, Malformed> {
        let mut end = 0;
        while let Some(head) = self.bytes[end..].first_chunk::<8>() {
            let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let (kind, len) = (word(0), word(4) as usize);
            if len < SHORTEST || !len.is_multiple_of(4) {
                return Err(Malformed);
            }
            let Some(block) = self.bytes.get(end..end + len) else { break };
            match kind {
                PACKET => self.records += 1,
                STATISTICS => self.dropped += dropped(block),
                _ => {}
            }
            end += len;
        }
        Ok(self.bytes.drain(..end).collect())
    }

    /// Whether a part of a block is left.
    pub(super) fn is_cut(&self) -> bool {
        !self.bytes.is_empty()
    }
}

fn dropped(block: &[u8]) -> u64 {
    let option = block.get(DROPPED..).and_then(|option| option.strip_prefix(&DROPPED_HEAD));
    option.and_then(|value| value.first_chunk()).map_or(0, |value| u64::from_le_bytes(*value))
}

#[cfg(test)]
mod tests {
    use paceline::capture::{AnnotatedWriter, LinkType, Notes};

    use super::*;

    #[test]
    fn blocks_are_taken_whole_in_parts_of_any_size() {
        let mut bytes = Vec::new();
        let mut writer = AnnotatedWriter::new(&mut bytes, "test").expect("memory");
        let interface = writer.add_interface("a", LinkType::ETHERNET).expect("memory");
        for len in 0..50 {
            writer.push(interface, 1, &vec![1; len], 60, &Notes::default()).expect("memory");
        }
        writer.finish(1, 77).expect("memory");
        for size in [1, 3, 100, 10_000] {
            let (mut blocks, mut taken) = (Blocks::default(), Vec::new());
            for part in bytes.chunks(size) {
                blocks.push(part);
                taken.extend(blocks.take().expect("a capture"));
            }
            assert!(taken == bytes && !blocks.is_cut());
            assert_eq!((blocks.records, blocks.dropped), (50, 77));
        }
        let mut blocks = Blocks::default();
        blocks.push(&[0; 8]);
        assert_eq!(blocks.take(), Err(Malformed));
    }
}
