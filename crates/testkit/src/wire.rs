//! Interfaces of this network namespace, accessed by packet sockets.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
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

/// A queue of a TAP interface of several queues, which is made, whose packets have a header before them (`IFF_VNET_HDR`), with checksums that
/// the receiver completes (`TUN_F_CSUM`).
///
/// # Errors
/// The process has no permission.
pub fn tap_with_headers(name: &str) -> Result<OwnedFd> {
    let queue = OwnedFd::from(OpenOptions::new().read(true).write(true).open("/dev/net/tun")?);
    // SAFETY: an `ifreq` of zeros is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request
        .ifr_name
        .iter_mut()
        .zip(name.bytes())
        .for_each(|(to, from)| *to = libc::c_char::from_ne_bytes([from]));
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE | libc::IFF_VNET_HDR;
    request.ifr_ifru.ifru_flags = flags as i16;
    // SAFETY: the request lives for the call; the other one has a number for an argument.
    let results = unsafe {
        [
            libc::ioctl(queue.as_raw_fd(), libc::TUNSETIFF, &raw mut request),
            libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(libc::TUN_F_CSUM)),
        ]
    };
    if results.contains(&-1) { Err(std::io::Error::last_os_error()) } else { Ok(queue) }
}
