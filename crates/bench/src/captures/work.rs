//! The work that is measured.

use std::error::Error;
use std::fs::File;
use std::io;
use std::path::Path;

use paceline_capture::{CaptureReader, CaptureWriter};
use paceline_frame::Burst;

/// A rival: its name, and its work on a file.
pub(super) type Rival = (&'static str, fn(&Path) -> Result<u64, Box<dyn Error>>);

/// Reads a capture into bursts.
pub(super) fn read(file: &Path) -> Result<u64, Box<dyn Error>> {
    let mut reader = CaptureReader::new(File::open(file)?)?;
    let mut burst = Burst::default();
    while reader.fill(&mut burst)? > 0 {}
    Ok(reader.packets())
}

/// Reads a capture and writes all of it. The output is discarded, so that the file system is not measured.
pub(super) fn copy(file: &Path) -> Result<u64, Box<dyn Error>> {
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
