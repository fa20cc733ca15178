//! A queue of a DPDK device as a port.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use crate::port::{Group, Port, PortError, SendError};
use paceline_frame::{Burst, Chunk, FrameMeta, FramePool, HEADROOM, MAX_PACKET, PoolCache, Span, TAILROOM};

use super::library::{BURST, Device, Memory, Packet, Queue};
use crate::device::error::OpenError;
use crate::device::lent::Lent;

/// Calls of `receive` without a packet between two looks whether the device has gone.
const CHECK_EVERY: u32 = 64;
/// Alignment of the memory that DPDK can register, in bytes.
const PAGE: usize = 4096;

/// A device, and the chunks that its closed queues have lent to it.
struct Opened {
    // Closed before the lent chunks go back to the pool.
    device: Device,
    left: Mutex<Vec<Lent>>,
    name: String,
}

/// A queue of a device of DPDK's. Packets are received in frames of the port's pool, and frames of it are sent without a copy, except
/// by drivers that need memory of their own (`net_af_xdp`).
pub struct DpdkPort {
    queue: Queue,
    lent: ManuallyDrop<Lent>,
    /// Free chunks, and their addresses, for packets to come.
    fresh: Vec<Chunk>,
    addresses: Vec<*mut u8>,
    packets: Box<[Packet; BURST]>,
    /// A packet that is read from an mbuf.
    bytes: Vec<u8>,
    /// Packets that may still be received after [`stop`](Port::stop).
    left: Option<usize>,
    is_first: bool,
    copied: u64,
    dropped: u64,
    idle: u32,
    opened: Arc<Opened>,
}

// SAFETY: the addresses are those of the port's own chunks, or unused.
unsafe impl Send for DpdkPort {}

impl DpdkPort {
    /// Opens a device by its name and arguments, as DPDK's option `--vdev` or `--allow` takes them, and returns a port for each of its
    /// queues: `queues`, or as many as the device has if these are fewer. Each takes half of `frames` from the pool.
    ///
    /// The first call initializes DPDK, with the arguments in the environment variable `PACELINE_DPDK_ARGS` as well.
    ///
    /// # Errors
    /// [`OpenError`]. The pool must be that of a [`Umem`](crate::device::Umem).
    ///
    /// # Panics
    /// If `queues` is 0.
    pub fn open(
        devargs: &str,
        pool: &Arc<FramePool>,
        queues: usize,
        frames: u32,
    ) -> Result<Vec<Self>, OpenError> {
        assert!(queues > 0, "a device without queues");
        let (start, len) = pool.memory();
        if !(start as usize).is_multiple_of(PAGE) || !len.is_multiple_of(PAGE) {
            return Err(OpenError::ForeignPool);
        }
        let memory = Memory {
            start,
            len: len as u64,
            chunk_len: (pool.capacity() + HEADROOM + TAILROOM) as u32,
            headroom: HEADROOM as u32,
            tailroom: TAILROOM as u32,
        };
        // Declared first: after an error, the device is closed before the chunks go back to the pool.
        let mut ready = Vec::new();
        let mut device = Device::open(devargs, queues as u32, frames / 2, &memory)?;
        for _ in 0..device.info.queues {
            ready.push(Self::set_up(&mut device, pool)?);
        }
        device.run()?;
        let name = devargs.split(',').next().unwrap_or_default().to_owned();
        let opened = Arc::new(Opened { device, left: Mutex::default(), name });
        let port = |(number, (queue, lent))| Self {
            queue,
            lent: ManuallyDrop::new(lent),
            fresh: Vec::with_capacity(BURST),
            addresses: Vec::with_capacity(BURST),
            packets: Box::new([Packet::NONE; BURST]),
            bytes: vec![0; MAX_PACKET],
            left: None,
            is_first: number == 0,
            copied: 0,
            dropped: 0,
            idle: 0,
            opened: Arc::clone(&opened),
        };
        Ok(ready.into_iter().enumerate().map(port).collect())
    }

    /// Sets up a queue with chunks of the pool.
    fn set_up(device: &mut Device, pool: &Arc<FramePool>) -> Result<(Queue, Lent), OpenError> {
        let wanted = device.info.chunks as usize;
        let mut lent = Lent::new(PoolCache::new(pool));
        if !lent.reserve(wanted) {
            return Err(OpenError::NoFrames { free: pool.free(), wanted });
        }
        let mut addresses = Vec::with_capacity(wanted);
        for chunk in (0..wanted).map_while(|_| lent.alloc()).collect::<Vec<_>>() {
            addresses.push(pool.buffer(&chunk).0);
            lent.lend(chunk);
        }
        Ok((device.queue(&addresses)?, lent))
    }

    /// Index of the interface that the device belongs to, or 0.
    #[must_use]
    pub fn ifindex(&self) -> u32 {
        self.opened.device.info.ifindex
    }

    /// Name of the device's driver.
    #[must_use]
    pub fn driver(&self) -> &str {
        &self.opened.device.driver
    }

