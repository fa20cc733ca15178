//! Packets out of and into rings.

use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;

use paceline_frame::{Burst, FrameMeta, HEADROOM, MAX_PACKET, MIN_PACKET, PoolCache, Span};

use super::channel::End;
use super::event::Event;
use super::region::Region;
use super::ring::{Entry, MORE, Ring};

/// Looks at an empty ring before the peer is asked for interrupts, each of which costs it a system call.
const LOOKS: u32 = 16;

/// Role in the connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// It owns the buffers: `len` bytes for each entry, from an offset in the first memory on.
    Client { buffers: u32, len: u32 },
    /// It finds the buffers in the entries.
    Server,
}

impl Side {
    /// The bytes that an entry refers to, all inside of a memory: the memory, its number, and the offset. A client knows them without the
    /// entry.
    #[inline]
    fn place<'r>(&self, ring: &'r Ring, index: u16, entry: Entry) -> Result<(&'r Region, u16, u32), End> {
        let (region, offset) = match *self {
            Self::Client { buffers, len } => (0, buffers + u32::from(index & (ring.entries() - 1)) * len),
            Self::Server => (entry.region, entry.offset),
        };
        let memory = ring.memory(region).ok_or(End::Broken("buffer in an unknown region"))?;
        let fits = match *self {
            Self::Client { len, .. } => entry.len <= len,
            Self::Server => memory.has(offset as usize, entry.len as usize),
        };
        if fits { Ok((memory, region, offset)) } else { Err(End::Broken("buffer outside of its region")) }
    }
}

/// The ring of a queue that packets arrive in.
pub(super) struct Receiver {
    ring: Ring,
    event: Event,
    side: Side,
    /// Index of the next entry.
    next: u16,
    /// Index behind the entries that the peer may fill; the server's is the head.
    given: u16,
    /// Whether the peer does not interrupt.
    is_masked: bool,
    /// Looks at the empty ring since a packet arrived.
    looks: u32,
    /// A packet of several buffers, or one that is longer than a frame.
    long: Vec<u8>,
}

impl Receiver {
    pub(super) fn new(ring: Ring, event: Event, side: Side) -> Self {
        Self { ring, event, side, next: 0, given: 0, is_masked: false, looks: 0, long: Vec::new() }
    }

    /// Gives all buffers to the peer.
    pub(super) fn begin(&mut self) -> Result<(), End> {
        self.release()
    }

    /// Number of entries that the peer has filled.
    #[inline]
    pub(super) fn available(&self) -> Result<u16, End> {
        let (filled, most) = match self.side {
            Side::Client { .. } => {
                (self.ring.tail()?.wrapping_sub(self.next), self.given.wrapping_sub(self.next))
            }
            Side::Server => (self.ring.head()?.wrapping_sub(self.next), self.ring.entries()),
        };
        if filled <= most { Ok(filled) } else { Err(End::Broken("ring index out of range")) }
    }

    /// Adds packets to a burst, each copied into a frame, and returns their number. Those that are too short or too long are counted.
    pub(super) fn receive(
        &mut self,
        burst: &mut Burst,
        cache: &mut PoolCache,
        lost: &mut u64,
    ) -> Result<usize, End> {
        let mut available = self.available()?;
        if available == 0 {
            return self.look().map(|()| 0);
        }
        let before = burst.len();
        while available > 0 && !burst.is_full() {
            match self.take(available, burst, cache, lost)? {
                0 => break,
                used => {
                    available -= used;
                    self.next = self.next.wrapping_add(used);
                }
            }
        }
        self.release()?;
        self.looks = 0;
        if !self.is_masked {
            self.ring.want_interrupts(false)?;
            self.is_masked = true;
            self.event.clear();
        }
        Ok(burst.len() - before)
    }

    /// Nothing has arrived: the peer is asked to interrupt, when this goes on.
    fn look(&mut self) -> Result<(), End> {
        self.looks = self.looks.saturating_add(1);
        if self.is_masked && self.looks >= LOOKS {
            self.is_masked = false;
            self.ring.want_interrupts(true)?;
        }
        Ok(())
    }

    /// Takes the next packet out of `available` entries; returns how many it has, or 0 if it cannot be taken now.
    #[inline]
    fn take(
        &mut self,
        available: u16,
        burst: &mut Burst,
        cache: &mut PoolCache,
        lost: &mut u64,
    ) -> Result<u16, End> {
        let entry = self.ring.entry(self.next)?;
        let len = entry.len as usize;
        if entry.flags & MORE != 0 || len > cache.pool().capacity() {
            return self.take_long(available, burst, lost);
        }
        let (memory, _, offset) = self.side.place(&self.ring, self.next, entry)?;
        if len < MIN_PACKET {
            *lost += 1;
            return Ok(1);
        }
        let Some(mut chunk) = cache.alloc() else { return Ok(0) };
        memory.read(offset as usize, &mut cache.pool().buffer_mut(&mut chunk)[HEADROOM..HEADROOM + len]);
        let span = Span { offset: HEADROOM as u32, len: len as u32, metadata: 0 };
        if let Err(error) = burst.place(cache.pool(), chunk, span, meta(len)) {
            cache.free(error.into_chunk());
            *lost += 1;
        }
        Ok(1)
    }

