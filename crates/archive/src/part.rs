//! Reading of a part: records, filter, program.

use std::io::ErrorKind;

use paceline::capture::{CaptureReader, Damage, Heads, Link, Lost, ReadError};
use paceline::filter::{Filter, Matched, PacketFilter};
use paceline::scenario::Origin;
use paceline::{Burst, Fault, Host, ReplayOptions, Runner};

use crate::error::Error;
use crate::opened::Opened;
use crate::rows::{Rows, Wanted};
use crate::source::Part;
use crate::totals::Totals;

/// Packets of rows, and bytes of them, after which they are handed over.
const MOST_ROWS: usize = 8192;
const MOST_BYTES: usize = 1 << 20;
/// Packets that are read for rows, at most: so that one who waits for them sees progress.
const MOST_READ: u64 = 1 << 16;

/// A program, and what it sees besides packets and maps.
struct Machine {
    runner: Box<dyn Runner + Send>,
    host: Host,
    origin: Origin,
    burst: Burst,
    /// Offsets of the packets.
    offsets: Vec<u64>,
}

/// Reads parts one after the other on a thread, with a program if it has one.
#[derive(Default)]
pub struct Worker {
    /// Of the filter.
    host: Host,
    machine: Option<Machine>,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl Worker {
    /// A worker that runs a program on the packets that match, with the host that it sees. Of the options it takes the origin of packets, and
    /// whether they run one by one.
    #[must_use]
    pub fn with_program(runner: Box<dyn Runner + Send>, mut host: Host, options: ReplayOptions) -> Self {
        host.set_arriving(options.origin.context);
        let burst = if options.packet_by_packet { Burst::new(1) } else { Burst::default() };
        let machine = Machine { runner, host, origin: options.origin, burst, offsets: Vec::new() };
        Self { host: Host::default(), machine: Some(machine) }
    }

    /// Whether it runs a program.
    pub(crate) fn has_program(&self) -> bool {
        self.machine.is_some()
    }
}

/// Reads the packets of a part.
pub struct PartReader {
    name: String,
    capture: usize,
    link: Link,
    filter: Option<PacketFilter>,
    part: Part,
    reader: CaptureReader<'static>,
    heads: Heads,
    wanted: Wanted,
    totals: Totals,
    is_compressed: bool,
    is_done: bool,
    /// An error behind the rows that were given.
    failure: Option<Error>,
}

impl std::fmt::Debug for PartReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartReader").finish_non_exhaustive()
    }
}

impl PartReader {
    /// Begins a part of a capture; `capture` is the number that its rows get.
    ///
    /// # Errors
    /// [`Error::Read`]
    pub fn new(opened: &Opened, capture: usize, part: Part, wanted: Wanted) -> Result<Self, Error> {
        let stream = opened.source.stream(&part)?;
        let reader = match &part.split {
            None => CaptureReader::for_filters(stream).map(CaptureReader::recovering),
            Some(split) => split.reader(stream),
        };
        let reader = reader.map_err(|error| Error::read(&opened.source.name, error))?;
        Ok(Self {
            name: opened.source.name.clone(),
            capture,
            link: opened.link,
            heads: Heads::new(head_of(opened)),
            filter: opened.filter.clone(),
            is_compressed: opened.source.compression.is_some(),
            part,
            reader,
            wanted,
            totals: Totals::default(),
            is_done: false,
            failure: None,
        })
    }

    /// Counts so far.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The next packets that match, perhaps none; `None` at the end.
    ///
    /// # Errors
    /// [`Error`]
    pub fn next(&mut self, worker: &mut Worker) -> Result<Option<Rows>, Error> {
        if let Some(error) = self.failure.take() {
            self.is_done = true;
            return Err(error);
        }
        if self.is_done {
            return Ok(None);
        }
        let mut rows = Rows::of(self.capture);
        if let Err(error) = self.read_rows(worker, &mut rows) {
            if let Some(machine) = &mut worker.machine {
                machine.burst.clear();
                machine.offsets.clear();
                // The others did not run.
                rows.truncate(rows.verdicts.len());
            }
            self.failure = Some(error);
        }
        self.totals.lost.extend(self.reader.take_lost());
        Ok(Some(rows))
    }

    /// Reads packets until there are enough rows, and runs the program on those that match.
    fn read_rows(&mut self, worker: &mut Worker, rows: &mut Rows) -> Result<(), Error> {
        while !self.is_done && rows.len() < MOST_ROWS && rows.bytes() < MOST_BYTES && rows.read < MOST_READ {
            self.is_done = !self.read_burst(worker, rows)?;
        }
        match &mut worker.machine {
            Some(machine) => self.run(machine, rows),
            None => Ok(()),
        }
    }

    /// Whether the parts behind this one can be read as they are, when all packets of this one are read.
    #[must_use]
    pub fn leads_on(&self) -> bool {
        self.part.split.as_ref().is_none_or(|split| split.leads_on(&self.reader))
    }

