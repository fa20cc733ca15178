//! A queue of an AF_XDP device as a port.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::port::{Group, Port, PortError, SendError};
use paceline_frame::{Burst, Chunk, DeviceMetadata, FrameMeta, FramePool, PoolCache, Span, Taken};
use rustix::io::Errno;
use rustix::net::xdp::{XdpDesc, XdpDescOptions};

use super::device::XdpDevice;
use super::metadata;
use super::socket::{ENTRIES, Socket};
use super::umem::CHUNK;
use crate::device::error::OpenError;
use crate::device::interface::Interface;
use crate::device::lent::Lent;

/// Buffers that a packet may consist of (`MAX_SKB_FRAGS` and the first one).
const MAX_PARTS: usize = 18;
/// Calls of `receive` without a packet between two looks whether the interface has gone.
const CHECK_EVERY: u32 = 64;

/// A queue of an AF_XDP device. Packets are received in frames of the device's [`Umem`](super::Umem), and frames of it are sent
/// without a copy.
pub struct XdpPort {
    // Closed before the lent chunks go back to the pool.
    socket: Socket,
    lent: Lent,
    /// Chunks that the fill ring may hold.
    filled: u32,
    fill_target: u32,
    /// Start of a packet of several buffers, whose end has not arrived.
    partial: Vec<u8>,
    /// Metadata of the device about the packet that is received.
    metadata: Option<DeviceMetadata>,
    copied: u64,
    dropped: u64,
    idle: u32,
    device: Arc<XdpDevice>,
}

impl XdpPort {
    /// Opens a queue. Up to 1,024 frames, at most a quarter of the memory, wait in the kernel for packets.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(device: &Arc<XdpDevice>, queue: u32) -> Result<Self, OpenError> {
        if queue >= device.queues() {
            let (name, queues) = (device.interface.name().to_owned(), device.queues());
            return Err(OpenError::NoQueue { name, queue, queues });
        }
        let pool = device.umem.pool();
        let mut port = Self {
            socket: Socket::open(device, queue)?,
            lent: Lent::new(PoolCache::new(pool)),
            filled: 0,
            fill_target: (pool.frames() / 4).clamp(1, ENTRIES),
            partial: Vec::new(),
            metadata: None,
            copied: 0,
            dropped: 0,
            idle: 0,
            device: Arc::clone(device),
        };
        port.refill();
        if port.filled == 0 {
            return Err(OpenError::NoFrames { free: pool.free(), wanted: port.fill_target as usize });
        }
        Ok(port)
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Arc<XdpDevice> {
        &self.device
    }

    /// Whether the device itself reads and writes the frames, rather than the kernel copying packets.
    #[must_use]
    pub fn is_zero_copy(&self) -> bool {
        self.socket.zero_copy
    }

    /// Gives free frames to the kernel for packets to come.
    fn refill(&mut self) {
        let fill = &mut self.socket.rings.fill;
        while self.filled < self.fill_target && fill.has_room(1) {
            let Some(chunk) = self.lent.alloc() else { break };
            let _ = fill.push(address(self.lent.lend(chunk)));
            self.filled += 1;
        }
        fill.submit();
    }

    /// Takes back the frames of packets that were sent.
    fn reap(&mut self) -> Result<(), PortError> {
        let completion = &mut self.socket.rings.completion;
        while let Some(address) = completion.pop() {
            let chunk = take(&mut self.lent, address)?;
            self.lent.free(chunk);
        }
        completion.release();
        Ok(())
    }

    /// Puts a received buffer into the burst: a packet, or a part of one.
    fn accept(&mut self, desc: XdpDesc, burst: &mut Burst) -> Result<(), PortError> {
        let mut chunk = take(&mut self.lent, desc.addr)?;
        self.filled = self.filled.saturating_sub(1);
        let span = Span { offset: (desc.addr % u64::from(CHUNK)) as u32, len: desc.len, metadata: 0 };
        if self.device.options.metadata && self.partial.is_empty() {
            self.metadata = metadata::take(self.lent.pool(), &mut chunk, span);
        }
        let is_last = !desc.options.contains(XdpDescOptions::XDP_PKT_CONTD);
        let chunk = if is_last && self.partial.is_empty() {
            let meta = FrameMeta { original_len: desc.len, ..FrameMeta::default() };
            match burst.place(self.lent.pool(), chunk, span, meta) {
                Ok(()) => {
                    self.describe(burst);
                    return Ok(());
                }
                // Too long for the tailroom of a frame.
                Err(error) => error.into_chunk(),
            }
        } else {
            chunk
        };
        let part = self.lent.pool().packet(&chunk, span).ok_or_else(unknown_frame)?;
        self.partial.extend_from_slice(part);
        self.lent.free(chunk);
        if is_last {
            let meta = FrameMeta { original_len: self.partial.len() as u32, ..FrameMeta::default() };
            match burst.push(&self.partial, meta) {
                Ok(()) => self.describe(burst),
                Err(_) => self.dropped += 1,
            }
            self.partial.clear();
        }
        Ok(())
    }

    /// Adds what the device tells to the packet that was added last.
    #[inline]
    fn describe(&mut self, burst: &mut Burst) {
        if let Some(metadata) = self.metadata.take() {
            burst.frame_mut(burst.len() - 1).set_device_metadata(&metadata);
        }
    }

