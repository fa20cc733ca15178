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

/// Attaches a queue to the TAP interface of this name, which is created if it does not exist, and returns the interface's name:
/// a `%d` in it is replaced by a number.
pub(super) fn attach(queue: &OwnedFd, name: &str, multi_queue: bool) -> Result<String, Errno> {
    // SAFETY: an `ifreq` of zeros is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The name ends with a zero.
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(Errno::INVAL);
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    let queues = if multi_queue { libc::IFF_MULTI_QUEUE } else { 0 };
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | queues) as i16;
    // SAFETY: the request is that of this call, and lives until it returns.
    let result = unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    let bytes = request.ifr_name.iter().take_while(|&&byte| byte != 0).map(|byte| byte.cast_unsigned());
    Ok(String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned())
}
