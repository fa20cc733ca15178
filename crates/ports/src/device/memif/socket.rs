//! Sockets by path, or by abstract name (`@NAME`).

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen, socket_with,
};

/// Clients that wait for being accepted.
const BACKLOG: i32 = 4;

/// The address of a name.
pub(super) fn address(name: &str) -> Result<SocketAddrUnix, Errno> {
    match name.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(name),
    }
}

/// A socket that never waits.
fn open() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// Connects to a server.
pub(super) fn connect_to(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let socket = open()?;
    connect(&socket, address)?;
    Ok(socket)
}

/// A socket that clients connect to; its file ends with the value.
pub(super) struct Listener {
    socket: OwnedFd,
    /// The file, and what identifies it.
    file: Option<(PathBuf, (u64, u64))>,
}

impl Listener {
    /// Makes the socket. A file that is left of a server which has ended is replaced.
    pub(super) fn bind(name: &str) -> Result<Self, Errno> {
        let address = address(name)?;
        let socket = open()?;
        let mut bound = bind(&socket, &address);
        if bound == Err(Errno::ADDRINUSE) && is_left_behind(name, &address) {
            fs::remove_file(name).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            bound = bind(&socket, &address);
        }
        bound?;
        listen(&socket, BACKLOG)?;
        let path = (!name.starts_with('@')).then(|| PathBuf::from(name));
        let file = path.and_then(|path| identity(&path).map(|identity| (path, identity)));
        Ok(Self { socket, file })
    }

    /// A client that has connected; `None` if there is none.
    pub(super) fn accept(&self) -> Option<OwnedFd> {
        accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()
    }
}

/// Whether a file is a socket that no process listens to.
fn is_left_behind(name: &str, address: &SocketAddrUnix) -> bool {
    let is_socket = fs::symlink_metadata(name).is_ok_and(|found| found.file_type().is_socket());
    is_socket && connect_to(address).err() == Some(Errno::CONNREFUSED)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((path, own)) = &self.file
            && identity(path) == Some(*own)
        {
            let _ = fs::remove_file(path);
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
