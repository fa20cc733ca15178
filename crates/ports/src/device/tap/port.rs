//! TAP interfaces: the host's network stack on the other side.

use std::fmt;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use crate::port::{Group, Port, PortError, SendError};
use paceline_frame::{Burst, FrameMeta, FramePool, HEADROOM, MAX_PACKET, PoolCache, Span, TAILROOM};
use rustix::fd::OwnedFd;
use rustix::io::{Errno, readv, writev};

use crate::device::error::{OpenError, Step};
use crate::device::interface::{Interface, check_name};

use super::{header, syscalls};

/// A queue of a TAP interface as a port: packets that the host sends to the interface are received, and sent packets arrive on the
/// interface. The interface ends with its last queue, unless it is persistent (`ip tuntap add`).
///
/// The kernel copies every packet, into and from the frames of the port's pool. A packet that no frame can hold is gathered
/// in memory of the burst.
pub struct TapPort {
    queue: OwnedFd,
    interface: Interface,
    /// The header before each packet: empty, unless another process asked for one before.
    header: Box<[u8]>,
    cache: PoolCache,
    /// End of a packet that is longer than a frame.
    rest: Box<[u8]>,
    dropped: u64,
}

impl TapPort {
    /// Opens a queue of a TAP interface, which is created if there is none of this name. A `%d` in the name is replaced by a number.
    /// Several ports of one interface are its queues, if all are opened with `multi_queue`.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(name: &str, pool: &Arc<FramePool>, multi_queue: bool) -> Result<Self, OpenError> {
        check_name(name)?;
        let queue = syscalls::open_queue().map_err(|errno| Step::OpenTun.failed(name, errno))?;
        let attached = syscalls::attach(&queue, name, multi_queue).map_err(|errno| match errno {
            Errno::INVAL => OpenError::NotSupported {
                step: Step::AttachTap,
                name: name.to_owned(),
                mode: if multi_queue { "several queues" } else { "a single queue" },
            },
            errno => Step::AttachTap.failed(name, errno),
        })?;
        Ok(Self {
            queue,
            interface: Interface::by_name(&attached.name)?,
            header: vec![0; attached.header].into(),
            cache: PoolCache::new(pool),
            rest: vec![0; MAX_PACKET].into(),
            dropped: 0,
        })
    }

    /// The interface.
    #[must_use]
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Receives a packet; false if none has arrived or no frame is free.
    fn receive_packet(&mut self, burst: &mut Burst) -> Result<bool, PortError> {
        let Some(mut chunk) = self.cache.alloc() else { return Ok(false) };
        let pool = Arc::clone(self.cache.pool());
        let buffer = pool.buffer_mut(&mut chunk);
        let room = buffer.len() - HEADROOM - TAILROOM;
        let place = IoSliceMut::new(&mut buffer[HEADROOM..HEADROOM + room]);
        let parts = &mut [IoSliceMut::new(&mut self.header), place, IoSliceMut::new(&mut self.rest)];
        let len = match readv(&self.queue, parts) {
            Ok(len) => len.saturating_sub(self.header.len()),
            Err(errno) => {
                self.cache.free(chunk);
                return self.lost(errno).map(|()| false);
            }
        };
        if len <= room {
            header::complete(&self.header, &mut pool.buffer_mut(&mut chunk)[HEADROOM..HEADROOM + len]);
        }
        let meta = FrameMeta { original_len: len as u32, ..FrameMeta::default() };
        let is_lost = if len <= room {
            let span = Span { offset: HEADROOM as u32, len: len as u32, metadata: 0 };
            let refused = burst.place(&pool, chunk, span, meta).err();
            refused.map(|error| self.cache.free(error.into_chunk())).is_some()
        } else {
            let start = &pool.buffer_mut(&mut chunk)[HEADROOM..HEADROOM + room];
            let mut packet = [start, &self.rest[..len - room]].concat();
            header::complete(&self.header, &mut packet);
            self.cache.free(chunk);
            burst.push(&packet, meta).is_err()
        };
        self.dropped += u64::from(is_lost);
        Ok(true)
    }

    /// An error if a failed read or write means that the interface has gone: not if a queue is full or empty, a packet is too short,
    /// or the interface is down.
    fn lost(&self, errno: Errno) -> Result<(), PortError> {
        if matches!(errno, Errno::AGAIN | Errno::INTR) || Interface::exists(self.interface.index()) {
            return Ok(());
        }
        Err(PortError::Gone { name: self.interface.name().to_owned() })
    }
}

impl Port for TapPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while !burst.is_full() && self.receive_packet(burst)? {}
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        let mut sent = 0;
        self.header.fill(0);
        for frame in group.iter() {
            match writev(&self.queue, &[IoSlice::new(&self.header), IoSlice::new(frame.packet())]) {
                Ok(_) => sent += 1,
                Err(errno) => self.lost(errno).map_err(|error| SendError { sent, error })?,
            }
        }
        Ok(sent)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.queue.as_fd())
    }

    fn dropped(&mut self) -> u64 {
        self.dropped
    }
}

impl fmt::Debug for TapPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapPort").field("interface", &self.interface).finish_non_exhaustive()
    }
}
