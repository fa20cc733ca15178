//! Callers: each worker has one, which enters the site for each burst.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline_epoch::{Pin, Reader};
use paceline_frame::{Burst, Frame, FrameMut};
use paceline_runtime::fault::Fault;
use paceline_runtime::host as runtime;
use paceline_runtime::interpreter::image::{BurstEntry, Entry, Unset};

use super::call_site::Site;
use super::choice::{ByKey, Choice};
use super::image::Image;
use super::statistics::Counts;
use crate::host::Host;
use crate::run::{BurstFault, burst_result, packet_result};
use crate::target::Target;

/// A worker's registration at a site. Its counts are in the site's statistics at the end of each burst.
pub struct Caller<C: Choice> {
    pub(super) site: Site<C>,
    pub(super) counts: Arc<Counts>,
}

impl<C: Choice> Site<C> {
    /// Registers a worker.
    #[must_use]
    pub fn caller(&self) -> Caller<C> {
        Caller { site: self.clone(), counts: self.shared.register.add() }
    }
}

impl<C: Choice> Caller<C> {
    /// Begins a burst: calls until the end of the [`Calls`] use the current programs.
    #[inline]
    pub fn enter<'a>(&'a mut self, host: &'a mut Host) -> Calls<'a, C> {
        let host = &mut host.runtime;
        let reader: *mut Reader = &mut host.reader;
        // SAFETY: the host is borrowed as long as the pin lives, and nothing that runs has a way to pin its reader again.
        let pin = unsafe { &mut *reader }.pin();
        let image: *const Image = self.site.shared.slots.image(&pin);
        // SAFETY: the image stays as long as the site is borrowed and the pin lives, which is kept beside it.
        let image = unsafe { &*image };
        let (packet, burst, misses) = (image.packet, image.burst, host.counts.misses);
        Calls { packet, burst, image, host, caller: self, calls: 0, misses, _pin: pin }
    }

    /// Runs the packets of a burst, in order, in one call; each frame gets its verdict.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    pub fn run_burst(
        &mut self,
        named: C::Named<'_>,
        burst: &mut Burst,
        host: &mut Host,
    ) -> Result<(), BurstFault> {
        self.enter(host).run_burst(named, burst)
    }
}

impl<C: Choice> Drop for Caller<C> {
    fn drop(&mut self) {
        self.site.shared.register.remove(&self.counts);
    }
}

impl<C: Choice> fmt::Debug for Caller<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("site", &self.site).finish_non_exhaustive()
    }
}

/// The calls of one burst. As long as this lives, callable programs are kept, and updates of the site have no effect:
/// it should live no longer than a burst.
pub struct Calls<'a, C: Choice> {
    packet: Entry,
    burst: BurstEntry,
    image: &'a Image,
    host: &'a mut runtime::Host,
    caller: &'a Caller<C>,
    calls: u64,
    /// The host's count when this began.
    misses: u64,
    _pin: Pin<'a>,
}

