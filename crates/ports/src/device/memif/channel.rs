//! The socket that control messages go through, with the descriptors that come with them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::message::{LEN, Message};

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The peer closed it.
    Closed,
    /// The peer says why.
    ByPeer(String),
    /// The peer breaks the protocol, in these words.
    Broken(&'static str),
    /// A system call failed.
    System(Errno),
}

impl From<Errno> for End {
    fn from(errno: Errno) -> Self {
        Self::System(errno)
    }
}

/// A connected socket of type `SOCK_SEQPACKET`; it never waits.
pub(super) struct Channel(pub(super) OwnedFd);

impl Channel {
    /// Sends a message, and a descriptor with it.
    pub(super) fn send(&self, message: &Message, fd: Option<BorrowedFd<'_>>) -> Result<(), End> {
        let bytes = message.to_bytes();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        let fds = fd.map(|fd| [fd]);
        if let Some(fds) = &fds {
            with.push(SendAncillaryMessage::ScmRights(fds));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut with, flags) {
            Ok(_) => Ok(()),
            Err(Errno::PIPE | Errno::CONNRESET) => Err(End::Closed),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The next message, and the descriptor that came with it; `None` if none has arrived.
    pub(super) fn receive(&self) -> Result<Option<(Message, Option<OwnedFd>)>, End> {
        let mut bytes = [0; LEN];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut with, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(End::Closed),
            Err(errno) => return Err(errno.into()),
        };
        // More descriptors than one do not fit, and are closed by the kernel.
        let fd = with.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        match received.bytes {
            0 => Err(End::Closed),
            LEN if !received.flags.contains(ReturnFlags::TRUNC) => {
                let message = Message::parse(&bytes).ok_or(End::Broken("unknown message type"))?;
                Ok(Some((message, fd)))
            }
            _ => Err(End::Broken("invalid message size")),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
