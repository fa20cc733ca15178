//! Captures: what is read is written, and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paceline::Burst;
use paceline::capture::{CaptureReader, CaptureWriter};

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = CaptureReader::new(bytes) else { return };
    let mut written = Vec::new();
    let Ok(mut writer) = CaptureWriter::new(&mut written, reader.header()) else { return };
    let (mut burst, mut packets) = (Burst::default(), 0);
    while let Ok(count @ 1..) = reader.fill(&mut burst) {
        packets += count;
        writer.write(&burst, reader.records(), |_| true).expect("memory takes what was read");
    }
    drop(writer);
    let mut again = CaptureReader::new(&written[..]).expect("what was written has a header");
    let mut found = 0;
    while let Ok(count @ 1..) = again.fill(&mut burst) {
        found += count;
    }
    assert!(found <= packets, "{found} of {packets}");
});
