//! Options of sockets (`net/core/sock.c`).
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Packets that one system call processes while it polls.
const BUDGET: c_int = 64;

/// Lets system calls poll the device's queue for some microseconds; 0 changes nothing.
pub(crate) fn busy_poll(socket: BorrowedFd<'_>, microseconds: u32) -> Result<(), Errno> {
    if microseconds == 0 {
        return Ok(());
    }
    let microseconds = c_int::try_from(microseconds).map_err(|_| Errno::INVAL)?;
    set(socket, libc::SO_PREFER_BUSY_POLL, 1)?;
    set(socket, libc::SO_BUSY_POLL, microseconds)?;
    set(socket, libc::SO_BUSY_POLL_BUDGET, BUDGET)
}

fn set(socket: BorrowedFd<'_>, option: c_int, value: c_int) -> Result<(), Errno> {
    let len = size_of::<c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads `len` bytes of the value.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, (&raw const value).cast(), len)
    };
    if result < 0 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(())
}
