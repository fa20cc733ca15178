//! Packets that are made beforehand and received again and again.

use std::sync::Arc;

use paceline_frame::{Burst, FrameMeta};

use crate::port::{Group, Port, PortError, SendError};

/// A source of packets in memory, which are repeated, and a sink for all packets sent to it.
#[derive(Clone, Debug)]
pub struct Generator {
    packets: Arc<[Vec<u8>]>,
    given: u64,
    dropped: u64,
    most: u64,
}

impl Generator {
    /// Repeats these packets in order, `count` in total, or forever for `None`.
    #[must_use]
    pub fn new(packets: Vec<Vec<u8>>, count: Option<u64>) -> Self {
        let most = if packets.is_empty() { 0 } else { count.unwrap_or(u64::MAX) };
        Self { packets: packets.into(), given: 0, dropped: 0, most }
    }
}

impl Port for Generator {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while self.given < self.most && !burst.is_full() {
            let packet = &self.packets[(self.given % self.packets.len() as u64) as usize];
            let meta = FrameMeta { original_len: packet.len() as u32, ..FrameMeta::default() };
            self.dropped += u64::from(burst.push(packet, meta).is_err());
            self.given += 1;
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        Ok(group.len())
    }

    fn is_done(&self) -> bool {
        self.given == self.most
    }

    fn stop(&mut self) {
        self.most = self.given;
    }

    /// Packets that are longer than a burst takes.
    fn dropped(&mut self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_repeated_up_to_their_number() {
        let mut generator = Generator::new(vec![vec![1], vec![2]], Some(67));
        let mut received = || -> Vec<u8> {
            let mut burst = Burst::default();
            generator.receive(&mut burst).unwrap();
            burst.iter().map(|frame| frame.packet()[0]).collect()
        };
        assert_eq!(received(), [1, 2].repeat(32));
        assert_eq!(received(), [1, 2, 1]);
        assert!(generator.is_done() && Generator::new(Vec::new(), None).is_done());
    }
}