impl<C: Choice> Calls<'_, C> {
    /// Runs a program over one packet and returns its value, as [`Program::run_raw`](crate::Program::run_raw) does. There is no
    /// verdict beside it, because a site by key does not know the type of the program that it calls.
    ///
    /// # Errors
    /// The run ended with a fault.
    #[inline]
    pub fn run_raw(&mut self, named: C::Named<'_>, frame: &mut FrameMut<'_>) -> Result<u64, Box<Fault>> {
        // SAFETY: the frame stays in its place; programs and helpers only change what it describes.
        self.run_frame(named, unsafe { frame.descriptor_mut() })
    }

    #[inline]
    fn run_frame(&mut self, named: C::Named<'_>, frame: &mut Frame) -> Result<u64, Box<Fault>> {
        if let Err(fault) = C::admit(named, self.image, self.host) {
            frame.abort();
            return Err(fault);
        }
        let r0 = self.enter_packet(named, frame);
        packet_result(frame, r0, self.host)
    }

    /// Returns the value of a run over one packet; a fault is in the host.
    #[inline]
    fn enter_packet(&mut self, named: C::Named<'_>, frame: &mut Frame) -> u64 {
        let (key, token) = C::packet(named);
        let (key, image) = (Unset::new(key), Unset::new(self.image as *const Image as u64));
        self.calls += 1;
        let frame: *mut Frame = frame;
        // SAFETY: the image, and the programs that it calls, are kept by the pin; others by who named them. The frame is
        // borrowed for the run and the host runs it.
        unsafe { (self.packet)(frame as u64, token, Unset::uninit(), key, image, self.host) }
    }

    /// Runs a program over the packets of a burst, in order, in one call; each frame gets its verdict.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    pub fn run_burst(&mut self, named: C::Named<'_>, burst: &mut Burst) -> Result<(), BurstFault> {
        // SAFETY: the frames stay in their places; programs and helpers only change what they describe.
        let frames = unsafe { burst.descriptors_mut() };
        self.run_first(frames.len(), named, frames)
    }

    /// Runs the packets of a burst, in order, each by the program that `choose` names for its index. Neighbors of one program
    /// go in one call.
    ///
    /// # Errors
    /// A run over a packet ended with a fault.
    pub fn run_mixed<'n>(
        &mut self,
        burst: &mut Burst,
        choose: impl Fn(usize) -> C::Named<'n>,
    ) -> Result<(), BurstFault> {
        // SAFETY: as in `run_burst`.
        let frames = unsafe { burst.descriptors_mut() };
        let mut start = 0;
        while start < frames.len() {
            let named = choose(start);
            let same = |index: &usize| C::burst(choose(*index)) == C::burst(named);
            let end = (start + 1..frames.len()).take_while(same).last().map_or(start + 1, |last| last + 1);
            self.run_first(end - start, named, &mut frames[start..])
                .map_err(|fault| BurstFault { index: start + fault.index, ..fault })?;
            start = end;
        }
        Ok(())
    }

    /// Runs the first frames; after a fault the rest is aborted as well.
    fn run_first(
        &mut self,
        count: usize,
        named: C::Named<'_>,
        frames: &mut [Frame],
    ) -> Result<(), BurstFault> {
        if let Err(fault) = C::admit(named, self.image, self.host) {
            return Err(BurstFault::of_all(frames, fault));
        }
        let first = frames.as_ptr() as u64;
        let reached = match frames {
            [] => return Ok(()),
            // Without the set-up of a loop.
            [frame, ..] if count == 1 => {
                let r0 = self.enter_packet(named, frame);
                frame.set_code(r0 as u32);
                first
            }
            _ => {
                let (key, token) = C::burst(named);
                let (key, image) = (Unset::new(key), Unset::new(self.image as *const Image as u64));
                let run = frames[..count].as_mut_ptr_range();
                self.calls += 1;
                // SAFETY: as in `run`.
                unsafe { (self.burst)(run.start as u64, run.end as u64, token, key, image, self.host) }
            }
        };
        burst_result(frames, count, reached, self.host)
    }
}

impl Calls<'_, ByKey> {
    /// Targets of packets by number in this burst.
    #[must_use]
    pub fn target(&self, key: u64) -> Option<&Target> {
        self.image.target(key)
    }
}

impl<C: Choice> Drop for Calls<'_, C> {
    #[inline]
    fn drop(&mut self) {
        let fallbacks = self.host.counts.misses - self.misses;
        // The caller alone writes: no instruction with a lock.
        let add =
            |count: &AtomicU64, more| count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        add(&self.caller.counts.hits, self.calls - fallbacks);
        if fallbacks != 0 {
            add(&self.caller.counts.fallbacks, fallbacks);
        }
    }
}

impl<C: Choice> fmt::Debug for Calls<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("calls", &self.calls).finish_non_exhaustive()
    }
}
