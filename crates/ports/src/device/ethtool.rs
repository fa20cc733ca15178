//! Properties of devices, by `ioctl` (`SIOCETHTOOL` of `linux/ethtool.h`, `SIOCGIFMTU`).
#![allow(unsafe_code)]

use std::mem;
use std::os::fd::AsRawFd;

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// `ETHTOOL_GCHANNELS`
const GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels`
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// Number of receive queues of an interface; 1 if its driver does not tell.
pub(crate) fn receive_queues(name: &str) -> u32 {
    let mut channels = Channels { cmd: GET_CHANNELS, ..Channels::default() };
    let Some((socket, mut request)) = request(name) else { return 1 };
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: the kernel writes at most the structure of the command, and both structures live for the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 { 1 } else { (channels.rx + channels.combined).max(1) }
}

/// The MTU of an interface; `None` if it is gone.
pub(crate) fn mtu(name: &str) -> Option<u32> {
    let (socket, mut request) = request(name)?;
    // SAFETY: the kernel reads the name and writes the MTU, and the structure lives for the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    // SAFETY: the kernel has written the MTU.
    (result >= 0).then(|| unsafe { request.ifr_ifru.ifru_mtu }.cast_unsigned())
}

/// A socket and a request about an interface, without its argument.
fn request(name: &str) -> Option<(OwnedFd, libc::ifreq)> {
    // SAFETY: an `ifreq` of zeros is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        // Signed on some machines.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    Some((socket, request))
}
