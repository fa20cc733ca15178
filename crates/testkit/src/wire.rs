//! Interfaces of this network namespace, accessed by packet sockets.
#![allow(unsafe_code)]

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use crate::classic::packet_socket::{packet_socket, receive};

/// An interface: sent packets go out, incoming packets can be received.
pub struct Wire {
    socket: OwnedFd,
}

impl Wire {
    /// Opens the interface of this number.
    ///
    /// # Errors
    /// There is no such interface, or the process has no permission.
    pub fn open(ifindex: u32) -> Result<Self> {
        Ok(Self { socket: packet_socket(ifindex.cast_signed())? })
    }

    /// Sends a packet, with its Ethernet header.
    ///
    /// # Errors
    /// The interface is down, or the packet too short or too long.
    pub fn send(&self, packet: &[u8]) -> Result<()> {
        // SAFETY: the packet lives for the call and has this length.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0) };
        if sent < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives the next packet.
    #[must_use]
    pub fn receive(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 65_536];
        let len = receive(&self.socket, &mut buffer, libc::MSG_DONTWAIT).ok()?;
        buffer.truncate(len);
        Some(buffer)
    }
}
