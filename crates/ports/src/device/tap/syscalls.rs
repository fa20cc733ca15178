//! System calls of TAP interfaces (`drivers/net/tun.c`).
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::io::Errno;

/// Opens a queue of no interface yet; reads and writes do not wait.
pub(super) fn open_queue() -> Result<OwnedFd, Errno> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    file.map(OwnedFd::from).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// A TAP interface that a queue is attached to.
pub(super) struct Attached {
    /// Its name.
    pub(super) name: String,
    /// Size in bytes of the header before each packet; 0 if there is none.
    pub(super) header: usize,
}

/// Attaches a queue to the TAP interface of this name, which is created if it does not exist: a `%d` in the name is replaced by a
/// number. An interface whose other queues have a header before each packet has it in this queue too.
pub(super) fn attach(queue: &OwnedFd, name: &str, multi_queue: bool) -> Result<Attached, Errno> {
    // SAFETY: an `ifreq` of zeros is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The name ends with a zero.
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(Errno::INVAL);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        // Signed on some machines.
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let queues = if multi_queue { libc::IFF_MULTI_QUEUE } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | queues) as i16;
    control(queue, libc::TUNSETIFF, &mut request)?;
    control(queue, libc::TUNGETIFF, &mut request)?;
    // SAFETY: the kernel has written the flags.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let mut header: libc::c_int = 0;
    if flags & libc::IFF_VNET_HDR != 0 {
        control(queue, libc::TUNGETVNETHDRSZ, &mut header)?;
    }
    let bytes = request.ifr_name.iter().take_while(|&&byte| byte != 0).flat_map(|byte| byte.to_ne_bytes());
    let name = String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned();
    Ok(Attached { name, header: usize::try_from(header).unwrap_or(0) })
}

/// One of the `ioctl` requests above, whose argument is of the type that the request reads and writes.
fn control<T>(queue: &OwnedFd, request: libc::c_ulong, argument: &mut T) -> Result<(), Errno> {
    // SAFETY: the argument is that of this call, lives until it returns, and is of the type of the request.
    let result = unsafe { libc::ioctl(queue.as_raw_fd(), request, std::ptr::from_mut(argument)) };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}
