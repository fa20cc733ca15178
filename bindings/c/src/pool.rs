//! Memory of the caller, divided into frames.
//!
//! The caller has all frames of a pool at first, lends some to bursts, and has them back when the burst is cleared. Which are lent is
//! kept here, so that no frame is in two bursts.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::paceline_frame::{
    Chunk, ChunkLayout, FRAME_KEPT, FrameMemory, FramePool, HEADROOM, PoolCache, TAILROOM,
};
use paceline::Burst;

use crate::call;
use crate::handles::Table;
use crate::opaque::paceline_pool;
use crate::raw::{Given, Memory, given};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// Bytes at the start of a frame's buffer that no packet and no metadata may use: sizeof(struct xdp_frame) in the kernel.
pub const PACELINE_FRAME_KEPT: usize = 40;
/// Bytes that drivers leave before a packet, so that programs can add headers. Fewer are allowed, from PACELINE_FRAME_KEPT on.
pub const PACELINE_HEADROOM: usize = 256;
/// Bytes at the end of a frame's buffer that no packet may use: sizeof(struct skb_shared_info) in the kernel.
pub const PACELINE_TAILROOM: usize = 320;
const _: () = assert!(
    PACELINE_FRAME_KEPT == FRAME_KEPT && PACELINE_HEADROOM == HEADROOM && PACELINE_TAILROOM == TAILROOM
);

/// The caller's memory for a pool: frames of equal size, one after the other.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct paceline_pool_options {
    /// sizeof(struct paceline_pool_options)
    pub size: usize,
    /// The first frame. All `count * stride` bytes from there are readable, writable and initialized until the pool is freed.
    pub memory: Memory,
    /// Bytes from one frame to the next.
    pub stride: usize,
    /// Number of frames.
    pub count: u32,
    /// Offset of the buffer in its frame: bytes before are the caller's alone, as in an AF_XDP UMEM or an mbuf.
    pub offset: u32,
    /// Size of the buffer: at least PACELINE_HEADROOM and PACELINE_TAILROOM; with `offset` at most `stride`.
    pub buffer_length: u32,
    /// 0.
    pub reserved: u32,
}

given!(paceline_pool_options);

struct CallerMemory(ChunkLayout);

// SAFETY: an address has no thread; frames are used by one thread at a time, through chunks.
unsafe impl Send for CallerMemory {}
// SAFETY: as above.
unsafe impl Sync for CallerMemory {}

// SAFETY: `layout_of` checked that buffers are inside of their frames. The caller promises that the memory is mapped, writable and
// initialized until the pool is freed, which is refused while a frame is in a burst, and that it does not touch frames in a burst
// while packets run.
unsafe impl FrameMemory for CallerMemory {
    fn layout(&self) -> ChunkLayout {
        self.0
    }
}

/// The frames of a caller's memory.
pub(crate) struct Pool {
    frames: Arc<FramePool>,
    layout: ChunkLayout,
    lent: Mutex<Lent>,
}

// SAFETY: as for the memory.
unsafe impl Send for Pool {}
// SAFETY: as for the memory.
unsafe impl Sync for Pool {}

/// Frames that are in bursts: a bit each.
struct Lent {
    bits: Vec<u64>,
    count: usize,
    /// No frame is lent any more: the memory may be gone.
    closed: bool,
}

/// The right to lend frames.
pub(crate) struct Lending<'a> {
    pool: &'a Pool,
    lent: MutexGuard<'a, Lent>,
}

pub(crate) static POOLS: Table<Arc<Pool>, paceline_pool> = Table::new();

fn layout_of(given: &paceline_pool_options) -> Result<ChunkLayout, Failure> {
    let wrong = |message: &str| Err(Failure::argument(message));
    let Some(start) = given.memory.start() else { return wrong("the memory is null") };
    let buffer_end = u64::from(given.offset) + u64::from(given.buffer_length);
    if given.count == 0 {
        return wrong("a pool has at least one frame");
    }
    if (given.buffer_length as usize) < HEADROOM + TAILROOM {
        return wrong("a buffer must have room for PACELINE_HEADROOM and PACELINE_TAILROOM");
    }
    if buffer_end > given.stride as u64 {
        return wrong("offset and buffer_length exceed the stride");
    }
    let bytes = given.stride.checked_mul(given.count as usize);
    let end = bytes.and_then(|bytes| bytes.checked_add(start.as_ptr().addr()));
    if bytes.is_none_or(|bytes| bytes > isize::MAX as usize) || end.is_none() {
        return wrong("so many frames do not fit into memory");
    }
    Ok(ChunkLayout {
        start,
        stride: given.stride,
        chunks: given.count,
        offset: given.offset as usize,
        buffer_len: given.buffer_length,
    })
}

