//! The space of an arena: which of its memory is committed, used and free.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use rustix::process::getpid;

use crate::exec::error::ExecError;
use crate::exec::extents::{Extents, GRAIN};
use crate::exec::fork::{self, Generation};
use crate::exec::memory::{CHUNK, GUARD_BYTE, Memory};
use crate::exec::sync::lock;

/// Minimum number of guard bytes after a block. Those of the previous block precede it.
const GUARD: usize = 16;

/// The memory of an arena, and what of it is in use.
pub(crate) struct Space {
    memory: Arc<Memory>,
    /// Process that may write: a fork has a copy of the memory, or shares it if it could not make one.
    owner: i32,
    room: Mutex<Room>,
}

struct Room {
    /// Committed free extents.
    free: Extents,
    /// Number of committed bytes, from the start.
    committed: usize,
    /// Freed extents that a fork without a copy may still execute.
    shared: Vec<Place>,
    /// The last generation known to be shared when `shared` was last examined.
    looked_at: Option<Generation>,
}

/// An extent with the generation in which it was allocated.
#[derive(Clone)]
struct Place {
    range: Range<usize>,
    generation: Generation,
}

impl Space {
    /// The space of this process in memory of which nothing is committed. Forks copy it.
    pub(crate) fn new(memory: Memory) -> Result<Arc<Self>, ExecError> {
        let memory = Arc::new(memory);
        fork::register(&memory)?;
        let room = Room { free: Extents::default(), committed: 0, shared: Vec::new(), looked_at: None };
        let owner = getpid().as_raw_nonzero().get();
        Ok(Arc::new(Self { memory, owner, room: Mutex::new(room) }))
    }

    /// The addresses of the memory.
    pub(crate) fn range(&self) -> Range<usize> {
        self.memory.range()
    }

    /// Number of committed bytes, used and free.
    pub(crate) fn committed(&self) -> usize {
        lock(&self.room).committed
    }

    fn check_owner(&self) -> Result<(), ExecError> {
        let ours = getpid().as_raw_nonzero().get() == self.owner;
        if ours { Ok(()) } else { Err(ExecError::Forked { owner: self.owner }) }
    }

    /// Allocates an extent, from committed memory or by committing more.
    fn allocate(&self, len: usize, alignment: usize) -> Result<Place, ExecError> {
        self.check_owner()?;
        let capacity = self.memory.range().len();
        let mut room = lock(&self.room);
        self.reclaim(&mut room);
        let exhausted = |free: &Extents, left| {
            Err(ExecError::Exhausted { bytes: len, capacity, largest: free.largest().max(left) })
        };
        let Some(bytes) = len.checked_add(GUARD).and_then(|len| len.checked_next_multiple_of(GRAIN)) else {
            return exhausted(&room.free, capacity - room.committed);
        };
        loop {
            if let Some(start) = room.free.take(bytes, alignment) {
                return Ok(Place { range: start..start + bytes, generation: Generation::now() });
            }
            let left = capacity - room.committed;
            if left == 0 {
                return exhausted(&room.free, left);
            }
            self.commit(&mut room, bytes.next_multiple_of(CHUNK).min(left))?;
        }
    }

    /// Frees extents that no fork executes any more, if forks have made their copies.
    fn reclaim(&self, room: &mut Room) {
        if room.shared.is_empty() {
            return;
        }
        let last_shared = Generation::last_shared();
        if room.looked_at != Some(last_shared) {
            let shared = std::mem::take(&mut room.shared);
            shared.into_iter().for_each(|place| self.give_back(room, place));
            room.looked_at = Some(last_shared);
        }
    }

    /// Overwrites an extent with guard bytes and frees it, unless a fork may still execute its code.
    fn give_back(&self, room: &mut Room, place: Place) {
        if place.generation.is_shared() {
            room.looked_at = None;
            return room.shared.push(place);
        }
        // An extent that cannot be overwritten is not reused.
        let Range { start, end } = place.range;
        if self.memory.write(start, &vec![GUARD_BYTE; end - start]).is_ok() {
            room.free.give(start, end - start);
        }
    }

    /// Commits more memory, filled with guard bytes.
    fn commit(&self, room: &mut Room, bytes: usize) -> Result<(), ExecError> {
        self.memory.write(room.committed, &vec![GUARD_BYTE; bytes]).map_err(ExecError::Write)?;
        // The memory before the arena is unknown, so the first block needs guard bytes before it as well.
        let skip = if room.committed == 0 { GRAIN } else { 0 };
        room.free.give(room.committed + skip, bytes - skip);
        room.committed += bytes;
        Ok(())
    }
}

/// An extent of an arena, freed when dropped: code, followed by guard bytes.
pub(crate) struct Extent {
    space: Arc<Space>,
    place: Place,
}

impl Extent {
    /// Allocates an extent with room for `len` bytes of code.
    pub(crate) fn allocate(space: &Arc<Space>, len: usize, alignment: usize) -> Result<Self, ExecError> {
        let place = space.allocate(len, alignment)?;
        Ok(Self { space: Arc::clone(space), place })
    }

    /// Its size in bytes, with the guard bytes.
    pub(crate) fn len(&self) -> usize {
        self.place.range.len()
    }

    /// Writes all of its bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), ExecError> {
        self.space.memory.write(self.place.range.start, bytes).map_err(ExecError::Write)
    }

    /// Start address of the extent, with exposed provenance.
    pub(crate) fn address(&self) -> usize {
        self.space.memory.pointer(self.place.range.start).expose_provenance().get()
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        // A fork's memory is not reused, because a fork cannot install code.
        if self.space.check_owner().is_ok() {
            self.space.give_back(&mut lock(&self.space.room), self.place.clone());
        }
    }
}