    /// Whether packets are received and sent in frames, rather than copied.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.opened.device.info.chunks > 0
    }

    /// Takes free chunks for a number of packets; returns how many packets can be received.
    fn refill(&mut self, packets: usize) -> usize {
        while self.fresh.len() < packets {
            let Some(chunk) = self.lent.alloc() else { break };
            self.addresses.push(self.lent.pool().buffer(&chunk).0);
            self.fresh.push(chunk);
        }
        self.fresh.len().min(packets)
    }

    /// Puts a received packet into the burst.
    #[inline]
    fn accept(&mut self, packet: Packet, burst: &mut Burst) -> Result<(), PortError> {
        let meta = FrameMeta { original_len: packet.len, ..FrameMeta::default() };
        if packet.chunk.is_null() {
            // SAFETY: the queue returned this mbuf just now, and it is read once.
            let len = unsafe { self.queue.read(packet.mbuf, &mut self.bytes) };
            let bytes = self.bytes.get(..len);
            self.dropped += u64::from(bytes.is_none_or(|bytes| burst.push(bytes, meta).is_err()));
            return Ok(());
        }
        let chunk = self.take(packet.chunk)?;
        let offset = (packet.data as usize).wrapping_sub(packet.chunk as usize);
        let span = Span { offset: offset as u32, len: packet.len, metadata: 0 };
        if let Err(error) = burst.place(self.lent.pool(), chunk, span, meta) {
            let chunk = error.into_chunk();
            let pushed = self.lent.pool().packet(&chunk, span).map(|bytes| burst.push(bytes, meta));
            self.lent.free(chunk);
            self.dropped += u64::from(!matches!(pushed, Some(Ok(()))));
        }
        Ok(())
    }

    /// The lent chunk at an address.
    #[inline]
    fn take(&mut self, address: *mut u8) -> Result<Chunk, PortError> {
        let index = self.lent.pool().index_at(address);
        index.and_then(|index| self.lent.take(index)).ok_or_else(unknown_frame)
    }

    /// Prepares a packet of a group for sending: in its chunk, which is lent, or as bytes of the burst.
    #[inline]
    fn prepare(&mut self, group: &mut Group<'_>, position: usize) -> Packet {
        if self.is_in_place()
            && let Some(taken) = group.take(position, self.lent.pool())
        {
            let start = self.lent.pool().buffer(&taken.chunk).0;
            self.lent.lend(taken.chunk);
            let data = start.cast_const().wrapping_add(taken.span.offset as usize);
            return Packet::new(start, data, taken.span.len);
        }
        let frame = group.packet(position);
        let bytes = frame.packet();
        Packet::new(std::ptr::null_mut(), bytes.as_ptr(), bytes.len() as u32)
    }

    /// Sends the first prepared packets, and takes chunks back.
    fn transmit(&mut self, count: usize) -> Result<usize, PortError> {
        let packets = &mut self.packets[..count];
        let copies = packets.iter().filter(|packet| packet.chunk.is_null()).count();
        // SAFETY: `opened` holds the device; each chunk was lent for this, and other data is in the burst that the group borrows.
        let sent = unsafe { self.queue.send(packets) };
        self.copied += copies.min(sent) as u64;
        for index in 0..count {
            let chunk = self.packets[index].chunk;
            if !chunk.is_null() {
                let chunk = self.take(chunk)?;
                self.lent.free(chunk);
            }
        }
        Ok(sent)
    }

    /// Counts calls without a packet, and looks now and then whether the device has gone.
    fn rest(&mut self) -> Result<(), PortError> {
        self.idle = self.idle.wrapping_add(1);
        if self.idle.is_multiple_of(CHECK_EVERY) && self.opened.device.is_gone() {
            return Err(PortError::Gone { name: self.opened.name.clone() });
        }
        Ok(())
    }
}

impl Port for DpdkPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        let room = self.refill(burst.room().min(BURST).min(self.left.unwrap_or(BURST)));
        // SAFETY: `opened` holds the device; the chunks are the port's own.
        let (received, used) = unsafe { self.queue.receive(&self.addresses[..room], &mut self.packets) };
        self.addresses.drain(..used);
        for chunk in self.fresh.drain(..used) {
            self.lent.lend(chunk);
        }
        for index in 0..received {
            self.accept(self.packets[index], burst)?;
        }
        if received == 0 {
            self.rest()?;
        }
        if let Some(left) = &mut self.left {
            *left = if received == 0 { 0 } else { left.saturating_sub(received) };
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, mut group: Group<'_>) -> Result<usize, SendError> {
        let (mut sent, mut position) = (0, 0);
        while position < group.len() {
            let count = BURST.min(group.len() - position);
            for index in 0..count {
                self.packets[index] = self.prepare(&mut group, position + index);
            }
            sent += self.transmit(count).map_err(|error| SendError { sent, error })?;
            position += count;
        }
        Ok(sent)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.is_in_place().then(|| self.lent.pool())
    }

    fn copied(&self) -> u64 {
        self.copied
    }

    /// Packets in the queue are received still: a device of DPDK's may deliver packets for ever.
    fn stop(&mut self) {
        self.left = Some(self.opened.device.info.chunks.max(BURST as u32) as usize);
    }

    fn dropped(&mut self) -> u64 {
        self.dropped + if self.is_first { self.opened.device.dropped() } else { 0 }
    }
}

impl Drop for DpdkPort {
    /// The device keeps what is lent to it until its last queue is dropped.
    fn drop(&mut self) {
        for chunk in self.fresh.drain(..) {
            self.lent.free(chunk);
        }
        // SAFETY: the field is not used afterwards.
        let lent = unsafe { ManuallyDrop::take(&mut self.lent) };
        self.opened.left.lock().unwrap_or_else(PoisonError::into_inner).push(lent);
    }
}

impl fmt::Debug for DpdkPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpdkPort").field("name", &self.opened.name).finish_non_exhaustive()
    }
}

/// DPDK returned an address that no frame lent to it has.
fn unknown_frame() -> PortError {
    io::Error::new(io::ErrorKind::InvalidData, "DPDK returned an unknown frame").into()
}
