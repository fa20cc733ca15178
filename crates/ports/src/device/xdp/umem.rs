//! Packet memory of AF_XDP sockets (UMEM).
#![allow(unsafe_code)]

use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_frame::{ChunkLayout, FrameMemory, FramePool};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::xdp::{SocketAddrXdpFlags, XdpUmemReg, XdpUmemRegFlags};

use crate::device::error::{OpenError, Step};
use crate::device::mapping::Mapping;

/// Size of a chunk in bytes: the kernel takes powers of two up to a page. The packet begins after 256 bytes
/// (`XDP_PACKET_HEADROOM`), which is the headroom of frames, so that a chunk is the buffer of a frame as it is.
pub(super) const CHUNK: u32 = 4096;

struct Memory {
    mapping: Mapping,
    chunks: u32,
}

// SAFETY: the mapping has `chunks * CHUNK` zeroed bytes that nothing else uses, and lives as long as the value. The kernel accesses
// chunks in its rings only, which hold those that ports have lent (`Lent`).
unsafe impl FrameMemory for Memory {
    fn layout(&self) -> ChunkLayout {
        let stride = CHUNK as usize;
        ChunkLayout { start: self.mapping.start(), stride, chunks: self.chunks, offset: 0, buffer_len: CHUNK }
    }
}

/// Packet memory that AF_XDP sockets share: packets go from one to another without a copy.
pub struct Umem {
    pool: Arc<FramePool>,
    registration: XdpUmemReg,
    sockets: Mutex<Sockets>,
}

/// Bound sockets. The first one registers the memory; others share the registration of any that is open, and its flags.
struct Sockets {
    open: Vec<Weak<OwnedFd>>,
    flags: SocketAddrXdpFlags,
}

impl Umem {
    /// Memory for a number of frames of 4,096 bytes.
    ///
    /// # Errors
    /// The memory cannot be mapped.
    ///
    /// # Panics
    /// If `frames` is 0.
    pub fn new(frames: u32) -> Result<Arc<Self>, OpenError> {
        assert!(frames > 0, "packet memory without frames");
        let len = frames as usize * CHUNK as usize;
        let mapping = Mapping::huge(len).map_err(|errno| Step::MapMemory.failed("", errno))?;
        let registration = XdpUmemReg {
            addr: mapping.start().as_ptr() as u64,
            len: len as u64,
            chunk_size: CHUNK,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        let pool = FramePool::new(Memory { mapping, chunks: frames });
        let sockets = Mutex::new(Sockets { open: Vec::new(), flags: SocketAddrXdpFlags::empty() });
        Ok(Arc::new(Self { pool, registration, sockets }))
    }

    /// Size of the memory in bytes.
    pub(super) fn len(&self) -> u64 {
        self.registration.len
    }

    /// The pool of its frames.
    #[must_use]
    pub fn pool(&self) -> &Arc<FramePool> {
        &self.pool
    }

    /// Binds a socket by `bind`, which gets a socket to share the registration with, or `None` after the memory was registered with
    /// this socket. `None` as result if the other sockets have other flags; an error is that of registering or of binding.
    pub(super) fn bind(
        &self,
        socket: &Arc<OwnedFd>,
        flags: SocketAddrXdpFlags,
        bind: impl FnOnce(Option<&OwnedFd>) -> Result<(), Errno>,
    ) -> Option<Result<(), (Step, Errno)>> {
        let mut sockets = self.lock();
        let open = sockets.open.iter().find_map(Weak::upgrade);
        let registered = match &open {
            Some(_) if sockets.flags != flags => return None,
            Some(_) => Ok(()),
            None => sockopt::set_xdp_umem_reg(socket.as_fd(), self.registration),
        };
        let bind = || bind(open.as_deref()).map_err(|errno| (Step::Bind, errno));
        let bound = registered.map_err(|errno| (Step::RegisterMemory, errno)).and_then(|()| bind());
        if bound.is_ok() {
            sockets.flags = flags;
            sockets.open.push(Arc::downgrade(socket));
        }
        Some(bound)
    }

    /// Removes a socket that is about to be closed. Afterwards no other reference to it exists: one is made under the lock only.
    pub(super) fn forget(&self, socket: &Arc<OwnedFd>) {
        self.lock().open.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(socket)));
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Umem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Umem").field("pool", &self.pool).finish_non_exhaustive()
    }
}