    /// Puts a packet into the transmit ring; false if the packet cannot be sent, or the ring remains full.
    fn enqueue(&mut self, group: &mut Group<'_>, position: usize) -> Result<bool, PortError> {
        // A packet has 14 bytes at least.
        let parts = group.packet(position).len().div_ceil(self.lent.pool().capacity()).max(1);
        if parts > self.max_parts() || !self.make_room(parts)? {
            return Ok(false);
        }
        if let Some(Taken { chunk, span }) = group.take(position, self.lent.pool()) {
            self.push(chunk, span, true);
            return Ok(true);
        }
        let is_copied = self.copy(group.packet(position).packet(), parts)?;
        self.copied += u64::from(is_copied);
        Ok(is_copied)
    }

    /// Puts a copy of a packet into the transmit ring; false if too few frames are free.
    fn copy(&mut self, packet: &[u8], parts: usize) -> Result<bool, PortError> {
        if !self.lent.reserve(parts) {
            // They may be in the transmit ring.
            self.transmit()?;
            if !self.lent.reserve(parts) {
                return Ok(false);
            }
        }
        let capacity = self.lent.pool().capacity();
        for (number, part) in (1..).zip(packet.chunks(capacity)) {
            let Some(mut chunk) = self.lent.alloc() else { break };
            match self.lent.pool().fill(&mut chunk, &[], part) {
                Some(span) => self.push(chunk, span, number == parts),
                None => self.lent.free(chunk),
            }
        }
        Ok(true)
    }

    /// Number of buffers that a packet may consist of.
    fn max_parts(&self) -> usize {
        if self.device.options.multi_buffer { MAX_PARTS } else { 1 }
    }

    /// Puts a buffer into the transmit ring, which has room for it.
    fn push(&mut self, chunk: Chunk, span: Span, is_last: bool) {
        let options = if is_last { XdpDescOptions::empty() } else { XdpDescOptions::XDP_PKT_CONTD };
        let addr = address(self.lent.lend(chunk)) + u64::from(span.offset);
        let _ = self.socket.rings.tx.push(XdpDesc { addr, len: span.len, options });
    }

    /// Makes room for a number of buffers in the transmit ring.
    fn make_room(&mut self, parts: usize) -> Result<bool, PortError> {
        if !self.socket.rings.tx.has_room(parts as u32) {
            self.transmit()?;
        }
        Ok(self.socket.rings.tx.has_room(parts as u32))
    }

    /// Makes the kernel send what is in the transmit ring. A call sends up to 32 packets, so it is repeated as long as it helps.
    fn transmit(&mut self) -> Result<(), PortError> {
        self.socket.rings.tx.submit();
        let mut waiting = self.socket.rings.tx.waiting();
        while waiting > 0 && self.socket.rings.tx.needs_wakeup() {
            match self.socket.wake_transmit() {
                // The next call tries again to send the rest.
                Ok(()) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::NETDOWN | Errno::NXIO | Errno::NETUNREACH) => return self.check(),
                Err(errno) => return self.check().and(Err(io::Error::from(errno).into())),
            }
            self.reap()?;
            let left = self.socket.rings.tx.waiting();
            if left == waiting {
                break;
            }
            waiting = left;
        }
        self.reap()
    }

    /// An error if the interface has gone. One that is down may come up again.
    fn check(&self) -> Result<(), PortError> {
        let interface = &self.device.interface;
        if self.socket.take_error().is_err() && !Interface::exists(interface.index()) {
            return Err(PortError::Gone { name: interface.name().to_owned() });
        }
        Ok(())
    }
}

impl Port for XdpPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.reap()?;
        let before = burst.len();
        while !burst.is_full() {
            let Some(desc) = self.socket.rings.rx.pop() else { break };
            self.accept(desc, burst)?;
        }
        self.socket.rings.rx.release();
        self.refill();
        let received = burst.len() - before;
        if received == 0 {
            self.idle = self.idle.wrapping_add(1);
            if self.idle.is_multiple_of(CHECK_EVERY) {
                self.check()?;
            }
        }
        if self.socket.rings.fill.needs_wakeup() || (received == 0 && self.device.options.busy_poll_us > 0) {
            // It fails if nothing has arrived, and if the interface is down.
            let _ = self.socket.wake_receive();
        }
        if self.socket.rings.tx.waiting() > 0 {
            self.transmit()?;
        }
        Ok(received)
    }

    fn send(&mut self, mut group: Group<'_>) -> Result<usize, SendError> {
        self.reap()?;
        let mut sent = 0;
        for position in 0..group.len() {
            sent += usize::from(self.enqueue(&mut group, position)?);
        }
        self.transmit()?;
        Ok(sent)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        Some(self.lent.pool())
    }

    fn copied(&self) -> u64 {
        self.copied
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    /// Detaches the program from the interface, for all queues.
    fn stop(&mut self) {
        self.device.detach();
    }

    fn dropped(&mut self) -> u64 {
        self.dropped + self.socket.dropped()
    }
}

impl fmt::Debug for XdpPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("XdpPort").field("device", &self.device).finish_non_exhaustive()
    }
}

/// Address of a chunk in the packet memory.
fn address(index: u32) -> u64 {
    u64::from(index) * u64::from(CHUNK)
}

/// The lent chunk that an address in the packet memory is in.
fn take(lent: &mut Lent, address: u64) -> Result<Chunk, PortError> {
    let index = u32::try_from(address / u64::from(CHUNK)).ok();
    index.and_then(|index| lent.take(index)).ok_or_else(unknown_frame)
}

/// The kernel returned an address that no frame lent to it has.
fn unknown_frame() -> PortError {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel returned an unknown frame").into()
}
