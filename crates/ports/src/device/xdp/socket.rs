//! An AF_XDP socket and its rings (`Documentation/networking/af_xdp.rst`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, SocketAddrXdpWithSharedUmem, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpOptionsFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with, sockopt,
};

use super::device::XdpDevice;
use super::ring::{Consumer, Producer};
use super::umem::Umem;
use crate::device::error::{OpenError, Step};
use crate::device::socket_options;

/// Entries of each ring.
pub(super) const ENTRIES: u32 = 1024;

/// Times that a queue in use is tried again, and the pause between two tries: a second, as grace periods of a busy machine are long.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

pub(super) struct Rings {
    pub(super) fill: Producer<u64>,
    pub(super) completion: Consumer<u64>,
    pub(super) rx: Consumer<XdpDesc>,
    pub(super) tx: Producer<XdpDesc>,
}

/// A bound socket. Fields are dropped in order: the mapped rings keep the socket open.
pub(super) struct Socket {
    pub(super) rings: Rings,
    fd: Bound,
    /// Whether the device places packets in the frames itself.
    pub(super) zero_copy: bool,
}

/// Descriptor of a socket that is bound to a UMEM.
struct Bound {
    fd: Arc<OwnedFd>,
    umem: Arc<Umem>,
}

impl Drop for Bound {
    fn drop(&mut self) {
        self.umem.forget(&self.fd);
    }
}

impl Socket {
    pub(super) fn open(device: &XdpDevice, queue: u32) -> Result<Self, OpenError> {
        let name = device.interface.name();
        let failed = |step: Step| move |errno| step.failed(name, errno);
        let fd = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None);
        let fd = Arc::new(fd.map_err(failed(Step::CreateSocket))?);
        socket_options::busy_poll(fd.as_fd(), device.options.busy_poll_us)
            .map_err(failed(Step::SetOption))?;
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        flags.set(SocketAddrXdpFlags::XDP_USE_SG, device.options.multi_buffer);
        flags.set(SocketAddrXdpFlags::XDP_ZEROCOPY, device.options.zero_copy == Some(true));
        flags.set(SocketAddrXdpFlags::XDP_COPY, device.options.zero_copy == Some(false));
        let rings = Rings::map(&fd).map_err(failed(Step::MapMemory))?;
        let bound = device.umem.bind(&fd, flags, |other| {
            let (index, shared) = (device.interface.index(), SocketAddrXdpFlags::XDP_SHARED_UMEM);
            retry(|| match other {
                None => bind(&*fd, &SocketAddrXdp::new(flags, index, queue)),
                Some(other) => bind(
                    &*fd,
                    &SocketAddrXdpWithSharedUmem {
                        addr: SocketAddrXdp::new(shared, index, queue),
                        shared_umem_fd: other.as_fd(),
                    },
                ),
            })
        });
        let bound = bound.ok_or_else(|| OpenError::Mixed { name: name.to_owned() })?;
        bound.map_err(|(step, errno)| match (step, errno) {
            (Step::Bind, Errno::OPNOTSUPP) => OpenError::NotSupported {
                step,
                name: name.to_owned(),
                mode: "the requested mode of AF_XDP (zero copy, several buffers)",
            },
            // The memory exceeds the limit of the user (`xdp_umem_account_pages` in `net/xdp/xdp_umem.c`).
            (Step::RegisterMemory, Errno::NOBUFS) => OpenError::LockedMemory { bytes: device.umem.len() },
            (step, errno) => step.failed(&format!("{name} queue {queue}"), errno),
        })?;
        let used = sockopt::xdp_options(&*fd).map_err(failed(Step::SetOption))?;
        device.redirect(queue, fd.as_fd()).map_err(failed(Step::UpdateMap))?;
        let fd = Bound { fd, umem: Arc::clone(&device.umem) };
        Ok(Self { rings, fd, zero_copy: used.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY) })
    }

    /// Makes the kernel look at the transmit ring.
    pub(super) fn wake_transmit(&self) -> Result<(), Errno> {
        send(&*self.fd.fd, &[], SendFlags::DONTWAIT).map(drop)
    }

    /// Makes the kernel look at the fill ring, and poll the device's queue if the socket is configured so.
    pub(super) fn wake_receive(&self) -> Result<(), Errno> {
        recv(&*self.fd.fd, &mut [0; 0], RecvFlags::DONTWAIT).map(drop)
    }

    /// The error that occurred since the last call.
    pub(super) fn take_error(&self) -> Result<(), Errno> {
        sockopt::socket_error(&*self.fd.fd)?
    }

    /// Number of packets that were dropped since the socket was bound.
    pub(super) fn dropped(&self) -> u64 {
        let stats = sockopt::xdp_statistics(&*self.fd.fd).ok();
        stats.map_or(0, |stats| stats.rx_dropped + stats.rx_ring_full.unwrap_or(0))
    }
}

/// Binds again as long as the queue is in use: the kernel releases the queue of a closed socket from a work queue (`xp_put_pool` in
/// `net/xdp/xsk_buff_pool.c`).
fn retry(bind: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    let mut result = bind();
    for _ in 0..TRIES {
        if result != Err(Errno::BUSY) {
            break;
        }
        thread::sleep(PAUSE);
        result = bind();
    }
    result
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.fd.as_fd()
    }
}

impl Rings {
    fn map(fd: &OwnedFd) -> Result<Self, Errno> {
        sockopt::set_xdp_umem_fill_ring_size(fd, ENTRIES)?;
        sockopt::set_xdp_umem_completion_ring_size(fd, ENTRIES)?;
        sockopt::set_xdp_rx_ring_size(fd, ENTRIES)?;
        sockopt::set_xdp_tx_ring_size(fd, ENTRIES)?;
        let offsets = sockopt::xdp_mmap_offsets(fd)?;
        let fd = fd.as_fd();
        Ok(Self {
            fill: Producer::map(fd, XDP_UMEM_PGOFF_FILL_RING, offsets.fr, ENTRIES)?,
            completion: Consumer::map(fd, XDP_UMEM_PGOFF_COMPLETION_RING, offsets.cr, ENTRIES)?,
            rx: Consumer::map(fd, XDP_PGOFF_RX_RING, offsets.rx, ENTRIES)?,
            tx: Producer::map(fd, XDP_PGOFF_TX_RING, offsets.tx, ENTRIES)?,
        })
    }
}
