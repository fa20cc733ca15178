//! Parts on several threads, and their packets in order.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::opened::Opened;
use crate::part::{PartReader, Worker};
use crate::rows::{Rows, Wanted};
use crate::source::Part;
use crate::totals::{Report, Totals};

/// Rows of a part that wait for those before it, at most.
const WAITING: usize = 16;
/// Parts for each worker that are read or wait.
const AHEAD: usize = 3;

/// A result of a part.
enum Given {
    Rows(Box<Rows>),
    /// The end, and whether the rest of the capture was read too.
    End(Box<Totals>, bool),
    Failed(Error),
}

/// A part to be read.
struct Task {
    capture: usize,
    part: Part,
    given: SyncSender<Given>,
}

/// Reads parts of captures on as many threads as there are workers, and gives the packets that match to `consume`, in the order of the
/// parts. The parts of a capture follow one another, with its index. `consume` may end the scan.
///
/// Without interruption the result is that of one worker, and of whole captures in the place of parts.
///
/// # Errors
/// [`Error`]; the packets before were given.
///
/// # Panics
/// If there are no workers, or an index is none of `captures`.
pub fn scan(
    captures: &[Opened],
    parts: Vec<(usize, Part)>,
    workers: Vec<Worker>,
    wanted: Wanted,
    consume: impl FnMut(Rows) -> ControlFlow<()>,
) -> Result<Report, Error> {
    assert!(!workers.is_empty(), "a scan without workers");
    let report = Report { captures: vec![Totals::default(); captures.len()], interrupted: false };
    let mut join = Join { report, covered: None, consume };
    match <[Worker; 1]>::try_from(workers) {
        Ok([worker]) => alone(captures, parts, worker, wanted, &mut join)?,
        Err(workers) => together(captures, parts, workers, wanted, &mut join)?,
    }
    Ok(join.report)
}

/// Takes the results of parts, in order.
struct Join<C> {
    report: Report,
    /// The capture whose other parts are not needed.
    covered: Option<usize>,
    consume: C,
}

impl<C: FnMut(Rows) -> ControlFlow<()>> Join<C> {
    fn end(&mut self, capture: usize, totals: &Totals, is_rest: bool) {
        self.report.captures[capture].add(totals);
        self.covered = is_rest.then_some(capture);
    }

    /// Whether the scan ends.
    fn take(&mut self, rows: Rows) -> bool {
        self.report.interrupted |= (self.consume)(rows).is_break();
        self.report.interrupted
    }
}

/// Reads a part, and the rest of the capture where the parts behind cannot be read as they are; `give` returns whether to stop.
fn read(
    opened: &Opened,
    (capture, part): (usize, Part),
    worker: &mut Worker,
    wanted: Wanted,
    mut give: impl FnMut(Rows) -> bool,
) -> Result<(Totals, bool), Error> {
    let is_alone = part.is_alone;
    let mut reader = PartReader::new(opened, capture, part, wanted)?;
    let mut is_rest = false;
    loop {
        while let Some(rows) = reader.next(worker)? {
            if give(rows) {
                return Ok((reader.totals().clone(), is_rest));
            }
        }
        if reader.leads_on() {
            return Ok((reader.totals().clone(), is_rest));
        }
        // Another worker may have run its program on the parts behind already.
        if is_alone || worker.has_program() {
            return Err(reader.boundary_error());
        }
        reader.read_on();
        is_rest = true;
    }
}

/// Reads all parts on this thread.
fn alone<C: FnMut(Rows) -> ControlFlow<()>>(
    captures: &[Opened],
    parts: Vec<(usize, Part)>,
    mut worker: Worker,
    wanted: Wanted,
    join: &mut Join<C>,
) -> Result<(), Error> {
    for (capture, part) in parts {
        if join.covered == Some(capture) || join.report.interrupted {
            continue;
        }
        let (totals, is_rest) =
            read(&captures[capture], (capture, part), &mut worker, wanted, |rows| join.take(rows))?;
        join.end(capture, &totals, is_rest);
    }
    Ok(())
}

/// Reads parts on a thread for each worker.
fn together<C: FnMut(Rows) -> ControlFlow<()>>(
    captures: &[Opened],
    parts: Vec<(usize, Part)>,
    workers: Vec<Worker>,
    wanted: Wanted,
    join: &mut Join<C>,
) -> Result<(), Error> {
    let (tasks, received) = channel();
    let received = Mutex::new(received);
    let ahead = AHEAD * workers.len();
    thread::scope(|scope| {
        for worker in workers {
            let received = &received;
            scope.spawn(move || work(captures, received, worker, wanted));
        }
        // The threads end when there are no more tasks, and a task ends when its receiver is gone.
        deal(parts, tasks, ahead, join)
    })
}

/// Hands out parts, and joins their results.
fn deal<C: FnMut(Rows) -> ControlFlow<()>>(
    parts: Vec<(usize, Part)>,
    tasks: Sender<Task>,
    ahead: usize,
    join: &mut Join<C>,
) -> Result<(), Error> {
    let mut parts = parts.into_iter();
    let mut waiting = std::collections::VecDeque::new();
    loop {
        for (capture, part) in parts.by_ref().take(ahead - waiting.len()) {
            let (given, receiver) = sync_channel(WAITING);
            if tasks.send(Task { capture, part, given }).is_ok() {
                waiting.push_back((capture, receiver));
            }
        }
        let Some((capture, receiver)) = waiting.pop_front() else { return Ok(()) };
        if join.covered == Some(capture) {
            continue;
        }
        if take_all(capture, &receiver, join)? {
            return Ok(());
        }
    }
}

/// Takes the results of a part; whether the scan ends.
fn take_all<C: FnMut(Rows) -> ControlFlow<()>>(
    capture: usize,
    receiver: &Receiver<Given>,
    join: &mut Join<C>,
) -> Result<bool, Error> {
    for given in receiver {
        match given {
            Given::Rows(rows) => {
                if join.take(*rows) {
                    return Ok(true);
                }
            }
            Given::End(totals, is_rest) => join.end(capture, &totals, is_rest),
            Given::Failed(error) => return Err(error),
        }
    }
    Ok(false)
}

/// A worker's thread.
fn work(captures: &[Opened], tasks: &Mutex<Receiver<Task>>, mut worker: Worker, wanted: Wanted) {
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { capture, part, given }) = task else { return };
        let done = read(&captures[capture], (capture, part), &mut worker, wanted, |rows| {
            given.send(Given::Rows(Box::new(rows))).is_err()
        });
        let last = match done {
            Ok((totals, is_rest)) => Given::End(Box::new(totals), is_rest),
            Err(error) => Given::Failed(error),
        };
        // Without a receiver the part is not needed.
        let _ = given.send(last);
    }
}
