//! Adapter for ports that handle single packets.

use paceline_frame::{Burst, FrameRef};

use crate::port::{Group, Port, PortError, SendError};

/// A port that receives and sends one packet at a time.
pub trait PacketPort: Send {
    /// Adds the next packet, if one has arrived, to a burst that is not full; returns whether it did.
    ///
    /// # Errors
    /// [`PortError`].
    fn receive_packet(&mut self, burst: &mut Burst) -> Result<bool, PortError>;

    /// Sends a packet; returns false if there is no room for it.
    ///
    /// # Errors
    /// [`PortError`].
    fn send_packet(&mut self, packet: FrameRef<'_>) -> Result<bool, PortError>;
}

/// Gathers the packets of a port into bursts, so that workers handle bursts only.
#[derive(Clone, Debug)]
pub struct Gathered<P>(pub P);

impl<P: PacketPort> Port for Gathered<P> {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while !burst.is_full() && self.0.receive_packet(burst)? {}
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        let mut sent = 0;
        for packet in group.iter() {
            let is_sent = self.0.send_packet(packet).map_err(|error| SendError { sent, error })?;
            if !is_sent {
                break;
            }
            sent += 1;
        }
        Ok(sent)
    }
}