    /// The same for a packet of several buffers, or one that no frame can hold.
    #[cold]
    fn take_long(&mut self, available: u16, burst: &mut Burst, lost: &mut u64) -> Result<u16, End> {
        self.long.clear();
        let mut is_whole = true;
        let mut used = 0;
        loop {
            if used == available {
                // The rest may follow, unless there is no place for it.
                let is_full = available == self.ring.entries();
                return if is_full { Err(End::Broken("packet without end")) } else { Ok(0) };
            }
            let index = self.next.wrapping_add(used);
            let entry = self.ring.entry(index)?;
            let (memory, _, offset) = self.side.place(&self.ring, index, entry)?;
            let (start, end) = (self.long.len(), self.long.len() + entry.len as usize);
            is_whole &= end <= MAX_PACKET;
            if is_whole {
                self.long.resize(end, 0);
                memory.read(offset as usize, &mut self.long[start..]);
            }
            used += 1;
            if entry.flags & MORE == 0 {
                break;
            }
        }
        let is_kept = is_whole && self.long.len() >= MIN_PACKET;
        let pushed = is_kept && burst.push(&self.long, meta(self.long.len())).is_ok();
        *lost += u64::from(!pushed);
        Ok(used)
    }

    /// Gives the entries that were read back to the peer.
    fn release(&mut self) -> Result<(), End> {
        let Side::Client { buffers, len } = self.side else { return self.ring.set_tail(self.next) };
        let end = self.next.wrapping_add(self.ring.entries());
        while self.given != end {
            let slot = u32::from(self.given & (self.ring.entries() - 1));
            self.ring
                .set_entry(self.given, Entry { flags: 0, region: 0, len, offset: buffers + slot * len })?;
            self.given = self.given.wrapping_add(1);
        }
        self.ring.set_head(end)
    }

    /// Forgets interrupts that have arrived.
    pub(super) fn clear_event(&self) {
        self.event.clear();
    }

    /// Becomes readable when the peer interrupts.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

fn meta(len: usize) -> FrameMeta {
    FrameMeta { original_len: len as u32, ..FrameMeta::default() }
}

/// The ring of a queue that packets are sent to.
pub(super) struct Sender {
    ring: Ring,
    event: Event,
    side: Side,
    /// Index of the next entry.
    next: u16,
}

impl Sender {
    pub(super) fn new(ring: Ring, event: Event, side: Side) -> Self {
        Self { ring, event, side, next: 0 }
    }

    /// Sends packets and returns their number: those that the free buffers have room for.
    pub(super) fn send<'p>(&mut self, packets: impl Iterator<Item = &'p [u8]>) -> Result<usize, End> {
        let (mut free, mut sent) = (self.free()?, 0);
        for packet in packets {
            let used = self.put(packet, free)?;
            free -= used;
            self.next = self.next.wrapping_add(used);
            sent += usize::from(used > 0);
        }
        if sent > 0 {
            match self.side {
                Side::Client { .. } => self.ring.set_head(self.next)?,
                Side::Server => self.ring.set_tail(self.next)?,
            }
            if self.ring.wants_interrupt()? {
                self.event.signal();
            }
        }
        Ok(sent)
    }

    /// Number of entries that can be filled.
    fn free(&self) -> Result<u16, End> {
        let entries = self.ring.entries();
        let free = match self.side {
            Side::Client { .. } => entries.checked_sub(self.next.wrapping_sub(self.ring.tail()?)),
            Side::Server => Some(self.ring.head()?.wrapping_sub(self.next)).filter(|&free| free <= entries),
        };
        free.ok_or(End::Broken("ring index out of range"))
    }

    /// Copies a packet into the buffers of the next entries; returns how many, or 0 if `free` entries do not suffice.
    #[inline]
    fn put(&mut self, packet: &[u8], free: u16) -> Result<u16, End> {
        let (mut rest, mut used) = (packet, 0);
        while used < free {
            let index = self.next.wrapping_add(used);
            let room = match self.side {
                Side::Client { len, .. } => Entry { len, ..Entry::default() },
                Side::Server => self.ring.entry(index)?,
            };
            let (memory, region, offset) = self.side.place(&self.ring, index, room)?;
            if room.len == 0 {
                return Err(End::Broken("buffer without room"));
            }
            let (part, after) = rest.split_at(rest.len().min(room.len as usize));
            memory.write(offset as usize, part);
            let flags = if after.is_empty() { 0 } else { MORE };
            self.ring.set_entry(index, Entry { flags, region, len: part.len() as u32, offset })?;
            rest = after;
            used += 1;
            if rest.is_empty() {
                return Ok(used);
            }
        }
        Ok(0)
    }
}
