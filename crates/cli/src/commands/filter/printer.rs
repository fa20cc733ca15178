//! Packets that match, printed in lines.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::rc::Rc;

use paceline::FrameRef;
use paceline::capture::LinkType;
use paceline::packet::to_line;

use crate::common::line::PacketLine;

/// Standard output for lines; the first error is kept to the end.
pub(super) struct Printer {
    link: LinkType,
    out: RefCell<(BufWriter<File>, io::Result<()>)>,
}

impl Printer {
    pub(super) fn new(link: LinkType) -> io::Result<Rc<Self>> {
        let out = BufWriter::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
        Ok(Rc::new(Self { link, out: RefCell::new((out, Ok(()))) }))
    }

    /// Prints a packet; only Ethernet is known in words.
    pub(super) fn add(&self, number: u64, frame: FrameRef<'_>) {
        let (out, result) = &mut *self.out.borrow_mut();
        if result.is_err() {
            return;
        }
        let bytes = frame.packet();
        let headers = match self.link {
            LinkType::ETHERNET => to_line(bytes),
            link => format!("link type {}, length {}", link.0, bytes.len()),
        };
        let time_ns = frame.meta().timestamp_ns;
        let line = PacketLine { number: Some(number), time_ns, verdict: None, headers: &headers, more: "" };
        *result = writeln!(out, "{line}");
    }

    /// Writes what is left.
    pub(super) fn finish(&self) -> io::Result<()> {
        let (out, result) = &mut *self.out.borrow_mut();
        std::mem::replace(result, Ok(())).and_then(|()| out.flush())
    }
}
