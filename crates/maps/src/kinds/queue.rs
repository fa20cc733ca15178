//! Queues and stacks (`kernel/bpf/queue_stack_maps.c`): values without keys.

use std::sync::{Mutex, MutexGuard, PoisonError};

use paceline_spec::{Errno, MapKind};

use crate::create::{ACCESS, CreateErrorKind, MAX_ALLOCATION, NUMA_NODE, Request};
use crate::map_ops::{KeySpace, MapOps};
use crate::mode::{EXIST, NO_EXIST, UpdateMode};
use crate::slab::{Shape, Slab};
use crate::words;

/// `BPF_MAP_TYPE_QUEUE` and `BPF_MAP_TYPE_STACK`
pub(crate) struct Queue {
    slab: Slab,
    /// Changes of values hold the lock.
    ends: Mutex<Ends>,
    entries: usize,
    value_size: usize,
    last_first: bool,
}

/// Cells with values: the oldest, and the number of those that follow it.
struct Ends {
    oldest: usize,
    len: usize,
}

impl Queue {
    pub(crate) fn open(request: &Request<'_>) -> Result<Box<dyn MapOps>, CreateErrorKind> {
        request.check_entries()?;
        request.check_no_key()?;
        request.check_flags(NUMA_NODE | ACCESS)?;
        request.check_value_at_most(MAX_ALLOCATION)?;
        let (entries, value_size) = (request.entries(), request.value_size());
        let shape = Shape { lanes: 1, cells: entries, words: words::words_for(value_size) };
        request.check_memory(shape.bytes().map(|bytes| bytes as u64))?;
        let last_first = request.spec.kind == MapKind::Stack;
        let ends = Mutex::new(Ends { oldest: 0, len: 0 });
        Ok(Box::new(Self { slab: Slab::new(shape)?, ends, entries, value_size, last_first }))
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the next value, or zeros where there is none, and then takes it away if asked.
    fn next(&self, value: &mut [u8], take: bool) -> Result<(), Errno> {
        let mut ends = self.ends();
        if ends.len == 0 {
            value.fill(0);
            return Err(Errno::ENOENT);
        }
        let cell = if self.last_first { ends.newest(self.entries) } else { ends.oldest };
        words::copy(value, self.slab.words(0, cell));
        if take && !self.last_first {
            ends.drop_oldest(self.entries);
        } else if take {
            ends.len -= 1;
        }
        Ok(())
    }
}

impl Ends {
    fn newest(&self, entries: usize) -> usize {
        let newest = self.oldest + self.len - 1;
        if newest < entries { newest } else { newest - entries }
    }

    fn drop_oldest(&mut self, entries: usize) {
        self.oldest = if self.oldest + 1 == entries { 0 } else { self.oldest + 1 };
        self.len -= 1;
    }
}

impl MapOps for Queue {
    /// A full one is `E2BIG`; with `EXIST` the oldest value goes instead, also in a stack.
    fn push(&self, value: &[u8], flags: u64) -> Result<(), Errno> {
        if flags & NO_EXIST != 0 || flags > EXIST {
            return Err(Errno::EINVAL);
        }
        let mut ends = self.ends();
        if ends.len == self.entries {
            if flags & EXIST == 0 {
                return Err(Errno::E2BIG);
            }
            ends.drop_oldest(self.entries);
        }
        ends.len += 1;
        words::fill(self.slab.words(0, ends.newest(self.entries)), value);
        Ok(())
    }

    fn pop(&self, value: &mut [u8]) -> Result<(), Errno> {
        self.next(value, true)
    }

    fn peek(&self, value: &mut [u8]) -> Result<(), Errno> {
        self.next(value, false)
    }

    fn values(&self, out: &mut Vec<Vec<u8>>) -> Result<(), Errno> {
        let ends = self.ends();
        let cells = (ends.oldest..ends.oldest + ends.len).map(|cell| cell % self.entries);
        out.extend(cells.map(|cell| {
            let mut value = Vec::with_capacity(self.value_size);
            words::append(&mut value, self.slab.words(0, cell), self.value_size);
            value
        }));
        Ok(())
    }

    fn user_value_size(&self) -> usize {
        self.value_size
    }

    fn get(&self, _key: &[u8], out: &mut Vec<u8>) -> Result<(), Errno> {
        out.resize(self.value_size, 0);
        self.next(out, false)
    }

    fn set(&self, _key: &[u8], _value: &[u8], _mode: UpdateMode) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn remove(&self, _key: &[u8]) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    fn key_space(&self) -> KeySpace<'_> {
        KeySpace::None(Errno::EINVAL)
    }
}
