//! Reading captures from the page cache into bursts, and writing them back.

mod memory;
#[cfg(any(feature = "rivals", feature = "libpcap"))]
mod rivals;
mod work;
mod workload;

use std::path::Path;

use work::{Rival, copy, read};
use workload::{Format, write};

use crate::measure::{Work, interleaved};
use crate::report::{Bar, Figure, Row};
use crate::settings::{Rows, Settings, Table};

pub(crate) use memory::child;

/// Bar in nanoseconds per packet: 10 million packets a second.
const BAR: Bar = Bar::Most(100.0);

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
