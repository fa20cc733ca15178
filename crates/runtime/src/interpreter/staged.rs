//! Bursts in stages: look-ups ahead, then the program.
//!
//! The slice of a program (`paceline-compiler`) runs over the burst with look-ups that only ask for memory, the walks that it began are taken
//! to their ends, and then the program runs as it does without. The first two stages change nothing that programs, maps or users see, so
//! that results are those of one packet after the other: whatever the packets insert, delete or evict, each look-up is made in its turn.
//!
//! All walks go one step at a time, so that their misses overlap: a hash has two steps (bucket, slot), a trie one for each node and
//! line. They mark nothing as used and count nothing. The slice changes nothing but the verdicts in the frames, which the program
//! stores anew, and which are restored from the packet on that the program fails on.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use crate::fault::{Fault, FaultKind};
use crate::host::Host;
use crate::trials::Choice;
use paceline_frame::Frame;
use paceline_maps::{Fill, Map};

use crate::interpreter::image::{Image, Unset};

pub use crate::interpreter::image::{Ahead, Staged};

/// Bursts of fewer packets are not worth a second loop.
const LEAST_PACKETS: u64 = 8;

impl Ahead {
    /// Look-ups by a slice in these maps, among its others, made `always`, or if so many bytes of a map are in use that it is `large` and
    /// trials find that they pay.
    #[must_use]
    pub fn new(slice: Image, maps: Box<[Arc<Map>]>, always: bool, large: u64) -> Self {
        let (from_bytes, from_packets) = if always { (0, 1) } else { (large, LEAST_PACKETS) };
        Self { slice, maps, from_bytes, from_packets, tries: !always }
    }

    /// The slice.
    #[must_use]
    pub fn slice(&self) -> &Image {
        &self.slice
    }

    /// How a burst runs.
    #[inline]
    fn choose(&self, frames: &Range<u64>, host: &mut Host) -> Choice {
        match self.may_pay(frames) {
            true if self.tries => host.ahead.trials.choose(self.slice.id),
            ahead => Choice { ahead, tried: false },
        }
    }

    #[inline]
    fn may_pay(&self, frames: &Range<u64>) -> bool {
        let packets = packets(frames);
        packets >= self.from_packets
            && self.maps.iter().any(|map| map.for_programs().look_up_bytes(Fill::Now) >= self.from_bytes)
    }

    /// The stages before the program.
    ///
    /// # Safety
    /// The frames must be those of a burst that nothing else uses during the call. The caller is pinned if maps free values, as for the
    /// program itself.
    unsafe fn run(&self, frames: Range<u64>, host: &mut Host) {
        let cpu = host.cpu();
        host.ahead.walks.get_or_insert_default().begin(cpu);
        let (token, unset) = (self.slice.token(), Unset::uninit());
        // SAFETY: the frames are guaranteed by the caller, and the image is the entry's own.
        unsafe { (self.slice.entries.burst)(frames.start, frames.end, token, unset, unset, host) };
        if let Some(walks) = &mut host.ahead.walks {
            // SAFETY: the slice's image keeps its maps.
            unsafe { walks.finish() };
        }
    }
}

/// Number of packets of a burst.
const fn packets(frames: &Range<u64>) -> u64 {
    (frames.end - frames.start) / size_of::<Frame>() as u64
}

impl Staged {
    /// Runs a burst: the result is that of the program's own entry with this token.
    ///
    /// # Safety
    /// The frames must be those of a burst of one frame or more that nothing else uses during the call, and the token what the entry takes.
    #[inline]
    pub unsafe fn run(&self, frames: Range<u64>, token: u64, host: &mut Host) -> u64 {
        let Choice { ahead, tried } = self.ahead.choose(&frames, host);
        let started = tried.then(Instant::now);
        // SAFETY: all of it is guaranteed by the caller.
        let reached = unsafe { self.run_way(ahead, frames.clone(), token, host) };
        if let Some(started) = started {
            host.ahead.trials.record(self.ahead.slice.id, packets(&frames), started.elapsed());
        }
        reached
    }

    /// Runs a burst with look-ups ahead or without.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    #[inline]
    unsafe fn run_way(&self, ahead: bool, frames: Range<u64>, token: u64, host: &mut Host) -> u64 {
        let unset = Unset::uninit();
        if !ahead {
            // SAFETY: all of it is guaranteed by the caller.
            return unsafe { (self.burst_entry)(frames.start, frames.end, token, unset, unset, host) };
        }
        // SAFETY: the frames are guaranteed by the caller.
        unsafe { self.ahead.run(frames.clone(), host) };
        // SAFETY: as above.
        unsafe { (self.burst_entry)(frames.start, frames.end, token, unset, unset, host) }
    }
}

/// Entry of bursts of programs with look-ups ahead.
///
/// # Safety
/// As for every entry of bursts; `image` must be the address of an image, with stages.
pub unsafe extern "C" fn staged_entry(
    first: u64,
    end: u64,
    image: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let image = unsafe { &*(image as *const Image) };
    match &image.staged {
        // SAFETY: frames and image are guaranteed by the caller.
        Some(staged) => unsafe { staged.run(first..end, image.token(), host) },
        None => without_stages(first, host),
    }
}

/// Ends a burst in a fault that was to run in stages and has none, which no caller does.
#[cold]
pub fn without_stages(first: u64, host: &mut Host) -> u64 {
    host.fail(Box::new(Fault { slot: 0, kind: FaultKind::Internal("no stages"), tail_called: None }));
    first
}
