//! Captures as ports.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use paceline_capture::{
    CaptureReader, CaptureWriter, GroupReader, Header, PcapHeader, ReadError, Resolution, Window, WriteError,
};
use paceline_frame::{Burst, FrameMeta};
use paceline_ports::{Group, Port, PortError, SendError};

use crate::deal::{Deal, Next};

/// Receives the packets of a capture, and writes sent packets to another one, in the pcap format with nanoseconds. Without an
/// output, sent packets are counted only.
///
/// [`replay`](crate::replay()) is the way to change a capture and keep all else that it holds.
pub struct CapturePort {
    reader: Option<CaptureReader<'static>>,
    output: Output,
    is_done: bool,
}

/// Where sent packets go.
struct Output(Option<CaptureWriter<'static>>);

impl CapturePort {
    /// A port of an input, an output, both or none.
    ///
    /// # Errors
    /// [`PortError::Io`] if the output's header cannot be written.
    pub fn new(
        input: Option<CaptureReader<'static>>,
        output: Option<Box<dyn Write + Send>>,
    ) -> Result<Self, PortError> {
        let is_done = input.is_none();
        Ok(Self { reader: input, output: Output::new(output)?, is_done })
    }

    /// Ports of the same captures for a number of workers, all packets of a flow on the same one, in order. Sent packets are in the order in
    /// which they are sent.
    ///
    /// # Errors
    /// [`PortError::Io`] if the output's header cannot be written.
    pub fn queues(
        input: Option<CaptureReader<'static>>,
        output: Option<Box<dyn Write + Send>>,
        workers: usize,
    ) -> Result<Vec<CaptureQueue>, PortError> {
        let output = Arc::new(Mutex::new(Output::new(output)?));
        let deal = input.map(|reader| Arc::new(Deal::new(reader, u64::MAX, workers, workers, false)));
        let queue = |number| CaptureQueue {
            deal: deal.clone(),
            number,
            next: 0,
            current: None,
            output: Arc::clone(&output),
            is_stopped: false,
            is_done: deal.is_none(),
        };
        Ok((0..workers).map(queue).collect())
    }
}

impl Output {
    fn new(output: Option<Box<dyn Write + Send>>) -> Result<Self, PortError> {
        let header = Header::Pcap(PcapHeader::new(Resolution::Nano));
        let writer = output.map(|output| CaptureWriter::new(output, &header)).transpose();
        writer.map(Self).map_err(written)
    }

    fn send(&mut self, group: &Group<'_>) -> Result<usize, SendError> {
        let Some(writer) = &mut self.0 else { return Ok(group.len()) };
        for (sent, frame) in group.iter().enumerate() {
            let len = frame.len() as u32;
            let timestamp_ns = match frame.meta().timestamp_ns {
                0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
                time => time,
            };
            let original_len = frame.meta().original_len.max(len);
            writer
                .push(frame.packet(), &FrameMeta { timestamp_ns, original_len, ..*frame.meta() })
                .map_err(|error| SendError { sent, error: written(error) })?;
        }
        Ok(group.len())
    }
}

impl Port for CapturePort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let Some(reader) = self.reader.as_mut().filter(|_| !self.is_done && !burst.is_full()) else {
            return Ok(0);
        };
        let added = if burst.is_empty() { reader.fill(burst).map_err(read)? } else { add(reader, burst)? };
        self.is_done = added == 0;
        Ok(added)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.output.send(&group)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn stop(&mut self) {
        self.is_done = true;
    }
}

/// One worker's share of a [`CapturePort`]. A worker without packets reads and deals out for all.
pub struct CaptureQueue {
    deal: Option<Arc<Deal<CaptureReader<'static>>>>,
    number: usize,
    /// Number of the next window.
    next: u64,
    /// The window before it.
    current: Option<(Arc<Window>, GroupReader)>,
    output: Arc<Mutex<Output>>,
    is_stopped: bool,
    /// Whether the end was reached.
    is_done: bool,
}

impl CaptureQueue {
    /// Adds packets of the current window, and gives it back at its end.
    fn take(&mut self, burst: &mut Burst) -> Result<(), PortError> {
        if let Some((dealt, own)) = &mut self.current
            && own.fill(dealt, burst).map_err(read)? == 0
            && !burst.is_full()
            && let Some(deal) = &self.deal
            && let Some((dealt, _)) = self.current.take()
        {
            deal.finish(self.next - 1, dealt);
        }
        Ok(())
    }

    /// Goes on to the next window; false if there is none now. A worker that ends waits for those that deal out to it.
    fn advance(&mut self) -> Result<bool, PortError> {
        let Some(deal) = &self.deal else { return Ok(false) };
        let next = match deal.try_next(self.next) {
            Next::Later if self.is_stopped => deal.await_window(self.next).map_or(Next::End, Next::Window),
            next => next,
        };
        match next {
            Next::Window(dealt) => {
                self.next += 1;
                let own = dealt.group(self.number);
                self.current = Some((dealt, own));
                Ok(true)
            }
            Next::Later => Ok(false),
            Next::End => {
                self.is_done = true;
                deal.take_error().map_or(Ok(false), |error| Err(read(error)))
            }
        }
    }
}

impl Port for CaptureQueue {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while !burst.is_full() {
            self.take(burst)?;
            // The source may wait for other packets than these.
            if self.current.is_none() && (burst.len() > before || !self.advance()?) {
                break;
            }
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).send(&group)
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        if let Some(deal) = &self.deal {
            deal.stop();
        }
    }
}

impl Drop for CaptureQueue {
    fn drop(&mut self) {
        let Some(deal) = &self.deal else { return };
        let is_within = self.current.take().is_some();
        deal.leave(self.next - u64::from(is_within));
    }
}

impl fmt::Debug for CaptureQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureQueue").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Adds packets to a burst that has some: a reader clears the burst that it fills.
fn add(reader: &mut CaptureReader<'static>, burst: &mut Burst) -> Result<usize, PortError> {
    let mut next = Burst::default();
    let room = burst.room();
    next.limited(room, |next| reader.fill(next)).map_err(read)?;
    for frame in next.iter() {
        // A packet that fits into one burst fits into another.
        let _ = burst.push(frame.packet(), *frame.meta());
    }
    Ok(next.len())
}

fn read(error: ReadError) -> PortError {
    io::Error::new(io::ErrorKind::InvalidData, error).into()
}

fn written(error: WriteError) -> PortError {
    io::Error::other(error).into()
}

impl fmt::Debug for CapturePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturePort")
            .field("reads", &self.reader.is_some())
            .field("writes", &self.output.0.is_some())
            .finish_non_exhaustive()
    }
}
