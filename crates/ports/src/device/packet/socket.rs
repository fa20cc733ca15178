//! System calls of packet sockets (`net/packet/af_packet.c`).
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::IoSlice;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg, sockopt};

/// All protocols, in network byte order.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

pub(super) struct Socket(OwnedFd);

impl Socket {
    /// A socket that receives nothing yet.
    pub(super) fn new() -> Result<Self, Errno> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a call without pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        check(fd)?;
        // SAFETY: a new descriptor that nothing else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets what must be set before the ring exists.
    pub(super) fn configure(&self) -> Result<(), Errno> {
        self.set(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        self.set(libc::PACKET_IGNORE_OUTGOING, &1)?;
        self.set(libc::PACKET_QDISC_BYPASS, &1)
    }

    /// Creates the ring of received packets.
    pub(super) fn create_ring(&self, request: &libc::tpacket_req3) -> Result<(), Errno> {
        self.set(libc::PACKET_RX_RING, request)
    }

    /// Receives all packets of an interface.
    pub(super) fn bind(&self, ifindex: u32) -> Result<(), Errno> {
        // SAFETY: an address of zeros is valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL;
        address.sll_ifindex = ifindex.cast_signed();
        let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives for the call and has this length.
        check(unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) })
    }

    /// Receives no more packets, by a filter that takes none; they can be sent still. A socket of a group cannot be bound to nothing.
    pub(super) fn refuse(&self) -> Result<(), Errno> {
        let mut none = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut none };
        self.set_of(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Shares the interface's packets with the other sockets of a group, by flow.
    pub(super) fn join(&self, group: u16) -> Result<(), Errno> {
        let kind = libc::PACKET_FANOUT_HASH | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        self.set(libc::PACKET_FANOUT, &(u32::from(group) | kind << 16))
    }

    /// Sends packets, without waiting for room; returns how many, from the first on. An error is that of the first one.
    ///
    /// A ring (`PACKET_TX_RING`) is not used: in a trial with bursts of 64 on veth it took longer.
    pub(super) fn send(&self, packets: &[[IoSlice<'_>; 1]]) -> Result<usize, Errno> {
        let mut none: Vec<_> = packets.iter().map(|_| SendAncillaryBuffer::default()).collect();
        let message = |(packet, none)| MMsgHdr::new(packet, none);
        let mut messages: Vec<_> =
            packets.iter().map(|packet| &packet[..]).zip(&mut none).map(message).collect();
        sendmmsg(&self.0, &mut messages, SendFlags::DONTWAIT)
    }

    /// The error that occurred since the last call.
    pub(super) fn take_error(&self) -> Result<(), Errno> {
        sockopt::socket_error(&self.0)?
    }

    /// Number of packets that were dropped since the last call because the ring was full.
    pub(super) fn take_drops(&self) -> u64 {
        let mut stats = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut len = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to `stats`, all of whose bit patterns are valid.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        };
        if result < 0 { 0 } else { stats.tp_drops.into() }
    }

    fn set<T>(&self, option: c_int, value: &T) -> Result<(), Errno> {
        self.set_of(libc::SOL_PACKET, option, value)
    }

    fn set_of<T>(&self, level: c_int, option: c_int, value: &T) -> Result<(), Errno> {
        let len = size_of::<T>() as libc::socklen_t;
        // SAFETY: the kernel reads `len` bytes of the value, and the instructions that a filter names, which live for the call.
        check(unsafe {
            libc::setsockopt(self.0.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), len)
        })
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn check(result: c_int) -> Result<(), Errno> {
    if result >= 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}
