//! Asks a live run for a capture, and writes it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use paceline::capture::WriteError;
use paceline::filter::{Libpcap, Missing, Packets, SockFilter, Target};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use super::args::CaptureArgs;
use super::blocks::Blocks;
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::files::{FileError, Opened};
use crate::common::watch::SignalError;
use crate::control::{Capture, Request, request_stream};
use crate::expression::{self, Passage};

/// Time between two looks whether an interrupt came.
const LOOK: Duration = Duration::from_millis(100);

/// A capture did not come to its end.
#[derive(Debug, thiserror::Error)]
enum CaptureError {
    #[error(transparent)]
    Libpcap(#[from] Missing),
    #[error("the live run: {0}")]
    Connection(io::Error),
    #[error("the live run sent what is no capture")]
    Malformed,
    #[error("the capture ends within a record: the live run has gone, or this was too slow")]
    Cut,
}

impl CommandError for CaptureError {}

/// Writes a capture of a live run.
pub(crate) fn capture(args: &CaptureArgs) -> Result<ExitCode, Failure> {
    let filter = match args.expression.is_empty() {
        true => None,
        false => Some(compiled(&args.expression.join(" "))?),
    };
    let wanted = Request::Capture(Capture { filter, count: args.count, time: args.seconds });
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_default(signal, Arc::clone(&interrupted)).map_err(SignalError)?;
        flag::register(signal, Arc::clone(&interrupted)).map_err(SignalError)?;
    }
    let opened = Opened::open(&args.out, "--out", &mut Vec::new())?;
    let mut stream = request_stream(&args.control, &wanted)?;
    stream.get_ref().set_read_timeout(Some(LOOK)).map_err(CaptureError::Connection)?;
    let (mut file, name) = opened.start_text()?;
    let blocks = copy(&mut stream, &mut file, &name, &interrupted)?;
    let text = format!(
        "{} records of packets, {} packets dropped because this was too slow",
        blocks.records, blocks.dropped
    );
    console::note(text);
    Ok(ExitCode::SUCCESS)
}

/// Compiles an expression for packets of interfaces.
fn compiled(expression: &str) -> Result<Vec<SockFilter>, Failure> {
    let libpcap = Libpcap::open().map_err(CaptureError::from)?;
    let packets = Packets::Capture { big_endian: cfg!(target_endian = "big") };
    let target = Target { packets, ..Target::default() };
    Ok(expression::compile(&libpcap, &Passage::of_text(expression.to_owned()), target)?)
}

/// Copies whole blocks until the end. An interrupt asks the live run to end the capture, which then is complete.
fn copy(
    stream: &mut io::BufReader<UnixStream>,
    file: &mut File,
    name: &str,
    interrupted: &AtomicBool,
) -> Result<Blocks, Failure> {
    let (mut blocks, mut part, mut is_told) = (Blocks::default(), vec![0; 1 << 16], false);
    loop {
        if interrupted.load(Ordering::Relaxed) && !is_told {
            is_told = true;
            let _ = stream.get_ref().shutdown(Shutdown::Write);
        }
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(len) => blocks.push(&part[..len]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(CaptureError::Connection(error).into()),
        }
        let whole = blocks.take().map_err(|_| CaptureError::Malformed)?;
        let written = file.write_all(&whole);
        written.map_err(|source| {
            let source = match source.kind() {
                io::ErrorKind::BrokenPipe => WriteError::BrokenPipe,
                _ => WriteError::Io { offset: 0, source },
            };
            FileError::Write { name: name.to_owned(), source }
        })?;
    }
    if blocks.is_cut() { Err(CaptureError::Cut.into()) } else { Ok(blocks) }
}