    /// Reads on to the end of the capture, in place of the parts behind this one.
    pub fn read_on(&mut self) {
        self.part.split = None;
        self.reader.set_end(u64::MAX);
        self.is_done = false;
    }

    /// The error of parts that cannot be read as they are.
    pub(crate) fn boundary_error(&self) -> Error {
        let end = self.part.split.as_ref().map_or(0, |split| split.end);
        Error::Boundary { name: self.name.clone(), end }
    }

    /// Reads and filters a burst; false at the end.
    fn read_burst(&mut self, worker: &mut Worker, rows: &mut Rows) -> Result<bool, Error> {
        if !self.fill()? {
            return Ok(false);
        }
        let count = self.heads.burst.len();
        rows.read += count as u64;
        self.totals.read.packets += count as u64;
        self.totals.read.bytes += (0..count).map(|index| self.heads.captured(index) as u64).sum::<u64>();
        let mut mask = self.matches(&mut worker.host)?;
        while mask != 0 {
            let index = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            self.take(index, worker, rows)?;
        }
        Ok(true)
    }

    /// Reads packets; false at the end. What is damaged within compressed bytes ends them.
    fn fill(&mut self) -> Result<bool, Error> {
        let offset = match self.reader.fill_heads(&mut self.heads) {
            Ok(count) => return Ok(count > 0),
            Err(ReadError::Io { offset, source }) if self.is_damage(source.kind()) => offset,
            Err(error) => return Err(Error::read(&self.name, error)),
        };
        self.totals.lost.extend(self.reader.take_lost());
        self.totals.lost.push(Lost { from: self.reader.position(), to: offset, damage: Damage::Compression });
        Ok(false)
    }

    fn is_damage(&self, kind: ErrorKind) -> bool {
        self.is_compressed && kind == ErrorKind::InvalidData
    }

    /// The packets of the burst that match, a bit each.
    fn matches(&mut self, host: &mut Host) -> Result<u64, Error> {
        let burst = &mut self.heads.burst;
        let Some(filter) = &self.filter else { return Ok(u64::MAX >> (u64::BITS as usize - burst.len())) };
        self.link.to_native(burst);
        let mask = filter.matches(burst, host);
        self.link.to_captured(burst);
        mask.map_err(|fault| self.fault(self.heads.offset(fault.index), fault.fault))
    }

    /// Adds a packet that matches.
    fn take(&mut self, index: usize, worker: &mut Worker, rows: &mut Rows) -> Result<(), Error> {
        let packet = self.reader.packet(&self.heads, index);
        let Matched { packets, bytes } = &mut self.totals.matched;
        (*packets, *bytes) = (*packets + 1, *bytes + packet.len() as u64);
        let (frame, offset) = (self.heads.burst.frame(index), self.heads.offset(index));
        rows.push(frame, packet, offset, self.wanted);
        let Some(machine) = &mut worker.machine else {
            if self.wanted.data {
                rows.data.push(packet);
            }
            return Ok(());
        };
        let meta = *frame.meta();
        machine.burst.push(packet, meta).expect("the reader delivers packets that fit into a frame");
        machine.offsets.push(offset);
        if machine.burst.is_full() { self.run(machine, rows) } else { Ok(()) }
    }

    /// Runs the program on the packets that wait for it.
    fn run(&mut self, machine: &mut Machine, rows: &mut Rows) -> Result<(), Error> {
        let Machine { runner, host, origin, burst, offsets } = machine;
        if burst.is_empty() {
            return Ok(());
        }
        origin.receive(burst, 0);
        host.arrive(burst);
        let ran = match host.fire_timers() {
            Err(fault) => Err((0, fault)),
            Ok(_) => runner.run_burst(burst, host).map_err(|fault| (fault.index, fault.fault)),
        };
        let ran = ran.map_err(|(index, fault)| self.fault(offsets[index], fault));
        if ran.is_ok() {
            for frame in burst.iter() {
                self.totals.verdicts[frame.verdict() as usize] += 1;
                rows.push_outcome(frame, self.wanted);
            }
        }
        burst.clear();
        offsets.clear();
        ran
    }

    fn fault(&self, offset: u64, fault: Box<Fault>) -> Error {
        Error::Fault { name: self.name.clone(), offset, fault }
    }
}

/// Bytes of each packet that its filter is given.
fn head_of(opened: &Opened) -> usize {
    let Some(filter) = &opened.filter else { return 0 };
    // Converted numbers of pseudo-headers may be anywhere.
    let is_native = opened.link.order == paceline::capture::ByteOrder::NATIVE;
    let extent = filter.filter().and_then(Filter::extent).filter(|_| is_native);
    extent.and_then(|extent| usize::try_from(extent).ok()).unwrap_or(usize::MAX)
}
