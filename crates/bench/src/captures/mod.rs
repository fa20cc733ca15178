//! Reading captures from the page cache into bursts, and writing them back.

mod memory;
#[cfg(any(feature = "rivals", feature = "libpcap"))]
mod rivals;
mod workload;

use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;

use paceline_capture::{CaptureReader, CaptureWriter};
use paceline_frame::Burst;

use crate::measure::{Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::{Rows, Settings, Table};
pub(crate) use memory::child;
use workload::{Format, write};

/// Bar in nanoseconds per packet: 10 million packets a second.
const BAR: Bar = Bar::Most(100.0);

/// A rival: its name, and its work on a file.
type Rival = (&'static str, fn(&Path) -> Result<u64, Box<dyn Error>>);

pub(crate) fn table(settings: Settings) -> Table {
    let folder = tempfile::tempdir()?;
    let packets = if settings.smoke { 10_000 } else { 1_000_000 };
    let mut rows = Vec::new();
    for (format, len) in [
        (Format::Pcap, 64),
        (Format::PcapBigEndian, 64),
        (Format::Pcapng, 64),
        (Format::Pcap, 1514),
        (Format::Pcapng, 1514),
    ] {
        let packets = if len == 64 { packets } else { packets / 10 };
        let file = folder.path().join("capture");
        write(&file, format, packets, len)?;
        rows.extend(measure(settings, format, len, &file)?);
    }
    rows.extend(memory::rows(settings, folder.path())?);
    Ok(rows.into())
}

/// Rows of one capture: reading, against each rival, and copying.
fn measure(settings: Settings, format: Format, len: usize, file: &Path) -> Rows {
    let rivals = rivals(format);
    let mut works: Vec<Work<'_>> = vec![Box::new(|| read(file)), Box::new(|| copy(file))];
    for &(_, work) in &rivals {
        works.push(Box::new(move || work(file)));
    }
    let times = interleaved(settings.smoke, &mut works)?;
    let bar = (len == 64).then_some(BAR);
    let row = |what: &str, ours, against: &str, other, bar| {
        let name = format!("{what} {} of {len}-byte packets", format.name());
        Row::new(name, against, Figure::Time { ours, against: other }).with_bar(bar)
    };
    let mut rows = Vec::new();
    if rivals.is_empty() {
        rows.push(row("read", times[0], "", None, bar));
    }
    for (&(name, _), &time) in rivals.iter().zip(&times[2..]) {
        rows.push(row("read", times[0], name, Some(time), bar));
    }
    rows.push(row("read and write", times[1], "", None, bar));
    Ok(rows)
}

#[cfg(any(feature = "rivals", feature = "libpcap"))]
fn rivals(format: Format) -> Vec<Rival> {
    rivals::of(format)
}

#[cfg(not(any(feature = "rivals", feature = "libpcap")))]
fn rivals(_: Format) -> Vec<Rival> {
    Vec::new()
}

/// Reads a capture into bursts.
fn read(file: &Path) -> Result<u64, Box<dyn Error>> {
    let mut reader = CaptureReader::new(File::open(file)?)?;
    let mut burst = Burst::default();
    while reader.fill(&mut burst)? > 0 {}
    Ok(reader.packets())
}

/// Reads a capture and writes all of it. The output is discarded, so that the file system is not measured.
fn copy(file: &Path) -> Result<u64, Box<dyn Error>> {
    let mut reader = CaptureReader::new(File::open(file)?)?;
    let mut writer = CaptureWriter::new(io::sink(), reader.header())?;
    let mut burst = Burst::default();
    while reader.fill(&mut burst)? > 0 {
        writer.write(&burst, reader.records(), |_| true)?;
    }
    let packets = writer.packets();
    writer.finish(reader.records())?;
    Ok(packets)
}
