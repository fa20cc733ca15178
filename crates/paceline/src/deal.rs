//! Packets of a capture dealt out to workers by flow.
//!
//! No thread reads for the others. A worker that has nothing to run reads the next window of records, and divides its packets by flow; each
//! worker decodes and runs its own packets of each window, in the order of the capture. One worker at a time reads.
//!
//! A worker reads another window before it runs one while fewer than two are ready, unless the source gave less than a buffer the
//! last time, as pipes do.

use std::borrow::BorrowMut;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use paceline_capture::{CaptureReader, Division, ReadError, Window};
use paceline_ports::queue_of;

/// Windows in the row beside one for each worker.
const AHEAD: usize = 2;
/// A worker reads another window first while fewer than this number are there for it, so that none waits for one.
const SHORT: u64 = 2;

/// A place in the row of windows.
struct Slot {
    window: Arc<Window>,
    /// Number of readers that have not finished it.
    left: usize,
}

/// The windows from the first one that a reader has not finished.
struct Row<R> {
    /// `None` while a worker reads.
    source: Option<Source<R>>,
    slots: VecDeque<Slot>,
    /// Number of the first slot, from 0.
    first: u64,
    /// Number of readers that finish windows.
    readers: usize,
    /// Whether the source may wait for packets, so that those that are there are run before it is read.
    waits: bool,
    /// Number of windows, once no other is read.
    end: Option<u64>,
    /// The damage behind the last window.
    error: Option<ReadError>,
    /// Memory of windows that are finished.
    spare: Vec<Window>,
}

/// Answer to a reader that asks for a window.
pub(crate) enum Next {
    /// Its next window.
    Window(Arc<Window>),
    /// Nothing now: another worker reads, or others have to finish windows first.
    Later,
    /// There are no more.
    End,
}

impl<R> Row<R> {
    fn len(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        usize::try_from(number.checked_sub(self.first)?).ok().and_then(|index| self.slots.get_mut(index))
    }

    fn next(&mut self, number: u64) -> Next {
        if self.end.is_some_and(|end| number >= end) {
            return Next::End;
        }
        self.slot(number).map_or(Next::Later, |slot| Next::Window(Arc::clone(&slot.window)))
    }

    /// Ends the row before a window, unless it ends earlier.
    fn end_at(&mut self, number: u64, error: Option<ReadError>) {
        if self.end.is_none_or(|end| number < end) {
            (self.end, self.error) = (Some(number), error);
        }
    }

    /// Drops the windows that all readers have finished, and keeps their memory.
    fn recycle(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.left == 0)
            && let Some(slot) = self.slots.pop_front()
        {
            self.spare.extend(Arc::into_inner(slot.window));
            self.first += 1;
        }
    }
}

/// The reading side.
struct Source<R> {
    reader: R,
    /// Number of packets that are wanted still.
    left: u64,
}

/// The windows of a capture, which workers read together.
pub(crate) struct Deal<R> {
    row: Mutex<Row<R>>,
    changed: Condvar,
    workers: usize,
    keep_records: bool,
}

impl<'a, R: BorrowMut<CaptureReader<'a>>> Deal<R> {
    /// Deals out up to `most` packets to a number of workers. Windows are kept until each of `readers`, the workers among them, has finished
    /// them; records are kept for a writer.
    pub(crate) fn new(reader: R, most: u64, workers: usize, readers: usize, keep_records: bool) -> Self {
        let row = Row {
            source: Some(Source { reader, left: most }),
            slots: VecDeque::new(),
            first: 0,
            readers,
            waits: true,
            end: None,
            error: None,
            spare: Vec::new(),
        };
        Self { row: Mutex::new(row), changed: Condvar::new(), workers, keep_records }
    }

    fn row(&self) -> MutexGuard<'_, Row<R>> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window of a number for a worker, which deals windows while it has none; `None` at the end.
    pub(crate) fn next(&self, number: u64) -> Option<Arc<Window>> {
        loop {
            match self.try_next(number) {
                Next::Window(window) => return Some(window),
                Next::End => return None,
                Next::Later => self.wait(number),
            }
        }
    }

