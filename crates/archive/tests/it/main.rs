//! Scans of captures.

#[cfg(feature = "parquet")]
mod parquet;
mod programs;
mod scans;

use std::path::PathBuf;
use std::sync::Arc;

use paceline_archive::Source;

/// A file of the examples.
fn example(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples")).join(name)
}

/// A capture in memory.
fn in_memory(name: &str, bytes: Vec<u8>) -> Source {
    let len = bytes.len() as u64;
    let bytes: Arc<dyn paceline_archive::Bytes> = Arc::new(InMemory(bytes));
    Source::new(name, bytes, len).expect("memory can be read")
}

struct InMemory(Vec<u8>);

impl paceline::capture::ReadAt for InMemory {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.as_slice().read_at(offset, buffer)
    }
}
