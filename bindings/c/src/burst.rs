//! Bursts: up to 64 packets, copied in or in the caller's memory.

use std::sync::Arc;

use ::paceline_frame::{PlaceError, Span};
use paceline::{Burst, MAX_BURST};

use crate::call;
use crate::handles::Table;
use crate::opaque::{paceline_burst, paceline_pool};
use crate::packet::{paceline_frame, paceline_packet};
use crate::pool::{POOLS, Pool};
use crate::raw::{Filled, Given, Out};
use crate::status::{Failure, paceline_status};
use crate::told::ErrorOut;

/// Maximum number of packets of a burst.
pub const PACELINE_MAX_BURST: usize = 64;
const _: () = assert!(PACELINE_MAX_BURST == MAX_BURST);

/// A burst, and the pools whose frames are in it.
pub(crate) struct Held {
    burst: Burst,
    pools: Vec<Arc<Pool>>,
}

pub(crate) static BURSTS: Table<Box<Held>, paceline_burst> = Table::new();

impl Held {
    #[inline]
    pub(crate) fn burst(&mut self) -> &mut Burst {
        &mut self.burst
    }

    /// Removes all packets, and gives the caller's frames back.
    fn clear(&mut self) {
        for pool in self.pools.drain(..) {
            pool.take_back(&mut self.burst);
        }
        self.burst.clear();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

/// An empty burst for so many packets, 1 to PACELINE_MAX_BURST. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_new(capacity: usize, error: ErrorOut) -> *mut paceline_burst {
    call::handle(error, || {
        if !(1..=MAX_BURST).contains(&capacity) {
            return Err(Failure::argument(format!(
                "a burst has room for 1 to {MAX_BURST} packets, not {capacity}"
            )));
        }
        BURSTS.give(Box::new(Held { burst: Burst::new(capacity), pools: Vec::new() }))
    })
}

/// Frees a burst; frames of the caller in it are the caller's again. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_free(burst: *mut paceline_burst) -> paceline_status {
    call::plain_status(|| BURSTS.free(burst))
}

/// Number of packets in a burst; 0 if it is no handle or in use.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_length(burst: *mut paceline_burst) -> usize {
    call::plain(0, || Ok(BURSTS.lock(burst)?.burst.len()))
}

/// Removes all packets; frames of the caller among them are the caller's again.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_clear(burst: *mut paceline_burst, error: ErrorOut) -> paceline_status {
    call::status(error, || {
        BURSTS.lock(burst)?.clear();
        Ok(())
    })
}

/// Copies packets into a burst, after those that are there, which they may be. `pushed` gets how many; fewer than `count` on failure, with the
/// `index` of the first that was not in the error's details.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_push(
    burst: *mut paceline_burst,
    packets: Given<paceline_packet>,
    count: usize,
    pushed: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        pushed.write(0);
        let mut held = BURSTS.lock(burst)?;
        packets.each(count, |index, packet| {
            packet.push(&mut held.burst).map_err(|failure| failure.at(index))?;
            pushed.write(index + 1);
            Ok(())
        })
    })
}

/// Adds packets that lie in frames of a pool, after those that are there, without a copy: `data` of each is an address in the pool's
/// memory. From now until the burst is cleared or freed, or the packet is taken back, the frame is the burst's: the caller may not
/// touch it while packets run, and may read and write it between calls.
///
/// A packet must begin after at least PACELINE_FRAME_KEPT bytes of its frame's buffer and its metadata, and end PACELINE_TAILROOM bytes
/// before the buffer's end: PACELINE_STATUS_NO_ROOM otherwise. A frame that is in a burst already is
/// PACELINE_STATUS_BUSY, an address outside of the pool PACELINE_STATUS_ARGUMENT. `placed` gets how many; fewer
/// than `count` on failure.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_place(
    burst: *mut paceline_burst,
    pool: *const paceline_pool,
    packets: Given<paceline_packet>,
    count: usize,
    placed: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        placed.write(0);
        let mut held = BURSTS.lock(burst)?;
        let pool = POOLS.get(pool)?;
        if !held.pools.iter().any(|known| Arc::ptr_eq(known, &pool)) {
            held.pools.push(Arc::clone(&pool));
        }
        let mut lending = pool.lend()?;
        packets.each(count, |index, packet| {
            place(&mut held.burst, &pool, &mut lending, &packet).map_err(|failure| failure.at(index))?;
            placed.write(index + 1);
            Ok(())
        })
    })
}

fn place(
    burst: &mut Burst,
    pool: &Pool,
    lending: &mut crate::pool::Lending<'_>,
    packet: &paceline_packet,
) -> Result<(), Failure> {
    let (meta, queue) = (packet.meta()?, packet.queue()?);
    let before = packet.data.address().wrapping_sub(packet.metadata_length);
    if packet.metadata_length > 0 && packet.metadata.address() != before {
        return Err(Failure::argument("metadata of a packet in place lies right before the packet"));
    }
    let metadata =
        u32::try_from(packet.metadata_length).map_err(|_| Failure::argument("metadata is too long"))?;
    let (frame, offset) = pool.find(packet.data.address())?;
    let length = u32::try_from(packet.length).map_err(|_| Failure::argument("the packet is too long"))?;
    let chunk = lending.chunk(frame)?;
    let span = Span { offset, len: length, metadata };
    if let Err(error) = burst.place(pool.frames(), chunk, span, meta) {
        let status = match error {
            PlaceError::OtherPool { .. } => paceline_status::Argument,
            _ => paceline_status::NoRoom,
        };
        let failure = Failure::new(status, &error);
        lending.give_back(error.into_chunk());
        return Err(failure);
    }
    let index = burst.len() - 1;
    packet.set_origin(burst, index, queue);
    Ok(())
}

/// Results of the packets of a burst: `frames` gets as many as there are, at most `capacity`, and `count` how many.
#[unsafe(no_mangle)]
pub extern "C" fn paceline_burst_frames(
    burst: *mut paceline_burst,
    frames: Filled<paceline_frame>,
    capacity: usize,
    count: Out<usize>,
    error: ErrorOut,
) -> paceline_status {
    call::status(error, || {
        let held = BURSTS.lock(burst)?;
        let frame = |frame: paceline::FrameRef<'_>| paceline_frame::of(frame, frame.code().into());
        frames.write_all(capacity, held.burst.iter().map(frame))?;
        count.write(held.burst.len().min(capacity));
        Ok(())
    })
}