    /// As [`next`](Self::next), without waiting for other workers.
    pub(crate) fn try_next(&self, number: u64) -> Next {
        loop {
            let mut row = self.row();
            let next = row.next(number);
            let reads_first = match next {
                Next::Window(_) => !row.waits && row.len() < number + SHORT,
                Next::Later => true,
                Next::End => false,
            };
            drop(row);
            if !reads_first || !self.deal() {
                return next;
            }
        }
    }

    /// The window of a number for a reader that deals none; `None` at the end.
    pub(crate) fn await_window(&self, number: u64) -> Option<Arc<Window>> {
        let mut row = self.row();
        loop {
            match row.next(number) {
                Next::Window(window) => return Some(window),
                Next::End => return None,
                Next::Later => row = self.changed.wait(row).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for a change, if there is neither this window nor one to deal.
    fn wait(&self, number: u64) {
        let mut row = self.row();
        if matches!(row.next(number), Next::Later) && !self.may_read(&row) {
            drop(self.changed.wait(row));
        }
    }

    fn may_read(&self, row: &Row<R>) -> bool {
        row.source.is_some() && row.end.is_none() && row.slots.len() < self.workers + AHEAD
    }

    /// Deals a window, if there is room for one and no other worker reads; false if nothing has changed.
    fn deal(&self) -> bool {
        let mut row = self.row();
        if !self.may_read(&row) {
            return false;
        }
        let Some(mut source) = row.source.take() else { return false };
        let mut window = row.spare.pop().unwrap_or_default();
        drop(row);
        let read = self.read(&mut source, &mut window);
        let mut row = self.row();
        row.source = Some(source);
        row.waits = !window.is_full();
        let (number, left) = (row.len(), row.readers);
        match read {
            Ok(1..) => row.slots.push_back(Slot { window: Arc::new(window), left }),
            Ok(0) => row.end_at(number, None),
            Err(error) => row.end_at(number, Some(error)),
        }
        drop(row);
        self.changed.notify_all();
        true
    }

    fn read(&self, source: &mut Source<R>, window: &mut Window) -> Result<usize, ReadError> {
        let mut division = Division {
            groups: self.workers,
            group_of: |packet: &[u8]| queue_of(packet, self.workers),
            most: usize::try_from(source.left).unwrap_or(usize::MAX),
            keep_records: self.keep_records,
        };
        let read = source.reader.borrow_mut().fill_window(window, &mut division);
        source.left -= *read.as_ref().unwrap_or(&0) as u64;
        read
    }

    /// Says that a reader has finished a window, which it gives back.
    pub(crate) fn finish(&self, number: u64, window: Arc<Window>) {
        drop(window);
        let mut row = self.row();
        if let Some(slot) = row.slot(number) {
            slot.left = slot.left.saturating_sub(1);
        }
        let before = row.first;
        row.recycle();
        let has_room = row.first != before;
        drop(row);
        if has_room {
            self.changed.notify_all();
        }
    }

    /// Reads no further. The windows that were read remain.
    pub(crate) fn stop(&self) {
        let mut row = self.row();
        let end = row.len() + u64::from(row.source.is_none());
        row.end_at(end, None);
        drop(row);
        self.changed.notify_all();
    }

    /// Ends all waiting: there are no more windows.
    pub(crate) fn abort(&self) {
        self.row().end_at(0, None);
        self.changed.notify_all();
    }

    /// Says that a reader finishes no window from this number on.
    pub(crate) fn leave(&self, number: u64) {
        let mut row = self.row();
        row.readers = row.readers.saturating_sub(1);
        let finished = usize::try_from(number.saturating_sub(row.first)).unwrap_or(usize::MAX);
        row.slots.iter_mut().skip(finished).for_each(|slot| slot.left = slot.left.saturating_sub(1));
        row.recycle();
        drop(row);
        self.changed.notify_all();
    }

    /// Takes the error behind the last window.
    pub(crate) fn take_error(&self) -> Option<ReadError> {
        self.row().error.take()
    }
}
