//! Packet sockets: copies of what an interface receives, beside the host's network stack.

mod ring;
mod socket;

use std::fmt;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::{Duration, Instant};

use crate::port::{Group, Port, PortError, SendError};
use paceline_frame::{Burst, FrameMeta};
use rustix::io::Errno;

use crate::device::error::{OpenError, Step};
use crate::device::interface::Interface;
use ring::{ReceiveRing, Received};
use socket::Socket;

/// Length of both MAC addresses, which a VLAN tag follows.
const ADDRESSES: usize = 12;

/// Calls of `receive` without a packet between two looks whether the interface is there, each of which is a system call.
const CHECK_EVERY: u32 = 64;
/// Time within which the kernel hands over a block that is not full, which is a few ticks of its clock.
const HAND_OVER: Duration = Duration::from_millis(100);
/// Time between two looks at such a block.
const LOOK: Duration = Duration::from_millis(1);

/// A packet socket (`AF_PACKET`) as a port. The host's network stack receives each packet too.
///
/// Packets arrive in a ring that is shared with the kernel (`TPACKET_V3`), and are copied into the burst; a VLAN tag that the device
/// removed is inserted again. Packets are sent beside the interface's queueing discipline.
pub struct SocketPort {
    ring: ReceiveRing,
    socket: Socket,
    interface: Interface,
    dropped: u64,
    /// Calls of `receive` without a packet.
    idle: u32,
    /// A packet whose VLAN tag is inserted.
    tagged: Vec<u8>,
    /// When the port was stopped.
    stopped: Option<Instant>,
}

impl SocketPort {
    /// Opens a socket on an interface. Several sockets of one `group` share the interface's packets by flow.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(name: &str, group: Option<u16>) -> Result<Self, OpenError> {
        let interface = Interface::by_name(name)?;
        let failed = |step: Step| move |errno: Errno| step.failed(name, errno);
        let socket = Socket::new().map_err(failed(Step::CreateSocket))?;
        socket.configure().map_err(failed(Step::SetOption))?;
        let ring = ReceiveRing::map(&socket).map_err(failed(Step::MapMemory))?;
        socket.bind(interface.index()).map_err(failed(Step::Bind))?;
        if let Some(group) = group {
            socket.join(group).map_err(failed(Step::SetOption))?;
        }
        Ok(Self { ring, socket, interface, dropped: 0, idle: 0, tagged: Vec::new(), stopped: None })
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Receives what the kernel has handed over.
    fn take(&mut self, burst: &mut Burst) -> Result<(), PortError> {
        while !burst.is_full() {
            let Some(Received { packet, wire_len, timestamp_ns, vlan }) = self.ring.next()? else { break };
            let packet = match vlan {
                Some(vlan) => insert_tag(&mut self.tagged, packet, vlan),
                None => packet,
            };
            let original_len = wire_len.max(packet.len() as u32);
            if burst.push(packet, FrameMeta { timestamp_ns, original_len, interface: 0 }).is_err() {
                self.dropped += 1;
            }
        }
        Ok(())
    }

    /// Reports that the interface has gone, or is down.
    fn check(&self) -> Result<(), PortError> {
        match self.socket.take_error() {
            Ok(()) => Ok(()),
            // An interface that is down may come up again.
            Err(Errno::NETDOWN) if Interface::exists(self.interface.index()) => Ok(()),
            Err(_) => Err(PortError::Gone { name: self.interface.name().to_owned() }),
        }
    }
}

/// Inserts the VLAN tag of a packet into a copy.
fn insert_tag<'a>(tagged: &'a mut Vec<u8>, packet: &[u8], (protocol, tag): (u16, u16)) -> &'a [u8] {
    let (addresses, rest) = packet.split_at(ADDRESSES.min(packet.len()));
    tagged.clear();
    for part in [addresses, &protocol.to_be_bytes(), &tag.to_be_bytes(), rest] {
        tagged.extend_from_slice(part);
    }
    tagged
}

impl Port for SocketPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        self.take(burst)?;
        // The last packets are in a block that the kernel has not handed over yet.
        while burst.len() == before
            && self.stopped.is_some_and(|stopped| stopped.elapsed() < HAND_OVER)
            && self.ring.has_packets()
        {
            thread::sleep(LOOK);
            self.take(burst)?;
        }
        if burst.len() == before {
            self.idle = self.idle.wrapping_add(1);
            if self.idle.is_multiple_of(CHECK_EVERY) {
                self.check()?;
            }
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        let frames: Vec<_> = group.iter().collect();
        let packets: Vec<_> = frames.iter().map(|frame| [IoSlice::new(frame.packet())]).collect();
        let (mut rest, mut sent) = (&packets[..], 0);
        while !rest.is_empty() {
            match self.socket.send(rest) {
                Ok(first) => {
                    sent += first;
                    rest = rest.get(first.max(1)..).unwrap_or_default();
                }
                // No room: the others have none either.
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                Err(Errno::NXIO | Errno::NODEV | Errno::NETDOWN) => {
                    self.check().map_err(|error| SendError { sent, error })?;
                    break;
                }
                // The first one is longer than the MTU, or shorter than its header.
                Err(_) => rest = &rest[1..],
            }
        }
        Ok(sent)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn stop(&mut self) {
        // It fails for want of memory only; then packets arrive until the port ends.
        let _ = self.socket.refuse();
        self.stopped.get_or_insert_with(Instant::now);
    }

    fn dropped(&mut self) -> u64 {
        self.dropped += self.socket.take_drops();
        self.dropped
    }
}

impl fmt::Debug for SocketPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketPort").field("interface", &self.interface).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_follows_the_addresses() {
        let mut tagged = Vec::new();
        let packet: Vec<u8> = (0..16).collect();
        let expected = [&packet[..12], &[0x81, 0, 0x20, 5], &packet[12..]].concat();
        assert_eq!(insert_tag(&mut tagged, &packet, (0x8100, 0x2005)), expected);
        assert_eq!(insert_tag(&mut tagged, &[1], (0x8100, 1)), [1, 0x81, 0, 0, 1]);
    }
}
