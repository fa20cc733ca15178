//! Many captures, scanned by several workers, with a filter and a program where the bytes are read.
//!
//! A [`Source`] is a capture on disk, in memory or anywhere else, perhaps compressed. [`Opened::open`] reads its header,
//! [`Opened::parts`] cuts it into [`Part`]s, which are plain data and can be read by any process, and [`scan`] reads parts on several
//! threads, and gives the packets in the order of the captures. A [`PartReader`] reads a single part.
//!
//! ```
//! use std::ops::ControlFlow;
//! use paceline_archive::{Opened, Source, Wanted, Worker, parts, scan};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/traffic.pcap");
//! let captures = [Opened::open(Source::open(path)?, None)?]; // a filter would be here
//! let parts = parts(&captures, 2, false)?;
//! let workers = (0..2).map(|_| Worker::default()).collect();
//! let mut packets = 0;
//! let report = scan(&captures, parts, workers, Wanted::default(), |rows| {
//!     packets += rows.len();
//!     ControlFlow::Continue(())
//! })?;
//! assert_eq!((packets, report.totals().read.packets), (492, 492));
//! # Ok(())
//! # }
//! ```
//!
//! Each worker has maps of its own. [`Rules`] say how they become one in the end, or why they cannot.
#![forbid(unsafe_code)]

mod compression;
mod error;
mod merge;
mod opened;
#[cfg(feature = "parquet")]
pub mod parquet;
mod part;
mod plan;
mod rows;
mod scan;
mod source;
pub mod table;
mod totals;
mod values;

pub use compression::Compression;
pub use error::Error;
pub use merge::{Elements, MergeError, Rule, Rules, Snapshot, merge};
pub use opened::Opened;
pub use part::{PartReader, Worker};
pub use plan::{parts, set_filters};
pub use rows::{Rows, Texts, Wanted};
pub use scan::scan;
pub use source::{Bytes, Part, Source};
pub use totals::{Report, Totals};