impl Pool {
    fn new(layout: ChunkLayout) -> Self {
        let frames = FramePool::new(CallerMemory(layout));
        // The caller has all of them.
        let mut cache = PoolCache::new(&frames);
        while let Some(chunk) = cache.alloc() {
            let _ = chunk.into_index();
        }
        let bits = vec![0; (layout.chunks as usize).div_ceil(64)];
        Self { frames, layout, lent: Mutex::new(Lent { bits, count: 0, closed: false }) }
    }

    pub(crate) fn frames(&self) -> &Arc<FramePool> {
        &self.frames
    }

    /// The frame in whose buffer an address is, and the offset there.
    #[inline]
    pub(crate) fn find(&self, address: usize) -> Result<(u32, u32), Failure> {
        let ChunkLayout { start, stride, chunks, offset, .. } = self.layout;
        let from_start = address.checked_sub(start.as_ptr().addr());
        let found = from_start.and_then(|bytes| {
            let frame = u32::try_from(bytes / stride).ok().filter(|frame| *frame < chunks)?;
            Some((frame, u32::try_from((bytes % stride).checked_sub(offset)?).ok()?))
        });
        found.ok_or_else(|| Failure::argument("a packet does not lie in a frame of the pool"))
    }

    /// Locks what is lent, to lend more.
    pub(crate) fn lend(&self) -> Result<Lending<'_>, Failure> {
        let lent = self.lock();
        if lent.closed {
            return Err(Failure::new(paceline_status::Handle, "the pool was freed"));
        }
        Ok(Lending { pool: self, lent })
    }

    /// Gives the caller the frames of a burst that are this pool's.
    pub(crate) fn take_back(&self, burst: &mut Burst) {
        let mut lending = Lending { pool: self, lent: self.lock() };
        for index in 0..burst.len() {
            if let Some(taken) = burst.take(index, &self.frames) {
                lending.give_back(taken.chunk);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lending<'_> {
    /// The chunk of a frame, which is lent from now on.
    #[inline]
    pub(crate) fn chunk(&mut self, frame: u32) -> Result<Chunk, Failure> {
        let (word, bit) = (frame as usize / 64, 1 << (frame % 64));
        let bits =
            self.lent.bits.get_mut(word).ok_or_else(|| Failure::argument("the pool has no such frame"))?;
        if *bits & bit != 0 {
            return Err(Failure::new(paceline_status::Busy, "the frame is in a burst"));
        }
        // SAFETY: all chunks were given away when the pool was made, and come back through `give_back`; the bit says that this one is not
        // in a burst, and is set now.
        let chunk = unsafe { self.pool.frames.chunk(frame) };
        let chunk = chunk.ok_or_else(|| Failure::argument("the pool has no such frame"))?;
        *bits |= bit;
        self.lent.count += 1;
        Ok(chunk)
    }

    #[inline]
    pub(crate) fn give_back(&mut self, chunk: Chunk) {
        let frame = chunk.into_index() as usize;
        if let Some(bits) = self.lent.bits.get_mut(frame / 64) {
            *bits &= !(1 << (frame % 64));
            self.lent.count -= 1;
        }
    }
}

/// Makes a pool of the caller's memory, whose frames are the caller's until paceline_burst_place. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_pool_new(
    options: Given<paceline_pool_options>,
    error: ErrorOut,
) -> *mut paceline_pool {
    call::handle(error, || POOLS.give(Arc::new(Pool::new(layout_of(&options.required()?)?))))
}

/// Frees a pool: PACELINE_STATUS_BUSY while a frame of it is in a burst, and nothing happens then. Once it is PACELINE_STATUS_OK, the
/// library does not touch the memory any more. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_pool_free(pool: *mut paceline_pool) -> paceline_status {
    call::plain_status(|| {
        if pool.is_null() {
            return Ok(());
        }
        let close = |pool: &mut Arc<Pool>| {
            let mut lent = pool.lock();
            if lent.count > 0 {
                return Err(Failure::new(paceline_status::Busy, "frames of the pool are in bursts"));
            }
            lent.closed = true;
            Ok(())
        };
        POOLS.take_if(pool, close).map(drop)
    })
}

/// Where the buffer of a frame begins; null if there is no such frame.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_pool_buffer(pool: *const paceline_pool, frame: u32) -> *mut u8 {
    call::plain(std::ptr::null_mut(), || {
        let ChunkLayout { start, stride, chunks, offset, .. } = POOLS.get(pool)?.layout;
        if frame >= chunks {
            return Err(Failure::NOT_FOUND);
        }
        Ok(NonNull::as_ptr(start).wrapping_add(frame as usize * stride + offset))
    })
}
